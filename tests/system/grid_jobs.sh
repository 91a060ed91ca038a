#!/bin/bash
# Jobs over the sites of a grid (causeway run -f): three sites that only SSH joins, of which one lets nothing in. Ranks
# are killed, hosts are lost, sites are cut off. Prints TAP.
#
#   grid_jobs.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="jobs on grids"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-150}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
# shellcheck source=tests/grid.sh
. "$root/tests/grid.sh"
# shellcheck source=tests/lib/on_grid.sh
. "$root/tests/lib/on_grid.sh"
only=${1-}
steps=4000 # of the solver: longer than what happens on the way

# over_grid RANKS OPTION...: the command of a job of the solver, from the front
over_grid() {
  ranks=$1
  job_command=("$grid_front" "${causeway[@]}" run -f "$tmp/grid.conf" --events "$work/events" -n "$@" "$solver" 200 "$steps" 1000)
}

# on_places HOST... -- OPTION...
on_places() {
  local hosts=()
  while [[ $1 != -- ]]; do
    hosts+=("$1")
    shift
  done
  grid_ranks "${hosts[@]}" >"$work/ranks"
  over_grid "${#hosts[@]}" --rankfile "$work/ranks" "${@:2}"
}

begin() {
  start "${job_command[@]}"
  await_true "the ranks to run" event_is_there rank_up $((ranks - 1))
  sleep 0.5
}

# expect_same: what the solver prints on this machine alone
expect_same() {
  "${causeway[@]}" run -n "$ranks" "$solver" 200 "$steps" 1000 >"$work/alone" 2>&1
  cmp -s "$work/alone" "$tmp/out" || wrong "the solver printed something else than on one machine: $(<"$work/alone")"
  expect_code 0
}

end() {
  finish
  expect_same
}

no_host_is_lost() {
  [[ $(event host_lost) = 0 ]] || wrong "a host was given up"
}

# --- the tests --------------------------------------------------------------------

all_sites() {
  over_grid 6 --map-by site "$@"
  run "${job_command[@]}"
  expect_same
  [[ ! -s $tmp/err ]] || wrong "expected nothing on standard error"
  no_host_is_lost
  if ! { started_on 0 a1.a 1 && started_on 2 b1.b 1 && started_on 4 c1.c 1; }; then
    wrong "ranks should be at their sites"
  fi
}

rank_is_killed() {
  over_grid 6 --map-by site --fault kill:3@event:4000 "$@"
  run "${job_command[@]}"
  expect_same
  if ! started_on 3 b1.b 2 && ! started_on 3 b2.b 2; then
    wrong "rank 3 should have been started again at its site"
  fi
}

# That of the two relays, and between b and c that which publishes c.
one_connection() {
  over_grid 6 --map-by site
  begin
  grid_crossings >"$work/crossings"
  end
  awk '$2 != "front" { exit !($3 == ($1 $2 == "bc" ? 2 : 1)) }' "$work/crossings" ||
    wrong "other than one connection between two sites: $(<"$work/crossings")"
}

# A way that is long enough for several
one_connection_over_a_long_way() {
  cp "$tmp/grid.conf" "$work/grid.conf"
  sed -i '1s/^/connections = 1; /' "$tmp/grid.conf"
  grid_slow a b 5 || wrong "the way is not slow"
  services_again || wrong "the services do not start: $(<"$work/again")"
  one_connection
  grid_fast a b
  cp "$work/grid.conf" "$tmp/grid.conf"
  services_again || wrong "the services do not start again: $(<"$work/again")"
}

site_is_cut() {
  over_grid 6 --map-by site
  begin
  grid_cut "$1" all
  sleep 7
  grid_join "$1" all
  end
  no_host_is_lost
}

# What other commands write for ssh, with another grid file or at another site, is not what a running job's nodes are
# reached by again.
config_is_written_anew() {
  over_grid 6 --map-by site
  begin
  "$grid_front" bash -c 'echo "ProxyCommand false" >"${XDG_STATE_HOME:-$HOME/.local/state}/causeway/test/ssh_config"'
  pkill -9 -P "$pid" -x ssh || wrong "the job has no connections by ssh"
  end
  (($(event host_resumed) > 0)) || wrong "no connection was made again"
  no_host_is_lost
}

host_is_lost() {
  on_places a1 a2 b1 b2 c1 c2 -- --host-timeout 2s
  begin
  host_kill b2
  end
  started_on 3 b1.b 2 || wrong "rank 3 should have been started again at its site"
  host_start b2
}

# Its site has no free slot, but the relay with its log.
rank_moves_to_another_site() {
  on_places a1 b1 b1 b1 b1 b2 -- --host-timeout 2s "$@"
  begin
  host_kill b2
  finish
  host_start b2
}

moved() {
  rank_moves_to_another_site --restart-at grid
  expect_same
  jq -es 'any(.[]; .event == "rank_started" and .rank == 5 and (.host | endswith(".b") | not))' "$work/events" >/dev/null ||
    wrong "rank 5 should have been started at another site"
}

not_moved() {
  rank_moves_to_another_site
  expect_code 1
  expect_err_like 'no free slot for it.*--restart-at grid'
}

relay_is_killed() {
  over_grid 6 --map-by site --resume-timeout 4s
  begin
  on_host b1 pkill -9 -f 'relay --listen'
  finish
  [[ $code != 0 ]] || wrong "a relay with its logs in memory is gone: the job should have ended"
  expect_err_like 'relay'
  services up >/dev/null
}

# --- the relay of site a for all --------------------------------------------------

# Those of the other sites are not needed.
one_relay() {
  on_host b1 pkill -9 -f 'relay --listen'
  on_host c1 pkill -9 -f 'relay --listen'
  over_grid 6 --map-by site --relay-at a --fault kill:3@event:4000
  run "${job_command[@]}"
  services up >/dev/null
  expect_same
  no_host_is_lost
}

one_relay_options=(--relay-at a --host-timeout 3s --ckpt-every 500ms)

# over_one_relay OPTION...: begins such a job
over_one_relay() {
  over_grid 6 --map-by site "${one_relay_options[@]}" "$@"
  begin_with_images
}

begin_with_images() {
  local rank
  begin
  for ((rank = 0; rank < ranks; rank++)); do
    await_true "an image of rank $rank" event_is_there image_stored "$rank"
  done
}

# no_rank_at SITE: no process of a rank; no_node_at SITE: no node, and so none of its ranks
no_rank_at() {
  ! says on_host "$1"1 pgrep -x solver && ! says on_host "$1"2 pgrep -x solver
}

no_node_at() {
  no_rank_at "$1" && ! says on_host "$1"1 pgrep -f 'causeway node' && ! says on_host "$1"2 pgrep -f 'causeway node'
}

# hosts_lost SITE: all of them
hosts_lost() {
  [[ $(hosts_of_event host_lost "$1") = 2 ]]
}

# hosts_of_event NAME SITE: of how many of its hosts it tells
hosts_of_event() {
  jq -r --arg name "$1" --arg site ".$2" 'select(.event == $name and (.host | endswith($site))) | .host' "$work/events" |
    sort -u | wc -l
}

# gone_on_elsewhere SITE: the ranks that were there have started at other sites
gone_on_elsewhere() {
  jq -es --arg site ".$1" '[.[] | select(.event == "rank_started")] | group_by(.rank) |
    all((.[0].host | endswith($site) | not) or (.[-1].host | endswith($site) | not))' "$work/events" >/dev/null
}

# in_a_minute WHAT COMMAND...: until it succeeds. Connections are given time before they count as broken.
in_a_minute() {
  local end=$((SECONDS + 60))
  until "${@:2}"; do
    ((SECONDS < end)) || {
      wrong "waited in vain for $1"
      return 1
    }
    sleep 0.1
  done
}

job_runs() {
  kill -0 "$pid" 2>/dev/null || wrong "the job has ended already: there was nothing to see"
}

# site_is_gone SITE: for longer than the timeout. Its processes end by themselves.
site_is_gone() {
  over_one_relay --restart-at grid
  grid_cut "$1" all
  await_true "the hosts of $1 to be lost" hosts_lost "$1"
  await_true "its ranks to go on elsewhere" gone_on_elsewhere "$1"
  await_true "the processes of $1 to end" no_node_at "$1"
  job_runs
  grid_join "$1" all
  await_true "a host to be there again" event_is_there host_back
  job_runs
  no_rank_at "$1" || wrong "there are ranks at $1"
  end
  await_true "the nodes of $1 to end" no_node_at "$1"
  event_is_there rank_restored || wrong "no rank went on from an image"
}

# A site that has stood still does not know that it was cut off: what its ranks say next is refused.
site_stood_still() {
  over_one_relay --restart-at grid
  site_signal "$1" STOP
  grid_cut "$1" all
  await_true "the hosts of $1 to be lost" hosts_lost "$1"
  await_true "its ranks to go on elsewhere" gone_on_elsewhere "$1"
  grid_join "$1" all
  job_runs
  ! no_rank_at "$1" || wrong "the old ranks at $1 have ended already"
  site_signal "$1" CONT
  await_true "the old ranks at $1 to end" no_rank_at "$1"
  end
  await_true "the nodes of $1 to end" no_node_at "$1"
}

# site_signal SITE NAME: to nodes, and all that they have started
site_signal() {
  local host
  for host in "$1"1 "$1"2; do
    on_host "$host" pkill "-$2" -f 'causeway node'
    on_host "$host" pkill "-$2" -x causeway-watch
    on_host "$host" pkill "-$2" -x solver
  done
}

# The hosts are there, but the logs cannot be reached.
cut_from_the_relay() {
  over_one_relay --restart-at grid --alive-timeout 4s
  grid_cut b a
  grid_cut b c
  in_a_minute "its ranks to go on elsewhere" gone_on_elsewhere b
  await_true "the old ranks at b to end" no_rank_at b
  job_runs
  grid_join b all
  end
  [[ $(hosts_of_event host_lost b) = 0 ]] || wrong "a host of b was given up"
  await_true "the nodes of b to end" no_node_at b
}

# The host is there, but the doors of its site are not.
doors_are_lost() {
  on_places a1 a1 b2 b2 c1 c1 -- "${one_relay_options[@]}" --restart-at grid --alive-timeout 4s
  begin_with_images
  host_kill b1
  in_a_minute "the ranks of b to go on elsewhere" gone_on_elsewhere b
  end
  [[ $(hosts_of_event host_lost b) = 1 ]] || wrong "b2 was given up"
  host_start b1
  services up >/dev/null 2>&1
}

gone_without_permission() {
  over_one_relay
  grid_cut b all
  finish
  expect_code 1
  expect_err_like 'no free slot for it.*--restart-at grid'
  await_true "the processes of b to end" no_node_at b
  grid_join b all
}

refused() {
  run "$grid_front" "${causeway[@]}" run -f "$tmp/grid.conf" "${@:2}" -n 2 "$solver" 20 20 10
  expect_code 2
  expect_message "$1"
}

against_each_other() {
  refused '--host: not with -f' --host a1
  refused '--relay: not with -f' --relay tcp:a1:7000
  refused '--here x: grid test has no such site' --here x
  refused "--restart-at x: expected site or grid" --restart-at x
  refused "--channel on: .* not with --restart-at" --channel on --restart-at grid
  refused "--channel on: .* not with --relay-at" --channel on --relay-at a
  refused "--relay-at cluster: expected a site of grid test: a, b, c" --relay-at cluster
}

services_again() {
  { services down && services up; } >"$work/again" 2>&1
}

# --- all of them ------------------------------------------------------------------

find_causeway
lib_start
grid_start three_sites
grid_file a b c:b >"$tmp/grid.conf"
services_start
t "ranks at three sites" all_sites
t "one connection between two sites" one_connection
t "one connection over a long way, as the grid file says" one_connection_over_a_long_way
t "ranks with channel memory at three sites" all_sites --channel on
t "a rank is killed" rank_is_killed
t "a rank with channel memory is killed" rank_is_killed --channel on
t "a site with a gateway is cut off" site_is_cut b
t "a site that is published is cut off" site_is_cut c
t "a configuration for ssh is written anew" config_is_written_anew
t "a host is lost" host_is_lost
t "a rank moves to another site" moved
t "a rank may not move to another site" not_moved
t "one relay for all sites" one_relay
t "a site with a gateway is lost" site_is_gone b
t "a site that is published is lost" site_is_gone c
t "a site stood still" site_stood_still b
t "a site is cut off from the one relay" cut_from_the_relay
t "the doors of a site are lost" doors_are_lost
t "a site is lost, and its ranks may not move" gone_without_permission
t "options that say the same" against_each_other
t "a relay is killed" relay_is_killed
services down >/dev/null 2>&1
tap_end

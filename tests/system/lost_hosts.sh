#!/bin/bash
# Hosts are lost with their relays, of whose logs others have copies (--log-copies): killed whole, or cut off, at random
# moments; the job goes on, and computes what it computes alone. Prints TAP.
#
#   lost_hosts.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite="hosts lost with their relays"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-180}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}
four=node1:2,node2:2,node3:2,node4:2
copies=(--log-copies 1 --host-timeout 1s)

before_test() {
  seed_draws "$1"
}

# --- what is waited for -----------------------------------------------------------

# all_are_covered COUNT: so many relays are, as was said last of each
all_are_covered() {
  (($(jq -s 'map(select(.event == "covered" or .event == "uncovered" or .event == "relay_moved"))
    | group_by(.number) | map(last | select(.event == "covered")) | length' "$work/events" 2>/dev/null) >= $1))
}

# at_random: up to three seconds pass
at_random() {
  draw_some 1 3000
  sleep "$((some[0] / 1000)).$(printf %03d $((some[0] % 1000)))"
}

more_than() {
  (($(event "$2") > $1))
}

# begin LIST RANKS OPTION... PROGRAM ARG...: a job, until all its ranks run
begin() {
  on "$1" "${copies[@]}" -n "$2" "${@:3}"
  start "${job_command[@]}"
  await_true "rank $(($2 - 1))" event_is_there rank_up $(($2 - 1))
}

# moved COUNT: so many relays were started elsewhere
moved() {
  [[ $(event relay_moved) = "$1" ]] || wrong "there are $(event relay_moved) events relay_moved, expected $1"
}

# again HOST...: they are switched on for the next test
again() {
  local host
  for host in "$@"; do host_start "$host"; done
}

# --- the tests --------------------------------------------------------------------

# one_is_killed HOST OPTION...
one_is_killed() {
  begin "$four" 8 "${@:2}" "$solver" 300 6000 1000
  at_random
  host_kill "$1"
  finish
  again "$1"
  expect_solver 300 6000 8
  moved 1
  [[ $(event host_lost) = 1 ]] || wrong "there are $(event host_lost) events host_lost"
}

# Sixteen ranks, which send to each other at random, and check what comes.
storm_goes_on() {
  begin node1:4,node2:4,node3:4,node4:4 16 "${@:2}" "$root/build/programs/storm"
  host_kill "$1"
  finish
  again "$1"
  expect_code 0
  expect_out 'ok storm'
}

# Its ranks and its relay go on without being heard, until they end by themselves; then it is there again.
one_is_cut_off() {
  begin "$four" 8 "$solver" 300 6000 1000
  at_random
  host_cut 2
  await_true "relay 1 to be started elsewhere" event_is_there relay_moved
  await_true "the cut host to end its processes" none_on 2
  host_join 2
  finish
  expect_solver 300 6000 8
  moved 1
  nothing_stays 1 2 3 4
}

# It is there again before it has given itself up: what it says is not heard any more.
one_comes_back_at_once() {
  begin "$four" 8 "$solver" 300 6000 1000
  at_random
  host_cut_from 3
  await_true "relay 2 to be started elsewhere" event_is_there relay_moved
  host_join 3
  finish
  expect_solver 300 6000 8
  nothing_stays 1 2 3 4
}

spare_takes_over() {
  begin "$four" 6 --spares 1 "$solver" 300 6000 1000
  at_random
  host_kill 2
  finish
  again 2
  expect_solver 300 6000 6
  moved 1
  [[ $(jq -r 'select(.event == "rank_started" and .incarnation > 1) | .host' "$work/events" | sort -u) = node4 ]] ||
    wrong "the ranks did not go on on node4"
  nothing_stays 1 3 4
}

spare_is_lost() {
  begin "$four" 6 --spares 1 "$root/build/programs/actor" init "ring_until=$work/go" finalize
  host_kill 4
  await_true "relays to be covered by others" all_are_covered 3
  host_kill 1
  await_true "rank 0 on another host" event_is_there rank_live 0
  touch "$work/go"
  finish
  again 1 4
  expect_code 0
  moved 1
}

one_after_the_other() {
  begin "$four" 8 "$@" "$root/build/programs/actor" init "ring_until=$work/go" finalize
  host_kill 2
  await_true "relay 1 to be started elsewhere" event_is_there relay_moved
  await_true "all relays to be covered" all_are_covered 4
  host_kill 3
  await_true "relays 1 and 2 to be started elsewhere" more_than 2 relay_moved
  touch "$work/go"
  finish
  again 2 3
  expect_code 0
  moved 3
  nothing_stays 1 4
}

# With one copy that is too much.
two_at_once() {
  begin "$four" 8 "$solver" 300 400000 1000
  host_cut 2
  host_cut 3
  finish
  host_join 2
  host_join 3
  expect_code 1
  grep -Eq '^causeway: relay .*: its log is lost with host node[23]: its copy was lost [0-9.]+ s before, and was not made again yet \(--log-copies 1\)$' \
    "$tmp/err" || wrong "nobody says which log is lost"
  nothing_stays 1 2 3 4
}

two_at_once_with_two_copies() {
  copies=(--log-copies 2 --host-timeout 1s)
  begin "$four" 8 "$solver" 300 6000 1000
  copies=(--log-copies 1 --host-timeout 1s)
  host_kill 2
  host_kill 3
  finish
  again 2 3
  expect_solver 300 6000 8
  moved 2
}

# The checkpoint server is on the machine of causeway run.
with_images() {
  begin "$four" 8 --ckpt-every 200ms "$solver" 300 8000 1000
  await_true "images of rank 2" event_is_there image_stored 2
  await_true "images of rank 3" event_is_there image_stored 3
  host_kill 2
  finish
  again 2
  [[ $(event rank_restored) -ge 1 ]] || wrong "no rank went on from an image"
  expect_solver 300 8000 8
  moved 1
}

# The relays' processes die alone; their nodes start them again.
relays_are_killed() {
  begin "$four" 8 --fault kill:relay1@500ms --fault kill:relay2@900ms --fault kill:1@700ms "$solver" 300 6000 1000
  finish
  expect_solver 300 6000 8
  moved 0
}

# What is on two slots goes to a host that has two, which are taken.
slots_are_shared() {
  begin node1:2,node2:2 4 "$solver" 300 6000 1000
  host_kill 2
  finish
  again 2
  expect_solver 300 6000 4
  grep -q 'host node1 has 2 slots for 4 ranks, which share them' "$tmp/err" || wrong "nobody says that ranks share slots"
  grep -Eq 'no other host can keep a copy of its log, which is lost with host node1' "$tmp/err" ||
    wrong "nobody says that there is no copy any more"
}

# max_slots is not exceeded.
no_room() {
  printf 'node1 slots=2 max_slots=3\nnode2 slots=2\n' >"$work/hosts"
  run "${causeway[@]}" run --hostfile "$work/hosts" --launcher-args "-F $hosts_config" --events "$work/events" "${copies[@]}" \
    -n 4 "$solver" 100 100 100
  expect_code 0
  grep -Eq 'no other host can keep a copy of its log, which is lost with host node2' "$tmp/err" ||
    wrong "nobody says that node2 has no backup"
}

lines_are_there() {
  (($(wc -l <"$tmp/out") >= $1))
}

# The spare host's relay stands still for a while, so what it has no copy of is lost with host 1. Of that nothing was
# printed: the messages, of ranks of the same host, come again in another order.
what_was_printed_stays_true() {
  begin node1:4,node2:4 4 --spares 1 "$root/build/programs/said" 12000
  await_true "lines of rank 0" lines_are_there 200
  on_host 2 pkill -STOP -f '^causeway relay' || wrong "there is no relay on the spare host"
  sleep 0.5
  host_kill 1
  on_host 2 pkill -CONT -f '^causeway relay'
  finish
  again 1
  expect_code 0
  moved 1
  [[ $(awk '$1 == "said" { if ($2 != lines++) exit; sum = (31 * sum + $3) % 1000003 } END { print "sum", sum }' "$tmp/out") = \
    "$(tail -n 1 "$tmp/out")" ]] || wrong "a line that was printed is not what happened"
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
say_seed
hosts_start "four hosts" 4

t "a host is killed" one_is_killed 2
t "the first one is killed" one_is_killed 1
t "the last one is killed" one_is_killed 4
t "one of sixteen ranks' is killed" storm_goes_on 3
t "a host is killed, with channel memory" one_is_killed 2 --channel on --no-ckpt
t "one of sixteen ranks' is killed, with channel memory" storm_goes_on 3 --channel on --no-ckpt
t "one host after the other, with channel memory" one_after_the_other --channel on --no-ckpt
t "a host is cut off" one_is_cut_off
t "a host is cut off, and comes back at once" one_comes_back_at_once
t "a spare host takes over" spare_takes_over
t "a spare host is lost, and then another one" spare_is_lost
t "one host after the other" one_after_the_other
t "two hosts at once" two_at_once
t "two hosts at once, and two copies" two_at_once_with_two_copies
t "what was printed stays true" what_was_printed_stays_true
t "with images" with_images
t "relays are killed, and a rank" relays_are_killed
t "ranks share slots" slots_are_shared
t "no room by max_slots" no_room
tap_end

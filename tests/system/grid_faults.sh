#!/bin/bash
# Jobs of 16 ranks over three sites of a grid, one after the other, in which faults happen that are drawn: ranks, nodes,
# relays, sshds, connections and what publishes a site are killed, ways between sites are cut, in one direction or in
# both, and slow. Each job prints what it prints on one machine. Prints TAP; the last lines but one count what happened.
#
#   grid_faults.sh [NUMBER]    begins with the job of that number (default: 1)
#
# Environment:
#   FAULTS_SECONDS  for so long jobs begin, and faults happen (default: 600)
#   SEED            draws the faults: those of a job by its number
# shellcheck disable=SC2317 # the tests are called by t, the faults by their names
set -u

suite="grids, random faults"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-300}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/grid.sh
. "$root/tests/grid.sh"
# shellcheck source=tests/lib/on_grid.sh
. "$root/tests/lib/on_grid.sh"
first=${1:-1}
seconds=${FAULTS_SECONDS:-600}
RANKS=16
FAULTY_MS=30000   # from the start of the ranks of a job: then it is left alone
DELAY_MS=4        # between sites, in each direction
UP_MAX_S=60       # until all ranks run
SERVICES_MAX_S=90 # until all services run again
LEFT_MAX_S=90     # until nodes that nobody has told of the end of a job end
CUT_MIN_MS=375    # a way is cut or slow, an sshd away, for so long, up to ...
CUT_DOUBLINGS=6   # ... 24 s: TCP may sleep for as long again, and all of it is to be less than --host-timeout

# Of tests/system/programs, with arguments: some ten seconds or more over the sites
works=("solver 200 1200 200" "storm 3000" "token_ring 4000 10000" "collectives 3000")
declare -A count=() # of faults, by kind
jobs=0 restarts=0

# --- drawing them -----------------------------------------------------------------

# Leaves one of the words in $one.
one_of() {
  one=${*:RANDOM % $# + 1:1}
}

# Leaves a time in $ms: each doubling is as likely as the other.
draw_ms() {
  ms=$((CUT_MIN_MS << RANDOM % CUT_DOUBLINGS))
  ms=$((ms + RANDOM % ms))
}

# draw_kills and draw_ways print lines "MS FAULT ARG...". They draw, so they may not run in another shell.
draw_kills() {
  local at kind=rank
  for ((at = RANDOM % 1000; at < FAULTY_MS; at += 500 + RANDOM % 4000)); do
    case $kind in
    rank) echo "$at kill_rank $((RANDOM % RANKS))" ;;
    node | relay) one_of a b c && echo "$at kill_$kind ${one}1" ;;
    tunnel) one_of a b c && echo "$at kill_tunnel ${one}1 $RANDOM" ;;
    connection) one_of a-gate b-gate c1 && echo "$at kill_connection $one $RANDOM" ;;
    publication) echo "$at kill_publication c1" ;;
    sshd)
      one_of a-gate b-gate c1 && draw_ms
      echo "$at host_kill_sshd $one"
      echo "$((at + ms)) host_start $one"
      ;;
    esac
    one_of rank rank rank rank tunnel tunnel connection connection sshd publication relay node
    kind=$one
  done
}

draw_ways() {
  local at kind=cut from to
  for ((at = RANDOM % 2000; at < FAULTY_MS; at += ms + RANDOM % 4000)); do
    one_of a b c front && from=$one
    one_of a b c front && to=$one
    [[ $from != "$to" ]] || to=all
    draw_ms
    if [[ $kind = slow ]]; then
      echo "$at grid_slow $from $to $((DELAY_MS + RANDOM % 100))"
      echo "$((at + ms)) as_before $from $to"
    else
      echo "$at grid_$kind $from $to"
      echo "$((at + ms)) grid_join $from $to"
    fi
    one_of cut cut cut_way slow
    kind=$one
  done
}

draw_plan() {
  {
    draw_kills
    draw_ways
  } >"$work/drawn"
  sort -n "$work/drawn" >"$work/plan"
}

# --- making them ------------------------------------------------------------------

# kill_rank RANK: where its last process was started
kill_rank() {
  local host pid
  read -r host pid < <(grep '"event":"rank_started"' "$work/events" | grep -E "\"rank\":$1[,}]" | tail -n 1 |
    jq -r '"\(.host) \(.pid)"')
  on_host "${host%.*}" kill -9 "$pid" || return
  killed[$1]=1
}

kill_node() {
  on_host "$1" pkill -9 -f 'causeway node$' || return
  lost[$1.${1:0:1}]=1
}

# That which its keeper starts again
kill_relay() {
  on_host "$1" pkill -9 -x causeway-relay || return
  relays_killed=1
}

kill_publication() {
  on_host "$1" pkill -9 -x ssh
}

# kill_of HOST PATTERN NUMBER: one of these processes there
kill_of() {
  local pids
  mapfile -t pids < <(on_host "$1" pgrep -f "$2")
  ((${#pids[@]})) && on_host "$1" kill -9 "${pids[$3 % ${#pids[@]}]}"
}

kill_tunnel() {
  kill_of "$1" 'causeway tunnel --fd' "$2"
}

# As seen by its sshd
kill_connection() {
  kill_of "$1" '^sshd: root' "$2"
}

# as_before FROM TO: undoes grid_slow
as_before() {
  grid_slow "$@" "$DELAY_MS"
}

# Since the ranks of the job have started
since_ms() {
  echo $((${EPOCHREALTIME/[.,]/} / 1000 - began_ms))
}

# fault NAME ARG...: makes it, counts it and writes it down with the time
fault() {
  local at_ms
  at_ms=$(since_ms)
  if "$@" >>"$work/said" 2>&1; then
    count[$1]=$((${count[$1]:-0} + 1))
  else
    set -- "$@" "(in vain)"
  fi
  echo "$at_ms ms: $*" >>"$work/faults"
}

# Those of the plan, until the job has ended; the first job has all of them
make_faults() {
  local at what
  while read -r at what; do
    until (($(since_ms) >= at)); do
      ! gone "$job" && ((number == first || SECONDS < end)) || return 0
      sleep 0.05
    done
    # shellcheck disable=SC2086 # words
    fault $what </dev/null
  done <"$work/plan"
}

mend() {
  local host
  grid_join all all
  grid_slow all all "$DELAY_MS" || wrong "the ways are slow no more"
  for host in a-gate b-gate c1; do
    host_start "$host"
  done
}

# --- a job ------------------------------------------------------------------------

# As the last status says
await_services() {
  local most=$((SECONDS + SERVICES_MAX_S))
  until "$grid_front" "${causeway[@]}" status -f "$tmp/grid.conf" >"$tmp/status" 2>&1; do
    ((SECONDS < most)) || { wrong "the services do not run: $(<"$tmp/status")" && return 1; }
    sleep 1
  done
}

await_ranks() {
  local most=$((SECONDS + UP_MAX_S))
  until (($(events rank_up) >= RANKS)); do
    if gone "$job" || ((SECONDS >= most)); then
      wrong "the ranks do not start"
      return
    fi
    sleep 0.1
  done
}

events() {
  grep -c "\"event\":\"$1\"" "$work/events"
}

# reference PROGRAM ARG...: leaves the file with what it prints on one machine in $reference
reference() {
  reference=$tmp/alone.$1
  [[ -e $reference ]] && return
  run "${causeway[@]}" run -n "$RANKS" "$root/build/programs/$1" "${@:2}"
  expect_code 0
  cp "$tmp/out" "$reference"
}

# Nothing else is lost than what was killed. A rank that connects when its relay is killed is restarted.
expect_killed_alone() {
  local rank host
  while read -r host; do
    [[ -n ${lost[$host]-} ]] || wrong "host $host was given up"
  done < <(jq -r 'select(.event == "host_lost").host' "$work/events")
  ((relays_killed || ${#lost[@]})) || while read -r rank; do
    [[ -n ${killed[$rank]-} ]] || wrong "rank $rank, which nobody has killed, was restarted"
  done < <(jq -r 'select(.event == "rank_down").rank' "$work/events")
}

# job_with_faults PROGRAM ARG...: with the faults that are drawn
job_with_faults() {
  local reference began_ms relays_killed=0
  local -A killed=() lost=()
  : >"$work/faults"
  reference "$@"
  draw_plan
  await_services || return
  : >"$work/events"
  start "$grid_front" "${causeway[@]}" run -f "$tmp/grid.conf" --map-by site -n "$RANKS" --ckpt-every 2s \
    --events "$work/events" "$root/build/programs/$1" "${@:2}"
  await_ranks
  began_ms=0 began_ms=$(since_ms)
  make_faults
  mend
  finish
  echo "# $(since_ms) ms, $(wc -l <"$work/faults") lines of faults, $(events rank_down) restarts"
  jobs=$((jobs + 1))
  restarts=$((restarts + $(events rank_down)))
  expect_code 0
  cmp -s "$reference" "$tmp/out" || wrong "it printed something else than on one machine"
  expect_killed_alone
  ((${#notes[@]} == 0)) || wrong "SEED=$seed; the faults: $(<"$work/faults")"
}

# --- all of them ------------------------------------------------------------------

slow_sites() {
  three_sites && grid_slow all all "$DELAY_MS"
}

before_test() {
  seed_draws "$1"
}

enough_happened() {
  ((${count[kill_rank]:-0})) || wrong "no rank was killed"
  ((${count[grid_cut]:-0} + ${count[grid_cut_way]:-0})) || wrong "no way was cut"
}

# await_none PATTERN: of such processes, at any host
await_none() {
  local most=$((SECONDS + LEFT_MAX_S))
  until none_runs "$1" >"$work/left"; do
    ((SECONDS < most)) || { wrong "left: $(<"$work/left")" && return 1; }
    sleep 0.5
  done
}

none_runs() {
  local host
  for host in a1 a2 b1 b2 c1 c2; do
    ! on_host "$host" pgrep -af "$1" || return
  done
}

all_ends() {
  await_none 'causeway node|build/programs/'
  services down >"$tmp/out" 2>"$tmp/err" || wrong "the services should have ended"
  await_none '^(/[^ ]*/)?causeway'
}

run_jobs() {
  local number end=$((SECONDS + seconds)) work_words
  for ((number = first; SECONDS < end; number++)); do
    read -ra work_words <<<"${works[(number - 1) % ${#works[@]}]}"
    t "job $number: ${work_words[*]}" job_with_faults "${work_words[@]}"
  done
}

lib_start
find_causeway
say_seed
grid_start slow_sites
# the second host of each site has room for the ranks of the first
grid_file a b c:b | sed -E 's/(name = "[abc]2"; slots = )4/\16/' >"$tmp/grid.conf"
services_start
run_jobs
t "ranks were killed, and ways were cut" enough_happened
t "nothing is left" all_ends
echo "# jobs: $jobs, restarts of ranks: $restarts"
unset 'count[grid_join]' 'count[as_before]' 'count[host_start]'
for kind in "${!count[@]}"; do
  echo "# ${kind//_/ }: ${count[$kind]}"
done | sort
tap_end

#!/bin/bash
# Engines of relays: choosing one and its pools, rightly and wrongly, and for each what a whole relay
# of it does with a crowd and with too few descriptors. Prints TAP.
#
#   engines.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
# shellcheck disable=SC2016,SC2317 # text for bash -c; the tests are called by t
set -u

suite=engines
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
crowd=$root/build/crowd # a client of many connections: tests/bench/crowd.c
find_causeway

# --- options ----------------------------------------------------------------------

# options_expect CODE REGEX OPTION...: with options, and a program that is well.
options_expect() {
  run_expect "$1" "$2" "${causeway[@]}" run "${@:3}" "$actor" init finalize
}

relay_options_expect() {
  run_expect "$1" "$2" "${causeway[@]}" relay --listen "unix:$work/r" "${@:3}"
}

# A line for each, with words on what it does.
listed() {
  local bad
  run_expect 0 '' "${causeway[@]}" relay --list-engines
  expect_out_like '^poll '
  bad=$(grep -Evc '^[a-z]+ +[^ ].*[^ ]$' "$tmp/out")
  [[ $bad = 0 ]] || wrong "expected of each line a name and what it does"
  [[ -z $(cut -d ' ' -f 1 "$tmp/out" | sort | uniq -d) ]] || wrong "expected each engine once"
}

# pool_option OPTION LEAST VALUE...: values out of bounds
pool_option() {
  local value
  for value in "${@:3}"; do
    t "relay $1 '$value'" relay_options_expect 2 "^causeway relay: $1 '$value'.*from $2 to 256" \
      "$1" "$value"
  done
}

with_relay() {
  (umask 077 && printf '%064d\n' 0 >"$work/key")
  options_expect 2 "$1 is for the job's own relay, not with --relay" "$@" \
    --relay "unix:$work/r" --key-file "$work/key"
}

option_tests() {
  t "relay --list-engines" listed
  t "--engine of no such name" options_expect 2 '^causeway run: --engine warp: no such engine' \
    --engine warp
  t "relay --engine of no such name" relay_options_expect 2 \
    '^causeway relay: --engine warp: no such engine' --engine warp
  pool_option --threads 1 0 257 x -1 ''
  pool_option --receivers 1 0 257 x
  pool_option --senders 1 0 257 1.5
  pool_option --loggers 0 -1 257 x
  t "--engine with --relay" with_relay --engine poll
}

# --- each engine ------------------------------------------------------------------

carries() {
  start_relay --listen "unix:$work/r" --engine "$1" --receivers 2 --loggers 2 --senders 2 --threads 3
  run_expect 0 '' "${causeway[@]}" run --relay "$address" -n 4 "$actor" init ring=100 finalize
  expect_out 'ring of 4'
}

# crowd_of COUNT RATE: connections, so many a second or (0) at once; leaves in $served how many heard
# from the relay.
crowd_of() {
  run "$crowd" "unix:$work/r" "$1" "$2" 0
  expect_code 0
  served=$(awk '$1 == "served" { print $2 }' "$tmp/out")
  refused=$(awk '$1 == "refused" { print $2 }' "$tmp/out")
  ((served + refused == $1)) || wrong "expected each of $1 to be served or refused"
}

# job_there: a job over the relay still ends well.
job_there() {
  run_expect 0 '' "${causeway[@]}" run --relay "unix:$work/r" -n 2 "$actor" init ring finalize
  expect_out 'ring of 2'
}

serves_burst() {
  start_relay --listen "unix:$work/r" --engine "$1"
  crowd_of 1000 0
  ((refused == 0)) || wrong "expected all of 1000 to be served, saw $served"
  job_there
}

# few_descriptors COUNT: the relay has at most so many open.
few_descriptors() {
  (($(find "/proc/$helper/fd" -type l | wc -l) <= $1))
}

# is_full ENGINE RATE: it refuses who comes too many, says how many, in few lines, and goes on.
is_full() {
  local before said="descriptor limit reached, connections refused: [0-9]*; raise 'ulimit -n'"
  helper relay bash -c 'ulimit -n 60 && exec "$@"' _ "${causeway[@]}" relay \
    --listen "unix:$work/r" --engine "$1"
  await_true "the relay to listen" grep -q 'listening on' "$tmp/relay.err"
  before=$(find "/proc/$helper/fd" -type l | wc -l)
  crowd_of 200 "$2"
  ((served > 10 && served < 60)) || wrong "expected some 50 of 200 to be served, saw $served"
  grep -q "$said" "$tmp/relay.err" || wrong "expected the relay to say so"
  await_true "the relay to close what the crowd has left" few_descriptors "$before"
  job_there
  stop_helpers
  (($(grep -c "$said" "$tmp/relay.err") < refused / 2)) || wrong "expected few lines of it"
  (($(grep -o "$said" "$tmp/relay.err" | awk '{ sum += $6 } END { print sum }') == refused)) ||
    wrong "expected it to count $refused refused connections"
}

# What the relay says when it cannot run here, or nothing.
not_here() {
  "${causeway[@]}" relay --listen "unix:$tmp/no/such/dir" --engine "$1" 2>&1 |
    grep -v '/no/such/dir'
}

engine_tests() {
  local engine why
  for engine in $("${causeway[@]}" relay --list-engines | cut -d ' ' -f 1); do
    why=$(not_here "$engine")
    if [[ -n $why ]]; then
      tap_skip "engine $engine" "$why"
      continue
    fi
    t "engine $engine: a job" carries "$engine"
    t "engine $engine: 1000 connections at once" serves_burst "$engine"
    t "engine $engine: too few descriptors" is_full "$engine" 0
    t "engine $engine: too few descriptors, one after the other" is_full "$engine" 400
  done
}

main() {
  local it
  for it in "${causeway[@]}" "$actor" "$crowd"; do
    [[ -x $it ]] || { echo "engines.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  cd "$tmp" || exit 2
  option_tests
  engine_tests
  tap_end
}

main

#!/bin/bash
# Connections break while jobs run: those of ranks to their relays, those between relays, and those of the
# dispatcher. The sessions go on over new ones, and the job comes to the same end as without, with no
# restart. Prints TAP. What breaks is chosen at random moments; each job runs until it has broken often enough.
#
#   resume.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite=resume
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/rings.sh
. "$here/../lib/rings.sh"
only=${1-}
find_causeway

# How many times a connection was broken, as the job has told until now.
broken() {
  grep -c '"fault_fired".*"cut"' "$tmp/events"
}

broken_often() {
  (($(broken) >= $1)) || gone "$pid"
}

# repeat WHAT COUNT EVERY_MS: options in $cuts that break it so many times.
repeat() {
  local i
  cuts=()
  for ((i = 1; i <= $2; i++)); do
    cuts+=(--fault "cut:$1@$((i * $3 + RANDOM % $3))ms")
  done
}

# rings_go_on COUNT RANKS OPTION...
rings_go_on() {
  local count=$1 ranks=$2 lines
  shift 2
  reference "$ranks"
  start_rings -n "$ranks" "$@"
  await_true "$count breaks" broken_often "$count"
  expect_untouched "$ranks"
  expect_silence
}

ranks_cut() {
  rings_go_on 30 3 --fault cut:random@15ms "$@"
}

relays_cut() {
  local cuts
  repeat relays 30 40
  rings_go_on 30 4 --relays 3 "${cuts[@]}" "$@"
}

# The dispatcher knows that its connections came back.
dispatcher_cut() {
  local cuts lines
  repeat dispatcher 30 40
  reference 2
  start_rings -n 2 "${cuts[@]}" "$@"
  await_true "30 breaks" broken_often 30
  await_event session_resumed 5 # a busy machine is not back before it is broken again
  expect_untouched 2
  expect_silence
}

all_cut() {
  local cuts all=()
  repeat relays 20 60
  all+=("${cuts[@]}")
  repeat dispatcher 20 60
  all+=("${cuts[@]}")
  rings_go_on 60 4 --relays 2 --fault cut:random@20ms "${all[@]}" "$@"
}

over_tcp() {
  start_tcp_relay
  "$1" --relay "$address" --key-file "$work/key" "${@:2}"
}

all_cut_over_tcp() {
  local one addresses=() cuts all=()
  for one in first second; do
    helper "$one" "${causeway[@]}" relay --listen tcp:127.0.0.1:0 --key-file "$work/key"
    await_true "relay $one" grep -q listening "$tmp/$one.err"
    addresses+=(--relay "$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$tmp/$one.err")")
  done
  repeat relays 20 60
  all+=("${cuts[@]}")
  repeat dispatcher 20 60
  all+=("${cuts[@]}")
  rings_go_on 60 4 "${addresses[@]}" --key-file "$work/key" --fault cut:random@20ms "${all[@]}"
}

# program_goes_on OPTION... -n RANKS PROGRAM: its whole output is as without breaks.
program_goes_on() {
  run "${causeway[@]}" run "$@"
  sort "$tmp/out" >"$tmp/expected"
  run "${causeway[@]}" run --events "$tmp/events" --fault cut:random@5ms --fault cut:dispatcher@30ms "$@"
  expect_code 0
  expect_silence
  sort "$tmp/out" | cmp -s - "$tmp/expected" || wrong "expected the output of a job without breaks"
  ! grep -q '"rank_down"' "$tmp/events" || wrong "expected no rank to go down"
}

# Crashes beside breaks: restarts, as many as kills.
with_kills() {
  run "${causeway[@]}" run --events "$tmp/events" --fault cut:random@10ms --fault cut:dispatcher@100ms \
    --fault kill:1@event:300 --fault kill:0@event:500 "$@" -n 3 "$actor" init ring=400 lines=20,40 ring=400 finalize
  expect_code 0
  expect_out_like '^ring of 3$'
  [[ $(grep -c '^ring of 3$' "$tmp/out") = 2 ]] || wrong "expected two rings to end, each told once"
  [[ $(count rank_started) = 5 ]] || wrong "expected two restarts"
}

# A rank that crashes at the same place again has a fault of its own: known without waiting for its session.
crashes_alike() {
  local before
  before=$(now_ms)
  run "${causeway[@]}" run --resume-timeout 1h -n 2 "$actor" init ring 1:raise=11 ring finalize
  expect_code 139
  expect_err_like 'again at the same event'
  (($(now_ms) - before < LIMIT * 1000 / 2)) || wrong "it took $(($(now_ms) - before)) ms"
}

# The process of a rank is killed while its session is suspended.
killed_while_suspended() {
  : >"$tmp/events"
  start "${causeway[@]}" run --resume-timeout 1h --events "$tmp/events" --fault stop:1@300ms --fault cut:1@400ms \
    -n 2 "$actor" init "pid=$work/pid" ring "await=$work/go" ring=50 finalize
  await_true "the break" broken_often 1
  kill -9 "$(rank_pid 1)"
  end_well
  expect_out_like '^ring of 2$'
  [[ $(count rank_started) = 3 ]] || wrong "expected one restart"
}

# Without a time to resume in, a break is a crash.
no_timeout() {
  run "${causeway[@]}" run --resume-timeout 0 --events "$tmp/events" --fault cut:1@100ms -n 2 \
    "$actor" init ring "sleep=0.5" ring=50 finalize
  expect_code 0
  expect_out_like '^ring of 2$'
  expect_err_like 'rank 1 lost its relay.*restarting it'
}

no_timeout_no_log() {
  run "${causeway[@]}" run --resume-timeout 0 --no-log --fault cut:1@100ms -n 2 \
    "$actor" init ring "sleep=0.5" ring=50 finalize
  expect_code 1
  expect_err_like 'rank 1 .*lost its relay'
}

no_timeout_dispatcher() {
  run "${causeway[@]}" run --resume-timeout 0 --fault cut:dispatcher@1s -n 2 \
    "$actor" init ring "sleep=5" ring=50 finalize
  expect_code 1
  expect_err_like 'the relay closed the connection'
}

# Counters and the status of a job whose connection breaks.
asked_meanwhile() {
  local cuts i
  repeat dispatcher 40 25
  start_told --stats "${cuts[@]}" -n 2 "$actor" init \
    "ring_until=$work/go" finalize
  await_true "the job" broken_often 1
  for ((i = 0; i < 10; i++)); do
    "${causeway[@]}" status >"$tmp/status" 2>&1 || wrong "status: $(<"$tmp/status")"
  done
  await_true "40 breaks" broken_often 40
  end_well
  [[ $(grep -c '^ *[01] ' "$tmp/err") = 2 ]] || wrong "expected a line for each of 2 ranks"
}

# The job ends while the dispatcher's session is broken again and again, so its counters cannot be asked for at once.
asked_at_the_end() {
  local cuts i
  repeat dispatcher 60 4
  for ((i = 0; i < 4; i++)); do
    rm -f "$work/go"
    start_told --stats "${cuts[@]}" -n 2 "$actor" init "ring_until=$work/go" finalize
    await_true "30 breaks" broken_often 30
    end_well
    [[ $(grep -c '^ *[01] ' "$tmp/err") = 2 ]] || wrong "expected a line for each of 2 ranks"
  done
}

main() {
  lib_start
  t "ranks" ranks_cut
  t "ranks, without rings" ranks_cut --rings off
  t "ranks, without a log" ranks_cut --no-log
  t "ranks, over TCP" over_tcp ranks_cut
  t "ranks, over TCP, without a log" over_tcp ranks_cut --no-log
  t "links between relays" relays_cut
  t "links between relays, without a log" relays_cut --no-log
  t "the dispatcher" dispatcher_cut
  t "the dispatcher, of several relays" dispatcher_cut --relays 3
  t "the dispatcher, over TCP" over_tcp dispatcher_cut
  t "all" all_cut
  t "all, without a log" all_cut --no-log
  t "all, over TCP" all_cut_over_tcp
  t "the whole output of a program" program_goes_on -n 4 "$programs/storm"
  t "the whole output of a program that prints parts of lines" program_goes_on -n 3 "$programs/partial_lines"
  t "large messages" program_goes_on -n 2 "$programs/sizes"
  t "messages to others' memory" program_goes_on -n 3 "$programs/rma_fence"
  t "with kills" with_kills
  t "with kills, without rings" with_kills --rings off
  t "with kills, several relays" with_kills --relays 2
  t "a rank that crashes alike twice" crashes_alike
  t "a rank that is killed while its session is suspended" killed_while_suspended
  t "--resume-timeout 0: a rank" no_timeout
  t "--resume-timeout 0: a rank, without a log" no_timeout_no_log
  t "--resume-timeout 0: the dispatcher" no_timeout_dispatcher
  t "status and counters" asked_meanwhile
  t "counters, asked for while the session is suspended" asked_at_the_end
  tap_end
}

main

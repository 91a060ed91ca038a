#!/bin/bash
# The process of a job's own relay dies, and the dispatcher starts it again on its log (--log-safety file): how often,
# where and with what, and that the job goes on as if nothing had happened. Prints TAP.
#
#   relay_return.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2317,SC2154 # text for bash -c; the tests are called by t; of lib.sh
set -u

suite="relays that come back"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/rings.sh
. "$here/../lib/rings.sh"
# shellcheck source=tests/lib/keepers.sh
. "$here/../lib/keepers.sh"
only=${1-}
find_causeway

# --- jobs, and the processes of their relays --------------------------------------

# start_safe OPTION... COMMAND...: a job whose relays come back
start_safe() {
  start_told --log-safety file "$@"
}

first_relay() {
  own_relay | head -n 1
}

# A job of two idle ranks that have connected; leaves the relay's process in $relay, and its socket in $socket.
start_idle() {
  start_safe "$@" -n 2 "$actor" init "pid=$work/pid" sleep=60 finalize
  await_event rank_up 2
  relay=$(first_relay)
  socket=$(echo "$TMPDIR"/causeway-*/relay)
}

# The ranks end with the job: the relay may know nothing of them.
end_idle() {
  kill -TERM "$pid"
  finish
  expect_code 143
}

# Nothing can listen there any more, until let_it_listen.
block_socket() {
  rm -f "$socket"
  : >"$socket"
}

let_it_listen() {
  rm -f "$socket"
}

# expect_value EVENT MEMBER VALUE: of the first of these events
expect_value() {
  grep -m 1 "\"event\":\"$1\"" "$tmp/events" | grep -q "\"$2\":$3[,}]" || wrong "expected $2 of $1 to be $3"
}

# --- its process -------------------------------------------------------------------

refused_relay() {
  run_expect 2 "$1" "${causeway[@]}" relay --listen "unix:$work/r" "${@:2}"
}

in_memory_alone() {
  run_expect 1 'relay unix:.* was killed by signal 9 \(Killed\); the messages in it are lost, so the job ends' \
    "${causeway[@]}" run --fault kill:relay@100ms "$@" -n 2 "$actor" init sleep=60 finalize
}

one_of_them_in_memory() {
  run_expect 1 'relay unix:.*/relay.2 was killed by signal 9' \
    "${causeway[@]}" run --relays 3 --fault kill:relay2@100ms -n 3 "$actor" init sleep=60 finalize
}

# By whoever kills it: at the same address, with what its log is in.
started_again() {
  local next
  start_idle "$@"
  kill -9 "$relay"
  await_event relay_up 1
  next=$(own_relay)
  [[ -n $next && $next != "$relay" ]] || wrong "expected another process than $relay, saw '$next'"
  tr '\0' ' ' <"/proc/$next/cmdline" | grep -Eq -- "--listen unix:$socket .*--state-fd [0-9]+ " ||
    wrong "expected the same address and its state, saw $(describe_process "$next")"
  [[ -S $socket ]] || wrong "expected the socket $socket"
  end_idle
  expect_err_like "$relay_line"
  expect_value relay_down signal 9
  expect_value relay_down relay "\"unix:$socket\""
  expect_value relay_up relay "\"unix:$socket\""
  expect_value relay_up restarts 1
}

# It has ended its sessions, and its log with them: there is nothing to go on with.
asked_to_end() {
  start_idle
  kill -TERM "$relay"
  expect_end 1 'the relay unix:[^ ]* ended with code 0, so the job ends$'
  [[ $(count relay_down) = 0 ]] || wrong "expected no other relay"
}

told_in_status() {
  start_idle --relays 2
  kill -9 "$relay"
  await_event relay_up 1
  "${causeway[@]}" status --json >"$tmp/status" 2>&1
  grep -q '"relay_restarts":\[1,0\]' "$tmp/status" || wrong "expected relay_restarts, saw $(<"$tmp/status")"
  end_idle
}

by_a_drill() {
  start_idle --fault kill:relay@100ms
  await_event relay_up 1
  end_idle
  expect_err_like "$relay_line"
  [[ $(count fault_fired) = 1 ]] || wrong "expected one fault"
}

# descriptors PID: what those are, each named once, that a relay's log may be in
descriptors() {
  find "/proc/$1/fd" -lname '*causeway-log*' -printf '%l\n' -o -lname "$logs/*" -printf 'file\n' 2>/dev/null |
    sed 's/^.memfd:causeway-log.*/state/' | sort -u | tr '\n' ' '
}

# expect_descriptors WHAT: of the node of this machine and its relay; ranks have none
expect_descriptors() {
  local it
  for it in "$(child_of "$pid")" "$relay"; do
    [[ $(descriptors "$it") = "$1" ]] || wrong "expected the descriptors '$1', saw '$(descriptors "$it")'"
  done
  for it in 0 1; do
    [[ -z $(descriptors "$(rank_pid "$it")") ]] || wrong "expected none in rank $it"
  done
}

# What a log is in belongs to the node, and each relay gets the same.
log_is_kept() {
  local logs what=$1
  logs=$(mktemp -d "$root/build/cwlogs.XXXXXX")
  start_idle --log-dir "$logs" "${@:2}"
  expect_descriptors "$what"
  kill -9 "$relay"
  await_event relay_up 1
  relay=$(own_relay)
  expect_descriptors "$what"
  end_idle
  rmdir "$logs" || wrong "expected no file in --log-dir, saw $(ls "$logs")"
}

log_of_memory_is_not_kept() {
  local logs=$tmp/none
  start_safe --log-safety memory -n 2 "$actor" init "pid=$work/pid" sleep=60 finalize
  await_event rank_up 2
  relay=$(own_relay)
  [[ -z $(descriptors "$pid")$(descriptors "$relay" | tr -d ' ') ]] || wrong "expected no descriptors"
  end_idle
}

bad_log_dir() {
  run "${causeway[@]}" run --log-safety file --log-dir /no/such/dir -n 1 "$actor" init finalize
  expect_code 1
  expect_err_like '--log-dir /no/such/dir: making a file there'
}

# One that cannot start again is tried again, after pauses, and not for ever.
not_for_ever() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  finish
  expect_code 1
  expect_err_like "$relay_line"
  expect_err_like '^causeway: the relay unix:[^ ]* ended with code 1 after it was started again 16 times, so the job ends$'
  [[ $(count relay_down) = 16 ]] || wrong "expected 16 restarts, saw $(count relay_down)"
  [[ $(count relay_up) = 0 ]] || wrong "expected that it never listened"
}

# ... and for no longer than sessions wait.
no_longer_than_sessions() {
  local before
  start_idle --resume-timeout 2s
  block_socket
  before=$(now_ms)
  kill -9 "$relay"
  finish
  expect_code 1
  expect_err_like 'and the session could not be resumed'
  (($(now_ms) - before < 8000)) || wrong "it took $(($(now_ms) - before)) ms"
}

late() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  await_event relay_down 4
  let_it_listen
  await_event relay_up 1
  end_idle
}

# One that does not listen counts as dead.
never_listens() {
  relays_stop
  start_idle --resume-timeout 1h
  relays_start
  touch "$tmp/stop"
  kill -9 "$relay"
  sleep 1
  rm "$tmp/stop"
  sleep 8
  [[ $(count relay_down),$(count relay_up) = 1,0 ]] || wrong "expected that it is waited for"
  await_event relay_up 1
  end_idle
  [[ $(count relay_down) = 2 ]] || wrong "expected that it was killed, and started again"
}

# A rank whose relay is away is started when it is back.
rank_waits() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  await_event relay_down 2
  kill -9 "$(rank_pid 1)"
  await_event rank_down 1
  await_event relay_down 5
  [[ $(count rank_started) = 2 ]] || wrong "expected no rank to be started without a relay"
  let_it_listen
  await_event relay_up 1
  await_event rank_started 3
  end_idle
}

# ... or never, when the job ends before.
rank_waits_in_vain() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  await_event relay_down 2
  kill -9 "$(rank_pid 1)"
  await_event rank_down 1
  end_idle
  [[ $(count rank_started) = 2 ]] || wrong "expected no rank to be started"
}

job_ends_while_it_is_away() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  await_event relay_down 3
  end_idle
}

# It is away when all ranks have ended, and cannot start again: nobody needs it.
ranks_end_while_it_is_away() {
  start_safe --resume-timeout 1h -n 2 "$actor" init ring finalize "pid=$work/pid" "await=$work/go"
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  relay=$(first_relay)
  socket=$(echo "$TMPDIR"/causeway-*/relay)
  block_socket
  kill -9 "$relay"
  await_event relay_down 2
  touch "$work/go"
  finish
  expect_code 0
  expect_out 'ring of 2'
}

# All ranks have ended, and the dispatcher waits for the reader of what they printed.
killed_after_the_ranks() {
  mkfifo "$work/pipe"
  : >"$tmp/events"
  start bash -c 'exec "${@:2}" >"$1"' _ "$work/pipe" "${causeway[@]}" run --log-safety memory --events "$tmp/events" \
    -n 2 "$actor" init ring finalize 0:lines=1500,100
  {
    await_event rank_ended 2
    relay=$(first_relay)
    kill -9 "$relay"
    await_true "the dispatcher to hear of it" gone "$relay"
    cat
  } <"$work/pipe" >"$tmp/out"
  finish
  expect_code 0
  [[ $(wc -l <"$tmp/out") = 1501 ]] || wrong "expected 1501 lines, saw $(wc -l <"$tmp/out")"
  expect_silence
}

# Whether that process sleeps, and has slept for a while.
sleeps() {
  local i switches last
  for i in 1 2 3 4; do
    [[ $(cut -d ' ' -f 3 "/proc/$1/stat") = S ]] || return
    switches=$(grep '^voluntary' "/proc/$1/status")
    [[ $i = 1 || $switches = "$last" ]] || return
    last=$switches
    sleep 0.05
  done
}

# Rank 1 has written its last message, and waits in MPI_Finalize for the others, when the relay dies without having
# read it.
last_message_unread() {
  start_safe --resume-timeout 1h "$@" -n 2 "$actor" init "pid=$work/pid" "1:await=$work/go" 1:send=0 "1:touch=$work/sent" \
    0:receive=1 finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  relay=$(first_relay)
  kill -STOP "$relay"
  touch "$work/go"
  await_file "$work/sent"
  await_true "rank 1 to wait in MPI_Finalize" sleeps "$(rank_pid 1)"
  kill -9 "$relay"
  finish
  expect_code 0
  expect_out '1 from 1'
  expect_only_relays
}

# Rank 0 waits in MPI_Init for rank 1 when the relay dies: its session is resumed before rank 1 is there.
killed_in_init() {
  start_safe --resume-timeout 3s "$@" -n 2 "$actor" "1:await=$work/go" init ring finalize
  await_event rank_up 1
  kill -9 "$(first_relay)"
  await_event relay_up 1
  sleep 3.5
  touch "$work/go"
  finish
  expect_code 0
  expect_out 'ring of 2'
  expect_only_relays
  [[ $(count rank_down) = 0 ]] || wrong "expected no rank to go down"
}

dispatcher_dies_while_it_is_away() {
  start_idle --resume-timeout 1h
  block_socket
  kill -9 "$relay"
  await_event relay_down 3
  kill -9 "$pid"
  finish
  await_true "all processes to end" none_marked
  rm -rf "$TMPDIR"/causeway-*
}

# --- the job goes on ---------------------------------------------------------------

# kills COUNT EVERY_MS WHO...: options in $kills that kill each of these relays so many times.
kills() {
  local i one
  kills=()
  for ((i = 1; i <= $1; i++)); do
    for one in "${@:3}"; do
      kills+=(--fault "kill:$one@$((i * $2 + RANDOM % $2))ms")
    done
  done
}

# Of the jobs of start_rings
job_options=(--log-safety file)

# A rank that was just connecting is another incarnation later.
expect_only_relays() {
  local other hello='rank [0-9]+ (lost its relay: relay unix:|is back: it repeated 0 events)'
  other=$(grep -Ev -- "$relay_line|$hello" "$tmp/err" | head -n 3)
  [[ -z $other ]] || wrong "expected nothing else on standard error than relays, saw: $other"
}

# rings_go_on COUNT RANKS OPTION...: until relays have come back so often
rings_go_on() {
  local count=$1 ranks=$2 lines
  shift 2
  reference "$ranks"
  start_rings -n "$ranks" "$@"
  await_event relay_up "$count"
  expect_untouched "$ranks"
  expect_only_relays
}

killed_once() {
  rings_go_on 1 3 --fault kill:relay@200ms "$@"
}

killed_often() {
  local kills
  kills 6 500 relay
  rings_go_on 6 3 "${kills[@]}" "$@"
}

each_killed() {
  local kills
  kills 3 700 relay0 relay1 relay2
  rings_go_on 9 4 --relays 3 "${kills[@]}" "$@"
}

# Its ranks wait until it goes on.
stopped() {
  local lines
  rings_of 2 "$@"
  relay=$(own_relay)
  kill -STOP "$relay"
  sleep 1
  kill -CONT "$relay"
  sleep 0.3
  expect_untouched 2
  expect_silence
}

killed_while_stopped() {
  local lines
  rings_of 2 "$@"
  relay=$(own_relay)
  kill -STOP "$relay"
  sleep 0.3
  kill -9 "$relay"
  await_event relay_up 1
  sleep 0.3
  expect_untouched 2
  expect_only_relays
}

# Connections break as well, before and after.
with_cuts() {
  local kills
  kills 4 500 relay
  rings_go_on 4 3 "${kills[@]}" --fault cut:random@30ms --fault cut:dispatcher@450ms --fault cut:dispatcher@900ms "$@"
}

# Ranks that crash meanwhile repeat what they did, from the log of a relay that was killed.
with_killed_ranks() {
  local kills lines
  reference 3
  kills 4 500 relay
  start_rings -n 3 "${kills[@]}" --fault kill:1@550ms --fault kill:0@1100ms --fault kill:1,2@1600ms "$@"
  await_event relay_up 4
  await_event fault_fired 7
  await_true "all ranks to be live" all_live
  expect_rings 3
}

# A rank and its relay at once: neither is there when the other one starts.
with_killed_ranks_at_once() {
  with_killed_ranks --fault kill:relay@1100ms --fault kill:relay@1600ms "$@"
}

# program_goes_on MS OPTION... -n RANKS PROGRAM: its whole output is as without kills.
program_goes_on() {
  local kills every=$1
  shift
  run "${causeway[@]}" run "$@"
  sort "$tmp/out" >"$tmp/expected"
  kills 5 "$every" relay
  run "${causeway[@]}" run --log-safety file --events "$tmp/events" "${kills[@]}" "$@"
  expect_code 0
  sort "$tmp/out" | cmp -s - "$tmp/expected" || wrong "expected the output of a job without kills"
  expect_only_relays
  (($(count relay_up) > 0)) || wrong "expected that a relay came back"
}

# Most of the log is on disk when the relay is killed.
log_on_disk() {
  local logs
  logs=$(mktemp -d "$root/build/cwlogs.XXXXXX")
  with_killed_ranks --log-memory 4M --log-dir "$logs" "$@"
  rmdir "$logs" || wrong "expected no file in --log-dir, saw $(ls "$logs")"
}

# Statistics and status of a relay that came back.
counted() {
  start_safe --stats --fault kill:relay@300ms -n 2 "$actor" init "ring_until=$work/go" finalize
  await_event session_resumed 1
  "${causeway[@]}" status >"$tmp/status" 2>&1 || wrong "status: $(<"$tmp/status")"
  touch "$work/go"
  finish
  expect_code 0
  [[ $(grep -c '^ *[01] ' "$tmp/err") = 2 ]] || wrong "expected a line for each of 2 ranks"
}

# --- over TCP: a relay that this test keeps, as the dispatcher would ---------------

# start_by_hand ADDRESS: with what is kept in descriptor $state. Leaves its process in $relay, its address in $address.
start_by_hand() {
  local job # of what start started: finish waits for that one
  : >"$tmp/relay.err"
  start_relay --listen "$1" --key-file "$work/key" --log-safety file --log-disk 0 --state-fd "$state"
  relay=$helper
}

over_tcp() {
  local state i lines
  exec {state}<>"$work/state"
  start_by_hand tcp:127.0.0.1:0
  local job_options=(--relay "$address" --key-file "$work/key")
  rings_of 3
  for i in 1 2 3; do
    sleep 0.3
    kill -9 "$relay"
    await_true "the relay to end" gone "$relay"
    start_by_hand "$address"
    await_event session_resumed "$i"
  done
  expect_untouched 3
  expect_silence
  exec {state}>&-
}

main() {
  lib_start
  t "--state-fd that is not open" refused_relay "descriptor '77': it is not open" --state-fd 77
  t "--disk-fd that is not a number" refused_relay "descriptor 'x'" --disk-fd x
  t "in memory alone: the job ends" in_memory_alone --channel off
  t "in memory alone, said so" in_memory_alone --log-safety memory
  t "in memory alone, one of several" one_of_them_in_memory
  t "started again" started_again
  t "started again, without a disk" started_again --log-disk 0
  t "asked to end: the job ends" asked_to_end
  t "started again after a drill" by_a_drill
  t "restarts in the status" told_in_status
  t "its log is kept by the node" log_is_kept 'file state '
  t "its log is kept by the node, without a disk" log_is_kept 'state ' --log-disk 0
  t "nothing is kept of a log in memory" log_of_memory_is_not_kept
  t "a --log-dir that cannot be used" bad_log_dir
  t "it cannot start again" not_for_ever
  t "it cannot start again within --resume-timeout" no_longer_than_sessions
  t "it can start again later" late
  t "it starts and does not listen" never_listens
  t "a rank waits for it" rank_waits
  t "a rank waits for it in vain" rank_waits_in_vain
  t "the job ends while it is away" job_ends_while_it_is_away
  t "all ranks end while it is away" ranks_end_while_it_is_away
  t "killed when all ranks have ended" killed_after_the_ranks
  t "the last message of a rank is unread" last_message_unread --channel off
  t "the last message of a rank is unread, without rings in memory" last_message_unread --rings off
  t "killed while a rank waits in MPI_Init" killed_in_init
  t "causeway run is killed while it is away" dispatcher_dies_while_it_is_away
  t "stopped for a second" stopped
  t "rings: killed once" killed_once
  t "rings: killed once, without rings in memory" killed_once --rings off
  t "rings: killed often" killed_often
  t "rings: killed while it is stopped" killed_while_stopped
  t "rings: several relays, each killed" each_killed
  t "rings: with connections that break" with_cuts
  t "rings: with ranks killed" with_killed_ranks
  t "rings: with ranks killed at once" with_killed_ranks_at_once
  t "rings: with ranks killed, several relays" with_killed_ranks --relays 2
  t "rings: with ranks killed, log on disk" log_on_disk
  t "rings: status and counters" counted
  t "rings: over TCP, by hand" over_tcp
  t "the whole output of a program" program_goes_on 60 -n 4 "$programs/storm"
  t "the whole output of a program that prints parts of lines" program_goes_on 60 -n 3 "$programs/partial_lines"
  t "large messages" program_goes_on 60 -n 2 "$programs/sizes"
  t "large messages, several relays" program_goes_on 60 --relays 2 -n 2 "$programs/sizes"
  t "messages to others' memory" program_goes_on 60 -n 3 "$programs/rma_fence"
  tap_end
}

main

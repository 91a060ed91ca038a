#!/bin/bash
# Relays that are started by hand with --log-safety file: the process that was started, the keeper, starts the relay
# again on its log when that is killed, at the same place, and jobs go on; it leaves nothing behind. Prints TAP.
#
#   relay_keeper.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="relays by hand that come back"
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

# --- keepers and their relays -------------------------------------------------------

# start_keeper OPTION...: as the command of the test. Its process is $pid, its relay's $relay.
start_keeper() {
  start "${causeway[@]}" relay --log-safety file "$@"
  await_true "the relay to listen" grep -q 'listening on' "$tmp/err"
  relay=$(child_of "$pid")
}

start_unix_keeper() {
  start_keeper --listen "unix:$work/relay" "$@"
}

# keep_file NAME OPTION...: beside the job of the test
keep_file() {
  keep "$1" --log-safety file "${@:2}"
}

# hold KEEPER COUNT: until let_it_start, so many descriptors are left: 4 let the keeper start a relay that cannot listen,
# with 1 it cannot start one.
hold() {
  local open
  open=$(find "/proc/$1/fd" -type l | wc -l)
  prlimit --pid "$1" --nofile="$((open + $2)):"
}

let_it_start() {
  prlimit --pid "$1" --nofile=512:
}

# ended_often FILE COUNT: whether the keeper that writes there has told of so many ends
ended_often() {
  (($(lines_like "$1" "$again") >= $2))
}

# By whatever end, the keeper of start_unix_keeper is gone with all that it made.
expect_nothing() {
  gone "$relay" || wrong "expected that the relay has ended, saw $(describe_process "$relay")"
  [[ -z $(ls "$work") ]] || wrong "expected no file, saw $(ls "$work")"
}

# --- its start ------------------------------------------------------------------------

refused() {
  run_expect "$1" "$2" "${causeway[@]}" relay --log-safety file "${@:3}"
}

in_use() {
  start_relay --listen "$1" --key-file "$work/key"
  refused 1 "$2" --listen "$address" --key-file "$work/key"
  expect_service --key-file "$work/key"
}

is_silent() {
  start_unix_keeper "$@"
  address=unix:$work/relay
  [[ -S $work/relay && -s $work/relay.key ]] || wrong "expected a socket and a key beside it"
  expect_service
  kill -TERM "$pid"
  finish
  expect_code 0
  expect_message '^causeway relay: listening on unix:[^ ]*/relay \(engine [a-z]+\)$'
  expect_nothing
}

# It says where it was told to that it listens; each relay has the key that came through a pipe.
says_so() {
  local one two
  exec {one}>"$tmp/said" {two}< <(printf '%064d' 0)
  start "${causeway[@]}" relay --log-safety file --listen "unix:$work/relay" --ready-fd "$one" --key-fd "$two"
  exec {one}>&- {two}<&-
  await_true "it to listen" grep -q "^unix:$work/relay\$" "$tmp/said"
  relay=$(child_of "$pid")
  printf '%064d' 0 >"$tmp/key"
  chmod 600 "$tmp/key"
  address=unix:$work/relay
  kill_relay "$pid"
  expect_service --key-file "$tmp/key"
  kill -TERM "$pid"
  finish
  expect_code 0
  expect_err_like "$again"
  expect_nothing
}

# Where to look when they are many
has_names() {
  start_unix_keeper
  [[ $(<"/proc/$pid/comm") = causeway-keeper ]] || wrong "expected the keeper's name, saw $(<"/proc/$pid/comm")"
  [[ $(<"/proc/$relay/comm") = causeway-relay ]] || wrong "expected the relay's name, saw $(<"/proc/$relay/comm")"
  kill -TERM "$pid"
  finish
}

# --- its end --------------------------------------------------------------------------

asked_to_end() {
  start_unix_keeper
  kill "-$1" "$pid"
  finish
  expect_code 0
  expect_nothing
}

# By a Ctrl-C both get the signal; who asks the relay alone to end means both.
relay_asked_to_end() {
  start_unix_keeper
  kill "$@" "$relay"
  finish
  expect_code 0
  expect_nothing
}

asked_while_it_is_away() {
  start_unix_keeper
  hold "$pid" 4
  kill -9 "$relay"
  await_true "four ends" ended_often "$tmp/err" 4
  kill -TERM "$pid"
  finish
  expect_code 0
  expect_nothing
}

asked_before_it_listens() {
  relays_stop
  touch "$tmp/stop"
  start "${causeway[@]}" relay --log-safety file --listen "unix:$work/relay"
  relays_start
  await_true "the relay to start" says child_of "$pid"
  relay=$(child_of "$pid")
  kill -TERM "$pid"
  finish
  rm "$tmp/stop"
  expect_code 0
  expect_silence
  expect_nothing
}

# One that does not end by itself is killed.
asked_while_it_is_stopped() {
  start_unix_keeper
  kill -STOP "$relay"
  kill -TERM "$pid"
  finish
  expect_code 0
  expect_nothing
}

keeper_is_killed() {
  start_keeper "$@"
  address=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$tmp/err")
  kill -9 "$pid"
  finish
  await_true "the relay to end" gone "$relay"
  relay_listens_again "$@"
}

# What a killed one has left is taken over. With io_uring the kernel may close its sockets a little later.
relay_listens_again() {
  local i
  for ((i = 0; i < 20; i++)); do
    start "${causeway[@]}" relay --log-safety file "${@/tcp:*/$address}"
    await_true "the relay to listen, or not" says cat "$tmp/err"
    grep -q 'listening on' "$tmp/err" && break
    finish
  done
  expect_service "${@:3}"
  kill -TERM "$pid"
  finish
  expect_code 0
}

# --- its relay is killed --------------------------------------------------------------

tells_why() {
  start_unix_keeper
  kill_relay "$pid"
  kill_relay "$pid"
  address=unix:$work/relay
  expect_service
  kill -TERM "$pid"
  finish
  expect_code 0
  expect_err_like "^causeway relay: $killed; $again \\(1 of 16\\)\$"
  expect_err_like "^causeway relay: $killed; $again \\(2 of 16\\)\$"
  [[ $(wc -l <"$tmp/err") = 3 ]] || wrong "expected three lines"
}

# One that cannot start again is tried again, after pauses, and not for ever; meanwhile another one starts, and does
# not listen.
does_not_come_back() {
  start_unix_keeper
  hold "$pid" 4
  kill -9 "$relay"
  never_listens
  finish
  expect_code 1
  expect_err_like "^causeway relay: $killed; $again \\(1 of 16\\)\$"
  expect_err_like "^causeway relay: the relay ended with code 1; $again \\(16 of 16\\)\$"
  expect_err_like "^causeway relay: the relay ended with code 1, after it was started again 16 times\$"
  expect_nothing
}

never_listens() {
  local job first # of does_not_come_back
  relays_stop
  keep_file other --listen "unix:$tmp/other"
  relays_start
  first=$(child_of "$keeper")
  touch "$tmp/stop"
  kill -9 "$first"
  await_true "another relay" has_next "$keeper" "$first"
  await_true "it to stop" stands_still "$(child_of "$keeper")"
  rm "$tmp/stop"
  sleep 9
  await_true "it to be killed" grep -q "did not listen for 10 s and was killed; $again (2 of 16)" "$tmp/other.err"
  expect_service
}

# What its log is in stays open in the keeper, and is gone with it.
disk_is_kept() {
  local logs file
  logs=$(mktemp -d "$root/build/cwlogs.XXXXXX")
  start_unix_keeper --log-dir "$logs"
  file=$(find "/proc/$pid/fd" -lname "$logs/*" -printf '%f')
  [[ -n $file ]] || wrong "expected that the keeper has the log's file open"
  kill_relay "$pid"
  [[ $(stat -Lc %i "/proc/$pid/fd/$file") = $(stat -Lc %i "/proc/$(child_of "$pid")/fd/$file") ]] ||
    wrong "expected that the next relay has the same file"
  kill -TERM "$pid"
  finish
  rmdir "$logs" || wrong "expected no file in --log-dir, saw $(ls "$logs")"
}

# --- jobs go on ------------------------------------------------------------------------

# expect_keeper NAME COUNT: told of so many kills and of nothing else
expect_keeper() {
  local other
  other=$(grep -Ev "listening on|$killed; $again" "$tmp/$1.err")
  [[ -z $other ]] || wrong "expected nothing else of the keeper, saw: $other"
  [[ $(lines_like "$tmp/$1.err" "$again") = "$2" ]] || wrong "expected $2 restarts, saw $(<"$tmp/$1.err")"
}

# rings_go_on TIMES OPTION...: while the relay is killed so often
rings_go_on() {
  local i lines
  keep_file relay --key-file "$work/key" "${@:2}"
  local job_options=(--relay "$address" --key-file "$work/key")
  rings_of 3
  for ((i = 1; i <= $1; i++)); do
    sleep 0.2
    kill_relay "$keeper"
    await_event session_resumed "$i"
  done
  expect_untouched 3
  expect_silence
  expect_keeper relay "$1"
}

# A rank and its relay at once: neither is there when the other one starts.
with_killed_ranks() {
  local lines
  keep_file relay --key-file "$work/key" --listen "unix:$work/relay" "$@"
  local job_options=(--relay "$address" --key-file "$work/key")
  reference 3
  start_rings -n 3 --fault kill:1@600ms --fault kill:0,2@1200ms
  await_event fault_fired 1
  kill_relay "$keeper"
  await_event fault_fired 3
  kill_relay "$keeper"
  await_event session_resumed 2
  await_true "all ranks to be live" all_live
  expect_rings 3
}

two_relays() {
  local one two i lines
  keep_file one --listen tcp:127.0.0.1:0 --key-file "$work/key"
  one=$keeper
  local job_options=(--key-file "$work/key" --relay "$address")
  keep_file two --listen tcp:127.0.0.1:0 --key-file "$work/key"
  two=$keeper
  job_options+=(--relay "$address")
  rings_of 4
  for i in 1 2; do
    sleep 0.2
    kill_relay "$one"
    await_event session_resumed $((2 * i - 1))
    kill_relay "$two"
    await_event session_resumed $((2 * i))
  done
  expect_untouched 4
  expect_silence
  expect_keeper one 2
  expect_keeper two 2
}

# Messages wait, and so does a job that comes.
away_for_a_while() {
  local lines waiting
  keep_file relay --key-file "$work/key" --listen "unix:$work/relay"
  local job_options=(--relay "$address" --key-file "$work/key" --resume-timeout 1m)
  rings_of 2
  hold "$keeper" 1
  kill -9 "$(child_of "$keeper")"
  await_true "four ends" ended_often "$tmp/relay.err" 4
  expect_service --key-file "$work/key" &
  waiting=$!
  sleep 0.3
  let_it_start "$keeper"
  await_event session_resumed 1
  wait "$waiting"
  [[ -s $tmp/ring ]] || wrong "expected that a job that came meanwhile runs"
  ! grep -q causeway "$tmp/ring" || wrong "expected no message, saw $(<"$tmp/ring")"
  expect_untouched 2
  expect_silence
}

# The log outlives several jobs, and jobs of which the relay still knows go on beside new ones.
several_jobs() {
  local i
  keep_file relay --key-file "$work/key" --listen "unix:$work/relay"
  for i in 1 2 3; do
    expect_service --key-file "$work/key"
    kill_relay "$keeper"
  done
  expect_service --key-file "$work/key"
  expect_keeper relay 3
}

# --- its unit ---------------------------------------------------------------------------

# shellcheck disable=SC2016 # text of the unit
unit_is_valid() {
  local unit="$work/usr/lib/systemd/system/causeway-relay@.service"
  env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$root" install PREFIX="$work/usr" >/dev/null 2>&1 ||
    wrong "make install failed"
  grep -q "^ExecStart=$work/usr/bin/causeway relay .*--log-safety file .*\$CAUSEWAY_RELAY_OPTIONS\$" "$unit" ||
    wrong "expected the installed command, saw $(grep ExecStart "$unit")"
  if type systemd-analyze >/dev/null 2>&1; then
    run systemd-analyze verify --man=no "$unit"
    expect_code 0
    expect_silence
  fi
  env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -s -C "$root" uninstall PREFIX="$work/usr"
  [[ -z $(find "$work/usr" -type f) ]] || wrong "expected nothing, saw $(find "$work/usr" -type f)"
}

main() {
  lib_start
  t "an address in use" in_use tcp:127.0.0.1:0 '^causeway relay: listen on tcp:[^ ]*: Address already in use$'
  t "a path in use" in_use "unix:$tmp/relay" '^causeway relay: unix:[^ ]*: another process listens there'
  t "no key" refused 1 'a relay that listens on tcp alone needs --key-file FILE' --listen tcp:127.0.0.1:0
  t "a --log-dir that cannot be used" refused 1 '--log-dir /no/such/dir: making a file there' \
    --listen "unix:$tmp/relay" --log-dir /no/such/dir
  t "a value that makes no sense" refused 2 '--log-safety x' --listen "unix:$tmp/relay" --log-safety x
  t "it says what a relay says" is_silent
  t "it says what a relay says, without a disk" is_silent --log-disk 0
  t "descriptors of who starts it" says_so
  t "their names" has_names
  t "SIGTERM" asked_to_end TERM
  t "SIGINT" asked_to_end INT
  t "SIGHUP" asked_to_end HUP
  t "SIGTERM to the relay" relay_asked_to_end -TERM
  t "SIGTERM before it listens" asked_before_it_listens
  t "SIGTERM while it is away" asked_while_it_is_away
  t "SIGTERM while it is stopped" asked_while_it_is_stopped
  t "the keeper is killed" keeper_is_killed --listen "unix:$tmp/relay"
  t "the keeper is killed, on TCP" keeper_is_killed --listen tcp:127.0.0.1:0 --key-file "$tmp/key"
  t "it tells why" tells_why
  t "the relay does not come back" does_not_come_back
  t "its log on disk" disk_is_kept
  t "rings: killed once" rings_go_on 1 --listen "unix:$tmp/relay"
  t "rings: killed often" rings_go_on 5 --listen "unix:$tmp/relay"
  t "rings: killed often, on TCP" rings_go_on 5 --listen tcp:127.0.0.1:0
  t "rings: with ranks killed" with_killed_ranks
  t "rings: two relays, each killed" two_relays
  t "rings: away for a while" away_for_a_while
  t "several jobs, one after the other" several_jobs
  t "the systemd unit" unit_is_valid
  tap_end
}

main

#!/bin/bash
# Relays that are started by hand with --log-safety sync: keeper and relay end at once, as when their machine loses
# power, and the next start takes up the jobs from the directory of the log. Ranks and causeway run stay, as on other
# machines. Also: what the journal looks like then, torn or of somebody else, and directories that cannot be used.
# Prints TAP.
#
#   relay_sync.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="relays that lose power"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/rings.sh
. "$here/../lib/rings.sh"
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
# shellcheck source=tests/lib/keepers.sh
. "$here/../lib/keepers.sh"
only=${1-}
find_causeway

taken_up="^causeway relay: --log-dir [^ ]*: taking up what a relay has left there\$"

# --- relays that survive --------------------------------------------------------------

# Of each test: options of its jobs in $job_options; what stands before its relays in $relay_where; $leaves is not empty
# where jobs may be left in a log.

# By name, of the test at hand: the keeper, what bash has started for it, the address, the options,
# and the sockets of the relay without jobs.
declare -A keepers jobs addresses options idle

# sync_options NAME: of a relay whose log is in $logs/NAME, in the array $sync_options
sync_options() {
  read -r -a sync_options <<<"--log-safety sync --log-dir $logs/$1 --key-file $work/key --listen ${addresses[$1]} ${options[$1]}"
}

# One whose place is not free yet, as with io_uring, ends again.
listens_or_not() {
  grep -q 'listening on' "$tmp/$1.err" || gone "$helper"
}

# switch_on NAME...: their outputs before are added to $tmp/NAME.told.
switch_on() {
  local name i sync_options job # of what start started: finish waits for that one
  for name; do
    sync_options "$name"
    for ((i = 0; i < 20; i++)); do
      helper "$name" "${relay_where[@]}" "${causeway[@]}" relay "${sync_options[@]}"
      await_true "relay $name to listen" listens_or_not "$name"
      grep -q 'Address already in use' "$tmp/$name.err" || break
      sleep 0.1
    done
    keepers[$name]=$helper
    jobs[$name]=$job
    addresses[$name]=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$tmp/$name.err")
    cat "$tmp/$name.err" >>"$tmp/$name.told"
  done
}

# sockets NAME: how many its relay has
sockets() {
  find "/proc/$(child_of "${keepers[$1]}")/fd" -lname 'socket:*' 2>/dev/null | wc -l
}

# synced NAME ADDRESS OPTION...: a relay of the test, over whose socket ranks are as on another machine. Adds it to the
# options of jobs.
synced() {
  addresses[$1]=$2
  options[$1]="--rings off ${*:3}"
  : >"$tmp/$1.told"
  switch_on "$1"
  idle[$1]=$(sockets "$1")
  job_options+=(--relay "${addresses[$1]}")
}

# lose_power NAME... [-- PID...]: of these keepers, their relays, and other processes
lose_power() {
  local it all=() ours=()
  while (($#)) && [[ $1 != -- ]]; do
    all+=("${keepers[$1]}" "$(child_of "${keepers[$1]}")")
    ours+=("${jobs[$1]}")
    shift
  done
  all+=("${@:2}")
  kill -9 "${all[@]}"
  { wait "${ours[@]}"; } 2>/dev/null # where bash says how they were killed
  for it in "${all[@]}"; do
    await_true "process $it to end" has_ended "$it"
  done
}

# power_fails SECONDS NAME...: for so long
power_fails() {
  lose_power "${@:2}"
  sleep "$1"
  switch_on "${@:2}"
}

# switch_off NAME: asks it to end; what it says then is in $tmp/NAME.err.
switch_off() {
  kill -TERM "${keepers[$1]}"
  await_true "relay $1 to end" gone "${keepers[$1]}"
}

# told_often NAME COUNT: the relay has taken up what was left so many times, and nothing has gone wrong.
told_often() {
  local other
  other=$(grep -Ev "listening on|$taken_up" "$tmp/$1.told")
  [[ -z $other ]] || wrong "expected nothing else of relay $1, saw: $other"
  [[ $(lines_like "$tmp/$1.told" "$taken_up") = "$2" ]] ||
    wrong "expected that relay $1 takes up the log $2 times, saw $(<"$tmp/$1.told")"
}

is_idle() {
  (($(sockets "$1") <= ${idle[$1]}))
}

# Where no job is left nothing is. A relay may learn of the end of a job a little later than who waits for the job.
expect_no_logs() {
  local name
  for name in "${!keepers[@]}"; do
    gone "${keepers[$name]}" && continue
    await_true "relay $name to be without connections" is_idle "$name"
    sync "$logs/$name"/journal.[01] 2>/dev/null # as long as a commit takes
    sleep 0.3
    switch_off "$name"
  done
  [[ -n $leaves || -z $(ls "$logs") ]] ||
    wrong "expected no log, saw $(find "$logs" -mindepth 1) and $(tail -n 2 "$tmp/$name.err")"
}

# tt TITLE COMMAND...: a test, with relays of its own.
tt() {
  t "$1" with_relays "${@:2}"
}

with_relays() {
  local job_options=(--key-file "$work/key") relay_where=() leaves=''
  rm -f "$tmp"/*.told
  keepers=() jobs=() addresses=() options=() idle=()
  "$@"
  ((${#notes[@]} == 0)) || wrong "its relays said: $(tail -qn 4 "$tmp"/*.told 2>/dev/null)"
  expect_no_logs
  rm -rf "${logs:?}"/*
}

# --- usage ------------------------------------------------------------------------------

refused() {
  run_expect 2 "$1" "${causeway[@]}" "${@:2}"
}

usage_tests() {
  local synced=(relay --log-safety sync --listen "unix:$tmp/relay")
  t "no --log-dir" refused '^causeway relay: --log-safety sync needs --log-dir DIR' "${synced[@]}" --key-file "$tmp/key"
  t "no --key-file" refused '^causeway relay: --log-safety sync needs --key-file FILE' "${synced[@]}" --log-dir "$logs/x"
  t "--log-disk 0" refused '^causeway relay: --log-disk 0: --log-safety sync' "${synced[@]}" --log-dir "$logs/x" \
    --key-file "$tmp/key" --log-disk 0
}

# --- jobs go on -----------------------------------------------------------------------

# rings_go_on TIMES ADDRESS OPTION...: power fails so often
rings_go_on() {
  local i lines
  synced relay "${@:2}"
  rings_of 3
  for ((i = 1; i <= $1; i++)); do
    sleep 0.2
    power_fails 0 relay
    await_event session_resumed "$i"
  done
  expect_untouched 3
  expect_silence
  told_often relay "$1"
}

# The relay alone comes back from memory, both from the disk.
relay_alone_as_well() {
  local i lines
  synced relay "$@"
  rings_of 3
  for i in 1 3; do
    sleep 0.2
    kill_relay "${keepers[relay]}"
    await_event session_resumed "$i"
    sleep 0.2
    power_fails 0 relay
    await_event session_resumed $((i + 1))
  done
  expect_untouched 3
  expect_silence
}

# Ranks and causeway run wait, for longer than they look for it each time.
away_for_a_second() {
  local lines
  synced relay "unix:$work/relay"
  rings_of 2
  power_fails 1.2 relay
  await_event session_resumed 1
  sleep 0.2
  expect_untouched 2
  expect_silence
}

rank_process() {
  sed -n "s/.*\"rank_started\",\"rank\":$1,.*\"pid\":\([0-9]*\).*/\1/p" "$tmp/events" | tail -n 1
}

# Ends a job of start_rings of 3, some of whose ranks were restarted: expect_restarted LEAST [MOST].
expect_restarted() {
  await_true "rank_live" happened rank_live "$1"
  await_true "all ranks to be live" all_live
  expect_rings 3
  expect_restarts "$1" "${2-$1}"
  expect_only_restarts
}

# start_three: rings of 3 that have been going on for a while
start_three() {
  synced relay "$@"
  rings_of 3
  sleep 0.4
}

# On the relay's machine, as it were: it repeats what it did from the log that was restored.
with_a_rank() {
  local lines
  start_three "$@"
  lose_power relay -- "$(rank_process 1)"
  switch_on relay
  expect_restarted 1 20 # it may be tried while the relay is away
}

# Ranks that are killed later repeat what was before and what came after.
ranks_killed_after() {
  local lines
  start_three "$@"
  power_fails 0 relay
  await_event session_resumed 1
  sleep 0.3
  kill -9 "$(rank_process 2)" "$(rank_process 0)"
  expect_restarted 2
}

# A rank repeats itself while power fails.
while_it_repeats() {
  local lines
  start_three "$@"
  kill -9 "$(rank_process 1)"
  await_event rank_down 1
  power_fails 0 relay
  await_true "rank 1 to be live" happened rank_live 1
  await_true "all ranks to be live" all_live
  expect_rings 3
  expect_only_restarts
}

two_relays() {
  local lines i=0 these
  synced one tcp:127.0.0.1:0
  synced two tcp:127.0.0.1:0
  rings_of 4
  for these in one two 'one two' two; do
    sleep 0.2
    # shellcheck disable=SC2086 # names
    power_fails 0 $these
    i=$((i + $(wc -w <<<"$these")))
    await_event session_resumed "$i"
  done
  expect_untouched 4
  expect_silence
}

several_jobs() {
  synced relay "unix:$work/relay"
  address=${addresses[relay]}
  for _ in 1 2 3; do
    expect_service --key-file "$work/key" --resume-timeout 200ms
    power_fails 0 relay
  done
  expect_service --key-file "$work/key"
  sleep 0.5 # what may be left of those before ends
}

# A job that has ended before is not taken up.
ended_job() {
  synced relay "unix:$work/relay"
  address=${addresses[relay]}
  expect_service --key-file "$work/key"
  await_true "the relay to be without connections" is_idle relay
  sleep 0.2
  power_fails 0 relay
  switch_off relay
  [[ ! -e $logs/relay ]] || wrong "expected no log of a job that had ended, saw: $(tail -n 1 "$tmp/relay.err")"
  rm -rf "$logs/relay"
}

# asked_to_end SIGNAL: the files of a job that runs stay.
asked_to_end() {
  local lines
  synced relay "unix:$work/relay"
  rings_of 2
  kill "-$1" "${keepers[relay]}"
  await_true "the relay to end" gone "${keepers[relay]}"
  grep -q "the log of 1 jobs stays in $logs/relay for the next start" "$tmp/relay.err" ||
    wrong "expected that it says where the log is, saw $(<"$tmp/relay.err")"
  switch_on relay
  await_event session_resumed 1
  sleep 0.2
  expect_untouched 2
  expect_silence
}

no_jobs() {
  synced relay "unix:$work/relay"
  [[ -d $logs/relay ]] || wrong "expected the directory"
  switch_off relay
  [[ ! -e $logs/relay ]] || wrong "expected no directory, saw $(ls "$logs/relay")"
  [[ ! -e $work/relay ]] || wrong "expected no socket"
}

# --- programs ---------------------------------------------------------------------------

# ended_early TIME: whether the job has ended before power fails again; it must have failed once.
ended_early() {
  gone "$pid" || return 1
  (($1 > 1)) || wrong "the job had ended before power failed"
}

# program_goes_on TIMES SECONDS ADDRESS RELAY-OPTIONS -n RANKS PROGRAM...: power fails so often, after so long each
# time; the whole output is as without.
program_goes_on() {
  local i times=$1 seconds=$2 ranks=$6
  read -r -a i <<<"$4"
  synced relay "$3" "${i[@]}"
  shift 4
  run "${causeway[@]}" run "$@"
  sort "$tmp/out" >"$tmp/expected"
  start_told "${job_options[@]}" "$@"
  await_event rank_up "$ranks"
  for ((i = 1; i <= times; i++)); do
    sleep "$seconds"
    ended_early "$i" && break
    power_fails 0 relay
    await_event session_resumed "$i"
  done
  finish
  expect_code 0
  expect_silence
  sort "$tmp/out" | cmp -s - "$tmp/expected" || wrong "expected the output of a job without"
  [[ $(count rank_started) = "$ranks" ]] || wrong "expected that no rank is restarted"
}

# Large messages, of which most are on disk, and a rank that repeats them.
from_segments() {
  synced relay "unix:$work/relay" --log-memory 4M
  start_told "${job_options[@]}" --fault kill:1@event:70 -n 2 "$programs/token_ring" 80 1048576
  await_true "segments on disk" holds_blocks "$logs/relay/segments" $((20 << 20))
  power_fails 0 relay
  await_event session_resumed 1
  finish
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 1 1
  expect_only_restarts
}

# A rank that needs what the disk has damaged cannot be restarted, and that is said.
damaged_segments() {
  leaves=yes
  synced relay "unix:$work/relay" --log-memory 4M
  start_told "${job_options[@]}" --resume-timeout 3s --fault kill:1@event:70 -n 2 "$programs/token_ring" 80 1048576
  await_true "segments on disk" holds_blocks "$logs/relay/segments" $((20 << 20))
  lose_power relay
  overwrite "$logs/relay/segments" 0 $((8 << 20))
  switch_on relay
  finish
  expect_code 1
  expect_err_like "^causeway: rank 1 .*cannot be started again: what the relay's log holds on disk cannot be read back"
  [[ ! -s $tmp/out ]] || wrong "expected no output"
}

# holds_blocks FILE BYTES
holds_blocks() {
  (($(stat -c %b "$1") * 512 >= $2))
}

# --- ranks over rings -----------------------------------------------------------------

# over_rings TIMES -n RANKS PROGRAM...: ranks on the relay's machine that have not lost power with it. What they had in
# their rings may be gone, so they are restarted, or they go on; what is printed is the same.
over_rings() {
  local i
  synced relay "unix:$work/relay" --rings on
  start_told "${job_options[@]}" "${@:2}"
  await_event rank_up "$3"
  for ((i = 1; i <= $1; i++)); do
    sleep 0.15
    ended_early "$i" && break
    power_fails 0 relay
    await_event session_resumed "$i"
  done
  finish
  expect_code 0
  expect_out "ok $(basename "$4")"
  expect_only_restarts
}

# --- the journal --------------------------------------------------------------------------

# The journal that counts, of the relay of the test; it is the only one in its file. docs/log-format.md.
newest_journal() {
  local file
  for file in "$logs/relay/journal".[01]; do
    echo "$(od -An -t u8 -j 16 -N 8 "$file") $file"
  done | sort -n | tail -n 1 | cut -d / -f 2- | sed 's|^|/|'
}

# part FILE N: where the last part of a journal begins, or the Nth before it
part() {
  grep -obUa CWCWJRNL "$1" | cut -d : -f 1 | tail -n "$(($2 + 1))" | head -n 1
}

# overwrite FILE OFFSET BYTES
overwrite() {
  head -c "$3" /dev/urandom | dd of="$1" bs=4096 seek="$2" oflag=seek_bytes conv=notrunc status=none
}

part_count() {
  grep -obUa CWCWJRNL "$1" | wc -l
}

# The bytes of a part, with this header
part_size() {
  od -An -t u4 -j $(($2 + 44)) -N 4 "$1" | tr -d ' '
}

# What no relay has finished writing: nothing is lost.
torn_behind() {
  local file at
  file=$(newest_journal)
  at=$(part "$file" 0)
  overwrite "$file" $(((at + $(part_size "$file" "$at") + 4095) / 4096 * 4096)) 10000
}

# A disk that has forgotten what it said was written: the last part, its last byte, several of them, ...
torn_last_part() {
  local file
  file=$(newest_journal)
  overwrite "$file" $(($(part "$file" 0) + 80)) 512
}

torn_last_byte() {
  local file at
  file=$(newest_journal)
  at=$(part "$file" 0)
  overwrite "$file" $((at + $(part_size "$file" "$at") - 8)) 8
}

torn_parts() {
  local file
  file=$(newest_journal)
  overwrite "$file" "$(part "$file" 10)" 100
}

# ... or all but the first
torn_early() {
  local file
  file=$(newest_journal)
  overwrite "$file" "$(part "$file" "$(($(part_count "$file") - 2))")" 4
}

cut_short() {
  local file
  file=$(newest_journal)
  truncate -s $(($(part "$file" 0) + 100)) "$file"
}

# start_two: rings of 2 that have been going on for a while, and whose relay is off then
start_two() {
  synced relay "unix:$work/relay"
  rings_of 2 --resume-timeout "${1:-3s}"
  sleep 0.3
  lose_power relay
}

nothing_is_lost() {
  local lines
  start_two
  "$@"
  switch_on relay
  await_event session_resumed 1
  expect_untouched 2
  expect_silence
}

# What the disk has lost others may have seen: the job goes on rightly, or ends and says why. Ranks may be restarted,
# so it is a program that does not look at files; it checks what it receives.
something_is_lost() {
  leaves=yes
  synced relay "unix:$work/relay"
  start_told "${job_options[@]}" --resume-timeout 3s -n 2 "$programs/$2" "${@:3}"
  await_event rank_up 2
  sleep 0.15
  ended_early 1
  lose_power relay
  "$1"
  switch_on relay
  grep -q 'listening on' "$tmp/relay.err" || wrong "expected that the relay starts"
  finish
  expect_right_or_told "$2"
}

expect_right_or_told() {
  if ((code == 0)); then
    expect_out "ok $1"
  else
    expect_code 1
    expect_err_like '^causeway: (rank [01] .*)?relay unix:.*/relay(:| broke the protocol:| refuses to go on:) .*'
    [[ ! -s $tmp/out ]] || wrong "expected no output"
  fi
}

# --- directories ----------------------------------------------------------------------

# cannot_start REGEX: the relay of the test says why.
cannot_start() {
  local sync_options
  sync_options relay
  timeout 20 "${relay_where[@]}" "${causeway[@]}" relay "${sync_options[@]}" "${@:2}" >"$tmp/refused" 2>&1
  code=$?
  expect_code 1
  sed -i "/$taken_up/d" "$tmp/refused"
  [[ $(wc -l <"$tmp/refused") = 1 ]] || wrong "expected one line, saw $(<"$tmp/refused")"
  grep -Eq -- "^causeway relay: --log-dir [^ ]*: $1" "$tmp/refused" || wrong "expected $1, saw $(<"$tmp/refused")"
}

# directory_refused REGEX: of one in which nothing was
directory_refused() {
  addresses[relay]=unix:$work/relay
  options[relay]=''
  cannot_start "$1"
  [[ ! -e $work/relay ]] || wrong "expected no socket"
}

in_use() {
  synced relay "unix:$work/relay"
  addresses[relay]+=x
  cannot_start 'another relay uses it; give each relay a directory of its own$'
  address=${addresses[relay]%x}
  expect_service --key-file "$work/key"
}

# Nothing of the log is lost.
other_key() {
  local lines
  start_two
  (umask 077 && printf '%064d\n' 0 >"$work/other")
  cannot_start 'it is the log of a relay with another key; give the key that it had' --key-file "$work/other"
  switch_on relay
  await_event session_resumed 1
  expect_untouched 2
}

# The part of the log that is on disk cannot be read for a while: the relay does not start, and the job goes on later.
unreadable_for_a_while() {
  synced relay "unix:$work/relay" --log-memory 1M
  start_told "${job_options[@]}" --resume-timeout 60s -n 2 "$programs/token_ring" 4000 4000
  await_true "segments on disk" holds_blocks "$logs/relay/segments" $((4 << 20))
  lose_power relay
  mv "$logs/relay/segments" "$logs/away"
  cannot_start '1 of its jobs cannot be taken up \(rank [01]: its log cannot be read\); nothing there was changed' \
    --log-memory 1M
  mv "$logs/away" "$logs/relay/segments"
  switch_on relay
  await_event session_resumed 1
  finish
  expect_code 0
  expect_out 'ok token_ring'
  expect_silence
}

# ... or for ever: who says so begins without the job.
unreadable_is_dropped() {
  synced relay "unix:$work/relay" --log-memory 1M
  start_told "${job_options[@]}" --resume-timeout 3s -n 2 "$programs/token_ring" 4000 4000
  await_true "segments on disk" holds_blocks "$logs/relay/segments" $((4 << 20))
  lose_power relay
  : >"$logs/relay/segments"
  options[relay]+=' --drop-unreadable'
  switch_on relay
  grep -q '1 jobs could not be taken up again; the last one: rank [01]: its log cannot be read' "$tmp/relay.err" ||
    wrong "expected that the relay says what it dropped, saw $(<"$tmp/relay.err")"
  address=${addresses[relay]}
  expect_service --key-file "$work/key"
  finish
  expect_right_or_told token_ring
}

# set_version FILE NUMBER
set_version() {
  # shellcheck disable=SC2059 # a byte
  printf "\\x0$2" | dd of="$1" bs=1 seek=40 conv=notrunc status=none
}

other_version() {
  local lines file
  start_two 30s
  file=$(newest_journal)
  set_version "$file" 9
  cannot_start 'its journal is of version 9, and this program reads 5; use the program that wrote it'
  set_version "$file" 5
  switch_on relay
  await_event session_resumed 1
  expect_untouched 2
}

garbage() {
  local file
  mkdir "$logs/relay"
  for file in journal.0 journal.1 segments lock; do
    head -c 300000 /dev/urandom >"$logs/relay/$file"
  done
  synced relay "unix:$work/relay"
  address=${addresses[relay]}
  expect_service --key-file "$work/key"
}

journals_are_garbage() {
  local file
  for file in "$logs/relay/journal".[01]; do
    overwrite "$file" 0 100000
  done
}

of_another_user() {
  ((UID == 0)) || { skip "only root can give files away" && return; }
  mkdir "$logs/relay"
  : >"$logs/relay/$1"
  chown nobody "$logs/relay/$1"
  directory_refused "$1 is not a file of this user's; give another directory\$"
  [[ -e $logs/relay/$1 ]] || wrong "expected that it is left alone"
  rm -rf "$logs/relay"
}

no_file() {
  mkdir "$logs/relay"
  case $2 in
  link) : >"$logs/file" && ln -s ../file "$logs/relay/$1" ;;
  pipe) mkfifo "$logs/relay/$1" ;;
  directory) mkdir "$logs/relay/$1" ;;
  esac
  directory_refused "(opening $1: |$1 is not a file)"
  rm -rf "$logs/relay" "$logs/file"
}

is_no_directory() {
  : >"$logs/relay"
  directory_refused '.*Not a directory'
  rm "$logs/relay"
}

is_read_only() {
  local where_read_only
  mkdir "$logs/relay"
  see_read_only "$logs/relay" || return
  relay_where=("${where_read_only[@]}")
  directory_refused '.*(Read-only file system|Permission denied)'
  rmdir "$logs/relay" || wrong "expected no file there"
}

is_in_memory() {
  local logs
  in_memory /dev/shm || { skip "/dev/shm is not in memory" && return; }
  logs=$(mktemp -d /dev/shm/cwlogs.XXXXXX)
  directory_refused '.*memory.*choose a directory on a disk'
  rmdir "$logs" 2>/dev/null || wrong "expected no file there, saw $(find "$logs" -mindepth 1)"
  rm -rf "$logs"
}

was_there() {
  mkdir "$logs/relay"
  synced relay "unix:$work/relay"
  switch_off relay
  [[ -d $logs/relay ]] || wrong "expected that the directory is still there"
  rmdir "$logs/relay" || wrong "expected no file there"
}

is_open_to_others() {
  mkdir "$logs/relay"
  chmod go+w "$logs/relay"
  directory_refused '.*other users may write there'
  rmdir "$logs/relay" || wrong "expected no file there"
}

# What is open stays.
vanishes() {
  local lines
  synced relay "unix:$work/relay"
  rings_of 2
  rm -rf "$logs/relay"
  sleep 0.3
  expect_untouched 2
  expect_silence
}

vanish() {
  rm -rf "$logs/relay"
}

# start_full: a job of two ranks whose relay has no room for the journal any more
start_full() {
  small_disk 64M || return
  see_small_disk
  relay_where=("${on_small_disk[@]}")
  synced relay "unix:$work/relay" --log-disk 1G
  start_told "${job_options[@]}" --resume-timeout 3s -n 2 "$programs/token_ring" 100 1048576
  await_true "the disk to be full" grep -q 'writing the journal' "$tmp/relay.err"
}

# The journal is given up, and with it what the loss of power would leave; the relay alone still comes back.
disk_is_full() {
  local on_small_disk logs=$work/disk told
  start_full || return
  kill_relay "${keepers[relay]}"
  finish
  expect_code 0
  expect_out 'ok token_ring'
  told=$(grep -c 'writing the journal: No space left on device;' "$tmp/relay.err")
  ((told >= 1)) || wrong "expected that the relay says that the disk is full, saw $(<"$tmp/relay.err")"
}

# What is on that disk is older than what others have seen.
full_and_power_fails() {
  local on_small_disk logs=$work/disk
  start_full || return
  power_fails 0 relay
  finish
  expect_right_or_told token_ring
}

directory_tests() {
  local it
  tt "a directory in use" in_use
  tt "a relay with another key" other_key
  tt "a journal of another version" other_version
  tt "a log that cannot be read for a while" unreadable_for_a_while
  tt "a log that cannot be read, and --drop-unreadable" unreadable_is_dropped
  tt "files of garbage" garbage
  for it in lock journal.1 segments; do
    tt "a file of another user: $it" of_another_user "$it"
  done
  for it in link pipe directory; do
    tt "a $it in place of a file" no_file journal.0 "$it"
  done
  tt "a file in place of a directory" is_no_directory
  tt "a directory that cannot be written to" is_read_only
  tt "a directory in memory" is_in_memory
  tt "a directory that others may write to" is_open_to_others
  tt "a directory that was there" was_there
  tt "a directory that is removed" vanishes
  tt "a disk of 64 MB" disk_is_full
  tt "a disk of 64 MB, and power fails" full_and_power_fails
}

journal_tests() {
  local ring=(token_ring 1500) storm=(storm 1000)
  tt "journal: torn behind what counts" nothing_is_lost torn_behind
  tt "journal: the last part is torn" something_is_lost torn_last_part "${ring[@]}"
  tt "journal: the last byte is wrong" something_is_lost torn_last_byte "${storm[@]}"
  tt "journal: it ends within a part" something_is_lost cut_short "${ring[@]}"
  tt "journal: the last ten parts are lost" something_is_lost torn_parts "${ring[@]}"
  tt "journal: the last ten parts are lost, storm" something_is_lost torn_parts "${storm[@]}"
  tt "journal: all but the first are lost" something_is_lost torn_early "${storm[@]}"
  tt "journal: garbage" something_is_lost journals_are_garbage "${storm[@]}"
  tt "segments: garbage" damaged_segments
  tt "journal: removed" something_is_lost vanish "${ring[@]}"
}

main() {
  local unix tcp=tcp:127.0.0.1:0
  lib_start
  trap disk_end EXIT
  cd "$tmp" || exit 2
  unix=unix:$work/relay
  find_disk || { tap_skip "all of it" "there is no directory on a disk" && tap_end; }
  usage_tests
  tt "no jobs: SIGTERM leaves nothing" no_jobs
  tt "a job: SIGTERM leaves its log" asked_to_end TERM
  tt "a job: SIGINT leaves its log" asked_to_end INT
  tt "a job that has ended" ended_job
  tt "several jobs, one after the other" several_jobs
  tt "rings: once" rings_go_on 1 "$unix"
  tt "rings: once, on TCP" rings_go_on 1 "$tcp"
  tt "rings: often" rings_go_on 4 "$unix"
  tt "rings: often, on TCP" rings_go_on 3 "$tcp"
  tt "rings: the relay alone as well" relay_alone_as_well "$unix"
  tt "rings: for a second" away_for_a_second
  tt "rings: with a rank" with_a_rank "$unix"
  tt "rings: ranks are killed after" ranks_killed_after "$unix"
  tt "rings: while a rank repeats itself" while_it_repeats "$unix"
  tt "rings: two relays" two_relays
  tt "segments on disk, and a rank is killed after" from_segments
  tt "token_ring" program_goes_on 2 0.15 "$unix" '' -n 2 "$programs/token_ring" 1500
  tt "storm" program_goes_on 3 0.15 "$tcp" '' -n 3 "$programs/storm" 1000
  tt "all modes of sending" program_goes_on 2 0.15 "$unix" '' -n 2 "$programs/p2p_modes"
  tt "collectives" program_goes_on 2 0.15 "$unix" '' -n 2 "$programs/collectives"
  tt "large messages" program_goes_on 2 0.2 "$unix" '--log-memory 8M' -n 2 "$programs/token_ring" 60 1048576
  tt "messages to others' memory" program_goes_on 2 0.15 "$unix" '' -n 2 "$programs/rma_fence"
  tt "over rings: token_ring" over_rings 2 -n 3 "$programs/token_ring" 2000
  tt "over rings: storm" over_rings 2 -n 3 "$programs/storm" 1000
  tt "over rings: large messages" over_rings 2 -n 2 "$programs/token_ring" 60 1048576
  directory_tests
  journal_tests
  tap_end
}

main

#!/bin/bash
# causeway log show and causeway log verify: directories that are whole, left by a relay that was killed, torn, damaged,
# in use, of another version, or none at all. Prints TAP.
#
#   log_command.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
# shellcheck disable=SC2128,SC2317 # the command is one word; t calls the tests
set -u

suite=log_command
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway

page=4096
segment=262144

# --- directories ------------------------------------------------------------------

# make_logs [trimmed]: leaves in $logs the directory that a relay has left, and in $key the key of that relay.
make_logs() {
  logs=$work/logs
  key=$work/key
  mkdir "$logs"
  "$root/build/left_logs" "$logs" "$key" "$@" || wrong "left_logs failed"
  journal=$logs/journal.0
}

# flip FILE OFFSET: one bit of it is another one.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  # shellcheck disable=SC2059 # the format is the byte
  printf "\\x$(printf '%02x' $((byte ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

size_of() {
  stat -c %s "$1"
}

# The last page that begins a part
last_part() {
  local offset
  offset=$(grep -abo 'CWCWJRNL' "$journal" | cut -d : -f 1 | tail -n 1)
  ((offset % page == 0)) || wrong "expected a part at a whole page, saw $offset"
  echo "$offset"
}

verify() {
  run "$causeway" log verify --key-file "$key" "$logs"
}

expect_whole() {
  verify
  expect_code 0
  expect_silence
  expect_out_like '^whole$'
}

# expect_damage REGEX: a line about it, and the number of them.
expect_damage() {
  verify
  expect_code 1
  expect_out_like "$1"
  expect_message "^causeway log: $logs: [0-9]+ faults"
}

# --- usage ------------------------------------------------------------------------

usage_tests() {
  t "--help" run_expect 0 '' "$causeway" log --help
  t "nothing to do" run_expect 2 'expected show or verify' "$causeway" log
  t "an unknown command" run_expect 2 "unknown command 'mend'" "$causeway" log mend /tmp
  t "an unknown option" run_expect 2 '--frobnicate' "$causeway" log show --frobnicate /tmp
  t "no directory" run_expect 2 'no directory' "$causeway" log verify
  t "two directories" run_expect 2 "unexpected argument '/b'" "$causeway" log show /a /b
  t "verify --json" run_expect 2 '--json is no option of causeway log verify' "$causeway" log verify --json /tmp
  t "show --key-file" run_expect 2 '--key-file is no option of causeway log show' \
    "$causeway" log show --key-file /k /tmp
}

# --- directories that are none ----------------------------------------------------

refused() {
  local command
  for command in show verify; do
    run_expect 1 "$1" "$causeway" log "$command" "$2"
  done
}

not_there() {
  refused "$work/no: No such file" "$work/no"
}

a_file() {
  echo text >"$work/file"
  refused 'Not a directory' "$work/file"
}

other_directory() {
  refused 'no directory of logs: it has neither' "$work"
}

no_files() {
  mkdir "$work/pipe" "$work/link" "$work/dir"
  mkfifo "$work/pipe/journal.0"
  refused 'journal.0 is no file' "$work/pipe"
  ln -s /dev/zero "$work/link/journal.1"
  refused 'journal.1: Too many levels' "$work/link"
  mkdir "$work/dir/journal.0"
  refused 'journal.0 is no file' "$work/dir"
}

garbage() {
  head -c 100000 /dev/urandom >"$work/journal.0"
  printf x | dd of="$work/journal.0" conv=notrunc status=none
  refused 'journal.0 is no journal of a relay, or its beginning is damaged' "$work"
  echo short >"$work/journal.0"
  refused 'is no journal of a relay' "$work"
}

# Of a size that nobody could read, and empty.
sparse() {
  make_logs
  truncate -s 64T "$logs/journal.1" 2>/dev/null || truncate -s 8T "$logs/journal.1"
  run timeout 20 "$causeway" log show "$logs"
  expect_code 0
  expect_out_like '^journal.1: no commit has ended'
  expect_whole
}

other_version() {
  make_logs
  printf '\x09' | dd of="$journal" bs=1 seek=40 conv=notrunc status=none
  refused 'is of version 9, this program reads version [0-9]+; use the program that wrote it' "$logs"
}

unreadable() {
  if ((EUID == 0)); then
    skipped='root reads everything'
    return
  fi
  make_logs
  chmod 0 "$journal"
  refused 'journal.0: Permission denied; run this as the user' "$logs"
}

in_use() {
  local held
  make_logs
  exec {held}<"$logs/lock"
  flock -x "$held"
  refused 'a relay uses these logs now' "$logs"
  exec {held}<&-
  expect_whole
}

none_tests() {
  t "a directory that is not there" not_there
  t "a file" a_file
  t "another directory" other_directory
  t "journals that are no files" no_files
  t "garbage" garbage
  t "a journal of 64 TiB of nothing" sparse
  t "another version" other_version
  t "a journal that may not be read" unreadable
  t "a relay uses it" in_use
}

# --- whole ones -------------------------------------------------------------------

whole() {
  local before
  make_logs
  before=$(cat "$logs"/* | cksum)
  expect_whole
  expect_out_like '^1 jobs, 4 ranks, 5 sessions; .* in the journal, .* in [1-9][0-9]* segments on disk'
  [[ $(cat "$logs"/* | cksum) = "$before" ]] || wrong "expected the files to be as they were"
}

without_key() {
  make_logs
  run_expect 0 '' "$causeway" log verify "$logs"
  expect_out_like '^not tried whether a relay can go on'
  expect_out_like '^whole$'
}

with_other_key() {
  make_logs
  printf '%064d\n' 0 >"$key"
  verify
  expect_code 1
  expect_message "^causeway log: $logs: $key is not the key of the relay that wrote these logs"
}

without_lock_file() {
  make_logs
  rm "$logs/lock"
  expect_whole
}

shown() {
  make_logs
  run_expect 0 '' "$causeway" log show "$logs"
  expect_out_like '^journal.0: journal 1, [0-9]+ commits in [0-9]+ parts, .*; it counts$'
  expect_out_like '^job [0-9a-f]{32}: 4 ranks'
  expect_out_like '^ +0 +1 +[0-9]+ +5 .* whole$'
  expect_out_like '^dispatcher +- '
  expect_out_like '^relay +1 '
}

# A rank has taken 60 messages of 100000 bytes, and its log begins behind them. Their number is known.
shown_trimmed() {
  make_logs trimmed
  expect_whole
  run_expect 0 '' "$causeway" log show "$logs"
  expect_out_like '^ +1 +1 +7 +63 +[0-9.]+K +[0-9]{3}[.][0-9]K .* whole$'
}

shown_as_json() {
  make_logs
  run_expect 0 '' "$causeway" log show --json "$logs"
  [[ $(wc -l <"$tmp/out") = 1 ]] || wrong "expected one line"
  expect_out_like '^\{"directory":.*"version":5,.*"jobs":\[\{"job":"[0-9a-f]{32}","size":4,.*\}\]\}$'
}

empty() {
  mkdir "$work/logs"
  logs=$work/logs
  touch "$logs"/journal.{0,1}
  run_expect 0 '' "$causeway" log verify "$logs"
  expect_out_like '^no commit has ended: a relay that begins here begins anew'
  run_expect 0 '' "$causeway" log show "$logs"
  expect_out_like '^no job$'
}

has_logged() {
  local bytes
  bytes=$(du -k "$logs/segments" 2>/dev/null | cut -f 1)
  ((${bytes:-0} >= 4096))
}

# A relay and its keeper, while a job is sending: what is left is whole at any moment.
killed_relay() {
  local relay keeper
  (umask 077 && printf '%064d\n' 7 >"$work/key")
  key=$work/key
  logs=$work/logs
  start_relay --listen "unix:$work/r" --key-file "$key" --log-safety sync --log-dir "$logs"
  keeper=$helper
  relay=$(child_of "$keeper")
  start "$causeway" run --relay "unix:$work/r" --key-file "$key" --resume-timeout 1 -n 2 \
    "$programs/token_ring" 100000 20000
  await_true "logs on disk" has_logged
  refused 'a relay uses these logs now' "$logs"
  kill -9 "$keeper" "$relay"
  await_true "the relay to end" gone "$relay"
  finish # the job has waited for its relay in vain
  expect_whole
  expect_out_like '^1 jobs, 2 ranks, 3 sessions; '
}

whole_tests() {
  t "verify" whole
  t "verify without the key" without_key
  t "verify with another key" with_other_key
  t "verify without a lock file" without_lock_file
  t "show" shown
  t "show --json" shown_as_json
  t "a log that was trimmed" shown_trimmed
  t "empty journals" empty
  t "a relay that is killed" killed_relay
}

# --- torn and damaged ones --------------------------------------------------------

# Power was lost while the last part was being written.
torn() {
  make_logs
  truncate -s $(($(last_part) + 100)) "$journal"
  expect_whole
  head -c 10000 /dev/urandom >>"$journal"
  expect_whole
}

# Behind a part that cannot be read commits had ended.
broken_journal() {
  make_logs
  flip "$journal" $((page + 100))
  expect_damage '^journal.0 is damaged at 4096: commits that had ended, up to one at [0-9]+ at least, cannot be read'
}

broken_beginning() {
  make_logs
  flip "$journal" 100
  expect_damage '^journal.0 is damaged at 0: '
}

broken_segment() {
  make_logs
  flip "$logs/segments" $((3 * segment + 1000))
  expect_damage "^rank 0 of job [0-9a-f]{32}, payload: segment [0-9]+, at $((3 * segment)) of segments, has other bytes"
}

short_segments() {
  make_logs
  truncate -s $(($(size_of "$logs/segments") - segment / 2)) "$logs/segments"
  expect_damage 'segment [0-9]+, at [0-9]+ of segments, cannot be read: No data'
}

no_segments() {
  make_logs
  rm "$logs/segments"
  expect_damage 'segment 0, at 0 of segments, cannot be read'
  run_expect 0 '' "$causeway" log show "$logs"
  expect_out_like ' damaged$'
  expect_out_like '^logs are damaged; see causeway log verify'
}

# flips FILE COUNT: one bit at a time, anywhere; leaves in $missed where verify found nothing.
flips() {
  local i at
  missed=()
  for ((i = 0; i < $2; i++)); do
    at=$(((RANDOM << 15 | RANDOM) % $(size_of "$1")))
    flip "$1" "$at"
    verify
    ((code == 0 || code == 1)) || wrong "$1, a bit at $at: exit code $code"
    ((code)) || missed+=("$at")
    flip "$1" "$at"
  done
}

# What is not found is no loss: zeros behind a part, or the last commit, which is as one that was torn.
flipped_anywhere() {
  local at last
  RANDOM=7
  make_logs
  last=$(last_part)
  flips "$journal" 40
  for at in "${missed[@]}"; do
    ((at >= last)) || [[ $(od -An -v -tx1 -j $((at / 8 * 8)) -N 8 "$journal") =~ ^[\ 0]*$ ]] ||
      wrong "a bit at $at of the journal was not missed"
  done
  flips "$logs/segments" 20
  for at in "${missed[@]}"; do
    wrong "a bit at $at of the segments was not missed"
  done
  expect_whole
}

damage_tests() {
  t "a torn commit" torn
  t "a journal with a broken part" broken_journal
  t "a journal with a broken beginning" broken_beginning
  t "a segment with other bytes" broken_segment
  t "a segment that ends too soon" short_segments
  t "no segments" no_segments
  t "a bit anywhere" flipped_anywhere
}

main() {
  local it
  for it in "$causeway" "$root/build/left_logs" "$programs/token_ring"; do
    [[ -x $it ]] || { echo "log_command.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  cd "$tmp" || exit 2
  usage_tests
  none_tests
  whole_tests
  damage_tests
  tap_end
}

main

#!/bin/bash
# Logs that are larger than their memory go to disk, and ranks repeat themselves from there: by each engine, over two
# relays, with messages larger than the memory, with a full disk, and with directories that cannot be used. Nothing is
# left on the disk, and the relay's memory stays bounded. Prints TAP.
#
#   log_disk.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
# shellcheck disable=SC2016,SC2317 # text for sh -c; the tests are called by t
set -u

suite=log_disk
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
only=${1-}
find_causeway

budget=$((4 << 20)) # --log-memory of most tests
times=20            # a log is so many times as large
ring_bytes=32768
ring_rounds=$((budget * times / ring_bytes / 2 + 20)) # of 2 ranks
of_memory='the logs have used up their memory \(4 MiB, --log-memory\)'
given_up="^causeway: (rank [01]|the ranks) can no longer be restarted: $of_memory and"

# --- a directory on a disk --------------------------------------------------------

expect_no_files() {
  local left
  left=$(find "$logs" -mindepth 1)
  [[ -z $left ]] || wrong "expected no file in --log-dir, saw: $left"
}

# --- jobs -------------------------------------------------------------------------

# run_logged OPTION... -n RANKS COMMAND...: with --stats, which goes from standard error to $work/stats.
run_logged() {
  run "${causeway[@]}" run --no-ckpt --stats --events "$tmp/events" --log-memory "$budget" --log-dir "$logs" "$@"
  count_faults "$tmp/events"
  grep -E '^ +(rank |[0-9]+ |relay: )' "$tmp/err" >"$work/stats"
  sed -i -E '/^ +(rank |[0-9]+ |relay: )/d' "$tmp/err"
  expect_no_files
}

# expect_logged BYTES: the logs hold at least so many at the end.
expect_logged() {
  local bytes
  bytes=$(awk '$1 == "rank" { for (i = 1; i <= NF; i++) if ($i == "log_bytes") column = i }
    column && $1 ~ /^[0-9]+$/ { sum += $column }
    END { printf "%.0f\n", sum }' "$work/stats")
  ((bytes >= $1)) || wrong "expected logs of at least $1 bytes, saw $bytes"
}

# comes_back RESTARTS NAME OPTION... -n RANKS COMMAND...: the job says "ok NAME", and nothing else but that ranks were
# restarted. Its logs are so many times as large as their memory.
comes_back() {
  run_logged "${@:3}"
  expect_code 0
  expect_out "ok $2"
  expect_restarts "$1" "$1"
  expect_only_restarts
  expect_logged $((budget * times))
}

# ring RESTARTS OPTION...: of 2 ranks; storm: of 4, which checks every byte.
ring() {
  comes_back "$1" token_ring "${@:2}" -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
}

storm() {
  comes_back "$1" storm "${@:2}" -n 4 "$programs/storm" 4200
}

# What a relay says when it cannot run here, or nothing.
not_here() {
  "${causeway[@]}" relay --listen "unix:$tmp/no/such/dir" --engine "$1" 2>&1 | grep -v '/no/such/dir'
}

engine_tests() {
  local engine why late=$((ring_rounds * 95 / 100))
  for engine in $("${causeway[@]}" relay --list-engines | cut -d ' ' -f 1); do
    why=$(not_here "$engine")
    if [[ -n $why ]]; then
      tap_skip "engine $engine" "$why"
      continue
    fi
    t "engine $engine: all ranks are killed late" ring 2 --engine "$engine" --fault "kill:0,1@event:$late"
    t "engine $engine: two relays" storm 2 --engine "$engine" --relays 2 --fault kill:1,2@event:3700
    t "engine $engine: a rank is killed late, and the relay's memory" memory_bounded "$engine"
  done
}

# --- messages larger than the memory ----------------------------------------------

# A rank that has received its message is still sending its own.
large() {
  comes_back "$1" token_ring "${@:2}" -n 2 "$programs/token_ring" 4 33554432
}

# Every byte of every size is checked, also of what is repeated.
every_size() {
  comes_back "$1" sizes "${@:2}" -n 2 "$programs/sizes" 33554432
}

# How many bytes process PID has had written to disk: written PID
written() {
  awk '$1 == "write_bytes:" { print $2 }' "/proc/$1/io" 2>/dev/null || echo 0
}

# has_written PID BYTES
has_written() {
  local bytes
  bytes=$(written "$1")
  ((${bytes:-0} > $2))
}

# start_endless OPTION...: a job that goes on for long, whose log has reached the disk; its relay is in $relay.
start_endless() {
  start "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$logs" --log-disk 2G "$@" -n 2 \
    "$programs/token_ring" 10000000 "$ring_bytes"
  await_true "the job's relay" own_relay_runs
  relay=$(own_relay)
  await_true "the log to reach the disk" has_written "$relay" $((5 * budget))
}

own_relay_runs() {
  [[ -n $(own_relay) ]]
}

# A rank is killed at whatever part of a message it has sent or received then.
within_messages() {
  start "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$logs" -n 2 bash -c \
    'echo $$ >"$0.$PMI_RANK" && exec "$@"' "$work/pid" "$programs/token_ring" 16 33554432
  await_true "the job's relay" own_relay_runs
  relay=$(own_relay)
  await_true "the log to reach the disk" has_written "$relay" $((40 << 20))
  kill -9 "$(rank_pid 1)"
  await_true "rank 1 to be restarted" grep -Eq "$restart_line" "$tmp/err"
  await_true "more of the log" has_written "$relay" $((300 << 20))
  kill -9 "$(rank_pid 0)"
  finish
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 2 2
  expect_only_restarts
  expect_no_files
}

large_tests() {
  t "several ranks of 4" storm 2 --fault kill:1,3@event:3700
  t "all sizes up to 32 MB, both are killed" every_size 2 --fault kill:0,1@event:72
  t "messages of 32 MB, a rank is killed again while it repeats" large 3 --fault kill:1@event:5 \
    --fault kill:1@event:3 --fault kill:1@event:4
  t "messages of 32 MB, ranks are killed within one" within_messages
}

# --- no disk, and disks that are full ---------------------------------------------

# The job ends instead, and says which rank it is about.
lost_ends() {
  run "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$logs" --log-disk 8M --log-lost end -n 2 \
    "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  expect_code 1
  expect_err_like '^causeway: rank [01] \(.*token_ring\) can no longer be restarted: the logs have used up .*\(--log-lost end\)$'
  expect_no_files
}

# goes_on REGEX OPTION...: the job ends well, and says what it has no longer.
goes_on() {
  run "${causeway[@]}" run --no-ckpt --log-memory "$budget" "${@:2}" -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 0 0
  expect_err_like "$1"
  (($(grep -Ec 'can no longer be restarted|note: could not have been' "$tmp/err") == $(grep -c . "$tmp/err"))) ||
    wrong "expected nothing else on standard error"
  [[ -z $(cut -d : -f 2 "$tmp/err" | sort | uniq -d) ]] || wrong "expected each rank once"
  expect_no_files
}

# A rank that is killed when it has no log any more ends the job.
full_and_killed() {
  run "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$logs" --log-disk 8M --events "$tmp/events" \
    --fault "kill:1@event:$((ring_rounds - 20))" -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  count_faults "$tmp/events"
  expect_code 137
  expect_restarts 0 0
  expect_err_like "$given_up their disk \(8 MiB, --log-disk\)"
  expect_err_like '^causeway: rank 1 .*killed by signal 9.*cannot be restarted because'
  expect_no_files
}

# Killed before the disk is full it comes back, and the job goes on when it is full.
killed_and_full() {
  run "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$logs" --log-disk 40M --events "$tmp/events" \
    --fault kill:1@event:300 -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  count_faults "$tmp/events"
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 1 1
  expect_err_like "$given_up their disk \(40 MiB, --log-disk\)"
  expect_no_files
}

# Without --log-dir.
default_dir() {
  in_memory "$TMPDIR" && skip "TMPDIR is in memory" && return
  run "${causeway[@]}" run --no-ckpt --log-memory "$budget" --fault kill:1@event:1000 -n 2 "$programs/token_ring" \
    "$ring_rounds" "$ring_bytes"
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 1 1
  expect_only_restarts
}

in_memory_by_default() {
  in_memory /dev/shm || { skip "/dev/shm is not in memory" && return; }
  goes_on "$given_up have no disk" --genv none=none
}

# Writes beyond the limit of a file's size fail.
limited_files() {
  (
    ulimit -f $((16 << 10)) # KiB
    goes_on "$given_up cannot be written to disk \(--log-dir\): File too large" --log-dir "$logs"
    printf '%s\n' "${notes[@]}" >"$work/notes"
  )
  notes=()
  [[ -z $(<"$work/notes") ]] || wrong "$(<"$work/notes")"
}

# on_a_small_disk OPTION... -n RANKS COMMAND...: with its log there.
on_a_small_disk() {
  local on_small_disk
  see_small_disk
  run "${on_small_disk[@]}" "${causeway[@]}" run --no-ckpt --log-memory "$budget" --log-dir "$work/disk" "$@"
}

no_space() {
  small_disk 48M || return
  on_a_small_disk --log-disk 1G -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  expect_code 0
  expect_out 'ok token_ring'
  expect_err_like "$given_up cannot be written to disk \(--log-dir\): No space left on device"
}

# Without --log-disk it is half of what is free.
half_of_it() {
  small_disk 48M || return
  on_a_small_disk -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
  expect_code 0
  expect_out 'ok token_ring'
  expect_err_like "$given_up their disk \((1[5-9]|2[0-4]) MiB, --log-disk\)"
}

# What was given to one job is given back when it ends: five of them, each half of the disk.
used_again() {
  local i
  start_relay --listen "unix:$work/r" --log-memory "$budget" --log-dir "$logs" --log-disk $((2 * times * budget))
  for i in 1 2 3 4 5; do
    run_expect 0 '' "${causeway[@]}" run --no-ckpt --relay "unix:$work/r" -n 2 "$programs/token_ring" "$ring_rounds" "$ring_bytes"
    expect_out 'ok token_ring'
  done
  run "${causeway[@]}" run --no-ckpt --relay "unix:$work/r" --fault kill:1@event:1000 -n 2 "$programs/token_ring" \
    "$ring_rounds" "$ring_bytes"
  expect_code 0
  expect_restarts 1 1
  expect_only_restarts
  (($(grep -c . "$tmp/relay.err") == 1)) || wrong "the relay says: $(<"$tmp/relay.err")"
}

# Two jobs share a relay's memory and disk; one is killed meanwhile.
two_jobs() {
  local other
  start_relay --listen "unix:$work/r" --log-memory "$budget" --log-dir "$logs"
  "${causeway[@]}" run --no-ckpt --relay "unix:$work/r" -n 4 "$programs/storm" 2000 >"$work/out" 2>"$work/err" &
  other=$!
  run "${causeway[@]}" run --no-ckpt --relay "unix:$work/r" --fault kill:0,1@event:1200 -n 2 "$programs/token_ring" \
    "$ring_rounds" "$ring_bytes"
  wait "$other" || wrong "the other job ended with code $?: $(<"$work/err")"
  [[ $(<"$work/out") = 'ok storm' ]] || wrong "the other job printed $(<"$work/out")"
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 2 2
  expect_only_restarts
}

disk_tests() {
  t "--log-disk 8M" goes_on "$given_up their disk \(8 MiB, --log-disk\)" --log-dir "$logs" --log-disk 8M
  t "--log-disk 8M --log-lost end" lost_ends
  t "--log-disk 8M, two relays" goes_on "$given_up their disk \(8 MiB, --log-disk\)" --log-dir "$logs" \
    --log-disk 8M --relays 2
  t "--log-disk 8M, a rank is killed" full_and_killed
  t "--log-disk 40M, a rank is killed before it is full" killed_and_full
  t "--log-disk 0" goes_on "$given_up have no disk" --log-dir "$logs" --log-disk 0
  t "files of 16 MB at most" limited_files
  t "a file system of 48 MB" no_space
  t "a file system of 48 MB, of which half is used" half_of_it
  t "\$TMPDIR" default_dir
  t "the disk of a relay is used again" used_again
  t "two jobs at a relay" two_jobs
}

# --- directories and options ------------------------------------------------------

# refused REGEX OPTION...: the job does not start, and says why.
refused() {
  run "${causeway[@]}" run "${@:2}" -n 2 "$programs/token_ring" 10 64
  expect_code 1
  [[ ! -s $tmp/out ]] || wrong "expected no output"
  expect_err_like "^causeway relay: $1"
  # one of several relays may say why after that
  grep -qx "causeway: the job's own relay did not start" "$tmp/err" || wrong "expected it to say so"
  (($(grep -c . "$tmp/err") <= 3)) || wrong "expected a line of each relay and one of the job"
  expect_no_files
}

# relay_refused REGEX OPTION...: a relay alone. Neither its socket nor its key are left.
relay_refused() {
  run_expect 1 "^causeway relay: $1" "${causeway[@]}" relay --listen "unix:$work/r" "${@:2}"
  [[ ! -e $work/r && ! -e $work/r.key ]] || wrong "expected no socket and no key"
}

# at_dir REGEX DIR: the job's relay, each of two, and a relay alone
at_dir() {
  refused "$1" --log-dir "$2"
  refused "$1" --log-dir "$2" --relays 2
  relay_refused "$1" --log-dir "$2"
}

is_file() {
  : >"$work/file"
  at_dir "--log-dir $work/file: .*Not a directory" "$work/file"
}

is_in_memory() {
  in_memory /dev/shm || { skip "/dev/shm is not in memory" && return; }
  at_dir '--log-dir /dev/shm: .*memory.*--log-disk 0' /dev/shm
  [[ -z $(find /dev/shm -newer "$work" -name '*causeway*') ]] || wrong "expected no file there"
}

# A file system that is read-only, where this can be had; else a directory without permission.
is_read_only() {
  local where_read_only
  mkdir "$work/closed"
  see_read_only "$work/closed" || return
  local causeway=("${where_read_only[@]}" "${causeway[@]}")
  at_dir '--log-dir .*/closed: .*(Read-only file system|Permission denied); .*write' "$work/closed"
}

option_tests() {
  t "--log-dir of no such directory" at_dir '--log-dir /no/such/dir: .*No such file or directory' /no/such/dir
  t "--log-dir of a file" is_file
  t "--log-dir in memory" is_in_memory
  t "--log-dir that cannot be written to" is_read_only
  t "--log-disk x" run_expect 2 "^causeway run: --log-disk 'x'" "${causeway[@]}" run --log-disk x -n 1 "$actor" init
}

# --- ends -------------------------------------------------------------------------

# ended_by CODE REGEX SIGNAL relay|job: while the log is on the disk. What is left is seen by t.
ended_by() {
  start_endless
  case $4 in
  relay) kill "-$3" "$relay" ;;
  job) kill "-$3" "$pid" ;;
  esac
  finish
  expect_code "$1"
  [[ -z $2 ]] || expect_err_like "$2"
  await_true "the relay to end" gone "$relay"
  expect_no_files
}

# Nobody is left who could remove the job's directory.
killed_at_once() {
  ended_by 137 '' KILL job
  rm -rf "$TMPDIR"/causeway-*
}

# A rank is killed, and while it repeats from the disk the whole job is.
ended_while_it_repeats() {
  start_endless --fault kill:1@event:5000
  await_true "rank 1 to be restarted" grep -Eq "$restart_line" "$tmp/err"
  kill -TERM "$pid"
  finish
  expect_code 143
  await_true "the relay to end" gone "$relay"
  expect_no_files
}

# A relay alone is killed while jobs are there: what it leaves are its socket and its key, nothing on the disk.
relay_alone_killed() {
  start_relay --listen "unix:$work/r" --log-memory "$budget" --log-dir "$logs"
  relay=$helper
  start "${causeway[@]}" run --no-ckpt --resume-timeout 200ms --relay "unix:$work/r" -n 2 "$programs/token_ring" 10000000 \
    "$ring_bytes"
  await_true "the log to reach the disk" has_written "$relay" $((5 * budget))
  kill "-$1" "$relay"
  finish
  [[ $code != 0 ]] || wrong "expected the job not to end well"
  await_true "the relay to end" gone "$relay"
  expect_no_files
}

end_tests() {
  t "SIGKILL of the job's relay" ended_by '[1-9][0-9]*' relay KILL relay
  t "SIGTERM of the job's relay" ended_by '[1-9][0-9]*' relay TERM relay
  t "SIGTERM of causeway run" ended_by 143 '' TERM job
  t "SIGINT of causeway run" ended_by 130 '' INT job
  t "SIGKILL of causeway run" killed_at_once
  t "SIGTERM while a rank repeats itself" ended_while_it_repeats
  t "SIGKILL of a relay alone" relay_alone_killed KILL
  t "SIGTERM of a relay alone" relay_alone_killed TERM
}

# --- memory -----------------------------------------------------------------------

memory_max=$((32 << 20)) # --log-memory
allowance=$((48 << 20))  # of what a relay needs besides

# The relay is one alone, so that it is there when the job has ended.
memory_bounded() {
  local rounds=$((memory_max * times / 65536 / 2 + 20)) resident bytes
  start_relay --listen "unix:$work/r" --log-memory "$memory_max" --log-dir "$logs" --engine "$1"
  run "${causeway[@]}" run --no-ckpt --relay "unix:$work/r" --fault "kill:1@event:$((rounds * 9 / 10))" -n 2 \
    "$programs/token_ring" "$rounds" 65536
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 1 1
  expect_only_restarts
  resident=$(awk '$1 == "VmHWM:" { print $2 * 1024 }' "/proc/$helper/status")
  ((resident > 0 && resident < memory_max + allowance)) ||
    wrong "expected at most $((memory_max + allowance)) bytes of the relay in memory, saw $resident"
  bytes=$(written "$helper")
  ((bytes >= memory_max * (times - 3))) || wrong "expected most of the log to be written, saw $bytes bytes"
  expect_no_files
}

# --- images -----------------------------------------------------------------------

# room_is_made TIMES OPTION...: the messages take so many times what their log may take in memory and on disk. No rank
# is ever one that could not be restarted.
room_is_made() {
  local rounds=$((2 * image_budget * $1 / 65536 / 2))
  run "${causeway[@]}" run --events "$tmp/events" --log-memory "$image_budget" --log-disk "$image_budget" \
    --log-dir "$logs" "${@:2}" --fault "kill:1@event:$((rounds / 4))" --fault "kill:0,1@event:$((rounds / 2))" \
    -n 2 "$programs/token_ring" "$rounds" 65536
  expect_code 0
  expect_out 'ok token_ring'
  expect_restarts 3 3
  expect_only_restarts
  grep -q '"rank_restored"' "$tmp/events" || wrong "no rank went on from an image"
  expect_no_files
}

image_tests() {
  local engine
  image_budget=$((24 << 20))
  t "images make room: 50 times the log's memory and disk" room_is_made 50
  t "images make room: no disk" room_is_made 10 --log-disk 0
  t "images make room: two relays" room_is_made 10 --relays 2
  t "images make room: an image of each rank in an hour" room_is_made 10 --ckpt-every 1h
  for engine in $("${causeway[@]}" relay --list-engines | cut -d ' ' -f 1); do
    [[ -n $(not_here "$engine") ]] || t "images make room: engine $engine" room_is_made 10 --engine "$engine"
  done
}

# --- all of it --------------------------------------------------------------------

main() {
  local it
  for it in "${causeway[@]}" "$programs"/{actor,token_ring,storm,sizes}; do
    [[ -x $it ]] || { echo "log_disk.sh: no $it" >&2 && exit 2; }
  done
  lib_start
  trap disk_end EXIT
  cd "$tmp" || exit 2
  if find_disk; then
    engine_tests
    large_tests
    disk_tests
    option_tests
    end_tests
    image_tests
  else
    tap_skip "all of it" "there is no directory on a disk"
  fi
  tap_end
}

main

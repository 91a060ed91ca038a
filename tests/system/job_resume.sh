#!/bin/bash
# Jobs with --job-dir whose dispatcher is killed, or all of their processes at once, as when their machine loses power:
# causeway run --resume goes on with them, and what they print is what one job prints that nobody kills. Also:
# directories that cannot be used, jobs that run, journals that are torn or damaged. Prints TAP.
#
#   job_resume.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="jobs that are resumed"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-90}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
only=${1-}
find_causeway
programs=$root/build/programs

# --- jobs -------------------------------------------------------------------------

# What a test's job prints, all of its dispatchers together, is in $work/all; what they say in $work/said.

collect() {
  cat "$tmp/out" >>"$work/all"
  cat "$tmp/err" >>"$work/said"
}

# begin OPTION... COMMAND...: starts a job that is kept.
begin() {
  dir=$logs/job
  rm -rf "$dir"
  : >"$work/all"
  : >"$work/said"
  start "${causeway[@]}" run --job-dir "$dir" "$@"
}

again() {
  start "${causeway[@]}" run --resume "$dir" "$@"
}

kill_dispatcher() {
  kill -9 "$pid"
  finish
  collect
}

# The dispatcher is stopped first, so that it starts no others meanwhile.
kill_all() {
  kill -STOP "$pid"
  mapfile -t all < <(below "$pid")
  kill -9 "$pid" "${all[@]}" 2>/dev/null
  finish
  collect
}

# The job that start started prints, or ends.
has_printed() {
  (($(wc -l <"$tmp/out") >= $1)) || gone "$pid"
}

# has_line FILE N
has_line() {
  { [[ -e $1 ]] && (($(wc -l <"$1") >= $2)); } || gone "$pid"
}

has_images() {
  (($(grep -c '"event":"image_stored"' "$tmp/events") >= $1)) || gone "$pid"
}

has_said() {
  grep -q "$1" "$tmp/err" || gone "$pid"
}

has_begun() {
  grep -q "has called MPI_Init" "$tmp/err" || gone "$pid"
}

# The job has come to its end, with the output of one that nobody killed.
expect_whole() {
  finish
  collect
  expect_code 0
  diff <(sort "$work/expected") <(sort "$work/all") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
  [[ ! -e $dir ]] || wrong "left: $(ls "$dir")"
}

# The dispatcher at hand has started ranks from images, not from their beginning. No rank had crashed before it came.
expect_from_images() {
  grep -q '"event":"rank_restored"' "$tmp/events" || wrong "no rank went on from an image"
}

# --- killed -----------------------------------------------------------------------

solver=(-n 3 "$programs/solver" 120 1500 100)
long_solver=(-n 3 "$programs/solver" 120 30000 5000) # where nothing waits for the disk
storm=(-n 3 "$programs/storm" 1500)

expected() {
  run "${causeway[@]}" run "$@"
  cp "$tmp/out" "$work/expected"
  expect_code 0
}

# killed HOW OPTION...: after some output, each time more.
killed() {
  local how=$1
  expected "${solver[@]}"
  begin "${@:2}" "${solver[@]}"
  await_true "output" has_printed 2
  "$how"
  again
  await_true "more output" has_printed 3
  "$how"
  again
  expect_whole
}

killed_in_init() {
  expected "${solver[@]}"
  begin --verbose "${solver[@]}"
  await_true "MPI_Init" has_begun
  kill_all
  again
  expect_whole
}

killed_with_images() {
  local program=("${solver[@]}")
  [[ $* = *--log-safety\ file ]] && program=("${long_solver[@]}")
  expected "${program[@]}"
  : >"$tmp/events"
  begin --events "$tmp/events" --ckpt-every 100ms "${@:2}" "${program[@]}"
  await_true "images" has_images 4
  "$1"
  again --verbose
  expect_whole
  expect_from_images
}

# behind OPTION...: the job goes on on a machine that was started much later: in a namespace of time its clocks are ahead at
# first.
behind() {
  local ahead=(unshare --time --monotonic 10000000 --boottime 20000000) plain=("${causeway[@]}")
  local program=(-n 2 "$programs/clocks" 200 50)
  if [[ $("${ahead[@]}" cut -d. -f1 /proc/uptime 2>/dev/null) -lt 20000000 ]]; then
    skip "no namespace of time can be entered"
    return
  fi
  expected "${program[@]}"
  : >"$tmp/events"
  causeway=("${ahead[@]}" "${plain[@]}")
  begin --events "$tmp/events" "$@" "${program[@]}"
  causeway=("${plain[@]}")
  [[ $* = --no-ckpt ]] || await_true "images" has_images 4
  await_true "output" has_printed 1
  kill_all
  again --verbose
  expect_whole
  [[ $* = --no-ckpt ]] || expect_from_images
}

# In a storm, at moments of no meaning, until it has come to its end.
killed_often() {
  local times=0
  expected "${storm[@]}"
  begin --verbose --ckpt-every 150ms "$@" "${storm[@]}"
  await_true "MPI_Init" has_begun
  while ((times < 6)) && ! gone "$pid"; do
    sleep "0.$((RANDOM % 8 + 1))"
    [[ -e $dir/state ]] || break
    ((times++))
    kill_all
    again
  done
  expect_whole
}

# A rank that is about to leave MPI when all are killed leaves it again.
killed_in_finalize() {
  begin -n 2 "$actor" init lines=3,20 finalize "await=$work/go" lines=2,20
  await_true "output" has_printed 6
  kill_all
  touch "$work/go"
  again
  finish
  collect
  expect_code 0
  (($(wc -l <"$work/all") == 10)) || wrong "$(wc -l <"$work/all") lines, not 10"
}

# The file is opened again where nobody gives it, or another one; it is missed where it is gone.
input_goes_on() {
  local given
  seq -f '%0300g' 1 700 >"$work/input"
  input=$work/input
  expected -n 2 "$programs/stdin_echo" echo
  for given in "$work/input" /dev/null; do
    input=$work/input
    begin -n 2 "$programs/stdin_echo" echo
    await_true "output" has_printed 1
    kill_all
    input=$given
    again
    expect_whole
  done
  input=
}

input_is_gone() {
  seq 1 200000 >"$work/input"
  input=$work/input
  begin -n 2 "$programs/stdin_echo" echo
  await_true "output" has_printed 1
  kill_all
  input=
  mv "$work/input" "$work/moved"
  refused 1 "reads its standard input from a file.* at $work/input there is none, or another one" \
    "${causeway[@]}" run --resume "$dir"
  cp "$work/moved" "$work/input"
  refused 1 "there is none, or another one: give it the file" "${causeway[@]}" run --resume "$dir"
  forget_job
}

# --- power that is lost -----------------------------------------------------------

# Another kernel runs, and what was printed is on disk as far as it was synced: the last lines are not counted.
lose_power() {
  kill_all
  printf 'another' | dd of="$dir/counts" bs=1 seek=16 conv=notrunc 2>/dev/null
}

# power_lost [OPTION...]: lines may come twice, none is lost, and that is said.
power_lost() {
  expected "${solver[@]}"
  : >"$tmp/events"
  begin --events "$tmp/events" "$@" "${solver[@]}"
  await_true "output" has_printed 2
  [[ -z $* ]] || await_true "images" has_images 4
  lose_power
  again --verbose
  finish
  collect
  expect_code 0
  expect_err_like "what ranks printed in the last seconds before it went down may be printed again now"
  [[ -z $* ]] || expect_from_images
  diff <(sort -u "$work/expected") <(sort -u "$work/all") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
}

all_of() {
  cat "$1"/rank.{0,1,2}.out
}

# What was not counted is in the files too, torn, and comes again.
files_after_power_lost() {
  rm -rf "$work/one" "$work/two"
  run "${causeway[@]}" run --tag-output --output-dir "$work/one" "${solver[@]}"
  begin --ckpt-every 300ms --tag-output --output-dir "$work/two" "${solver[@]}"
  await_true "output" has_line "$work/two/rank.0.out" 2
  lose_power
  printf '[0] what was not synced\n\0\0\0\0' >>"$work/two/rank.0.out"
  again
  await_true "more output" has_line "$work/two/rank.0.out" 4
  kill_all
  printf '[0] what was not counted\n[0] ' >>"$work/two/rank.0.out"
  again
  finish
  collect
  expect_code 0
  grep -q "may be printed again" "$work/said" && wrong "$(cat "$work/said")"
  diff <(all_of "$work/one") <(all_of "$work/two") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
}

file_is_shorter() {
  rm -rf "$work/two"
  begin --output-dir "$work/two" "${solver[@]}"
  await_true "output" has_line "$work/two/rank.0.out" 2
  kill_all
  : >"$work/two/rank.0.out"
  again
  finish
  expect_code 0
  expect_err_like "output file $work/two/rank.0.out: it has lost lines .[0-9]+. that were printed before"
}

# The log of --log-safety file does not outlive the kernel, and that is said each time.
power_lost_without_sync() {
  begin --log-safety file "${solver[@]}"
  await_true "output" has_printed 2
  lose_power
  refused 1 "this machine was started anew since" "${causeway[@]}" run --resume "$dir"
  refused 1 "start the job anew in another directory" "${causeway[@]}" run --resume "$dir"
  forget_job
}

counts_are_gone() {
  leave_job
  truncate -s 8 "$dir/counts"
  refused 1 "its file counts, .*cannot be used .it is damaged.: the job cannot be resumed" "${causeway[@]}" run --resume "$dir"
  rm "$dir/counts"
  refused 1 "its file counts, .*No such file" "${causeway[@]}" run --resume "$dir"
  forget_job
}

# --- ends that are not good -------------------------------------------------------

interrupted() {
  expected "${solver[@]}"
  begin "$@" "${solver[@]}"
  await_true "output" has_printed 2
  kill -TERM "$pid"
  finish
  collect
  expect_code 143
  expect_err_like "the job can be gone on with: causeway run --resume $dir\$"
  again
  expect_whole
}

out_of_time() {
  expected "${solver[@]}"
  begin --timeout 1s "${solver[@]}"
  finish
  collect
  expect_code 124
  again --timeout 80s
  expect_whole
}

# --- refused ----------------------------------------------------------------------

# refused CODE TEXT COMMAND...
refused() {
  run "${@:3}"
  expect_code "$1"
  expect_err_like "$2"
}

options_refused() {
  local try=("${causeway[@]}" run --job-dir "$logs/job")
  rm -rf "$logs/job"
  refused 2 "not with --ckpt-dir" "${try[@]}" --ckpt-dir "$work/i" true
  refused 2 "not with --resume-timeout 0" "${try[@]}" --resume-timeout 0 true
  refused 2 "unexpected argument" "${causeway[@]}" run --resume "$logs/job" true
  [[ ! -e $logs/job ]] || wrong "there is a directory"
}

directories_refused() {
  refused 1 "No such file" "${causeway[@]}" run --resume "$work/none"
  mkdir -m 700 "$logs/empty"
  refused 1 "there is no job to go on with" "${causeway[@]}" run --resume "$logs/empty"
  touch "$logs/empty/file"
  refused 1 "it is not empty" "${causeway[@]}" run --job-dir "$logs/empty" "$programs/nompi"
  chmod 755 "$logs/empty"
  refused 1 "other users may look into it" "${causeway[@]}" run --job-dir "$logs/empty" "$programs/nompi"
  [[ -e $logs/empty/file ]] || wrong "a file is gone"
  rm -rf "$logs/empty"
}

# The directory is in a file system of its own, which is there in name spaces of its own.
full_disk() {
  local disk=$work/disk full="No space left on device; make room there, and try again"
  small_disk 100M || return
  see_small_disk
  expected "${solver[@]}"
  fill="dd if=/dev/zero of=$disk/fill bs=4k 2>/dev/null"
  refused 1 "$full" "${on_small_disk[@]}" sh -c "$fill"'; exec "$@"' _ "${causeway[@]}" run --job-dir "$disk/job" \
    "${solver[@]}"
  run "${on_small_disk[@]}" sh -c "rm $disk/fill"'; exec "$@"' _ "${causeway[@]}" run --timeout 1s \
    --job-dir "$disk/job" "${solver[@]}"
  cp "$tmp/out" "$work/all"
  expect_code 124
  refused 1 "$full" "${on_small_disk[@]}" sh -c "$fill"'; exec "$@"' _ "${causeway[@]}" run --resume "$disk/job"
  run "${on_small_disk[@]}" sh -c "rm $disk/fill"'; exec "$@"' _ "${causeway[@]}" run --resume "$disk/job" --timeout 80s
  cat "$tmp/out" >>"$work/all"
  expect_code 0
  diff <(sort "$work/expected") <(sort "$work/all") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
}

other_user() {
  ((UID == 0)) || { skip "this is not root" && return; }
  rm -rf "$logs/job"
  mkdir -m 700 "$logs/job"
  chown 65534 "$logs/job"
  refused 1 "it belongs to another user; run this as that user" "${causeway[@]}" run --job-dir "$logs/job" true
  touch "$logs/job/state"
  refused 1 "it belongs to another user; run this as that user" "${causeway[@]}" run --resume "$logs/job"
  chown 0 "$logs/job"
  chmod 755 "$logs"
  refused 1 "Permission denied; give the directory of a job of this user's" setpriv --reuid=65534 --regid=65534 \
    --clear-groups "${causeway[@]}" run --resume "$logs/job"
  rm -rf "$logs/job"
}

# A job that is resumed, and ended well, cannot be resumed once more; nor can one that is being resumed.
resumed_already() {
  begin -n 2 "$actor" init lines=2,20 "await=$work/go" finalize
  await_true "output" has_printed 4
  kill_all
  again
  await_true "ranks" has_said "is back"
  timeout 20 "${causeway[@]}" run --resume "$dir" 2>"$work/err"
  grep -q "its job runs (causeway run, pid $pid); it can be resumed when that has ended" "$work/err" || wrong "$(cat "$work/err")"
  touch "$work/go"
  finish
  expect_code 0
  refused 1 "--resume $dir: No such file or directory; a job that ends well removes its directory" \
    "${causeway[@]}" run --resume "$dir"
}

# The program ends with an error; the job can be resumed all the same, once its cause is gone.
failed_by_itself() {
  begin -n 2 "$actor" init lines=2,20 "await=$work/go" 0:exit=3 "await=$work/never" finalize
  await_true "output" has_printed 4
  touch "$work/go"
  finish
  collect
  expect_code 3
  expect_err_like "the job can be gone on with: causeway run --resume $dir\$"
  again
  finish
  expect_code 3
  (($(wc -l <"$work/all") == 4)) || wrong "$(wc -l <"$work/all") lines, not 4"
  forget_job
}

running_refused() {
  begin -n 2 "$actor" init lines=2,20 "await=$work/go" finalize
  await_true "output" has_printed 4
  timeout 20 "${causeway[@]}" run --resume "$dir" 2>"$work/err"
  grep -q "its job runs (causeway run, pid $pid)" "$work/err" || wrong "$(cat "$work/err")"
  timeout 20 "${causeway[@]}" run --job-dir "$dir" "$programs/nompi" 2>"$work/err"
  grep -q "its job runs (causeway run, pid $pid)" "$work/err" || wrong "$(cat "$work/err")"
  touch "$work/go"
  finish
  expect_code 0
}

# A job that was killed after some output.
leave_job() {
  cp "$programs/solver" "$work/solver"
  begin -n 2 "$work/solver" 100 300000 100
  await_true "output" has_printed 2
  kill_all
}

# Nobody goes on with it: what its dispatcher had open goes with the next start, or here.
forget_job() {
  rm -rf "$dir" "$TMPDIR"/causeway-*
}

torn() {
  expected "${solver[@]}"
  begin "${solver[@]}"
  await_true "output" has_printed 2
  kill_all
  printf '\001\000\000\000\377\000\000\000torn' >>"$dir/state"
  again
  expect_whole
}

damaged() {
  leave_job
  printf '\377' | dd of="$dir/state" bs=1 seek=40 conv=notrunc 2>/dev/null
  refused 1 "its journal is damaged at byte" "${causeway[@]}" run --resume "$dir"
  printf '\377' | dd of="$dir/state" bs=1 seek=8 conv=notrunc 2>/dev/null
  refused 1 "its journal is of version 255" "${causeway[@]}" run --resume "$dir"
  printf '\377' | dd of="$dir/state" bs=1 seek=0 conv=notrunc 2>/dev/null
  refused 1 "damaged at its beginning" "${causeway[@]}" run --resume "$dir"
  forget_job
}

program_changed() {
  leave_job
  refused 1 "a job is there that did not end well" "${causeway[@]}" run --job-dir "$dir" "$programs/nompi"
  touch "$work/solver"
  refused 1 "solver has changed since the job began" "${causeway[@]}" run --resume "$dir"
  rm "$work/solver"
  refused 1 "the job needs .*solver: No such file" "${causeway[@]}" run --resume "$dir"
  forget_job
}

lib_start
if ! find_disk; then
  tap_skip "all" "there is no directory on a disk"
  tap_end
  exit
fi
trap disk_end EXIT
t "the dispatcher is killed, twice" killed kill_dispatcher
t "all processes are killed, twice" killed kill_all
t "... in MPI_Init" killed_in_init
t "... where ranks have images" killed_with_images kill_all
t "the dispatcher is killed where ranks have images" killed_with_images kill_dispatcher
t "... without images, all processes" killed kill_all --no-ckpt
t "clocks of another machine, behind those of before" behind --no-ckpt
t "... where ranks have images" behind --ckpt-every 50ms
t "all processes are killed again and again" killed_often
t "... after MPI_Finalize" killed_in_finalize
t "--log-safety file: the dispatcher is killed, twice" killed kill_dispatcher --log-safety file
t "--log-safety file: all processes are killed, twice" killed kill_all --log-safety file
t "--log-safety file: ... where ranks have images" killed_with_images kill_all --log-safety file
t "--log-safety file: all processes are killed again and again" killed_often --log-safety file
t "--log-safety file: interrupted" interrupted --log-safety file
t "--log-safety file: a log on disk" killed kill_all --log-safety file --log-memory 2M
t "--log-safety file: power is lost" power_lost_without_sync
t "power is lost" power_lost
t "... where ranks have images" power_lost --ckpt-every 100ms
t "... and there are files of output" files_after_power_lost
t "files of output that have lost something" file_is_shorter
t "counts that are damaged or gone" counts_are_gone
t "standard input goes on where it was" input_goes_on
t "standard input that is gone" input_is_gone
t "a job that was ended by a signal goes on" interrupted
t "a job that ran out of time goes on" out_of_time
t "options that do not go together" options_refused
t "directories that cannot be used" directories_refused
t "directories of other users" other_user
t "a job that runs" running_refused
t "a job that was resumed" resumed_already
t "a program that fails" failed_by_itself
t "a disk that is full" full_disk
t "a journal that is torn" torn
t "a journal that is damaged" damaged
t "a program that has changed" program_changed
tap_end

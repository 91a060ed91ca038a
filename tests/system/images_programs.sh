#!/bin/bash
# What programs do while images of them are taken: with their output and input, descriptors, limits, memory, children. A
# rank that goes on from an image finds all as it was, or there is no image of it and it is said why. Prints TAP.
#
#   images_programs.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="images, programs"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-90}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/images.sh
. "$here/../lib/images.sh"
only=${1-}
find_causeway
oddities=$programs/oddities

# odd [OPTION...] -- ODDITY...: ranks are killed, and go on from images.
odd() {
  run_odd "$@"
  expect_lines 2 '^ok oddities'
}

run_odd() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  cd "$work" || return
  start_told "${often[@]}" "${options[@]}" -n 2 "$oddities" "$work/go" "$@"
  cd "$tmp" || return
  await_more 4 image_stored
  crash 0
  await_more 4 image_stored
  crash 1
  await_more 2 image_stored
  crash 0
  end_well
  expect_event rank_restored 3
  expect_no_event image_failed
}

silent() {
  odd -- silent
  [[ ! -s $tmp/out ]] || wrong "on standard output: $(head -n 1 "$tmp/out")"
}

# Standard error goes where standard output does: each line comes once.
joined() {
  run_odd -- joined
  [[ $(grep -c '^ok oddities' "$tmp/out") == 2 ]] || wrong "expected the ends on standard output"
  grep '^error' "$tmp/out" | sort | uniq -c | awk '$1 != 2' >"$work/wrong"
  [[ ! -s $work/wrong ]] || wrong "lines that did not come twice: $(head -n 3 "$work/wrong")"
}

# Each line of each rank is there, maybe twice.
shared_file() {
  local rank
  odd --trust-files -- shared
  for rank in 0 1; do
    grep "^$rank:" "$work/shared" | sort -u | cut -d: -f2 | sort -n | awk '$1 != NR - 1' >"$work/missing"
    [[ ! -s $work/missing ]] || wrong "rank $rank: a line before $(head -n 1 "$work/missing") is missing"
  done
}

# A rank that has closed what its device tells of images with goes on without them.
closed() {
  start_told "${often[@]}" -n 2 "$oddities" "$work/go" close
  await_event image_failed 2
  end_well
  expect_lines 2 '^ok oddities'
  expect_lines 1 'no image of it: the rank did not tell when it was taken: the program has closed a descriptor'
}

# Nobody reads the output: there is no image, and the ranks go on.
full_output() {
  : >"$tmp/events"
  mkfifo "$work/fifo"
  # shellcheck disable=SC2016 # for bash -c
  helper reader bash -c 'exec <"$0"; until [[ -e $1 ]]; do sleep 0.1; done; cat >/dev/null' "$work/fifo" "$work/go"
  # shellcheck disable=SC2016 # for bash -c
  start bash -c 'exec "${@:2}" >"$1"' _ "$work/fifo" "${causeway[@]}" run --events "$tmp/events" "${often[@]}" -n 2 \
    "$oddities" "$work/go" full
  await_event image_failed 2
  end_well
  expect_lines 2 '^ok oddities'
  expect_lines 1 'no image of it: what it has written is not taken from its standard output or error'
}

# Memory that no process could be restored with: there is no image, rather than one of no use.
refused() {
  start_told "${often[@]}" -n 2 "$oddities" "$work/go" "$1"
  await_event image_failed 2
  end_well
  expect_lines 2 '^ok oddities'
  expect_no_event image_stored
  expect_err_like "no image of it: $2; the job goes on"
  expect_lines 1 "^causeway: note: no image could be taken of rank [01] either: $2\$"
}

# Two programs, whose output has the ranks' numbers.
tagged() {
  cp "$oddities" "$work/other"
  cd "$work" || return
  start_told "${often[@]}" --tag-output -n 1 "$oddities" "$work/go" much : \
    -n 2 "$work/other" "$work/go" part
  cd "$tmp" || return
  await_more 2 image_stored 0
  crash 0
  await_more 2 image_stored 2
  crash 2
  end_well
  expect_lines 1 '^\[?0\]?.*ok oddities 0$'
  expect_lines 3 'ok oddities'
  expect_event rank_restored 2
}

# Rank 0 waits for its input, which comes a line at a time, when an image is due and when it is killed. Of some images it is
# not known how much of it had been read: then it goes on from another one.
slow_input() {
  local i
  : >"$tmp/events"
  # shellcheck disable=SC2016 # for bash -c
  start bash -c 'i=0; until [[ -e $1 ]]; do echo "$((i++))"; sleep 0.02; done | exec "${@:2}"' _ "$work/go" \
    "${causeway[@]}" run --events "$tmp/events" "${often[@]}" -n 2 "$oddities" "$work/go" input
  for ((i = 0; i < 3 || (i < 20 && $(count rank_restored) < 2); i++)); do
    await_more 2 image_stored 0
    crash 0
  done
  end_well
  expect_lines 2 '^ok oddities'
  expect_event rank_restored 2
}

# The launcher has got other limits since the image was taken.
other_limits() {
  start_told "${often[@]}" -n 2 "$oddities" "$work/go" limits
  await_more 4 image_stored
  prlimit --pid "$(node)" --nofile=256:4096 --core=0:0 --stack=2097152:16777216 ||
    wrong "limits cannot be set"
  crash 0
  await_more 2 image_stored
  crash 1
  end_well
  expect_lines 2 '^ok oddities'
  expect_event rank_restored 2
}

# It is said when the job starts, and a rank that crashes starts from its beginning.
no_restorer() {
  mkdir "$work/bin"
  cp "$root/build/causeway" "$root/build/librdevice.so" "$work/bin"
  run "$work/bin/causeway" run --ckpt-every 10ms --fault kill:1@event:30 -n 3 "$actor" init ring=40 finalize
  expect_code 0
  expect_lines 1 "^causeway: no images of ranks are taken: the restorer $work/bin/causeway-restore: No such file"
  expect_lines 1 '^causeway: rank 1 .*; restarting it .incarnation 2'
}

# Without prctl() for it there is no image, which a rank says before it is asked for one.
no_prctl() {
  run "$programs/without" prctl "${causeway[@]}" run -n 2 "$actor" init ring=2 finalize
  expect_code 0
  expect_lines 1 '^causeway: rank [01]: no image of it: images need prctl\(\)'
}

program_tests() {
  t "standard output is a file of the program" odd -- output_before
  t "... from some moment on" odd -- output
  t "standard output is /dev/null" silent
  t "standard error goes to standard output" joined
  t "standard input is a file of the program" odd -- given
  t "lines that never end" odd -- part
  t "output by megabytes" odd -- much
  t "another directory, a umask and limits" odd -- moved limits
  t "output that nobody reads" full_output
  t "a timer" odd -- alarm
  t "a timer whose signal is blocked" odd -- blocked_alarm
  t "descriptors are closed that are not the program's" closed
  t "children" odd -- fork wait
  t "commands" odd -- system
  t "memory that comes and goes" odd -- memory
  t "files" odd -- files
  t "a file that all ranks append to" shared_file
  t "an own pipe, an eventfd and epoll" odd -- descriptors
  t "a library that was loaded" odd -- library
  t "MPI_THREAD_MULTIPLE" odd -- multiple
  t "8 GB that nobody touched" odd -- huge
  t "memory where the restorer would be" refused restorer 'the program has memory at 20+400000, where the restorer .*'
  t "... where it would put the kernel's own" refused parking 'the program has memory at 200004100000, where the restorer .*'
  t "two programs, with --tag-output" tagged
  t "standard input that comes slowly" slow_input
  t "the restorer is missing" no_restorer
  t "the kernel does not know what images need" no_prctl
  t "the launcher's limits have changed" other_limits
}

lib_start
program_tests
tap_end

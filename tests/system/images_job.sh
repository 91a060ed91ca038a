#!/bin/bash
# Images of ranks are taken while jobs run, and ranks that crash go on from them: the job comes to the same end as
# without. Checkpoint servers are killed, images are damaged, and images are asked for by hand. Prints TAP. Each job runs
# until what is to be seen was seen: nothing depends on how fast the machine is.
#
#   images_job.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="images of jobs"
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

# --- tests ------------------------------------------------------------------------

taken() {
  reference 3
  start_rings "${often[@]}" -n 3
  await_event image_stored 9
  expect_rings 3
  grep -Ev "$slowed_line" "$tmp/err" | grep -q . && wrong "expected nothing on standard error"
  expect_event image_taken 9
  expect_no_event image_failed
  expect_no_event rank_down
}

# crash_any COUNT RANKS: ranks of the job, one after the other. When this ends all of them live: a rank that repeats itself
# must not find $work/go where it was not.
crash_any() {
  local i
  for ((i = 1; i <= $1; i++)); do
    await_event image_stored $(($(count image_stored) + 1))
    kill -9 "$(rank_process $((RANDOM % $2)))"
    await_event rank_live "$i"
    gone "$pid" && return
  done
}

# restored OPTION...: ranks crash, each goes on from an image.
restored() {
  reference 4
  start_rings "${often[@]}" -n 4 "$@"
  await_event image_stored 8
  crash_any 8 4
  expect_rings 4
  expect_event rank_restored 6
  expect_err_like 'restarting it from image [0-9]+ \(incarnation [0-9]+\)'
}

# computed PROGRAM [ARGUMENT...]: a program that compares what it has computed, with so many crashes as it can bear that
# calls no MPI for a while
computed() {
  start_told "${often[@]}" -n 4 "$programs/$1" "${@:2}"
  await_event image_stored 4
  crash_any 5 4
  finish
  expect_code 0
  expect_out_like "^ok $1$"
  expect_event rank_restored
}

# goes_on NAME COMMAND...: three ranks, each of which crashes once, until $work/go is there
goes_on() {
  local rank
  start_told "${often[@]}" -n 3 "${@:2}" "$work/go"
  for rank in 0 1 2; do
    await_more 1 image_stored "$rank"
    crash "$rank"
  done
  end_well
  expect_out_like "^ok $1$"
  expect_event rank_restored 3
}

# An interpreter, which loads MPI while it runs.
python() {
  local python
  python=$(PATH=/usr/bin:/bin command -v python3)
  if ! "${python:-false}" -c 'import ctypes' 2>/dev/null; then
    skip "there is no python3 of the system"
    return
  fi
  goes_on python_ranks "$python" "$here/programs/python_ranks.py"
}

# A file that the program holds is another one by then: it goes on, and that is said.
remarked() {
  echo one >"$work/in"
  start_told "${often[@]}" -n 2 "$actor" init "1:file=kept,$work/in" "ring_until=$work/go" finalize
  await_more 2 image_stored 1
  cp "$work/in" "$work/other" && mv "$work/other" "$work/in"
  crash 1
  end_well
  expect_event rank_restored
  expect_err_like '^causeway: rank 1 goes on from its image, in which not all is as it was: .*/in, descriptor [0-9]+ of the program, cannot be had again'
}

running() {
  (($(count rank_live) + $(count rank_up) >= $1)) || gone "$pid"
}

on_demand() {
  reference 3
  start_rings -n 3
  await_true "the ranks to connect" running 3
  await_true "images of all ranks" ask_now
  [[ $(grep -c '^rank [0-2]: image [0-9]* is stored' "$work/now") = 3 ]] ||
    wrong "causeway ckpt now said: $(cat "$work/now")"
  "${causeway[@]}" status "$pid" >"$work/status" 2>&1
  [[ $(grep -c ' s ago ' "$work/status") = 3 ]] || wrong "causeway status said: $(cat "$work/status")"
  kill -9 "$(rank_process 2)"
  await_event rank_live 1
  expect_rings 3
  expect_event rank_restored
}

# steady OPTION...: starts a job whose logs hardly grow, and whose images cost little; $images: how many there were by hand.
steady() {
  local steps=() i
  for ((i = 0; i < 500; i++)); do
    steps+=(ring sleep=0.1)
  done
  start_told --ckpt-dir "/dev/shm/causeway-test-$$" "$@" -n 2 \
    "$actor" init "${steps[@]}" finalize
  await_true "the ranks to connect" running 2
  await_true "images of all ranks" ask_now
  await_true "images that change little" ask_now
  images=$(count image_stored)
}

more_images() {
  (($(count image_stored) > images))
}

interrupt() {
  kill "$pid"
  finish
  expect_code 143
}

# Where crashes are expected, they come more often.
by_mtbf() {
  local i took
  steady --mtbf 1s
  SECONDS=0
  for ((i = 0; i < 1500; i++)); do
    more_images && break
    sleep 0.02
  done
  more_images || wrong "no images with --mtbf 1s"
  took=$SECONDS
  interrupt
  steady
  sleep $((took + 1))
  more_images && wrong "as many images without --mtbf"
  interrupt
}

# Logs that grow have images taken, without any option.
by_default() {
  reference 2
  start_rings -n 2
  await_true "the ranks to connect" running 2
  await_true "images of all ranks" ask_now
  await_more 2 image_stored
  await_more 2 image_stored
  expect_rings 2
}

none_wanted() {
  reference 2
  start_rings --no-ckpt -n 2
  await_true "the ranks to connect" running 2
  ask_now
  grep -q 'that job takes no images' "$work/now" || wrong "causeway ckpt now said: $(cat "$work/now")"
  has_own_server && wrong "a checkpoint server runs"
  expect_rings 2
  expect_no_event image_taken
}

lib_start
t "images are taken while a job runs, and change nothing" taken
t "ranks that crash go on from their images" restored
t "... at several relays" restored --relays 2
t "... at relays that are killed as well" restored --relays 2 --log-safety file --fault kill:relay@1s
t "a solver goes on from images" computed solver 300 6000 0
t "ranks with further threads go on from images" computed pool 8000
t "a storm of messages goes on from images" computed storm 8000
t "C++ with exceptions goes on from images" goes_on exceptions "$programs/exceptions"
t "locks that know their owner go on from images" goes_on owners "$programs/owners"
t "Python goes on from images" python
t "a file that is another one by then" remarked
t "images on demand" on_demand
t "images as crashes are expected" by_mtbf
t "images as logs grow" by_default
t "no images are taken where none are wanted" none_wanted
tap_end

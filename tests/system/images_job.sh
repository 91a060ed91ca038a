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

# --- jobs -------------------------------------------------------------------------

# A job whose ranks exchange messages until $work/go is there.
start_rings() {
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "$@" "$actor" init "ring_until=$work/go" \
    lines=100,40 ring lines=100,40 finalize
}

# How many lines such a job prints: $lines.
reference() {
  touch "$work/go"
  start_rings -n "$1"
  finish
  lines=$(wc -l <"$tmp/out")
  rm "$work/go"
}

# It ends well, with all that it prints, once each.
expect_good_end() {
  touch "$work/go"
  finish
  expect_code 0
  expect_out_like "^rings of $1$"
  [[ $(wc -l <"$tmp/out") = "$lines" ]] || wrong "expected $lines lines, saw $(wc -l <"$tmp/out")"
}

# --- tests ------------------------------------------------------------------------

taken() {
  reference 3
  start_rings "${often[@]}" -n 3
  await_events image_stored 9
  expect_good_end 3
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
    await_events image_stored $(($(events image_stored) + 1))
    kill -9 "$(rank_process $((RANDOM % $2)))"
    await_events rank_live "$i"
    gone "$pid" && return
  done
}

# restored OPTION...: ranks crash, each goes on from an image.
restored() {
  reference 4
  start_rings "${often[@]}" -n 4 "$@"
  await_events image_stored 8
  crash_any 8 4
  expect_good_end 4
  expect_event rank_restored 6
  expect_err_like 'restarting it from image [0-9]+ \(incarnation [0-9]+\)'
}

# computed PROGRAM [ARGUMENT...]: a program that compares what it has computed, with so many crashes as it can bear that
# calls no MPI for a while
computed() {
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "${often[@]}" -n 4 "$programs/$1" "${@:2}"
  await_events image_stored 4
  crash_any 5 4
  finish
  expect_code 0
  expect_out_like "^ok $1$"
  expect_event rank_restored
}

# goes_on NAME COMMAND...: three ranks, each of which crashes once, until $work/go is there
goes_on() {
  local rank
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "${often[@]}" -n 3 "${@:2}" "$work/go"
  for rank in 0 1 2; do
    await_more 1 image_stored "$rank"
    crash "$rank"
  done
  touch "$work/go"
  finish
  expect_code 0
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

# The job's own server dies, and with it what was being copied.
server_killed() {
  local server
  reference 3
  start_rings "${often[@]}" -n 3
  await_events image_stored 3
  server=$(own_server)
  kill -9 "$server"
  await_true "another checkpoint server" another_than "$server"
  kill -9 "$(rank_process 1)"
  await_events rank_live 1
  await_events image_stored $(($(events image_stored) + 3))
  expect_good_end 3
  expect_err_like 'the checkpoint server was killed by signal 9 \(Killed\); starting it again'
}

another_than() {
  local now
  now=$(own_server)
  [[ -n $now && $now != "$1" ]] || gone "$pid"
}

running() {
  (($(events rank_live) + $(events rank_up) >= $1)) || gone "$pid"
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
  await_events rank_live 1
  expect_good_end 3
  expect_event rank_restored
}

# steady OPTION...: starts a job whose logs hardly grow, and whose images cost little; $images: how many there were by hand.
steady() {
  local steps=() i
  for ((i = 0; i < 500; i++)); do
    steps+=(ring sleep=0.1)
  done
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" --ckpt-dir "/dev/shm/causeway-test-$$" "$@" -n 2 \
    "$actor" init "${steps[@]}" finalize
  await_true "the ranks to connect" running 2
  await_true "images of all ranks" ask_now
  await_true "images that change little" ask_now
  images=$(events image_stored)
}

more_images() {
  (($(events image_stored) > images))
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
  expect_good_end 2
}

none_wanted() {
  reference 2
  start_rings --no-ckpt -n 2
  await_true "the ranks to connect" running 2
  ask_now
  grep -q 'that job takes no images' "$work/now" || wrong "causeway ckpt now said: $(cat "$work/now")"
  has_own_server && wrong "a checkpoint server runs"
  expect_good_end 2
  expect_no_event image_taken
}

# Servers that run already keep the images, of ranks in turn.
servers_by_hand() {
  local i options=()
  reference 4
  for i in 1 2; do
    helper "server$i" "${causeway[@]}" ckptsrv --dir "$work/images$i" --listen "unix:$work/s$i" --key-file "$work/s$i.key"
    await_true "server $i to listen" test -S "$work/s$i"
    options+=(--ckpt-server "unix:$work/s$i")
  done
  start_rings "${often[@]}" "${options[@]}" -n 4
  await_events image_stored 8
  crash_any 4 4
  [[ -z $(own_server) ]] || wrong "the job has a checkpoint server of its own"
  expect_good_end 4
}

# What is on disk is of no use any more, and the log begins at it.
damaged() {
  start_rings --ckpt-dir "$work/images" -n 2
  await_true "the ranks to connect" running 2
  await_true "images of all ranks" ask_now
  await_true "the log to be trimmed" ask_now
  find "$work/images" -type f -size +0 -exec truncate -s 0 {} +
  kill -9 "$(rank_process 1)"
  finish
  expect_code 1
  expect_err_like 'rank 1: image [0-9]+ cannot be restored: .*; '
  expect_err_like '^causeway: rank 1 .* there is nothing to restart it from: image [0-9]+: '
}

# The place where images were is empty at the end.
nothing_is_left() {
  : >"$tmp/events"
  touch "$work/go"
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  finish
  expect_code 0
  [[ ! -e $work/images ]] || wrong "left: $(find "$work/images")"
  [[ -z $(find "$TMPDIR" -name 'causeway-images-*') ]] || wrong "left: $(find "$TMPDIR")"
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
t "the job's own checkpoint server is killed" server_killed
t "images on demand" on_demand
t "images as crashes are expected" by_mtbf
t "images as logs grow" by_default
t "no images are taken where none are wanted" none_wanted
t "checkpoint servers that run already" servers_by_hand
t "images that are damaged" damaged
t "nothing is left" nothing_is_left
tap_end

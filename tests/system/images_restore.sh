#!/bin/bash
# What can go wrong while a rank goes on from an image: the connection breaks, the checkpoint server is killed or stands
# still, the image is damaged, is another's, or is of no use to this program or machine any more. The rank goes on from that
# image or another start, or the job ends and says which rank and why; never with a wrong result. Prints TAP.
#
#   images_restore.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
#   SEED      draws the bytes at which connections end (default: another one each time)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="images that ranks go on from"
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
cut=$root/build/cut

# --- connections that break -------------------------------------------------------

# between BYTES TIMES [stand]: connections to server 0 go through a process that breaks so many of them off after BYTES.
# Only those are so long over which an image comes.
between() {
  local of_job=${job-}
  helper cut "$cut" "$work/between" "$work/s0" "$@"
  job=$of_job
  await_true "a socket" test -S "$work/between"
}

start_between() {
  serve 0
  between "$@"
  start_rings "${often[@]}" --ckpt-server "unix:$work/between" --ckpt-key-file "$work/key" -n 2
  await_more 4 image_stored
}

broken_off() {
  start_between 300000 3
  crash 1
  expect_rings 2
  [[ $(grep -c 'breaks off' "$tmp/cut.out") = 3 ]] || wrong "expected that 3 connections broke off"
  expect_event rank_restored 4
  expect_no_event image_failed
  expect_lines 1 '^causeway: rank 1: image [0-9]+ did not come: cannot restore .*: the stream of the image ends too early, .*; fetching it again$'
}

# Uploads of ranks, and what the dispatcher says, break off at any byte; meanwhile ranks crash, and go on from the images
# that were whole.
uploads_broken() {
  local i
  seed_draws "uploads"
  draw_some 6 1000000000
  serve 0
  between 400000 8 up "${some[0]}"
  start_rings "${often[@]}" --ckpt-server "unix:$work/between" --ckpt-key-file "$work/key" -n 2
  for i in 1 2 3; do
    await_long "$((2 * i)) connections to break off" broke_off $((2 * i))
    crash $((some[i] % 2))
  done
  await_long "all of them to break off" broke_off 8
  await_long "an image of each rank" stored_of_both
  crash $((some[4] % 2))
  expect_rings 2
  expect_event rank_restored
  expect_event image_failed
}

stored_of_both() {
  gone "$pid" || (($(count image_stored 0) > 0 && $(count image_stored 1) > 0))
}

broke_off() {
  (($(grep -c 'breaks off' "$tmp/cut.out") >= $1)) || gone "$pid"
}

# In the end the job says so, rather than to try for ever.
always_broken() {
  start_between 300000 1000
  kill -9 "$(rank_process 0)"
  finish
  expect_code 1
  [[ $(grep -c 'breaks off' "$tmp/cut.out") -ge 6 ]] || wrong "expected that it was tried 6 times"
  expect_err_like '^causeway: rank 0: image [0-9]+ cannot be restored: .*the stream of the image ends too early, .* \(tried 6 times\); nothing else is left$'
  expect_err_like '^causeway: rank 0 .* there is nothing to restart it from: image [0-9]+: '
}

# No byte comes for longer than is waited: of an image that is on its way, and of one that is asked for.
long_stops() {
  start_between 300000 1 stand
  kill -9 "$(rank_process 0)"
  await_true "a connection that stands still" grep -q 'stands still' "$tmp/cut.out"
  kill -STOP "${server[0]}"
  kill -9 "$(rank_process 1)"
  await_long "an image that does not come" says_twice
  kill -CONT "${server[0]}"
  await_event rank_live 2
  expect_rings 2
  expect_no_event image_failed
  expect_lines 1 'rank 0: image [0-9]+ did not come: .*nothing came in time; fetching it again$'
  expect_lines 1 'rank 1: image [0-9]+ did not come: checkpoint server [^ ]*: (no image came in 20 s|no answer for [0-9]+ s.*); fetching it again$'
}

says_twice() {
  (($(grep -c 'did not come' "$tmp/err") >= 2)) || gone "$pid"
}

# await_long WHAT COMMAND...: up to a minute
await_long() {
  local i
  for ((i = 0; i < 120; i++)); do
    "${@:2}" && return
    sleep 0.5
  done
  wrong "waited in vain for $1"
}

killed_meanwhile() {
  local i
  address=("$1")
  serve 0
  start_rings "${often[@]}" --ckpt-server "${address[0]}" --ckpt-key-file "$work/key" -n 2
  await_more 4 image_stored
  for i in 1 2 3 4 5; do
    kill -9 "$(rank_process $((i % 2)))"
    sleep "0.0$((RANDOM % 10))"
    kill_server 0
    sleep "0.$((RANDOM % 3))"
    serve 0
    await_event rank_live "$i"
    await_more 1 image_stored $((i % 2))
  done
  expect_rings 2
  expect_event rank_restored 5
}

break_tests() {
  say_seed
  t "uploads break off anywhere, and ranks crash" uploads_broken
  t "the connection breaks, three times" broken_off
  t "the connection breaks again and again" always_broken
  t "the server is killed meanwhile" killed_meanwhile "unix:$work/s0"
  t "... on tcp" killed_meanwhile tcp:127.0.0.1:0
  t "the server stands still for long" long_stops
}

# --- images that are of no use ----------------------------------------------------

# A job whose images are stored, and none is on its way; the logs begin at them.
start_hurt() {
  start_rings --ckpt-dir "$work/images" -n 2
  await_true "images of all ranks" ask_now
  await_true "the logs to be trimmed" ask_now
  store=$(echo "$work"/images/????????????????????????????????)
}

# newest RANK: the index of its newest image
newest() {
  find "$store" -name "$1.*.index" | sort -t . -k 2 -n | tail -n 1
}

# The rank 1 dies. There is nothing else to start it from: the job ends, and says why.
expect_no_way() {
  kill -9 "$(rank_process 1)"
  await_true "the job to end" gone "$pid" || kill "$pid"
  finish
  expect_code 1
  expect_lines 1 "^causeway: rank 1: image [0-9]+ cannot be restored: .*$1.*; nothing else is left\$"
  expect_lines 1 "^causeway: rank 1 \(.*/$2\) .* there is nothing to restart it from: image [0-9]+: .*$1"
}

other_bytes() {
  start_hurt
  dd if=/dev/urandom of="$store/1.blocks" bs=4096 count=$(($(stat -c %s "$store/1.blocks") / 4096)) conv=notrunc status=none
  expect_no_way 'the image is damaged: ' actor
}

one_byte() {
  local index at byte
  start_hurt
  index=$(newest 1)
  at=$((RANDOM % $(stat -c %s "$index")))
  byte=$(od -An -tu1 -j "$at" -N 1 "$index")
  printf '%b' "$(printf '\\x%02x' $((byte ^ 1 + RANDOM % 255)))" | dd of="$index" bs=1 seek="$at" conv=notrunc status=none
  expect_no_way 'image [0-9]+ of rank 1 is damaged on the server.s disk: ' actor
}

truncated() {
  start_hurt
  truncate -s $(($(stat -c %s "$store/1.blocks") / 2)) "$store/1.blocks"
  expect_no_way 'damaged on the server.s disk: some of its blocks are not there' actor
}

removed() {
  start_hurt
  rm "$(newest 1)"
  expect_no_way 'no such image' actor
}

swapped() {
  start_hurt
  cp "$(newest 0)" "$(newest 1)"
  cp "$store/0.blocks" "$store/1.blocks"
  expect_no_way 'it is of another image than its name says' actor
}

# tampered WHAT REGEX: its checksums are right
tampered() {
  start_hurt
  "$root/build/tamper" "$(newest 1)" "$1" || wrong "the image cannot be changed"
  expect_no_way "$2" actor
}

# A server that gives another one's image: the rank looks at what it has become.
mistaken() {
  serve 0
  between 1 0 other
  start_rings --ckpt-server "unix:$work/between" --ckpt-key-file "$work/key" -n 2
  await_event rank_up 2 # so that the images of both have the same numbers
  await_true "images of all ranks" ask_now
  await_true "the logs to be trimmed" ask_now
  expect_no_way '(the image is of another rank or job: of rank 0|does not hold image [0-9]+ of rank 0)' actor
}

# The blocks are another rank's, the index is not.
swapped_blocks() {
  start_hurt
  cp "$store/0.blocks" "$store/1.blocks"
  expect_no_way '(the image is damaged: |damaged on the server.s disk: some of its blocks are not there)' actor
}

# other_program: the file of the program is another one now
other_program() {
  actor=$work/program
  cp "$programs/actor" "$actor"
  start_hurt
  cp "$programs/actor" "$work/newer"
  printf x >>"$work/newer"
  "$@"
  expect_no_way "$(basename "$actor") is not the file that it was; the same program and libraries must be on each " program
  actor=$programs/actor
}

replaced() {
  mv "$work/newer" "$actor"
}

damage_tests() {
  t "other bytes" other_bytes
  t "another byte of an index" one_byte
  t "blocks are cut off" truncated
  t "an image is removed" removed
  t "another rank's image" swapped
  t "another rank's blocks" swapped_blocks
  t "another rank's image, which the server takes for this one's" mistaken
  t "another image of the rank" tampered number 'it is of another image than its name says'
  t "... of another rank" tampered rank 'it is of another image than its name says'
  t "an image of another version" tampered version 'an image of another version of Causeway'
  t "an image of another processor" tampered features 'processor lacks features that the image was made with'
  t "another program" other_program replaced
}

lib_start
break_tests
damage_tests
tap_end

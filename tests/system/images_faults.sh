#!/bin/bash
# What can go wrong while images of ranks are taken, kept and used: checkpoint servers that are away, killed or stopped,
# and disks that are full. A job comes to the same end as without, or ends with a reason; never with a wrong result.
# Prints TAP.
#
#   images_faults.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="images, faults"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-90}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/images.sh
. "$here/../lib/images.sh"
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
only=${1-}
find_causeway
oddities=$programs/oddities
other=ff112233445566778899aabbccddeeff # another job

# --- checkpoint servers -----------------------------------------------------------

# servers_killed ADDRESS: again and again, while images are taken and ranks killed
servers_killed() {
  local i k
  address=("$1")
  serve 0
  serve 1
  start_rings "${often[@]}" --ckpt-server "${address[0]}" --ckpt-server "${address[1]}" --ckpt-key-file "$work/key" -n 3
  await_more 6 image_stored
  for i in 1 2 3; do
    k=$((RANDOM % 2))
    kill_server "$k"
    ((RANDOM % 2)) && crash $((1 - k))
    serve "$k"
    await_more 3 image_stored
    crash "$k"
  done
  expect_rings 3
  expect_event rank_restored 3
  expect_lines 3 '^causeway: checkpoint server [^ ]*: it closed the connection.*; no images are stored there until it is back$'
  expect_lines 3 '^causeway: checkpoint server [^ ]* is there again$'
}

late() {
  make_key "$work/key"
  start_rings "${often[@]}" --ckpt-server "unix:$work/s0" --ckpt-key-file "$work/key" -n 2
  await_true "a warning" grep -q 'no images are stored there until it is back' "$tmp/err"
  serve 0
  await_more 4 image_stored
  crash 1
  expect_rings 2
  expect_event rank_restored
  expect_lines 1 "^causeway: checkpoint server unix:$work/s0: .*; no images are stored there until it is back$"
  expect_lines 1 "^causeway: checkpoint server unix:$work/s0 is there again$"
}

wrong_key() {
  serve 0
  make_key "$work/other"
  start_rings "${often[@]}" --ckpt-server "${address[0]}" --ckpt-key-file "$work/other" -n 2
  await_true "a warning" grep -q 'no images are stored there until it is back' "$tmp/err"
  expect_rings 2
  expect_lines 1 'wrong credential'
  expect_no_event image_taken
}

stopped() {
  serve 0
  start_rings "${often[@]}" --ckpt-server "${address[0]}" --ckpt-key-file "$work/key" -n 2
  await_more 4 image_stored
  kill -STOP "${server[0]}"
  sleep 0.3
  kill -9 "$(rank_process 0)"
  sleep 0.3
  kill -CONT "${server[0]}"
  await_event rank_live 1
  await_more 4 image_stored
  expect_rings 2
  expect_event rank_restored
}

own_killed() {
  local i killed
  start_rings "${often[@]}" -n 3
  for i in 1 2 3 4 5 6; do
    await_more 2 image_stored
    killed=$(own_server)
    kill -9 "$killed"
    ((RANDOM % 2)) && sleep "0.0$((RANDOM % 10))"
    kill -9 "$(rank_process $((RANDOM % 3)))"
    await_event rank_live "$i"
  done
  await_more 2 image_stored
  expect_rings 3
  expect_event rank_restored 4
  expect_lines 6 'the checkpoint server was killed by signal 9 .Killed.; starting it again'
  expect_lines 6 '^causeway: the checkpoint server is there again$'
}

# Who asks for images by hand is told at once that there is no server.
away_by_hand() {
  serve 0
  start_rings --ckpt-server "${address[0]}" --ckpt-key-file "$work/key" -n 2
  await_true "images of all ranks" ask_now
  kill_server 0
  await_true "a warning" grep -q 'no images are stored there until it is back' "$tmp/err"
  timeout 20 "${causeway[@]}" ckpt now "$pid" >"$work/now" 2>&1
  (($? == 1)) || wrong "expected exit code 1"
  (($(grep -Ec '^rank [01]: no image: checkpoint server ' "$work/now") == 2)) || wrong "it said: $(cat "$work/now")"
  expect_rings 2
}

server_tests() {
  t "servers that are killed, on sockets" servers_killed "unix:$work/s0"
  t "... and on tcp" servers_killed tcp:127.0.0.1:0
  t "a server that comes late" late
  t "a server with another key" wrong_key
  t "a server that stands still" stopped
  t "images by hand while the server is away" away_by_hand
  t "the job's own server is killed, and ranks with it" own_killed
}

# --- disks ------------------------------------------------------------------------

full_disk() {
  small_disk 16M || return
  see_small_disk
  where=("${on_small_disk[@]}")
  start_told "${often[@]}" --ckpt-dir "$work/disk/images" --ckpt-max 1G \
    -n 2 "$oddities" "$work/go" grow
  await_event image_stored 2
  touch "$work/go.grow"
  await_event image_failed 1
  crash 0
  end_well
  expect_event rank_restored
  expect_err_like 'rank [01]: no image of it: .*No space left on device; make room there'
}

no_room() {
  start_told "${often[@]}" --ckpt-max 12M -n 2 "$oddities" "$work/go" grow
  await_event image_stored 1 0
  touch "$work/go.grow"
  await_event image_failed 2
  crash 0
  end_well
  expect_event rank_restored
  expect_err_like 'rank [01]: no image of it: .*no room for .*--ckpt-max'
}

# wrong_place DIR REGEX
wrong_place() {
  run_expect 1 "^causeway: --ckpt-dir $1: $2" "${causeway[@]}" run --ckpt-dir "$1" -n 1 "$actor" init finalize
}

# in_place DIR: images can be there
in_place() {
  cd "$work" || return
  start_rings "${often[@]}" --ckpt-dir "$1" -n 2
  cd "$tmp" || return
  await_more 4 image_stored
  crash 1
  expect_rings 2
  expect_event rank_restored
  cd "$work" || return
  [[ ! -e $1 ]] || wrong "left: $(find "$1")"
  cd "$tmp" || return
}

place_in_memory() {
  in_memory /dev/shm || return
  in_place "/dev/shm/causeway-test-$$"
  expect_lines 1 "^causeway: note: images of ranks are kept in /dev/shm/.*, which is in memory; choose a place on a disk .--ckpt-dir DIR.,"
}

of_another_job() {
  serve 0
  start_rings "${often[@]}" --ckpt-dir "$work/images0" -n 2
  await_true "a message" grep -q 'no more images are taken' "$tmp/err"
  expect_rings 2
  expect_lines 1 "process ${server[0]} uses it"
  expect_lines 1 "the job's own checkpoint server cannot be started"
}

# Once its dispatcher has connected.
put_other() {
  "$root/build/image_tool" put "${address[0]}" "$work/key" "$other" 0 1 1 0 20 >"$work/put" 2>&1
}

# A job with images where those of another one lie, which may be wanted yet.
start_beside_another() {
  serve 0
  helper of_other "$root/build/image_tool" wait "${address[0]}" "$work/key" "$other" 1
  await_true "the image of another job" put_other
  kill "${server[0]}"
  await_true "server 0 to be gone" gone "${server[0]}"
  start_rings "${often[@]}" --ckpt-dir "$work/images0" -n 2
  await_more 4 image_stored
}

expect_the_other_alone() {
  [[ $(cd "$work/images0" && find . -name '*.index' -o -name '*.job' | sort) = "./$other/0.1.index" ]] ||
    wrong "expected the image of the other job alone: $(find "$work/images0")"
}

others_images() {
  start_beside_another
  kill -9 "$(own_server)"
  await_more 2 image_stored
  crash 1
  expect_rings 2
  expect_the_other_alone
  run "${causeway[@]}" ckpt verify --dir "$work/images0"
  expect_code 0
}

# A directory that a server which was killed has left is not there at the end.
made_and_killed() {
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  await_more 2 image_stored
  kill -9 "$(own_server)"
  await_more 2 image_stored
  expect_rings 2
  [[ ! -e $work/images ]] || wrong "left: $(find "$work/images")"
}

# The server cannot be started for a while: that is told once, and once that it can.
own_cannot_start() {
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  await_more 4 image_stored
  mv "$work/images" "$work/away"
  : >"$work/images"
  kill -9 "$(own_server)"
  sleep 1
  rm "$work/images"
  mv "$work/away" "$work/images"
  await_more 2 image_stored
  crash 0
  expect_rings 2
  expect_event rank_restored
  expect_lines 1 'the checkpoint server .*; starting it again$'
  expect_lines 1 '^causeway: the checkpoint server is there again$'
  expect_lines 0 'causeway ckptsrv:'
}

# What cannot be known before: a user without privileges is refused at once.
unwritable() {
  start_rings "${often[@]}" --ckpt-dir /proc/images -n 2
  await_true "a message" grep -q 'no more images are taken' "$tmp/err"
  expect_rings 2
  expect_lines 1 "^causeway: no more images are taken: the job's own checkpoint server cannot be started: --dir /proc/images: .*No such file or directory"
  expect_lines 1 .
}

vanished() {
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  await_more 4 image_stored
  mv "$work/images" "$work/gone" # the server has it open
  await_more 2 image_stored
  crash 0
  expect_rings 2
  rm -rf "$work/gone"
}

disk_tests() {
  t "the disk is full in the middle of an image" full_disk
  t "--ckpt-max is reached" no_room
  t "--ckpt-dir is a file" wrong_place /dev/null 'Not a directory'
  t "--ckpt-dir cannot be made" wrong_place /nowhere/at/all 'No such file or directory'
  t "--ckpt-dir in memory" place_in_memory
  t "--ckpt-dir cannot be written" unwritable
  t "--ckpt-dir is relative" in_place relative
  t "--ckpt-dir of a server that runs" of_another_job
  t "--ckpt-dir gets another name" vanished
  t "--ckpt-dir with images of another job" others_images
  t "--ckpt-dir is made, and the server killed" made_and_killed
  t "the job's own server cannot be started for a while" own_cannot_start
}

# --- what is left -----------------------------------------------------------------

kill_with_server() {
  local server
  server=$(own_server)
  kill -STOP "$server"
  kill -9 "$pid" "$server"
  finish
}

# Dispatcher and server are killed; the node removes what is left or, where it was not done, the next job.
all_killed() {
  start_rings "${often[@]}" -n 2
  await_more 4 image_stored
  kill_with_server
  run_expect 0 '' "${causeway[@]}" run -n 1 "$actor" init finalize
}

# ended_by SIGNAL CODE
ended_by() {
  start_rings "${often[@]}" -n 2
  await_more 4 image_stored
  kill "-$1" "$pid"
  finish
  expect_code "$2"
  # the run directory of a killed one is removed by the next
  run "${causeway[@]}" run -n 1 "$actor" init finalize
}

# The same in a directory of the user's, where images of another job lie as well.
all_killed_in_place() {
  start_beside_another
  kill_with_server
  run_expect 0 '' "${causeway[@]}" run --ckpt-dir "$work/images0" -n 1 "$actor" init finalize
  expect_the_other_alone
}

# A directory that it had made goes as well.
made_and_all_killed() {
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  await_more 4 image_stored
  kill_with_server
  run_expect 0 '' "${causeway[@]}" run --ckpt-dir "$work/images" -n 1 "$actor" init finalize
  [[ ! -e $work/images ]] || wrong "left: $(find "$work/images")"
}

left_tests() {
  t "nothing is left after SIGTERM" ended_by TERM 143
  t "nothing is left after SIGINT" ended_by INT 130
  t "nothing is left after SIGKILL" ended_by KILL 137
  t "nothing is left of a killed dispatcher and a killed server" all_killed
  t "... in --ckpt-dir" all_killed_in_place
  t "... which was made" made_and_all_killed
}

lib_start
server_tests
disk_tests
left_tests
tap_end

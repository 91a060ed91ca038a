#!/bin/bash
# Checkpoint servers: images are stored, increments too, and read back whole; servers that are killed at any byte of a
# transfer keep the last image; refusals say why; the directory is looked at by causeway ckpt. Prints TAP.
#
#   ckptsrv.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   SEED      draws the bytes at which transfers end (default: another one each time)
# shellcheck disable=SC2128,SC2317,SC2154 # the command is one word; t calls the tests; of lib
set -u

suite=ckptsrv
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-40}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
only=${1-}
find_causeway
tool=$root/build/image_tool
job_id=00112233445566778899aabbccddeeff
other=ff112233445566778899aabbccddeeff

# --- servers ----------------------------------------------------------------------

where=() # what stands before the command of a server

# serve OPTION...: a server whose directory is $store; leaves its process in $server
serve() {
  store=${store:-$work/store}
  helper server "${where[@]}" "$causeway" ckptsrv --dir "$store" --listen "unix:$work/socket" --key-file "$work/key" "$@"
  server=$helper
  server_job=$job
  await_true "the server to listen" listens_or_ended
  grep -q 'listening on unix:' "$tmp/server.err" || wrong "the server does not listen: $(<"$tmp/server.err")"
}

listens_or_ended() {
  grep -q 'listening on' "$tmp/server.err" || gone "$server"
}

kill_server() {
  kill -9 "$server"
  wait "$server_job" 2>/dev/null # where bash says how it was killed
  await_true "the server to end" has_ended "$server"
}

end_server() {
  kill "$server"
  await_true "the server to end" has_ended "$server"
  [[ ! -e $work/socket ]] || wrong "the server has left its socket"
}

before_test() {
  seed_draws "$1"
  store=''
  where=()
}

# client COMMAND WORD...: of image_tool, as a client of the server
client() {
  run "$tool" "$1" "${address:-unix:$work/socket}" "$work/key" "${@:2}"
}

# A dispatcher, so that the job is known; what it is told is in $tmp/dispatcher.out
dispatcher() {
  helper dispatcher "$tool" wait "unix:$work/socket" "$work/key" "$job_id" 1000
  await_true "the dispatcher" grep -q waits "$tmp/dispatcher.out"
}

# put RANK INCARNATION NUMBER BASE BLOCKS OPTION...
put() {
  client put "$job_id" "$@"
}

stored() {
  put "$@"
  expect_code 0
  expect_out_like "^stored rank $1 number $3 "
}

refused() {
  local text=$1
  shift
  put "$@"
  expect_code 1
  expect_err_like "$text"
}

# fetched RANK INCARNATION NUMBER BLOCKS OPTION...: it is what was put
fetched() {
  client fetch "$job_id" "$@"
  expect_code 0
  expect_out_like "^fetched rank $1 number $3 "
}

# holds LINE...: what the server tells a dispatcher
holds() {
  client list "${of:-$job_id}"
  expect_code 0
  [[ $(grep -o 'rank [0-9]*.*number [0-9]*' "$tmp/out" | sed 's/incarnation [0-9]* //') = "$(printf '%s\n' "$@")" ]] ||
    wrong "expected the server to hold: $*, saw $(<"$tmp/out")"
}

expect_whole() {
  run "$causeway" ckpt verify --dir "$store"
  expect_code 0
  expect_silence
}

# --- storing ----------------------------------------------------------------------

round_trip() {
  serve --listen tcp:127.0.0.1:0
  local tcp
  tcp=$(grep -o 'tcp:[0-9.:]*' "$tmp/server.err")
  dispatcher
  stored 0 1 1 0 200
  stored 0 1 2 1 200
  address=$tcp stored 3 1 1 0 90 plain
  address=$tcp stored 0 1 3 2 200
  holds 'rank 0 number 1' 'rank 0 number 2' 'rank 0 number 3' 'rank 3 number 1'
  fetched 0 1 1 200
  fetched 0 1 2 200
  address=$tcp fetched 0 1 3 200
  fetched 3 1 1 90 plain
  expect_whole
  await_true "the dispatcher to be told" told_of 'rank 0 number 1' 'rank 0 number 2' 'rank 3 number 1' 'rank 0 number 3'
  end_server
}

told_of() {
  [[ $(grep ^told "$tmp/dispatcher.out") = "$(printf 'told %s\n' "$@")" ]]
}

increments_are_small() {
  local whole part
  serve
  dispatcher
  stored 0 1 1 0 300 plain
  whole=$(grep -o 'new [0-9]*' "$tmp/out" | cut -c 5-)
  stored 0 1 2 1 300 plain
  part=$(grep -o 'new [0-9]*' "$tmp/out" | cut -c 5-)
  ((2 * part < whole)) || wrong "an increment took $part bytes of $whole"
}

# The base that is dropped meanwhile, or never was, is none.
no_base() {
  serve
  dispatcher
  stored 0 1 5 3 60
  expect_out_like 'base 0'
  fetched 0 1 5 60
}

drops() {
  serve
  dispatcher
  local i
  for i in 1 2 3; do stored 0 1 "$i" $((i - 1)) 100; done
  client drop "$job_id" 0 2
  holds 'rank 0 number 3'
  fetched 0 1 3 100
  stored 0 1 4 3 100
  fetched 0 1 4 100
  client fetch "$job_id" 0 1 1 100
  expect_code 1
  expect_err_like 'does not hold image 1 of rank 0'
  for i in 2147483648 4294967295; do
    client fetch "$job_id" "$i" 1 1 9
    expect_code 1
    expect_err_like "does not hold image 1 of rank $i"
  done
  client drop "$job_id" all 4294967295
  holds
  [[ ! -e $store/$job_id ]] || wrong "the directory of the job is still there"
}

surplus_goes() {
  serve
  dispatcher
  local i
  for i in 1 2 3 4 5; do stored 0 1 "$i" $((i - 1)) 40; done
  holds 'rank 0 number 1' 'rank 0 number 4' 'rank 0 number 5'
  fetched 0 1 1 40
  fetched 0 1 5 40
}

single_bytes() {
  serve
  dispatcher
  stored 0 1 1 0 3 piece=1
  fetched 0 1 1 3
}

many_at_once() {
  local i pids=()
  serve
  dispatcher
  for i in {0..19}; do
    "$tool" put "unix:$work/socket" "$work/key" "$job_id" "$i" 1 1 0 60 >/dev/null 2>>"$work/errors" &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || wrong "a put failed: $(<"$work/errors")"; done
  for i in 0 7 19; do fetched "$i" 1 1 60; done
  expect_whole
}

# A transfer that stands still delays no other.
slow_client() {
  serve
  dispatcher
  helper slow "$tool" put "unix:$work/socket" "$work/key" "$job_id" 9 1 1 0 60 hang=500000
  await_true "it to hang" grep -q hangs "$tmp/slow.out"
  stored 0 1 1 0 60
  fetched 0 1 1 60
  kill -9 "$helper"
  stored 9 1 1 0 60
  fetched 9 1 1 60
}

newer_incarnation() {
  serve
  dispatcher
  helper slow "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 1 1 0 60 hang=500000
  await_true "it to hang" grep -q hangs "$tmp/slow.out"
  stored 0 2 1 0 60
  fetched 0 2 1 60
  helper slow "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 3 2 0 60 hang=500000
  await_true "it to hang" grep -q hangs "$tmp/slow.out"
  refused 'refused .5.: a higher incarnation' 0 2 2 0 60
}

# --- killed -----------------------------------------------------------------------

# The server, at both ends of a transfer and at any bytes of it
killed_at() {
  local stops
  serve
  dispatcher
  stored 0 1 1 0 120
  draw_some 4 1000000
  for stops in 0 "${some[@]}" 1000000; do
    helper sender "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 1 2 1 120 hang="$stops"
    await_true "it to hang" grep -q hangs "$tmp/sender.out"
    kill_server
    serve
    holds 'rank 0 number 1'
    fetched 0 1 1 120
    expect_whole
  done
  stored 0 1 2 1 120
  fetched 0 1 1 120
  fetched 0 1 2 120
}

# ... or at any moment of a whole one: afterwards image 2 is there, or it is not; image 1 is.
killed_at_any_time() {
  local i sender
  serve
  dispatcher
  stored 0 1 1 0 400
  for i in {1..8}; do
    "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 1 2 1 400 >"$work/put" 2>/dev/null &
    sender=$!
    sleep "0.0$((RANDOM % 90 + 10))"
    kill_server
    wait "$sender"
    serve
    fetched 0 1 1 400
    expect_whole
    client list "$job_id"
    if grep -q stored "$work/put"; then expect_out_like 'number 2'; fi
    if grep -q 'number 2' "$tmp/out"; then
      fetched 0 1 2 400
      end_server
      run "$causeway" ckpt rm --dir "$store" "$job_id" 0 2
      expect_code 0
      serve
    fi
  done
}

half_streams() {
  local stops
  serve
  dispatcher
  stored 0 1 1 0 60
  draw_some 8 400000
  for stops in 0 1 9 "${some[@]}" 400000; do
    run "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 1 2 1 60 stop="$stops"
    expect_code 0
  done
  holds 'rank 0 number 1'
  stored 0 1 2 1 60
  fetched 0 1 2 60
}

restart_keeps() {
  serve
  dispatcher
  stored 0 1 1 0 100
  stored 0 1 2 1 100
  end_server
  serve
  holds 'rank 0 number 1' 'rank 0 number 2'
  fetched 0 1 2 100
  stored 0 1 3 2 100 # the job is known without its dispatcher
  fetched 0 1 3 100
}

# --- refusals ---------------------------------------------------------------------

wrong_streams() {
  serve
  dispatcher
  refused 'the image is of rank 2, incarnation 1; this connection is of rank 4' 4 1 1 0 9 rank=2
  refused 'a header that makes no sense' 0 1 1 0 9 rank=2
  refused 'has the number 8, and PUT said 1' 0 1 1 0 9 number=8
  refused 'is of version 9, this checkpoint server keeps version [0-9]+;' 0 1 1 0 9 version=9
  refused 'not an image' 0 1 1 0 9 flip=8
  refused 'damaged or wrong: it begins without a header' 0 1 1 0 9 flip=0
  refused 'damaged or wrong: a block' 0 1 1 0 9 plain flip=30000
  refused 'damaged or wrong: a checksum that differs' 0 1 1 0 9 flip=600
  stored 0 1 2 0 9
  refused 'image 2 of rank 0: the checkpoint server has image 2' 0 1 2 0 9
  refused 'image 1 of rank 0: the checkpoint server has image 2' 0 1 1 0 9
}

# Bytes after the end: of one that has a part in every piece, and more than fit behind a record
bytes_behind() {
  local i behind
  serve
  dispatcher
  for i in {1..10}; do
    for behind in 1 150000 1000000; do
      put "$i" 1 1 0 9 behind="$behind"
      if [[ $code != 0 ]]; then
        expect_err_like 'damaged or wrong: bytes after its end'
        stored "$i" 1 1 0 9
      fi
      fetched "$i" 1 1 9
      client drop "$job_id" "$i" 1
    done
  done
  gone "$server" && wrong "the server has ended"
  put 0 1 1 0 9 behind=1000000
  expect_code 1
}

no_dispatcher() {
  serve
  refused 'refused .2.: the checkpoint server has no such job' 0 1 1 0 9
}

wrong_credential() {
  serve
  head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/other"
  echo >>"$work/other"
  chmod 600 "$work/other"
  run "$tool" list "unix:$work/socket" "$work/other" "$job_id"
  expect_code 1
  expect_err_like 'wrong credential: use the key file of this checkpoint server'
  run "$tool" put "unix:$work/socket" "$work/other" "$job_id" 0 1 1 0 9
  expect_code 1
  expect_err_like 'wrong credential'
}

other_jobs() {
  serve
  dispatcher
  stored 0 1 1 0 9
  of=$other holds
  client fetch "$other" 0 1 1 9
  expect_code 1
  expect_err_like 'does not hold image 1'
}

# An image that is on its way is dropped, too.
dropped_on_its_way() {
  serve
  dispatcher
  helper slow "$tool" put "unix:$work/socket" "$work/key" "$job_id" 0 1 3 0 60 hang=500000
  await_true "it to hang" grep -q hangs "$tmp/slow.out"
  client drop "$job_id" all 2
  stored 1 1 1 0 9
  kill -0 "$helper" || wrong "an image above the one that was dropped is gone"
  client drop "$job_id" all 3
  holds
  stored 0 1 1 0 60
  fetched 0 1 1 60
}

# What is no protocol, and frames that are not for here
strangers() {
  serve
  dispatcher
  run "$tool" garbage "unix:$work/socket" "$work/key" "$job_id" 60
  expect_code 0
  stored 0 1 1 0 9
  fetched 0 1 1 9
}

quota() {
  serve --max 4M
  dispatcher
  refused 'no room for an image of 6553600 bytes: of the checkpoint server.s 4194304 bytes, 0 are in use' 0 1 1 0 100
  stored 0 1 1 0 40 plain
  refused 'no room for an image' 1 1 1 0 40 plain
  stored 0 1 2 1 40 plain
  client drop "$job_id" 0 1
  fetched 0 1 2 40 plain
  client drop "$job_id" 0 2
  stored 1 1 1 0 60 plain
  expect_whole
}

full_disk() {
  small_disk 12M || return
  see_small_disk
  where=("${on_small_disk[@]}")
  store=$work/disk/store
  serve
  dispatcher
  stored 0 1 1 0 60 plain
  refused 'No space left on device; make room there' 1 1 1 0 400 plain
  stored 0 1 2 1 60 plain
  fetched 0 1 2 60 plain
  client drop "$job_id" 0 2
  stored 1 1 1 0 60 plain
  fetched 1 1 1 60 plain
}

# --- starting ---------------------------------------------------------------------

usage_tests() {
  t "--help" run_expect 0 '' "$causeway" ckptsrv --help
  t "no directory" run_expect 2 'no --dir DIR' "$causeway" ckptsrv
  t "no address" run_expect 2 'no --listen ADDRESS' "$causeway" ckptsrv --dir /tmp/x
  t "no key" run_expect 2 'no --key-file FILE' "$causeway" ckptsrv --dir /tmp/x --listen unix:/tmp/x
  t "an unknown option" run_expect 2 '--frobnicate' "$causeway" ckptsrv --frobnicate
  t "ckpt --help" run_expect 0 '' "$causeway" ckpt --help
  t "ckpt: nothing to do" run_expect 2 'expected list, show, verify, rm or now' "$causeway" ckpt
  t "ckpt: an unknown command" run_expect 2 "unknown command 'mend'" "$causeway" ckpt mend
  t "ckpt: no directory" run_expect 2 'no --dir DIR' "$causeway" ckpt list
  t "ckpt: what is no job" run_expect 2 "'xyz' is no job" "$causeway" ckpt list --dir /tmp xyz
  t "ckpt: rm of nothing" run_expect 2 'rm: which JOB' "$causeway" ckpt rm --dir /tmp
  t "ckpt: verify --json" run_expect 2 '--json is no option of causeway ckpt verify' "$causeway" ckpt verify --json
}

two_servers() {
  serve
  run "$causeway" ckptsrv --dir "$store" --listen "unix:$work/second" --key-file "$work/key"
  expect_code 1
  expect_message "process $server uses it; end that first"
}

key_is_made() {
  serve
  [[ $(stat -c %a "$work/key") = 600 ]] || wrong "the key file has mode $(stat -c %a "$work/key")"
  [[ $(stat -c %a "$store") = 700 ]] || wrong "the directory has mode $(stat -c %a "$store")"
}

stale_socket() {
  serve
  kill_server
  [[ -e $work/socket ]] || wrong "there is no stale socket"
  serve
  end_server
}

ephemeral() {
  serve --ephemeral
  dispatcher
  stored 0 1 1 0 20
  end_server
  [[ ! -e $store ]] || wrong "the directory is still there"
}

ready() {
  local line
  mkfifo "$work/pipe"
  "$causeway" ckptsrv --dir "$work/store" --listen "unix:$work/socket" --key-file "$work/key" --ready-fd 5 \
    5>"$work/pipe" 2>"$tmp/err" &
  server=$!
  read -r line <"$work/pipe"
  [[ $line = "unix:$work/socket" ]] || wrong "it said '$line'"
  kill "$server"
  wait "$server" || wrong "it ended with code $?"
  expect_silence
}

open_directory() {
  mkdir "$work/store"
  chmod 777 "$work/store"
  run_expect 1 'other users may write there' "$causeway" ckptsrv --dir "$work/store" --listen "unix:$work/s" --key-file "$work/key"
}

# What is not of a server stays; what a write has left goes.
foreign_files() {
  serve
  dispatcher
  stored 0 1 1 0 20
  end_server
  echo text >"$store/$job_id/notes"
  echo text >"$store/$job_id/0.2.index.new"
  echo text >"$store/$job_id/7.blocks"
  serve
  fetched 0 1 1 20
  [[ -e $store/$job_id/notes ]] || wrong "a file of somebody else is gone"
  [[ ! -e $store/$job_id/0.2.index.new && ! -e $store/$job_id/7.blocks ]] || wrong "files that nothing needs are left"
}

damaged_index() {
  serve
  dispatcher
  stored 0 1 1 0 20
  stored 0 1 2 1 20
  end_server
  printf x | dd of="$store/$job_id/0.2.index" bs=1 seek=3000 conv=notrunc status=none
  serve
  grep -q '0.2.index is left out: its checksum differs' "$tmp/server.err" || wrong "it does not tell of the damage"
  holds 'rank 0 number 1'
  fetched 0 1 1 20
  stored 0 1 3 1 20
  fetched 0 1 3 20
}

# set_version FILE OCTAL: of an index
set_version() {
  printf '%b' "\\0$2" | dd of="$store/$job_id/$1" bs=1 seek=8 conv=notrunc status=none
}

# other_version OCTAL: that image is left out, with its blocks; all others go on.
other_version() {
  local text="0.2.index is left out, and kept with its blocks: it is of another version of Causeway; use the program"
  serve
  dispatcher
  stored 0 1 1 0 20
  stored 0 1 2 1 20
  stored 1 1 1 0 20
  end_server
  set_version 0.2.index "$1"
  serve
  grep -q "$text" "$tmp/server.err" || wrong "it does not tell of the index: $(<"$tmp/server.err")"
  holds 'rank 0 number 1' 'rank 1 number 1'
  refused 'image 2 of rank 0: the checkpoint server has image 2' 0 1 2 1 20
  stored 0 1 3 1 20
  client drop "$job_id" all 3
  holds
  end_server
  set_version 0.2.index 1
  serve
  fetched 0 1 2 20
  end_server
  set_version 0.2.index "$1"
  run_expect 0 '' "$causeway" ckpt rm --dir "$store" "$job_id" 0 2
  [[ ! -e $store/$job_id ]] || wrong "the directory of the job is still there"
}

unreadable_index() {
  serve
  dispatcher
  stored 0 1 1 0 20
  end_server
  mkdir "$store/$job_id/0.2.index"
  serve
  grep -q '0.2.index is left out, and kept with its blocks: reading .*: it is no file' "$tmp/server.err" ||
    wrong "it does not tell of the index: $(<"$tmp/server.err")"
  fetched 0 1 1 20
  stored 0 1 3 1 20
  fetched 0 1 3 20
  end_server
  run "$causeway" ckpt rm --dir "$store" "$job_id"
  expect_code 1
  expect_err_like '^causeway ckpt: removing .*0.2.index: Is a directory'
}

# --- causeway ckpt ----------------------------------------------------------------

ckpt_looks() {
  serve
  dispatcher
  stored 0 1 1 0 20
  stored 2 1 1 0 20
  run "$causeway" ckpt list --dir "$store"
  expect_code 0
  expect_out_like "^$job_id +0 +1 +1 .*whole"
  expect_out_like "^$job_id +2 +1 +1 .*whole"
  run "$causeway" ckpt show --dir "$store" 0011 2
  expect_out_like '^job 0011.*, rank 2, image 1'
  expect_out_like 'point +event 10, poll clock 100, act 5'
  run "$causeway" ckpt list --json --dir "$store" "$job_id" 2 1
  expect_out_like '"rank":2,"number":1,"whole":true,"incarnation":1'
  run_expect 1 'no such image' "$causeway" ckpt list --dir "$store" "$job_id" 5
  run_expect 1 "process $server uses it" "$causeway" ckpt rm --dir "$store" "$job_id" 0
  end_server
  run_expect 0 '' "$causeway" ckpt rm --dir "$store" "$job_id" 0
  [[ ! -e $store/$job_id/0.blocks ]] || wrong "the blocks are still there"
  run_expect 0 '' "$causeway" ckpt verify --dir "$store"
  run_expect 0 '' "$causeway" ckpt rm --dir "$store" 00
  [[ ! -e $store/$job_id ]] || wrong "the directory of the job is still there"
}

# Images of a job that can be resumed
ckpt_rm_warns() {
  mkdir "$work/kept"
  store=$work/kept/images
  serve
  dispatcher
  stored 0 1 1 0 20
  stored 0 1 2 1 20
  end_server
  run_expect 0 '' "$causeway" ckpt rm --dir "$store" "$job_id" 0 1
  expect_out 'removed 1 images'
  touch "$work/kept/state"
  run_expect 0 'keeps a job for causeway run --resume' "$causeway" ckpt rm --dir "$store" "$job_id"
  expect_out 'removed 1 images'
}

# What was removed before is gone with its blocks.
ckpt_rm_fails() {
  serve
  dispatcher
  stored 0 1 1 0 20
  stored 1 1 1 0 20
  end_server
  mv "$store/$job_id/1.1.index" "$work/index"
  mkdir "$store/$job_id/1.1.index"
  run "$causeway" ckpt rm --dir "$store" "$job_id"
  expect_code 1
  expect_err_like '^causeway ckpt: removing .*1.1.index: Is a directory'
  expect_out 'removed 1 images'
  [[ ! -e $store/$job_id/0.blocks ]] || wrong "the blocks of rank 0 are still there"
}

ckpt_verify_damage() {
  serve
  dispatcher
  stored 0 1 1 0 20 plain
  stored 1 1 1 0 20 plain
  end_server
  printf x | dd of="$store/$job_id/0.blocks" bs=1 seek=70000 conv=notrunc status=none
  run "$causeway" ckpt verify --dir "$store"
  expect_code 1
  expect_out_like 'rank 0, image 1: the checksum of the block of address 0x10010000 differs'
  expect_out_like 'rank 1, image 1: whole'
  expect_message '1 of 2 images are damaged'
  truncate -s 100000 "$store/$job_id/1.blocks"
  run "$causeway" ckpt verify --dir "$store"
  expect_out_like 'rank 1, image 1: its index is of no use: some of its blocks are not there'
  run_expect 1 'No such file' "$causeway" ckpt list --dir "$work/none"
}

main() {
  lib_start
  say_seed
  t "images are stored, and read back" round_trip
  t "an increment takes less room" increments_are_small
  t "a base that the server does not hold" no_base
  t "images are dropped" drops
  t "of more than three images the oldest but one goes" surplus_goes
  t "a stream in single bytes" single_bytes
  t "many images at once" many_at_once
  t "a client that stands still" slow_client
  t "a newer incarnation" newer_incarnation
  t "killed in the middle of a transfer" killed_at
  t "killed at any time" killed_at_any_time
  t "streams that break off" half_streams
  t "ended and started again" restart_keeps
  t "wrong streams" wrong_streams
  t "bytes after the end of a stream" bytes_behind
  t "a job without a dispatcher" no_dispatcher
  t "a wrong credential" wrong_credential
  t "images of another job" other_jobs
  t "an image that is dropped on its way" dropped_on_its_way
  t "strangers" strangers
  t "--max" quota
  t "a full disk" full_disk
  usage_tests
  t "two servers" two_servers
  t "a key that is missing" key_is_made
  t "a stale socket" stale_socket
  t "--ephemeral" ephemeral
  t "--ready-fd" ready
  t "a directory where others may write" open_directory
  t "files of others, and what is left" foreign_files
  t "a damaged index" damaged_index
  t "an index of an older version" other_version 0
  t "an index of a newer version" other_version 11
  t "an index that cannot be read" unreadable_index
  t "causeway ckpt looks, and removes" ckpt_looks
  t "causeway ckpt rm of a job that can be resumed" ckpt_rm_warns
  t "causeway ckpt rm of what cannot be removed" ckpt_rm_fails
  t "causeway ckpt verify finds damage" ckpt_verify_damage
  tap_end
}

main

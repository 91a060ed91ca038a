#!/bin/bash
# What can go wrong while images of ranks are taken, kept and used: checkpoint servers that are away, killed or stopped,
# disks that are full, images that are damaged, and programs that do unusual things. A job comes to the same end as
# without, or ends with a reason; never with a wrong result. Prints TAP.
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
# shellcheck source=tests/lib/disk.sh
. "$here/../lib/disk.sh"
only=${1-}
find_causeway
often=(--ckpt-every 100ms --max-restarts 1000)
oddities=$programs/oddities

# --- what has happened ------------------------------------------------------------

# events NAME [RANK]: how many there were of a rank, or of all.
events() {
  grep -c "\"event\":\"$1\"${2:+,\"rank\":$2\\b}" "$tmp/events"
}

# Of the job that start started: it has happened so often, or will not any more.
happened() {
  (($(events "$1" "${3-}") >= $2)) || gone "$pid"
}

await_events() {
  await_true "$2 events $1" happened "$@"
}

# await_more COUNT NAME [RANK]
await_more() {
  await_events "$2" $(($(events "$2" "${3-}") + $1)) "${3-}"
}

# The process of a rank that was started last.
rank_process() {
  grep "\"rank_started\",\"rank\":$1\\b" "$tmp/events" | tail -n 1 | sed 's/.*"pid":\([0-9]*\).*/\1/'
}

# A rank dies, and goes on again.
crash() {
  local before
  before=$(events rank_live)
  kill -9 "$(rank_process "$1")"
  await_events rank_live $((before + 1))
}

# The checkpoint server that the dispatcher $pid started.
own_server() {
  local one
  for one in $(children_of "$pid"); do
    [[ $(tr '\0' ' ' <"/proc/$one/cmdline" 2>/dev/null) = causeway\ ckptsrv* ]] && echo "$one"
  done
}

has_own_server() {
  [[ -n $(own_server) ]] || gone "$pid"
}

# expect_lines COUNT REGEX: on standard error
expect_lines() {
  local count
  count=$(grep -Ec -- "$2" "$tmp/err")
  ((count == $1)) || wrong "expected $1 lines on standard error, saw $count: $2"
}

expect_event() {
  (($(events "$1") >= ${2-1})) || wrong "expected ${2-1} events $1, saw $(events "$1")"
}

expect_no_event() {
  (($(events "$1") == 0)) || wrong "expected no event $1: $(grep -m 1 "\"$1\"" "$tmp/events")"
}

before_test() {
  where=()
  server=()
  address=()
}

# --- jobs -------------------------------------------------------------------------

# A job whose ranks exchange messages until $work/go is there.
start_rings() {
  : >"$tmp/events"
  start "${where[@]}" "${causeway[@]}" run --events "$tmp/events" "$@" "$actor" init "ring_until=$work/go" finalize
}

# It goes on to its good end.
expect_good_end() {
  touch "$work/go"
  finish
  expect_code 0
  expect_out "rings of $1"
}

# --- what programs do -------------------------------------------------------------

# odd [OPTION...] -- ODDITY...: ranks are killed, and go on from images.
odd() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  : >"$tmp/events"
  cd "$work" || return
  start "${causeway[@]}" run --events "$tmp/events" "${often[@]}" "${options[@]}" -n 2 "$oddities" "$work/go" "$@"
  cd "$tmp" || return
  await_more 4 image_stored
  crash 0
  await_more 4 image_stored
  crash 1
  await_more 2 image_stored
  crash 0
  touch "$work/go"
  finish
  expect_code 0
  expect_lines 2 '^ok oddities'
  expect_event rank_restored 3
  expect_no_event image_failed
}

# A rank that has closed what its device tells of images with goes on without them.
closed() {
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "${often[@]}" -n 2 "$oddities" "$work/go" close
  await_events image_failed 2
  touch "$work/go"
  finish
  expect_code 0
  expect_lines 2 '^ok oddities'
  expect_lines 1 'no image of it: the rank did not tell when it was taken: the program has closed a descriptor'
}

program_tests() {
  t "standard output is a file of the program" odd -- output_before
  t "... from some moment on" odd -- output
  t "lines that never end" odd -- part
  t "output by megabytes" odd -- much
  t "another directory, a umask and limits" odd -- moved limits
  t "a timer" odd -- alarm
  t "descriptors are closed that are not the program's" closed
  t "children" odd -- fork wait
  t "commands" odd -- system
  t "memory that comes and goes" odd -- memory
  t "files" odd -- files
  t "MPI_THREAD_MULTIPLE" odd -- multiple
}


# --- checkpoint servers -----------------------------------------------------------

# serve NUMBER [OPTION...]: starts a checkpoint server on a socket, or on $tcp_port; leaves it in ${server[NUMBER]}.
serve() {
  local of_job=${job-}
  helper "server$1" "${causeway[@]}" ckptsrv --dir "$work/images$1" --listen "${address[$1]-unix:$work/s$1}" \
    --key-file "$work/key" "${@:2}"
  server[$1]=$helper
  job=$of_job # that finish waits for
  await_true "server $1 to listen" listens "$1"
  address[$1]=$(sed -n '1s/.*listening on \([^ ,]*\).*/\1/p' "$tmp/server$1.err")
}

listens() {
  grep -q 'listening on' "$tmp/server$1.err"
}

make_key() {
  head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$1"
  echo >>"$1"
  chmod 600 "$1"
}

# kill_server NUMBER: waits until it has left its directory.
kill_server() {
  kill -9 "${server[$1]}"
  await_true "server $1 to be gone" gone "${server[$1]}"
}

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
  expect_good_end 3
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
  expect_good_end 2
  expect_event rank_restored
  expect_lines 1 "^causeway: checkpoint server unix:$work/s0: .*; no images are stored there until it is back$"
  expect_lines 1 "^causeway: checkpoint server unix:$work/s0 is there again$"
}

wrong_key() {
  serve 0
  make_key "$work/other"
  start_rings "${often[@]}" --ckpt-server "${address[0]}" --ckpt-key-file "$work/other" -n 2
  await_true "a warning" grep -q 'no images are stored there until it is back' "$tmp/err"
  expect_good_end 2
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
  await_events rank_live 1
  await_more 4 image_stored
  expect_good_end 2
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
    await_events rank_live "$i"
  done
  await_more 2 image_stored
  expect_good_end 3
  expect_event rank_restored 4
  expect_lines 6 'the checkpoint server was killed by signal 9 .Killed.; starting it again'
}

server_tests() {
  t "servers that are killed, on sockets" servers_killed "unix:$work/s0"
  t "... and on tcp" servers_killed tcp:127.0.0.1:0
  t "a server that comes late" late
  t "a server with another key" wrong_key
  t "a server that stands still" stopped
  t "the job's own server is killed, and ranks with it" own_killed
}

# --- disks ------------------------------------------------------------------------

full_disk() {
  small_disk 16M || return
  see_small_disk
  where=("${on_small_disk[@]}")
  : >"$tmp/events"
  start "${where[@]}" "${causeway[@]}" run --events "$tmp/events" "${often[@]}" --ckpt-dir "$work/disk/images" -n 2 \
    "$oddities" "$work/go" grow
  await_events image_stored 2
  await_events image_failed 1
  crash 0
  touch "$work/go"
  finish
  expect_code 0
  expect_event rank_restored
  expect_err_like 'rank [01]: no image of it: .*No space left on device; make room there'
}

no_room() {
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "${often[@]}" --ckpt-max 24M -n 2 "$oddities" "$work/go" grow
  await_events image_stored 1 0
  await_events image_failed 2
  crash 0
  touch "$work/go"
  finish
  expect_code 0
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
  expect_good_end 2
  expect_event rank_restored
  cd "$work" || return
  [[ ! -e $1 ]] || wrong "left: $(find "$1")"
  cd "$tmp" || return
}

of_another_job() {
  serve 0
  start_rings "${often[@]}" --ckpt-dir "$work/images0" -n 2
  await_true "a message" grep -q 'no more images are taken' "$tmp/err"
  expect_good_end 2
  expect_lines 1 "process ${server[0]} uses it"
  expect_lines 1 "the job's own checkpoint server cannot be started"
}

vanished() {
  start_rings "${often[@]}" --ckpt-dir "$work/images" -n 2
  await_more 4 image_stored
  mv "$work/images" "$work/gone" # the server has it open
  await_more 2 image_stored
  crash 0
  expect_good_end 2
  rm -rf "$work/gone"
}

disk_tests() {
  t "the disk is full in the middle of an image" full_disk
  t "--ckpt-max is reached" no_room
  t "--ckpt-dir is a file" wrong_place /dev/null 'Not a directory'
  t "--ckpt-dir cannot be made" wrong_place /nowhere/at/all 'No such file or directory'
  t "--ckpt-dir in memory" in_place /dev/shm/causeway-test-$$
  t "--ckpt-dir is relative" in_place relative
  t "--ckpt-dir of a server that runs" of_another_job
  t "--ckpt-dir gets another name" vanished
}

# --- what is left -----------------------------------------------------------------

# Dispatcher and server are killed; the next job removes what is left.
all_killed() {
  local server
  start_rings "${often[@]}" -n 2
  await_more 4 image_stored
  server=$(own_server)
  kill -STOP "$server"
  kill -9 "$pid"
  kill -9 "$server"
  finish
  [[ -n $(find "$TMPDIR" -name 'causeway-images-*') ]] || wrong "nothing is left that could be removed"
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

left_tests() {
  t "nothing is left after SIGTERM" ended_by TERM 143
  t "nothing is left after SIGINT" ended_by INT 130
  t "nothing is left after SIGKILL" ended_by KILL 137
  t "the next job removes what was left" all_killed
}

lib_start
program_tests
server_tests
disk_tests
left_tests
tap_end

#!/bin/bash
# Ranks with channel memory: a rank whose messages wait unreceived, and one that writes
# what cannot be. Prints TAP.
#
#   channel.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
# shellcheck disable=SC2317 # t calls the tests
set -u

suite=channel
LIMIT=${LIMIT:-60}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway
lib_start
with_channel=("${causeway[@]}" run --no-log --channel on -n 3)

# --- room for messages ------------------------------------------------------------

# flood CODE REGEX COUNT MODE: 16 MiB of room for each rank, of which 240 messages take less.
flood() {
  run_expect "$1" "$2" "${with_channel[@]}" --memory-max 48M "$programs/flood" "$3" "$4"
}

sender_waits() {
  flood 0 '' 512 waits
  expect_out 'ok flood'
}

# all_wait RANK MODE: first with messages for which there is room
all_wait() {
  flood 0 '' 240 "$2"
  flood 1 "wait that rank $1 has not received, one of 65536 bytes from rank . has no room .*16777216.*--memory-max" 512 "$2"
}

# gathers ARG...: ranks of another host send rank 0 far more than it has room for, before it receives any; of the relay
# there is a log in memory, and a disk.
gathers() {
  printf '#!/bin/sh\nshift\nexec "$@"\n' >"$work/launcher"
  chmod +x "$work/launcher"
  run "${causeway[@]}" run --host a:1,b:2 --launcher "$work/launcher" --memory-max 64M --log-memory 32M \
    -n 3 "${@:3}" "$programs/flood" "$1" gathers "$2"
  expect_code 0
  expect_out 'ok flood'
}

# A host whose ranks may not map what they like is known before they are started.
limited() {
  local most
  for most in unlimited 100000000000; do
    printf '#!/bin/sh\nulimit -v %s\nshift\nexec "$@"\n' "$most" >"$work/launcher"
    chmod +x "$work/launcher"
    run "${causeway[@]}" run --host a:2,b:2 --launcher "$work/launcher" -n 4 env
    [[ $(grep -c '^CAUSEWAY_CHANNEL=[0-9]' "$tmp/out") = $((4 * (${#most} == 9))) ]] ||
      wrong "with ulimit -v $most: $(grep -c '^CAUSEWAY_CHANNEL=[0-9]' "$tmp/out") of 4 ranks have channel memory"
  done
}

# --- processes that are replaced --------------------------------------------------

# replaced [watcher]: rank 1, or the process between it and the node, is stopped, and taken for dead. Nothing would keep
# it out of the memory once it goes on: it is ended before its successor begins.
replaced() {
  local old it
  start "${causeway[@]}" run --channel on --alive-timeout 2s -n 2 "$actor" init ring=100 "pid=$work/pid" \
    "await=$work/go" ring=100 finalize
  rank_pid 0 >/dev/null
  old=$(rank_pid 1)
  it=$old
  [[ -z ${1-} ]] || it=$(ps -o ppid= -p "$old" | tr -d ' ')
  kill -STOP "$it"
  await_true "rank 1 to be restarted" grep -q 'restarting it (incarnation 2)' "$tmp/err"
  await_true "the stopped process to end" ended "$old"
  await_true "rank 1 to be back" grep -q '^causeway: rank 1 is back' "$tmp/err"
  kill -CONT "$it" 2>/dev/null
  touch "$work/go"
  finish
  expect_code 0
  expect_restarts 1 1
  expect_out $'ring of 2\nring of 2'
}

# Nobody may have asked how.
ended() {
  gone "$1" || [[ $(ps -o stat= -p "$1") == Z* ]]
}

# --- without a relay --------------------------------------------------------------

# Messages of several pieces are on their way when it goes, and when it is back.
without_relay() {
  local limit=120 i faults=(--fault kill:1@event:30)
  for ((i = 1; i <= 8; i++)); do faults+=(--fault "kill:relay@$((i * 200))ms"); done
  run "${causeway[@]}" run "${faults[@]}" -n 2 "$programs/sizes" 67108864
  expect_code 0
  expect_out 'ok sizes'
  expect_restarts 1 1
  expect_err_like 'relay unix:.* was killed by signal 9 .*; starting it again on its log'
}

# --- counters ---------------------------------------------------------------------

# columns: of --stats, what the ranks do and not how fast: sent, bytes, received, bytes, events
columns() {
  awk '$1 == "rank" && $2 == "sent" { table = NF; next }
    NF == table && /^ *[0-9]+ / { print $1, $2, $3, $4, $5, $11 }' "$tmp/err"
}

# counts_as_relay [FAULT]
counts_as_relay() {
  local relay channel
  run "${causeway[@]}" run --channel off --stats -n 3 "$programs/token_ring" 64 50
  relay=$(columns)
  run "${causeway[@]}" run --channel on --stats ${1:+--fault "$1"} -n 3 "$programs/token_ring" 64 50
  expect_code 0
  channel=$(columns)
  [[ -n $relay && $channel = "$relay" ]] || wrong "the relay counts $relay, and ranks with channel memory $channel"
}

# --- hostile ranks ----------------------------------------------------------------

# beside_another COMMAND...: another job has its own channel memory, and comes to its end.
beside_another() {
  helper beside "${with_channel[@]}" "$programs/token_ring" 40000 1000
  "$@"
  wait "$job" || wrong "the job beside it ended with code $?"
  grep -qx 'ok token_ring' "$tmp/beside.out" || wrong "the job beside it printed $(<"$tmp/beside.out")"
}

# scribbles WHAT REGEX
scribbles() {
  run_expect 1 "rank 0 broke the channel memory: $2" "${with_channel[@]}" --timeout 60 "$programs/scribbles" "$1"
}

# What nobody takes for a message is not found: then the job waits for ever, as one whose message was lost.
scribbles_all() {
  run "${with_channel[@]}" --timeout 3 "$programs/scribbles" all
  expect_code '1|124'
  ! grep -q signal "$tmp/err" || wrong "a rank was killed"
}

t "a sender waits, and others do not" sender_waits
t "a rank that waits for what comes behind that" all_wait 1 stuck
t "a rank that polls for it" all_wait 1 polls
t "two ranks that send before they receive" all_wait . both
t "many large messages from elsewhere" gathers 250 100000
t "many small messages from elsewhere" gathers 700 30000
t "the receiver of such is killed, and a sender" gathers 250 100000 --no-ckpt --fault kill:0@event:300 \
  --fault kill:1@event:100 --fault kill:0@event:700
t "the same, that go on from images" gathers 250 70000 --ckpt-every 100ms --fault kill:0@event:400 \
  --fault kill:2@event:100 --fault kill:0@event:700
t "a host that limits what is mapped" limited
t "a rank that is stopped" replaced
t "a rank whose watcher is stopped" replaced watcher
t "the relay is killed, again and again" without_relay
t "counters" counts_as_relay
t "counters of a rank that was killed" counts_as_relay kill:1@event:20
t "a piece that is too long" beside_another scribbles size 'a piece of a length'
t "a piece of no type" beside_another scribbles type 'a piece of a length'
t "more of a message that never began" beside_another scribbles more 'more of a message that has not begun'
t "more bytes than the message has" beside_another scribbles beyond 'more bytes than a message has'
t "a message of all bytes that there are" beside_another scribbles total 'a message above the bound'
t "word of a send that nobody made" beside_another scribbles sent 'SENT .* for a request that does not wait'
t "more taken than was put" beside_another scribbles taken 'it took what was not put'
t "anything anywhere" beside_another scribbles_all

tap_end

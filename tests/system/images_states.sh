#!/bin/bash
# Images of ranks that are amid something of MPI: each state of programs/pending.c is held, an image of each rank is taken by
# hand, every rank is killed and goes on from it, and the state comes to its good end. Prints TAP.
#
#   images_states.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="images of states"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/images.sh
. "$here/../lib/images.sh"
only=${1-}
find_causeway
ranks=3
states=(posted unexpected synchronous blocked probed persistent cancelled collectives barrier allreduce split fence exposure
  start lock flush)

# --- holding ----------------------------------------------------------------------

all_held() {
  local rank
  for ((rank = 0; rank < ranks; rank++)); do
    [[ -e $work/held.$rank ]] || gone "$pid" || return
  done
}

# start_held STATE OPTION...: until all ranks are in that state.
start_held() {
  start_told "${@:2}" -n "$ranks" "$programs/pending" "$work" "$1"
  await_true "all ranks to be in the state $1" all_held
}

images_of_all() {
  ask_now || wrong "causeway ckpt now said: $(<"$work/now")"
  [[ $(grep -c '^rank [0-9]*: image [0-9]* is stored' "$work/now") = "$ranks" ]] ||
    wrong "expected an image of each rank: $(<"$work/now")"
}

# newest RANK EVENT: the number of its image in the last of these events
newest() {
  grep "\"event\":\"$2\",\"rank\":$1\\b" "$tmp/events" | tail -n 1 | sed -n 's/.*"image":\([0-9]*\).*/\1/p'
}

# A rank dies, and goes on from its newest image; one that comes by itself meanwhile may be newer.
crash_to_newest() {
  local stored restored
  stored=$(newest "$1" image_stored)
  crash "$1"
  restored=$(newest "$1" rank_restored)
  ((stored && restored >= stored)) || wrong "rank $1 goes on from image '$restored', not from '$stored'"
}

expect_good_state() {
  end_well
  expect_out 'ok pending'
  expect_no_event image_failed
}

# --- tests ------------------------------------------------------------------------

# state NAME OPTION...: ranks that go on from an image are in that state, and an image of them is as good.
state() {
  local rank
  start_held "$@"
  images_of_all
  for ((rank = 0; rank < ranks; rank++)); do
    crash_to_newest "$rank"
  done
  images_of_all
  crash_to_newest $((RANDOM % ranks))
  crash_to_newest $((RANDOM % ranks))
  expect_good_state
  expect_event rank_restored $((ranks + 2))
}

state_over_tcp() {
  start_relay --listen tcp:127.0.0.1:0 --key-file "$work/key"
  state "$1" --relay "${address[0]}" --key-file "$work/key" "${@:2}"
}

# Of rank 1, which is in the middle of MPI_Send, there is no image: it sends again, from where it was before.
half() {
  [[ ${ENGINE:-poll} == poll ]] || { skip "engine $ENGINE has no rings in memory" && return; }
  start_held half --ckpt-every 100ms "$@"
  await_more 2 image_stored 2
  crash_to_newest 2
  await_more 2 image_stored 2
  crash 1
  crash_to_newest 2
  expect_good_state
  expect_event rank_restored 2
}

lib_start
for it in "${states[@]}"; do
  t "$it" state "$it"
done
t "a message that is half sent" half
t "a message that is half sent, several relays" half --relays 2
for it in "${states[@]}"; do
  t "$it, over sockets" state "$it" --rings off
done
for it in "${states[@]}"; do
  t "$it, over TCP" state_over_tcp "$it"
done
for it in "${states[@]}"; do
  t "$it, several relays" state "$it" --relays 2
done
tap_end

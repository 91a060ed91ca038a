#!/bin/bash
# Collectives that know sites: how often they cross between relays, counted exactly; that the programs of the tests give
# the same results with them, with ranks killed, and with images; that users can have MPICH's own. Prints TAP.
#
#   sites.sh [REGEX]     runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2317 # text for bash -c; the tests are called by t
set -u

suite=sites
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway
ranks=12
calls=10
blocks='0*4,1*4,2*4'
in_turn=0,1,2,0,1,2,0,1,2,0,1,2
mixed='0,1*3,2*7,0' # of different sizes, one not in a row

before_test() {
  in_test=0
}

# --- how often -----------------------------------------------------------------------

# forwarded MAP OPTION... -- COLLECTIVE BYTES CALLS: messages that all relays of a job forwarded
forwarded() {
  local map=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  run "${causeway[@]}" run --relays 3 --relay-map "$map" --stats "${options[@]}" -n "$ranks" \
    "$programs/collective_crossings" "${@:2}"
  expect_code 0
  awk '/^ relay:/ { for (i = 1; i < NF; i++) if ($i == "relays") { sum += $(i + 1); seen++ } }
    END { print seen ? sum : "none" }' "$tmp/err"
}

# a_call MAP OPTION... -- COLLECTIVE BYTES: of one call; what is done before the first cancels out. Leaves it in $crossings
a_call() {
  local few many
  few=$(forwarded "$@" 0)
  many=$(forwarded "$@" "$calls")
  crossings=$(awk -v few="$few" -v many="$many" -v n="$calls" 'BEGIN { print (many - few) / n }')
}

# crosses N MAP COLLECTIVE BYTES
crosses() {
  a_call "$2" -- "${@:3}"
  [[ $crossings = "$1" ]] || wrong "expected $1 messages for each $3 of $4 bytes, counted $crossings"
}

# With three sites: a message to or from each other site, or from each to each.
tree_or_all() {
  local bytes
  for bytes in 8 131072; do
    crosses 2 "$1" bcast "$bytes"
    crosses 2 "$1" reduce "$bytes"
    crosses 2 "$1" gather "$bytes"
    crosses 2 "$1" scatter "$bytes"
    crosses 6 "$1" allgather "$bytes"
    crosses 6 "$1" reduce_scatter "$bytes"
  done
  crosses 6 "$1" barrier 8
  crosses 6 "$1" allreduce 8
  crosses 4 "$1" allreduce 131072
  crosses 6 "$1" alltoall 8
}

scans() {
  crosses 3 "$blocks" scan 8
  crosses 3 "$blocks" scan 131072
}

# MPICH's own cross more often where ranks are at home in turn: if they do not, there is nothing to be gained.
more() {
  a_call "$in_turn" "$@" -- bcast 8
  ((crossings > 2)) || wrong "expected more than 2 messages for each bcast, counted $crossings"
  a_call "$in_turn" "$@" -- bcast 131072
  ((crossings > 2)) || wrong "expected more than 2 messages for each large bcast, counted $crossings"
}

# Of this collective alone; the others stay.
users_algorithm() {
  more --genv MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial
  a_call "$in_turn" --genv MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial -- reduce 8
  [[ $crossings = 2 ]] || wrong "expected 2 messages for each reduce, counted $crossings"
}

# The setting of a job that this one is started in is not for its ranks.
inherited() {
  run env CAUSEWAY_SITES=0000 "${causeway[@]}" run "$@" -n 2 "$actor" init ring env=CAUSEWAY_SITES finalize
  expect_code 0
}

told() {
  inherited --relays 2
  expect_out_like '^0 CAUSEWAY_SITES=01$'
  inherited --relays 2 --collectives flat
  ! grep -q 'CAUSEWAY_SITES=0' "$tmp/out" || wrong "expected that flat ranks are told of no sites"
  inherited
  ! grep -q 'CAUSEWAY_SITES=0' "$tmp/out" || wrong "expected that ranks of one relay are told of no sites"
}

# --- results -------------------------------------------------------------------------

# ends_well MAP PROGRAM ARGUMENT...
ends_well() {
  run "${causeway[@]}" run --relays 3 --relay-map "$1" -n "$ranks" "$programs/$2" "${@:3}"
  expect_code 0
  expect_out "ok $2"
}

# ends_flat PROGRAM ARGUMENT...
ends_flat() {
  run "${causeway[@]}" run --relays 3 --collectives flat -n "$ranks" "$programs/$1" "${@:2}"
  expect_code 0
  expect_out "ok $1"
}

rma() {
  local one
  for one in rma_fence rma_lock rma_pscw rma_atomic; do
    ends_well "$1" "$one"
  done
}

# killed MAP EVENT PROGRAM ARGUMENT...: one rank after the other, then two at once; some of them speak for their site.
# They are killed at their event EVENT, or one not long after. The job has $job_options.
killed() {
  run "${causeway[@]}" run --relays 3 --relay-map "$1" --events "$tmp/events" "${job_options[@]}" \
    --fault "kill:1@event:$2" --fault "kill:4@event:$(($2 + 40))" --fault "kill:0,7@event:$(($2 + 70))" \
    -n "$ranks" "$programs/$3" "${@:4}"
  expect_code 0
  expect_out "ok $3"
  count_faults "$tmp/events"
  expect_restarts 4
  expect_only_restarts
}

# So late that there are images of them.
killed_with_images() {
  local images_every=100ms job_options=(--ckpt-every 100ms) before=$images_used
  killed "$1" 4000 sites 8
  ((images_used > before)) || wrong "expected that a rank went on from an image"
}

killed_rma() {
  local one
  for one in rma_fence rma_lock; do
    killed "$1" 20 "$one"
  done
}

main() {
  lib_start
  t "crossings, ranks in blocks" tree_or_all "$blocks"
  t "crossings, ranks in turn" tree_or_all "$in_turn"
  t "crossings, ranks in no order" tree_or_all "$mixed"
  t "crossings of scans" scans
  t "crossings of MPICH's own" more --collectives flat
  t "crossings with an algorithm of the user's" users_algorithm
  t "what ranks are told" told
  t "errors of MPICH's own" ends_flat sites_errors mpich
  local map
  for map in "$blocks" "$in_turn" "$mixed"; do
    t "collectives ($map)" ends_well "$map" collectives 3000
    t "sites ($map)" ends_well "$map" sites
    t "errors ($map)" ends_well "$map" sites_errors
    t "communicators ($map)" ends_well "$map" comms
    t "a program that profiles ($map)" ends_well "$map" profiled
    t "Fortran ($map)" ends_well "$map" fortran_coll
    t "memory of others ($map)" rma "$map"
    t "collectives, ranks killed ($map)" killed "$map" 20 collectives 3000
    t "sites, ranks killed ($map)" killed "$map" 20 sites
    t "memory of others, ranks killed ($map)" killed_rma "$map"
    t "sites, ranks killed, with images ($map)" killed_with_images "$map"
  done
  tap_end
}

main

#!/bin/bash
# Images of ranks on other hosts (tests/hosts.sh): where the job's own checkpoint servers stand, and what becomes of the
# ranks when hosts of servers, of ranks, and of both are lost. Prints TAP.
#
#   hosts_images.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite="images on several hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}

# --- what is looked for -----------------------------------------------------------

# ring HOSTS OPTION...: starts a job whose ranks send something round until $work/go is there
ring() {
  on "$1" --ckpt-every 200ms "${@:2}" "$root/build/programs/actor" init "ring_until=$work/go" finalize
  start "${job_command[@]}"
}

# goes_on: the ring comes to its end
goes_on() {
  touch "$work/go"
  finish
  expect_code 0
}

# stored_at RANK HOST: how many images of the rank went there
stored_at() {
  jq -s --argjson rank "$1" --arg host "$2" \
    'map(select(.event == "image_stored" and .rank == $rank and .server == $host)) | length' "$work/events" 2>/dev/null
}

# goes_to HOST RANK...: an image of each goes there, after what is there already
goes_to() {
  local host=$1 rank
  shift
  for rank; do
    await_true "an image of rank $rank at $host" more_stored "$(stored_at "$rank" "$host")" "$rank" "$host"
  done
}

more_stored() {
  (($(stored_at "$2" "$3") > $1))
}

# --- the tests --------------------------------------------------------------------

# on_a_host HOST: the checkpoint server is on a host without ranks, and dies once.
on_a_host() {
  local images
  ring node1:2,node2:2 --ckptsrv "$1" --verbose -n 4
  goes_to "$1" 3
  on_host 3 pkill -9 -f 'causeway ckptsrv'
  await_true "the server to be back" grep -q 'the checkpoint server is there again' "$tmp/err"
  goes_to "$1" 3
  on_host 2 pkill -9 -x actor
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  goes_on
  nothing_stays 1 2 3
  images=$(sed -n "s/.*checkpoint server started (pid [0-9]*, $1, images in \(.*\))$/\1/p" "$tmp/err" | head -n 1)
  [[ $images = /* ]] || wrong "nobody says that it was started on $1"
  on_host 3 test ! -e "$images" || wrong "images stay in $images"
}

cannot_start() {
  on_hosts node1:2 --ckptsrv "$1" --ckpt-dir /proc/none -n 2 "$solver" 100 100 100
  expect_code 1
  grep -q "causeway: --ckptsrv: host node[13]: .* cannot be started: --dir /proc/none: making it: " "$tmp/err" || wrong "nobody says where, and why"
  [[ $(wc -l <"$tmp/err") = 1 ]] || wrong "expected one line on standard error"
  nothing_stays 1 3
}

# All goes on without images.
only_one_lost() {
  ring node1:2,node2:2 --ckptsrv node3 --host-timeout 1s -n 4
  goes_to node3 3
  host_kill 3
  await_true "that to be told" grep -q 'no more images are taken: host node3: it is lost' "$tmp/err"
  goes_on
  host_start 3
  nothing_stays 1 2
}

# Each rank's images are on the host behind its own; one of the servers is killed alone, and is there again.
on_all_hosts() {
  ring "$three" --ckptsrv all -n 6
  goes_to node2 0 1
  goes_to node3 2 3
  goes_to node1 4 5
  [[ $(stored_at 2 node2) = 0 ]] || wrong "images of rank 2 are on its own host"
  on_host 2 pkill -9 -f 'causeway ckptsrv'
  await_true "the server to be back" grep -q 'the checkpoint server on host node2 is there again' "$tmp/err"
  goes_to node2 0 1
  on_host 1 pkill -9 -x actor
  await_true "rank 0 to go on from an image" event_is_there rank_restored 0
  await_true "rank 1 to go on from an image" event_is_there rank_restored 1
  goes_on
  nothing_stays 1 2 3
}

# The ranks of the host go on where their images are, whose next ones go elsewhere; ranks that had theirs on it have new ones.
host_of_both_lost() {
  ring "$three" --ckptsrv all --spares 1 --relay-at cluster --host-timeout 1s -n 4
  goes_to node2 0 1
  goes_to node3 2 3
  host_kill 2
  await_true "that to be told" grep -q 'host node2: it is lost, and with it its checkpoint server; ranks whose last image was there: 2; new ones' "$tmp/err"
  await_true "rank 2 to go on from an image" event_is_there rank_restored 2
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  goes_to node3 0 1
  goes_to node1 2 3
  on_host 1 pkill -9 -x actor
  await_true "rank 0 to go on from an image" event_is_there rank_restored 0
  await_true "rank 1 to go on from an image" event_is_there rank_restored 1
  goes_on
  host_start 2
  nothing_stays 1 3
}

# First the host with the images, and when there are new ones, that of the ranks.
one_after_the_other() {
  ring node1:4,node2:2 --ppn 2 --ckptsrv node1,node2,node3 --relay-at cluster --host-timeout 1s -n 4
  goes_to node3 2 3
  host_kill 3
  goes_to node1 2 3
  host_kill 2
  await_true "rank 2 to go on from an image" event_is_there rank_restored 2
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  goes_on
  started_on 3 node1 2 || wrong "rank 3 did not go on on node1"
  host_start 2
  host_start 3
  nothing_stays 1
}

# Of two servers one is lost with its host, and at once all ranks that have images there crash.
kept_twice() {
  ring node1:2,node2:2 --ckptsrv node1,node2,node3 --ckpt-copies 2 --host-timeout 1s -n 4
  goes_to node2,node3 0 1
  goes_to node1,node3 2 3
  on_host 2 pkill -STOP -x actor
  host_kill 3
  await_true "the host to be lost" event_is_there host_lost
  on_host 2 pkill -9 -x actor
  await_true "rank 2 to go on from an image" event_is_there rank_restored 2
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  goes_to node1 2 3
  goes_to node2 0 1
  goes_on
  host_start 3
  nothing_stays 1 2
}

# With copies of logs images are where these are: a lost host's ranks go on there, and their next images go elsewhere.
with_copies_of_logs() {
  ring "$three" --spares 1 --log-copies 1 --ckptsrv all --channel off --host-timeout 1s -n 4
  goes_to node3 0 1 2 3
  host_kill 2
  await_true "rank 2 to go on from an image" event_is_there rank_restored 2
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  goes_to node1 2 3
  goes_on
  started_on 3 node3 2 || wrong "rank 3 did not go on on node3"
  host_start 2
  nothing_stays 1 3
}

# A rank that answers nothing has no new image when it crashes.
at_once() {
  ring node1:2,node2:2 --ckptsrv node2,node3 --host-timeout 1s -n 4
  goes_to node3 2 3
  on_host 2 pkill -STOP -x actor
  host_kill 3
  await_true "that to be told" grep -q 'host node3: it is lost, and with it its checkpoint server; ranks whose last image was there: 2;' "$tmp/err"
  on_host 2 pkill -9 -x actor
  finish
  host_start 3
  expect_code 1
  grep -Eq 'rank [23] .*, and there is nothing to restart it from: image [0-9]+ is gone with its checkpoint server: host node3: it is lost' "$tmp/err" ||
    wrong "nobody says that its image was on node3"
  nothing_stays 1 2
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
hosts_start "three hosts"

t "a checkpoint server on a host without ranks" on_a_host node3
t "... which is lost" only_one_lost
t "... which cannot start" cannot_start node3
t "one of several cannot start" cannot_start node1,node3
t "a checkpoint server on each host" on_all_hosts
t "a host is lost with ranks and a checkpoint server" host_of_both_lost
t "the host of a checkpoint server is lost, then that of its ranks" one_after_the_other
t "a rank crashes whose image is lost" at_once
t "images that are kept twice" kept_twice
t "images with copies of logs" with_copies_of_logs
tap_end

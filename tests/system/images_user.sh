#!/bin/bash
# Jobs with images as an ordinary user who can gain no privileges, and under the limits that a shell sets: ulimit -v, -f and
# -u, before the job and between an image and the restart from it. Prints TAP.
#
#   images_user.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2317,SC2154 # text for bash -c; the tests are called by t; of lib.sh
set -u

suite="images, user and limits"
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
user=$((100000 + $$ % 100000)) # who has no other processes, which count for ulimit -u
as_user=(setpriv "--reuid=$user" "--regid=$user" --clear-groups --no-new-privs)

# --- users ------------------------------------------------------------------------

# Lets the ordinary user run jobs here; fails, and skips the test, where there can be none.
may_be_user() {
  if ((UID)); then
    skip "not root"
    return 1
  fi
  if ! "${as_user[@]}" test -x "${causeway[0]}" || ! "${as_user[@]}" test -r "$actor"; then
    skip "another user cannot reach $root"
    return 1
  fi
  chmod 711 "$tmp"
  chmod 777 "$work" "$TMPDIR"
  : >"$tmp/events"
  chmod 666 "$tmp/events"
}

# killed_often OPTION...: each rank goes on from an image, one after another.
killed_often() {
  local rank
  start_rings "${often[@]}" -n 3 "$@"
  for rank in 0 1 2; do
    await_more 1 image_stored "$rank"
    crash "$rank"
  done
  expect_rings 3
  expect_event rank_restored 3
}

user() {
  may_be_user || return
  where=("${as_user[@]}")
  killed_often "$@"
  [[ ! -e $work/images ]] || wrong "left: $(find "$work/images")"
}

user_on_demand() {
  may_be_user || return
  where=("${as_user[@]}")
  start_rings -n 2
  await_true "images of all ranks" "${as_user[@]}" "${causeway[@]}" ckpt now "$pid" 2>/dev/null >"$work/now"
  crash 1
  expect_rings 2
  expect_event rank_restored
}

# of_others DIR: where an ordinary user cannot write
of_others() {
  may_be_user || return
  mkdir -m 700 "$work/closed"
  mkdir -m 755 "$work/open"
  run_expect 1 "^causeway: --ckpt-dir $work/$1: Permission denied" "${as_user[@]}" "${causeway[@]}" run \
    --ckpt-dir "$work/$1" -n 1 "$actor" init finalize
  [[ -z $(find "$work/closed" "$work/open" -mindepth 1) ]] || wrong "left: $(find "$work")"
}

# A rank that would have given up, before it connects, what it needs for it, is repeated from the beginning.
given_up() {
  ((UID == 0)) || { skip "not root" && return; }
  chmod 711 "$tmp"
  chmod 755 "$work"
  start_told "${often[@]}" -n 2 "$actor" init nobody "ring_until=$work/go" finalize
  await_more 1 image_failed 1
  crash 1
  end_well
  expect_err_like 'no image of it: the program has given up rights without which its relay cannot be reached again'
}

user_tests() {
  t "an ordinary user" user
  t "an ordinary user, with a place for images" user --ckpt-dir "$tmp/work/images"
  t "an ordinary user, on demand" user_on_demand
  t "a program that gives up root's rights" given_up
  t "an ordinary user, where nobody may look" of_others closed/images
  t "an ordinary user, where nobody may write" of_others open
}

# --- limits -----------------------------------------------------------------------

# limited TEXT: a job of an ordinary user, below the limits that bash sets by TEXT; of root, -u counts for nothing.
limited() {
  may_be_user || return
  where=("${as_user[@]}" bash -c "$1"' && exec "$@"' _)
  killed_often
}

# changed OPTION...: the node's limits change, as for prlimit, after images were taken.
changed() {
  start_rings "${often[@]}" -n 2
  await_more 4 image_stored
  prlimit --pid "$(node)" "$@" || wrong "limits cannot be set"
  crash 0
  await_more 1 image_stored 0
  crash 1
  expect_rings 2
  expect_event rank_restored 2
}

# An image that is larger than files may be is not stored, and the job goes on with its logs.
large_image() {
  start_rings "${often[@]}" -n 2
  await_true "the job's own checkpoint server" has_own_server
  await_more 2 image_stored
  prlimit --pid "$(own_server)" --fsize=4096:4096 || wrong "limits cannot be set"
  await_more 1 image_failed
  crash 0
  expect_rings 2
  expect_event rank_restored
  expect_err_like 'rank [01]: no image of it: .*File too large'
}

# No process of this size may be started any more, and the log begins at the image.
too_little_space() {
  start_rings -n 2
  await_true "images of all ranks" ask_now
  await_true "the logs to be trimmed" ask_now
  prlimit --pid "$(node)" --as=67108864:67108864 || wrong "limits cannot be set"
  kill -9 "$(rank_process 1)"
  await_true "the job to end" gone "$pid" || kill "$pid"
  finish
  expect_code 1
  expect_err_like "rank 1: image [0-9]+ cannot be restored: .*'ulimit -v' or 'ulimit -d'"
}

limit_tests() {
  t "ulimit -v, -f and -u that suffice" limited 'ulimit -v 4194304 && ulimit -f 1000000 && ulimit -u 100'
  t "ulimit -v, -f and -u that have changed" changed --as=1099511627776:1099511627776 --fsize=1000000000:1000000000 \
    --nproc=1000:1000
  t "images that ulimit -f does not let be" large_image
  t "ulimit -v too small for the restart" too_little_space
}

lib_start
user_tests
limit_tests
tap_end

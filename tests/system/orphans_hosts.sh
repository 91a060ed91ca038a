#!/bin/bash
# Jobs on several hosts (tests/hosts.sh) whose causeway run is on a machine that is lost, or cut off: one of the hosts
# goes on with them. Prints TAP.
#
#   orphans_hosts.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="jobs that are orphaned, on hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}
find_causeway

program=(-n 4 "$solver" 120 12000 1000)

# at HOST COMMAND...: starts it there.
at() {
  start env HOSTS_NUMBER="$hosts_number" "$hosts_self" exec "$@"
}

# begin OPTION...: a job on node1 and node2, whose causeway run is on node3.
begin() {
  "${causeway[@]}" run "${program[@]}" >"$work/expected" 2>&1
  at 3 "${causeway[@]}" run --host node1:2,node2:2 --launcher-args "-F $hosts_config" --host-timeout 1s --orphan-timeout 60s \
    --no-ckpt "$@" "${program[@]}"
  await_true "output" has_printed 2
}

has_printed() {
  (($(wc -l <"$tmp/out") >= $1)) || gone "$pid"
}

# The first host has the state; its node may hear of the one before for a moment.
goes_on() {
  at 1 "${causeway[@]}" run --resume -
  await_true "an answer" has_answered
  ! grep -q "its causeway run lives" "$tmp/err" || { finish && false; }
}

has_answered() {
  grep -q "goes on\|lives" "$tmp/err" || gone "$pid"
}

# The output of both is what one prints that nobody kills.
expect_whole() {
  finish
  expect_code 0
  sort "$work/first" "$tmp/out" | diff <(sort "$work/expected") - >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
  nothing_stays 1 2
}

machine_lost() {
  begin "$@"
  host_kill 3
  finish
  mv "$tmp/out" "$work/first"
  await_true "the job to go on" goes_on
  expect_whole
  host_start 3
}

# It lives on, comes back after another one has come, does no harm, and ends.
cut_off() {
  local first_job
  begin "$@"
  host_cut 3
  first_job=$job
  mv "$tmp/out" "$work/first"
  mv "$tmp/err" "$work/first.err"
  await_true "the job to go on" goes_on
  host_join 3
  { wait "$first_job"; } 2>/dev/null
  code=$?
  expect_code 1
  expect_whole
}

lib_start
hosts_start "hosts"
t "the machine of causeway run is lost" machine_lost --channel off
t "... where ranks share channel memory" machine_lost --channel on
t "the machine of causeway run is cut off, and comes back" cut_off --channel off
t "... where ranks share channel memory, and comes back" cut_off --channel on
tap_end

#!/bin/bash
# The MPI programs with their ranks on three hosts (tests/hosts.sh): undisturbed, with ranks that are killed, and with a
# host that is lost. Prints TAP.
#
#   hosts_programs.sh [--all] [REGEX]
#
#   --all   with each number of ranks
#   REGEX   those whose titles match
#
# Environment:
#   HOSTED_LOSSES  how often each program of the last part loses a host (default: 1)
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite="MPI programs on hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-180}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
slice=--slice
[[ ${1-} != --all ]] || { slice='' && shift; }
only=${1-}
losing=(p2p_modes collectives icollectives rma_fence rma_lock storm solver master_worker token_ring pool)

# listed TITLE OPTIONS ARG...: programs.sh runs them on the hosts; its tests are counted as ours.
listed() {
  local line
  while IFS= read -r line; do
    case $line in
      'ok '*) echo "ok $((++tap_count)) - $suite, $1: ${line#* - }" ;;
      'not ok '*)
        echo "not ok $((++tap_count)) - $suite, $1: ${line#* - }"
        tap_failed=1
        ;;
      1..*) ;;
      *) echo "$line" ;;
    esac
  done < <(CAUSEWAY="$here/hosted.sh" HOSTED="$2" HOSTED_CONFIG=$hosts_config TESTS_PLACE=$tmp \
    "$here/programs.sh" ${slice:+"$slice"} "${@:3}" "$only" 2>&1)
}

count() {
  grep -c "\"event\":\"$1\"" "$tmp/events"
}

stored() {
  (($(count image_stored) > 3)) || gone "$pid"
}

# loses NAME ARG...: a host is lost when there are images, and it ends as it does without.
loses() {
  cd "$work" || return
  : >"$tmp/events"
  start "${causeway[@]}" run --host "$three" --spares 1 --relay-at cluster --host-timeout 1s --ckpt-every 200ms \
    --launcher-args "-F $hosts_config" --events "$tmp/events" -n 4 "$root/build/programs/$1" "${@:2}"
  await_true "images" stored
  host_kill 2
  finish
  host_start 2
  cd "$tmp" || return
  expect_code 0
  expect_out "ok $1"
  tried=$((tried + 1))
  (($(count host_lost))) && lost=$((lost + 1))
}

# A program may have ended before.
losses_were_seen() {
  ((lost)) || wrong "no program lost a host"
}

lib_start
find_causeway
hosts_start "MPI programs on three hosts"
listed "a relay on each host" "--host $three"
listed "one relay" "--host $three --relay-at cluster" --kills-per-run 2 --images
tried=0 lost=0
for ((round = 0; round < ${HOSTED_LOSSES:-1}; round++)); do
  for it in "${losing[@]}"; do
    t "$it, a host is lost" loses "$it"
  done
done
((tried < ${#losing[@]})) || t "hosts were lost" losses_were_seen
tap_end

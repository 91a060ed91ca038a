#!/bin/bash
# The demonstration of `make run HOSTS=N`: a solver on N hosts, one of which is lost on the way; it prints what it prints
# on this machine alone. The hosts are network namespaces of this machine (tests/hosts.sh). Needs root for that.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/hosts.sh
. tests/hosts.sh
causeway=$PWD/build/causeway
count=$1
solver=(build/programs/solver 256 8000 1000)

fail() {
  echo "$*" >&2
  exit 1
}

title() {
  printf '\n--- %s\n' "$*"
}

has_event() {
  grep -q "\"event\":\"$1\"" "$dir/events" 2>/dev/null
}

[[ $count =~ ^([2-9]|[1-5][0-9]|6[0-4])$ ]] || fail "HOSTS=$count: not a number of hosts from 2 to 64"
title "$count hosts are made: node1 to node$count, each with a network, processes and an sshd of its own"
dir=$(mktemp -d)
trap 'hosts_down; rm -rf "$dir"' EXIT
hosts_up "$count" || fail "no hosts could be made"
hosts_list
list=$(seq -s , -f 'node%g:2' "$count")
ranks=$((2 * (count - 1)))

title "A solver on a grid of 256 x 256, $ranks ranks on this machine"
"$causeway" run -n "$ranks" "${solver[@]}" | tee "$dir/here"

title "The same on the hosts (the last one is spare), and node$((count - 1)) is lost on the way"
command=("$causeway" run --host "$list" --spares 1 --relay-at cluster --host-timeout 1s --ckpt-every 300ms
  --launcher-args "-F $hosts_config" --events "$dir/events" -n "$ranks" "${solver[@]}")
echo "\$ ${command[*]}"
"${command[@]}" >"$dir/there" &
job=$!
for ((i = 0; i < 600; i++)); do
  has_event image_stored && break
  sleep 0.1
done
host_kill $((count - 1))
wait "$job" || fail "the job should have ended well"
cat "$dir/there"
has_event host_lost || fail "node$((count - 1)) should have been lost before the solver ended"
cmp -s "$dir/here" "$dir/there" || fail "both should have printed the same"
echo "Both printed the same, to the last digit."

#!/bin/bash
# Jobs of several relays: by options right and wrong, and relays that run already.
# Prints TAP.
#
#   relays.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2317 # text for bash -c; the tests are called by t
set -u

suite="several relays"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway
programs=$root/build/programs

ends_well() {
  run "${causeway[@]}" run "$@"
  expect_code 0
  expect_silence
  expect_out_like '^ok '
}

# Each rank's messages are counted by its home alone, and there is a line for each relay.
counted() {
  run "${causeway[@]}" run --relays 3 --stats -n 4 "$programs/storm"
  expect_code 0
  [[ $(grep -c '^ *[0-3] ' "$tmp/err") = 4 ]] || wrong "expected a line for each of 4 ranks"
  [[ $(grep -c '^ relay: frames in' "$tmp/err") = 3 ]] || wrong "expected a line for each of 3 relays"
}

# external NAME ADDRESS: a relay that runs already
external() {
  helper "$1" env -C "$work" "${causeway[@]}" relay --listen "$2" "${@:3}"
  await_true "relay $1" grep -q listening "$tmp/$1.err"
}

already_running() {
  external one "unix:$work/one"
  external two "unix:$work/two"
  ends_well --relay "unix:$work/one" --relay "unix:$work/two" -n 4 "$programs/storm"
  ends_well --relay "unix:$work/two" --relay "unix:$work/one" -n 4 "$programs/storm"
  ends_well --relay "unix:$work/one" -n 4 "$programs/storm"
  killed_with_channel --relay "unix:$work/one" --relay "unix:$work/two"
}

# The ranks of one machine share channel memory, wherever they are at home.
killed_with_channel() {
  run "${causeway[@]}" run --channel on --no-ckpt "$@" --fault kill:1@event:20 -n 4 "$programs/storm"
  expect_code 0
  expect_err_like 'rank 1 is back: it repeated'
  expect_out_like '^ok '
}

over_tcp() {
  external one tcp:127.0.0.1:0 --key-file "$work/key"
  external two tcp:127.0.0.1:0 --key-file "$work/key"
  local address addresses=()
  for address in one two; do
    addresses+=(--relay "$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$tmp/$address.err")")
  done
  ends_well "${addresses[@]}" --key-file "$work/key" -n 4 "$programs/storm"
}

unreachable() {
  external one "unix:$work/one"
  run_expect '1|2' 'no/such/dir/relay' "${causeway[@]}" run --relay "unix:$work/one" \
    --relay unix:/no/such/dir/relay --key-file "$work/one.key" -n 2 "$programs/storm"
}

# The dispatcher gets to both, but the first one, in a directory of its own, does not find the second.
unlinked() {
  mkdir "$work/elsewhere"
  external two unix:two
  helper one env -C "$work/elsewhere" "${causeway[0]}" relay --listen unix:one
  await_true "relay one" grep -q listening "$tmp/one.err"
  ln -s elsewhere/one "$work/one"
  ln -s elsewhere/one.key "$work/one.key"
  run env -C "$work" "${causeway[@]}" run --relay unix:one --relay unix:two -n 2 "$programs/storm"
  expect_code 1
  expect_err_like 'no link to relay 1 of the job: .*two'
}

main() {
  lib_start
  t "two, ranks in turn" ends_well --relays 2 -n 4 "$programs/storm"
  t "sixteen, more than ranks" ends_well --relays 16 -n 3 "$programs/storm"
  t "a map" ends_well --relays 2 --relay-map '1*3,0' -n 4 "$programs/storm"
  t "a relay without ranks" ends_well --relays 3 --relay-map '2*4' -n 4 "$programs/storm"
  t "without a log" ends_well --no-log --relays 2 -n 4 "$programs/storm"
  t "ranks with channel memory, one of which is killed" killed_with_channel --relays 3
  t "ranks with channel memory that reach their relay through sockets" killed_with_channel --rings off
  t "large messages" ends_well --relays 2 -n 2 "$programs/sizes"
  t "statistics" counted
  t "relays that run already" already_running
  t "relays on TCP" over_tcp
  t "one of them is not there" unreachable
  t "one of them is not there for the other" unlinked
  t "--relays 17" run_expect 2 "--relays '17'.*16" "${causeway[@]}" run --relays 17 true
  t "a map of too few ranks" run_expect 2 'relay-map: 2 ranks, but the job has 3' \
    "${causeway[@]}" run --relays 2 --relay-map 0,1 -n 3 true
  t "a map with a relay that is not there" run_expect 2 "relay-map: relay '2'" \
    "${causeway[@]}" run --relays 2 --relay-map '2*3' -n 3 true
  t "--relays that is not the number of --relay" run_expect 2 '--relays 3, but --relay is given 1' \
    "${causeway[@]}" run --relays 3 --relay unix:/x -n 3 true
  tap_end
}

main

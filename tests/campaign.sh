#!/bin/bash
# The long tests, each bounded: all of scalapack-mpi-test, every MPI program many times over, ranks
# killed at random, the fuzzers.
#
# Environment: TIME (seconds for each fuzzer, default 600), ROUNDS (of the MPI programs, default 5), KILLS
# (at least so many ranks are killed, default 500), SEEDS (of simulated jobs, FROM:COUNT, default 1:100000)
set -u
cd "$(dirname "$0")/.." || exit 1
TIME=${TIME:-600}
ROUNDS=${ROUNDS:-5}
KILLS=${KILLS:-500}
failed=0

run() {
  echo "== $*"
  "$@" || failed=1
}

run tests/system/scalapack.sh --causeway
for _ in $(seq "$ROUNDS"); do
  run tests/system/programs.sh
done
run build/sim --seeds "${SEEDS:-1:100000}" --jobs 2
run tests/system/kills.sh --campaign "$KILLS"
run env CAUSEWAY="$PWD/tests/system/sanitized.sh" tests/system/programs.sh --slice --kills-per-run 2
run build/causeway run -n 2 --timeout 300 build/programs/sizes 268435456
for fuzzer in build/fuzz/*; do
  corpus=$(mktemp -d)
  run "$fuzzer" -max_total_time="$TIME" "$corpus"
  rm -rf "$corpus"
done
[ "$failed" -eq 0 ] && echo "campaign passed" || echo "campaign failed"
exit "$failed"

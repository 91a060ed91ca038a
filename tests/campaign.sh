#!/bin/bash
# The long tests, each bounded: all of scalapack-mpi-test, every MPI program many times over, the fuzzers.
#
# Environment: TIME (seconds for each fuzzer, default 600), ROUNDS (of the MPI programs, default 5)
set -u
cd "$(dirname "$0")/.." || exit 1
TIME=${TIME:-600}
ROUNDS=${ROUNDS:-5}
failed=0

run() {
  echo "== $*"
  "$@" || failed=1
}

run tests/system/scalapack.sh --causeway
for _ in $(seq "$ROUNDS"); do
  run tests/system/programs.sh
done
run build/causeway run -n 2 --timeout 300 build/programs/sizes 268435456
for fuzzer in build/fuzz/*; do
  corpus=$(mktemp -d)
  run "$fuzzer" -max_total_time="$TIME" "$corpus"
  rm -rf "$corpus"
done
[ "$failed" -eq 0 ] && echo "campaign passed" || echo "campaign failed"
exit "$failed"

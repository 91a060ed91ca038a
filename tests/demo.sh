#!/bin/bash
# The demonstration of `make run`: two programs that nobody here wrote, as Debian ships them, every
# message carried by a relay.
set -u
cd "$(dirname "$0")/.." || exit 1
causeway=$PWD/build/causeway
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
solvers=/usr/lib/$(gcc -print-multiarch)/scalapack/mpich-tests
failed=0

title() {
  printf '\n--- %s\n' "$*"
}

"$causeway" doctor /usr/bin/NPmpich2 || exit 1

title "NetPIPE (NPmpich2), 2 ranks: latency and bandwidth through the relay"
(cd "$dir" && "$causeway" run -n 2 --stats NPmpich2 -u 1048576 -o "$dir/np.out") || failed=1

title "ScaLAPACK's LU solver (xdlu), 4 ranks"
cp /usr/share/scalapack/LU.dat "$dir" || exit 1
# of its 240 rows, one a matrix and process grid, the summary
(cd "$dir" && "$causeway" run -n 4 --stats "$solvers/xdlu" >"$dir/lu.out") || failed=1
grep -E 'TIME|WALL' "$dir/lu.out" | tail -n 3
sed -n '/^Finished/,/^END/p' "$dir/lu.out"

if [ "$failed" -eq 0 ]; then
  title "both programs ended well; every message went through the relay"
fi
exit "$failed"

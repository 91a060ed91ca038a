#!/bin/bash
# The demonstration of `make run`: programs that nobody here wrote, as Debian ships them, and a solver of
# the tests; ranks that are killed come back.
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

# come_back COMMAND...: it ends well, and says of a rank that it is back.
come_back() {
  local code
  { "$@" 2>&1 >&3 | tee "$dir/err" >&2; } 3>&1
  code=${PIPESTATUS[0]}
  if [ "$code" -ne 0 ] || ! grep -q 'causeway: rank 1 is back' "$dir/err"; then
    echo "rank 1 should have come back" >&2
    failed=1
  fi
}

"$causeway" doctor /usr/bin/NPmpich2 || exit 1

title "NetPIPE (NPmpich2), 2 ranks: latency and bandwidth, without logs"
(cd "$dir" && "$causeway" run -n 2 --no-log --stats NPmpich2 -u 1048576 -o "$dir/np.out") || failed=1

title "ScaLAPACK's LU solver (xdlu), 4 ranks"
cp /usr/share/scalapack/LU.dat "$dir" || exit 1
# of its 240 rows, one a matrix and process grid, the summary
(cd "$dir" && "$causeway" run -n 4 --stats "$solvers/xdlu" >"$dir/lu.out") || failed=1
grep -E 'TIME|WALL' "$dir/lu.out" | tail -n 3
sed -n '/^Finished/,/^END/p' "$dir/lu.out"

title "NetPIPE again, and rank 1 is killed with kill -9 on the way: look for 'is back'"
come_back "$causeway" run -n 2 --fault kill:1@event:100000 NPmpich2 -l 1 -u 8192 -p 0 -n 3000 -o "$dir/np.out"

title "A solver on a grid of 256 x 256, 4 ranks, first undisturbed"
"$causeway" run -n 4 build/programs/solver 256 8000 1000 >"$dir/solver.out" || failed=1
cat "$dir/solver.out"

title "The same, and rank 1 is killed on the way"
come_back "$causeway" run -n 4 --fault kill:1@event:16000 build/programs/solver 256 8000 1000 >"$dir/killed.out"
cat "$dir/killed.out"
if cmp -s "$dir/solver.out" "$dir/killed.out"; then
  echo "Both printed the same, to the last digit."
else
  echo "They should have printed the same." >&2
  failed=1
fi

# late TITLE OPTION...: rank 1 is killed near the end. Its statistics and what came of it are in $dir/late; $repeated is
# the number of events that it repeated, $log_bytes the size of both logs at the end.
late() {
  title "$1"
  come_back "$causeway" run -n 2 --stats "${@:2}" --fault kill:1@event:76000 build/programs/solver 256 40000 \
    >"$dir/late.out" 2>"$dir/late"
  grep 'causeway: rank 1' "$dir/late"
  cmp -s "$dir/long.out" "$dir/late.out" || {
    echo "It should have printed the same as undisturbed." >&2
    failed=1
  }
  repeated=$(sed -n 's/.*rank 1 is back.*[^0-9]\([0-9][0-9]*\) events.*/\1/p' "$dir/late")
  log_bytes=$(awk '$1 == "rank" { for (i = 1; i <= NF; i++) if ($i == "log_bytes") column = i }
    column && $1 ~ /^[0-9]+$/ { sum += $column } END { printf "%.0f", sum }' "$dir/late")
  awk -v bytes="$log_bytes" 'BEGIN { printf "The logs of both ranks hold %.1f MB at the end.\n", bytes / 1e6 }'
}

# smaller WHAT THIS THAT
smaller() {
  [ -n "$2" ] && [ -n "$3" ] && [ "$2" -lt "$3" ] && return
  echo "With images $1 should have been fewer: ${2:-unknown}, without ${3:-unknown}." >&2
  failed=1
}

"$causeway" run -n 2 build/programs/solver 256 40000 >"$dir/long.out" || failed=1
late "A longer run, and rank 1 is killed late: without images it starts again from its beginning" --no-ckpt
repeated_all=$repeated
log_bytes_all=$log_bytes
late "The same with images of the ranks, one in half a second: it goes on from the last one" --ckpt-every 500ms
grep -q 'restarting it from image' "$dir/late" || {
  echo "Rank 1 should have gone on from an image." >&2
  failed=1
}
smaller "the events that rank 1 repeats" "$repeated" "$repeated_all"
smaller "the bytes of the logs" "$log_bytes" "$log_bytes_all"

if [ "$failed" -eq 0 ]; then
  title "all programs ended well"
fi
exit "$failed"

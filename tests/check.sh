#!/bin/bash
# Runs every suite and counts: the last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0

# suite NAME COMMAND...: a suite that prints TAP
suite() {
  local name=$1 ok bad status
  shift
  echo "== $name"
  "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  ok=$(grep -c '^ok ' "$log")
  bad=$(grep -c '^not ok ' "$log")
  # a suite that ends badly without saying which test failed has failed as a whole
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ] || [ $((ok + bad)) -eq 0 ]; then
    echo "not ok - $name ended with code $status"
    bad=$((bad + 1))
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
}

# The tests of a program in two halves, at the same time
halves() {
  local first second other
  other=$(mktemp)
  "$1" --part 1/2 >"$other" 2>&1 &
  "$1" --part 2/2
  second=$?
  wait $!
  first=$?
  cat "$other"
  rm -f "$other"
  return $((first | second))
}

# one test, passed when the command ends well: one NAME COMMAND...
one() {
  local name=$1
  shift
  if "$@" >"$log" 2>&1; then
    echo "ok - $name"
    passed=$((passed + 1))
  else
    tail -n 30 "$log" | sed 's/^/# /'
    echo "not ok - $name"
    failed=$((failed + 1))
  fi
}

fuzz() {
  local corpus
  corpus=$(mktemp -d)
  build/fuzz/"$1" -max_total_time="${FUZZ_SECONDS:-30}" -print_final_stats=1 "$corpus"
  local status=$?
  rm -rf "$corpus"
  return $status
}

layout() {
  git ls-files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

scripts() {
  git ls-files '*.sh' .ci/run | xargs -r shellcheck
}

# What a user does first, where nothing has been built.
demonstration() {
  local copy status
  copy=$(mktemp -d)
  tar -c --exclude=./build --exclude=./.git . | tar -x -C "$copy"
  mkdir "$copy/build"
  touch "$copy/build/.run-deps"
  timeout "${DEMONSTRATION_SECONDS:-300}" make -C "$copy" run
  status=$?
  rm -rf "$copy"
  return $status
}

# The engines that a relay does not take by itself.
other_engines() {
  local default
  default=$(build/causeway relay --help | sed -n 's/.*--engine NAME.*(default \([a-z]*\)).*/\1/p')
  build/causeway relay --list-engines | cut -d ' ' -f 1 | grep -vx "$default"
}

# Whether this system can run it: if not, it says why and does not get as far as its listener.
engine_runs() {
  ! build/causeway relay --engine "$1" --listen unix:/no/such/dir 2>&1 | grep -v '/no/such/dir'
}

# What is slow or stands for little that an engine could do wrong is left to the default engine. The
# kills are at events, not at times.
engine_programs='p2p_modes|^probe|^collectives \(|^collectives 5|icollectives \(|rma_lock|sizes|storm|unsafe|master_worker|token_ring'
engine_kills='^(p2p_modes|storm|unsafe|master_worker, (a worker|all)|all ranks but rank 0|killed again while|kill -9 of a rank)'

one_engine() {
  suite "MPI programs, engine $1" env ENGINE="$1" tests/system/programs.sh --slice "$engine_programs"
  suite "ranks killed, engine $1" env ENGINE="$1" tests/system/kills.sh --slice "$engine_kills"
}

suite unit halves build/unit
suite "unit, address and undefined behaviour sanitizers" halves build/address/unit
suite "unit, thread sanitizer" halves build/thread/unit
suite "simulated jobs" build/sim --seeds 1:2000 --jobs 2
suite "simulated jobs, sanitizers" build/address/sim --seeds 2001:500 --jobs 2
suite "command line" tests/system/cli.sh
suite "MPI programs" tests/system/programs.sh
suite "MPI programs, relay on TCP" tests/system/programs.sh --relay-tcp
suite "MPI programs, sanitizers" env CAUSEWAY="$PWD/tests/system/sanitized.sh" \
  tests/system/programs.sh --slice
suite "several relays" tests/system/relays.sh
suite "several relays, ranks killed" env ENGINE="poll --relays 2" tests/system/programs.sh --slice --kills 2
suite "ranks killed" tests/system/kills.sh --slice
suite engines tests/system/engines.sh
suite "MPI programs, poll over sockets" env ENGINE="poll --rings off" tests/system/programs.sh \
  --slice "$engine_programs"
for engine in $(other_engines); do
  if engine_runs "$engine"; then
    one_engine "$engine"
  fi
done
suite "comparison of engines" tests/system/netpipe.sh
suite scalapack tests/system/scalapack.sh --causeway --slice 10
echo "== others"
for fuzzer in build/fuzz/*; do
  one "fuzz $(basename "$fuzzer")" fuzz "$(basename "$fuzzer")"
done
one "make run, where nothing is built" demonstration
one "clang-format" layout
one "shellcheck" scripts
one "no process left behind" bash -c '! pgrep -x causeway'
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

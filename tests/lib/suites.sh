# shellcheck shell=bash
# Runs suites side by side, in lanes, and counts their tests.
#
# A program sources this and queues suites, single tests and builds; `run_queued LANES` runs them, so many at a time,
# in the order in which they were queued. The output of each is printed whole when it has ended, with the seconds that it
# took and the processor's time that it used. finish_tests prints "N passed, N failed" and exits.
#
#   suite NAME COMMAND...   a command that prints TAP
#   one NAME COMMAND...     one test, passed when the command ends well
#   build NAME COMMAND...   counts as a test only when it fails

# shellcheck source=tests/lib/processes.sh
. tests/lib/processes.sh

passed=0
failed=0
names=()    # of all that is queued
kinds=()    # suite, one or build
commands=() # quoted for eval
next=0      # the first that is not started
declare -A lane=() # the number by process

queue() {
  kinds+=("$1")
  names+=("$2")
  commands+=("$(printf '%q ' "${@:3}")")
}

suite() {
  queue suite "$@"
}

one() {
  queue one "$@"
}

build() {
  queue build "$@"
}

# Everything that runs is ended when this program ends early.
suites_start() {
  results=$(mktemp -d) || exit 2
  export TMPDIR=$results/tmp # where jobs make their directories: `causeway status` of one suite sees no others
  mkdir "$TMPDIR"
  mark_children "CAUSEWAY_TESTS_$$_$RANDOM"
  trap end_all EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  set -m # each lane is a process group of its own
}

end_all() {
  local one pids
  trap '' INT TERM HUP
  for one in "${!lane[@]}"; do
    kill -TERM -- "-$one" 2>/dev/null
  done
  ((${#lane[@]} == 0)) || wait "${!lane[@]}" 2>/dev/null
  mapfile -t pids < <(marked)
  ((${#pids[@]} == 0)) || kill -9 "${pids[@]}" 2>/dev/null
  rm -rf "$results"
}

# execute NUMBER: in a process of its own
execute() {
  local TIMEFORMAT='%R %U %S' status
  {
    time {
      eval "${commands[$1]}" >"$results/$1.out" 2>&1 </dev/null
      status=$?
    }
  } 2>"$results/$1.time"
  exit "$status"
}

# False when all have been started.
start_next() {
  ((next < ${#names[@]})) || return 1
  echo "# begins: ${names[next]}"
  (
    trap - EXIT INT TERM HUP
    execute "$next"
  ) &
  lane[$!]=$((next++))
}

# The lines of a suite are counted. One that ends badly without saying which test failed has failed as a whole.
count_suite() {
  local out=$results/$1.out ok bad
  cat "$out"
  ok=$(grep -c '^ok ' "$out")
  bad=$(grep -c '^not ok ' "$out")
  if ((($2 && bad == 0) || ok + bad == 0)); then
    echo "not ok - ${names[$1]} ended with code $2, and named no test that failed"
    bad=$((bad + 1))
  fi
  passed=$((passed + ok))
  failed=$((failed + bad))
}

count_one() {
  if (($2 == 0)); then
    echo "ok - ${names[$1]}"
    passed=$((passed + 1))
  else
    tail -n 30 "$results/$1.out" | sed 's/^/# /'
    echo "not ok - ${names[$1]}"
    failed=$((failed + 1))
  fi
}

count_build() {
  # what needs it will say what is not there
  (($2 == 0)) || count_one "$1" "$2"
}

# report NUMBER STATUS
report() {
  local seconds user kernel
  read -r seconds user kernel < <(tail -n 1 "$results/$1.time")
  awk -v name="${names[$1]}" -v seconds="$seconds" -v used="$user $kernel" 'BEGIN {
    split(used, part, " ")
    printf "== %s (%.0f s, %.0f s of processor)\n", name, seconds, part[1] + part[2] }'
  "count_${kinds[$1]}" "$1" "$2"
}

# run_queued LANES
run_queued() {
  local lanes=$1 ended status
  while :; do
    while ((${#lane[@]} < lanes)) && start_next; do :; done
    ((${#lane[@]})) || break
    wait -n -p ended "${!lane[@]}"
    status=$?
    report "${lane[$ended]}" "$status"
    unset "lane[$ended]"
  done
}

# Its processes may need a moment to end.
no_process_left() {
  local i one
  for ((i = 0; i < 50; i++)); do
    none_marked && return
    sleep 0.1
  done
  while read -r one; do
    echo "left running: $(describe_process "$one")"
  done < <(marked)
  return 1
}

# The last test, of all the others: it runs in this process, which is not marked.
test_no_process_left() {
  names+=("no process left behind")
  no_process_left >"$results/$((${#names[@]} - 1)).out" 2>&1
  count_one $((${#names[@]} - 1)) $?
}

finish_tests() {
  test_no_process_left
  echo
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

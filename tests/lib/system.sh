# shellcheck shell=bash
# Shared by the system tests: running commands under a time limit, looking at what they did, and finding what they
# left behind. A suite sets $suite, calls lib_start, then `t TITLE COMMAND...` for each test, and ends with tap_end.
#
# A test has an empty directory, $work. It notes what went wrong with `wrong TEXT`, or calls the expect_...
# functions, which do so; a test without a note has passed.
#
# Environment:
#   ENGINE  the engine of the relays of a suite
#   IMAGES  time between two images of a rank, of all jobs (tests/system/with_images.sh)
#   EXCEPT  a regular expression: the titles of tests that do not run
#   SEED    draws numbers within tests (seed_draws)
#   TESTS_PLACE  where suites make their directories (default: /tmp)
#   DRAW    "K/N SEED": of a suite only the tests that SEED draws, about K of N. The same seed draws the same tests.

# shellcheck disable=SC2034 # some of these are for the suites

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/system
# shellcheck source=tests/lib/tap.sh
. "$root/tests/lib/tap.sh"
# shellcheck source=tests/lib/processes.sh
. "$root/tests/lib/processes.sh"
limit=${LIMIT:-20} # seconds for a command
only=''            # a regular expression: the titles of the tests to run
skipped=''
helpers=()
kept=() # processes without our mark that stay until the end of the suite

# Every process that a test starts is marked, and every dispatcher makes its directory in a place of its own.
lib_start() {
  tmp=$(mktemp -d "${TESTS_PLACE:-/tmp}/cwtest.XXXXXX") || exit 2
  mark_children "CAUSEWAY_TEST_$$_$RANDOM"
  export TMPDIR=$tmp/dirs
  work=$tmp/work
  mkdir "$TMPDIR"
  unset XDG_RUNTIME_DIR
  trap lib_end EXIT
  trap 'exit 130' INT TERM
}

# Leaves the command in the array $causeway: what CAUSEWAY says, or build/causeway of this tree.
find_causeway() {
  causeway=("$(realpath "${CAUSEWAY:-$root/build/causeway}")")
  if [[ -n ${ENGINE-} ]]; then
    suite+=", engine $ENGINE"
    if [[ ${causeway[0]} != "$here/engine.sh" ]]; then
      export CAUSEWAY_PLAIN=${causeway[0]}
      causeway=("$here/engine.sh")
    fi
  fi
  [[ -z ${IMAGES-} ]] || use_images
}

use_images() {
  suite+=", with images"
  export CAUSEWAY_WITHOUT_IMAGES=${causeway[0]}
  causeway=("$here/with_images.sh")
}

lib_end() {
  local pids
  mapfile -t pids < <(marked)
  pids+=("${kept[@]}")
  ((${#pids[@]} == 0)) || kill -9 "${pids[@]}" 2>/dev/null
  rm -rf "$tmp"
}

# --- tests ------------------------------------------------------------------------

# drawn TITLE: whether DRAW lets this test run. Its number comes from the seed, the suite and the title alone.
drawn() {
  local share seed hash
  [[ -n ${DRAW-} ]] || return 0
  read -r share seed <<<"$DRAW"
  read -r hash _ < <(md5sum <<<"$seed $suite: $1")
  ((16#${hash:0:8} % ${share#*/} < ${share%/*}))
}

# Numbers that a test draws come from SEED, the suite and the title alone. A suite says the seed, and calls seed_draws
# before each test.
say_seed() {
  seed=${SEED:-$SRANDOM}
  echo "# numbers drawn by SEED=$seed"
}

seed_draws() {
  local hash
  read -r hash _ < <(md5sum <<<"$seed $suite: $1")
  RANDOM=$((16#${hash:0:8}))
}

# draw_some COUNT BELOW: leaves that many numbers in the array $some.
draw_some() {
  some=()
  while ((${#some[@]} < $1)); do some+=($(((RANDOM << 15 | RANDOM) % $2))); done
  echo "drawn: ${some[*]}" >>"$tmp/drawn"
}

# skip WHY: the test cannot be made here
skip() {
  skipped=$*
}

# before_test TITLE, and after_test: what a suite does around each test. It may define them anew.
before_test() {
  :
}

after_test() {
  :
}

# t TITLE COMMAND...: one test.
t() {
  local title=$1
  shift
  [[ $title =~ $only ]] || return 0
  [[ -n ${EXCEPT-} && $title =~ $EXCEPT ]] && return 0
  drawn "$title" || return 0
  notes=()
  skipped=''
  : >"$tmp/out"
  : >"$tmp/err"
  : >"$tmp/drawn"
  rm -rf "$work"
  mkdir "$work"
  before_test "$title"
  "$@"
  after_test
  stop_helpers
  no_leftovers
  if ((${#notes[@]})); then
    wrong "it printed:"
    wrong "$(tail -n 5 "$tmp/out")"
    [[ ! -s $tmp/drawn ]] || wrong "$(<"$tmp/drawn")"
    wrong "and to standard error:"
    wrong "$(tail -n 15 "$tmp/err")"
    tap_not_ok "$title"
  elif [[ -n $skipped ]]; then
    tap_skip "$title" "$skipped"
  else
    tap_ok "$title"
  fi
}

# --- running ----------------------------------------------------------------------

# run COMMAND...: leaves $code, $tmp/out and $tmp/err. $input is its standard input.
run() {
  timeout -k 5 "$limit" "$@" >"$tmp/out" 2>"$tmp/err" <"${input:-/dev/null}"
  code=$?
  forget_slow_images
}

# start COMMAND...: runs it in the background, with the same files; $pid is the command itself, with the signals at
# their defaults that bash ignores for its background commands.
start() {
  timeout -k 5 "$limit" env --default-signal "$@" \
    >"$tmp/out" 2>"$tmp/err" <"${input:-/dev/null}" &
  job=$!
  await_true "the command to start" started
  pid=$(child_of "$job")
}

started() {
  [[ -n $(child_of "$job") ]] || ! kill -0 "$job" 2>/dev/null
}

# Waits for what start started.
finish() {
  { wait "$job"; } 2>/dev/null # where bash says how it was killed
  code=$?
  forget_slow_images
}

# Whether images take longer than their share is a matter of the machine: a suite that does not know of images does not see it.
forget_slow_images() {
  [[ -z ${IMAGES-} ]] || sed -i '/^causeway: note: an image of rank .*(--ckpt-every), for they may take half/d' "$tmp/err"
}

children_of() {
  cat "/proc/$1/task/$1/children" 2>/dev/null
}

# below PID: all processes that it and its descendants have started
below() {
  local one
  for one in $(children_of "$1"); do
    echo "$one"
    below "$one"
  done
}

# unit_below PID NAME: those of them that are "causeway NAME ..."
unit_below() {
  local one
  for one in $(below "$1"); do
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$one/cmdline") = causeway\ $2* ]] && echo "$one"
  done
}

child_of() {
  local all
  read -r -a all <<<"$(children_of "$1")"
  echo "${all[0]-}"
}

# await_true WHAT COMMAND...: until it succeeds; notes WHAT after 10 seconds.
await_true() {
  local what=$1 i
  shift
  for ((i = 0; i < 500; i++)); do
    "$@" && return 0
    sleep 0.02
  done
  wrong "waited in vain for $what"
  return 1
}

await_file() {
  await_true "the file ${1##*/}" test -e "$1"
}

# says COMMAND...: whether it prints anything now.
says() {
  [[ -n $("$@") ]]
}

gone() {
  ! kill -0 "$1" 2>/dev/null
}

# helper NAME COMMAND...: a process beside the test, ended after it, with the signals at their defaults. Its outputs are
# in $tmp/NAME.out and $tmp/NAME.err; $helper is its process.
helper() {
  local name=$1
  shift
  : >"$tmp/$name.out"
  timeout -k 5 120 env --default-signal "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null &
  job=$!
  helpers+=("$job")
  await_true "$name to start" started
  helper=$(child_of "$job")
}

stop_helpers() {
  local it
  for it in "${helpers[@]}"; do
    kill "$it" 2>/dev/null
    wait "$it" 2>/dev/null
  done
  helpers=()
}

# --- what is expected -------------------------------------------------------------

# expect_code CODE, or several: '1|2'
expect_code() {
  [[ $code =~ ^($1)$ ]] || wrong "expected exit code $1, saw $code"
}

# On standard error there is one line, and it matches.
expect_message() {
  local count
  count=$(grep -c . "$tmp/err")
  [[ $count = 1 ]] || wrong "expected one line on standard error, saw $count"
  grep -Eq -- "$1" "$tmp/err" || wrong "expected on standard error: $1"
}

expect_silence() {
  [[ ! -s $tmp/err ]] || wrong "expected nothing on standard error"
}

expect_out() {
  [[ $(<"$tmp/out") = "$1" ]] || wrong "expected on standard output: $1"
}

expect_out_like() {
  grep -Eq -- "$1" "$tmp/out" || wrong "expected on standard output: $1"
}

expect_err_like() {
  grep -Eq -- "$1" "$tmp/err" || wrong "expected on standard error: $1"
}

# run_expect CODE REGEX COMMAND...: the exit code, and one message that matches REGEX,
# or none when REGEX is empty.
run_expect() {
  local expected=$1 message=$2
  shift 2
  run "$@"
  expect_code "$expected"
  if [[ -n $message ]]; then
    expect_message "$message"
  else
    expect_silence
  fi
}

# --- what is left -----------------------------------------------------------------

# No process, no directory of a job, no socket. What the system kills needs a moment.
no_leftovers() {
  local pids one i
  for ((i = 0; i < 50; i++)); do
    none_marked && break
    sleep 0.02
  done
  mapfile -t pids < <(marked)
  for one in "${pids[@]}"; do
    wrong "left running: $(describe_process "$one")"
    kill -9 "$one" 2>/dev/null
  done
  for one in "$TMPDIR"/*; do
    [[ -e $one ]] || continue
    wrong "left behind: $one"
    rm -rf "$one"
  done
}

#!/bin/bash
# Jobs on several hosts whose causeway run is killed, stopped or cut off: their hosts go on (--orphan-timeout), and
# causeway run --resume takes them over, from the copy of the job's state that a host has. What all print together is
# what one job prints that nobody kills. The hosts are names of this machine. Prints TAP.
#
#   orphans.sh [REGEX]    runs the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   SEED      draws when they are killed
# shellcheck disable=SC2317,SC2154 # the tests are called by t; of lib.sh
set -u

suite="jobs that are orphaned"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-90}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
only=${1-}
find_causeway

# --- jobs -------------------------------------------------------------------------

solver=(-n 4 "$programs/solver" 120 3000 200)
long_solver=(-n 4 "$programs/solver" 120 12000 1000)
storm=(-n 4 "$programs/storm" 1500)

# What nodes say is in $work/nodes.
make_launcher() {
  printf '#!/bin/sh\nshift\nexec "$@" 2>>%s\n' "$work/nodes" >"$work/launcher"
  chmod +x "$work/launcher"
  : >"$work/nodes"
  : >"$work/all"
  : >"$work/said"
  on_two=(--launcher "$work/launcher" --host "one:2,two:2")
}

collect() {
  cat "$tmp/out" >>"$work/all"
  cat "$tmp/err" >>"$work/said"
}

# expected OPTION... COMMAND...: what it prints.
expected() {
  make_launcher
  run "${causeway[@]}" run "${on_two[@]}" --no-ckpt "$@"
  cp "$tmp/out" "$work/expected"
  expect_code 0
}

# begin OPTION... COMMAND...: starts a job that may be left alone.
begin() {
  start "${causeway[@]}" run "${on_two[@]}" --orphan-timeout 60s "$@"
}

again() {
  start "${causeway[@]}" run --resume - "$@"
}

kill_dispatcher() {
  kill -9 "$pid"
  finish
  collect
}

has_printed() {
  (($(wc -l <"$tmp/out") >= $1)) || gone "$pid"
}

has_images() {
  (($(grep -c 'is stored at' "$tmp/err") >= $1)) || gone "$pid"
}

has_said() {
  grep -q "$1" "$tmp/err" || gone "$pid"
}

# The job has ended as it would have.
expect_whole() {
  finish
  collect
  expect_code 0
  diff <(sort "$work/expected") <(sort "$work/all") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
  expect_nodes
}

expect_nodes() {
  [[ ! -s $work/nodes ]] || wrong "nodes say: $(<"$work/nodes")"
}

# --- killed -----------------------------------------------------------------------

# killed OPTION...: after some output, each time more.
killed() {
  expected "${solver[@]}"
  begin "$@" "${solver[@]}"
  await_true "output" has_printed 2
  kill_dispatcher
  again
  await_true "more output" has_printed 3
  kill_dispatcher
  again
  expect_whole
}

killed_with_images() {
  expected "${long_solver[@]}"
  begin --verbose --ckpt-every 100ms "$@" "${long_solver[@]}"
  await_true "images" has_images 6
  await_true "output" has_printed 2
  kill_dispatcher
  again --verbose
  expect_whole
  expect_err_like "repeated|restored"
}

killed_often() {
  local times=0
  expected "${storm[@]}"
  begin --verbose "$@" "${storm[@]}"
  await_true "MPI_Init" has_said "has called MPI_Init"
  while ((times < 5)) && ! gone "$pid"; do
    sleep "0.$((RANDOM % 8 + 1))"
    gone "$pid" && break
    ((times++))
    kill_dispatcher
    again --verbose
    await_true "the job to go on" has_said "is started again\|are started again"
  done
  expect_whole
}

# The keeper of the copy is killed: there is another one before anything else is done.
keeper_killed() {
  expected "${solver[@]}"
  begin --verbose --no-ckpt --channel off "${solver[@]}"
  await_true "output" has_printed 2
  kill -9 "$(keeper)"
  await_true "another copy" has_copies 2
  kill_dispatcher
  again
  finish
  collect
  expect_code 0
  grep -q "the state of the job is not copied there any more" "$work/said" || wrong "nobody says that the copy was lost"
  diff <(sort "$work/expected") <(sort "$work/all") >"$work/diff" || wrong "$(head -n 20 "$work/diff")"
}

keeper() {
  local one
  for one in $(below "$pid"); do
    grep -qz -- --keep "/proc/$one/cmdline" 2>/dev/null && echo "$one"
  done | tail -n 1
}

has_copies() {
  (($(grep -c "has a copy of the state" "$tmp/err") >= $1)) || gone "$pid"
}

# --- left alone -------------------------------------------------------------------

# left_alone OPTION...: nobody comes, and all ends by itself, and says so.
left_alone() {
  make_launcher
  begin --orphan-timeout 1s --host-timeout 500ms "$@" -n 4 "$actor" init lines=2,20 "await=$work/never" finalize
  await_true "output" has_printed 8
  kill_dispatcher
  await_true "the end of all" none_marked
  (($(grep -c "nothing was heard of causeway run for .*the job ends here" "$work/nodes") == 2)) || wrong "nodes say: $(<"$work/nodes")"
  refused 1 "on this host there is no state of such a job" "${causeway[@]}" run --resume -
  rm -rf "$TMPDIR"/causeway-*
}

# Without the option all ends with causeway run, as ever.
not_left_alone() {
  make_launcher
  start "${causeway[@]}" run "${on_two[@]}" --host-timeout 500ms -n 4 "$actor" init lines=2,20 "await=$work/never" finalize
  await_true "output" has_printed 8
  kill_dispatcher
  await_true "the end of all" none_marked
  refused 1 "on this host there is no state of such a job" "${causeway[@]}" run --resume -
  rm -rf "$TMPDIR"/causeway-*
}

lives() {
  make_launcher
  begin --no-ckpt -n 4 "$actor" init lines=2,20 "await=$work/go" finalize
  await_true "output" has_printed 8
  timeout 20 "${causeway[@]}" run --resume - 2>"$work/err"
  grep -q "its causeway run lives: it was heard" "$work/err" || wrong "$(cat "$work/err")"
  touch "$work/go"
  finish
  expect_code 0
}

# --- refused ----------------------------------------------------------------------

# refused CODE TEXT COMMAND...
refused() {
  run "${@:3}"
  expect_code "$1"
  expect_err_like "$2"
}

options_refused() {
  local try=("${causeway[@]}" run --host "one,two" --orphan-timeout 1m)
  refused 2 "not with --relay-at cluster" "${try[@]}" --relay-at cluster --no-ckpt true
  refused 2 "not with --log-copies" "${try[@]}" --log-copies 1 --no-ckpt true
  refused 2 "not with --no-log" "${try[@]}" --no-log true
  refused 2 "not with --resume-timeout 0" "${try[@]}" --resume-timeout 0 --no-ckpt true
  refused 2 "not with --stage" "${try[@]}" --stage --no-ckpt true
  refused 2 "give --ckptsrv HOST, or --no-ckpt" "${try[@]}" true
  refused 2 "for a job on several machines" "${causeway[@]}" run --orphan-timeout 1m --no-ckpt true
  refused 2 "at most 1h" "${try[@]}" --orphan-timeout 2h --no-ckpt true
}

lib_start
say_seed
before_test() { seed_draws "$1"; }
t "causeway run is killed, twice" killed --no-ckpt --channel off
t "... where ranks share channel memory" killed --no-ckpt --channel on
t "... with --log-safety file" killed --no-ckpt --channel off --log-safety file
t "... where ranks have images" killed_with_images --ckptsrv two --channel off
t "... and share channel memory" killed_with_images --ckptsrv two --channel on
t "causeway run is killed again and again" killed_often --no-ckpt --channel off
t "... where ranks share channel memory, again and again" killed_often --no-ckpt --channel on
t "the keeper of the copy is killed" keeper_killed
t "nobody comes" left_alone --no-ckpt --channel off
t "... where ranks share channel memory, and have images" left_alone --ckptsrv two --channel on
t "without --orphan-timeout all ends" not_left_alone
t "a job whose causeway run lives" lives
t "options that do not go together" options_refused
tap_end

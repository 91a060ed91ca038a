# shellcheck shell=bash
# What it costs that sessions may be resumed, which means that what was sent is kept until it is acknowledged: a
# section of bench.sh, which sources this after lib.sh.
#
# Environment: SESSION_ROUNDS (default 2 RUNS + 1)

# shellcheck disable=SC2154 # bench.sh sets RUNS, programs and dir

SESSION_ROUNDS=${SESSION_ROUNDS:-$((2 * RUNS + 1))}
SESSION_JOBS="1:20000 65536:8000 1048576:800" # bytes and round trips

# Appends "JOB MICROSECONDS", one way, to the samples of MODE, or "-" where there are none: session_once MODE
session_once() {
  local mode=$1 job timeout=()
  [ "$mode" = kept ] || timeout=(--resume-timeout 0)
  for job in $SESSION_JOBS; do
    if ! ours 2 --relay "$(relay_address)" --key-file "$dir/session.key" ${timeout[@]+"${timeout[@]}"} \
      "$programs/pingpong" "${job#*:}" "${job%:*}" >"$dir/out"; then
      uncounted "sessions, series \"$mode\" at ${job%:*} B"
      echo "pingpong -" >"$dir/out"
    fi
    awk -v job="$job" '$1 == "pingpong" { print job, $2 }' "$dir/out" >>"$dir/session.$mode"
  done
}

# session_rows NAME ADDRESS [OPTION...]: of a relay
session_rows() {
  local name=$1 job
  shift
  start_relay "$@" --key-file "$dir/session.key"
  rm -f "$dir"/session.{none,kept,again}
  take_turns "$SESSION_ROUNDS" "none kept again" session_once
  end_relay
  {
    sed 's/^/none./' "$dir/session.none"
    sed 's/^/kept./' "$dir/session.kept"
    ratios "$dir/session.kept" "$dir/session.none" | sed 's/^/by./'
    ratios "$dir/session.again" "$dir/session.none" | sed 's/^/equal./'
  } >"$dir/session"
  for job in $SESSION_JOBS; do
    row "$dir/session" "sessions, $name at ${job%:*} B" "$name" "${job%:*}" "=quartiles none.$job 2" \
      "=quartiles kept.$job 2" "=quartiles by.$job 2" "=quartiles equal.$job 2"
  done
}

sessions() {
  title "Sessions that may be resumed: one way, 2 ranks, $SESSION_ROUNDS rounds"
  table l:connection bytes "cannot us" "may be resumed us" "ratio (goal: at most 1.03)" "cannot / cannot"
  session_rows rings "unix:$dir/relay"
  session_rows "Unix socket" "unix:$dir/relay" --rings off
  session_rows TCP tcp:127.0.0.1:0
}

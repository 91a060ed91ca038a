# shellcheck shell=bash
# Prints TAP (Test Anything Protocol). A suite sets $suite, calls tap_ok, tap_not_ok or tap_skip once for each
# test, and ends with tap_end. What went wrong in a test is noted before by wrong.

suite=${suite:-tests}
tap_count=0
tap_failed=0
notes=()

# wrong TEXT...: a reason for which the test fails
wrong() {
  notes+=("$*")
}

tap_ok() {
  echo "ok $((++tap_count)) - $suite: $*"
}

# tap_not_ok TITLE: with at most 60 lines of the notes
tap_not_ok() {
  echo "not ok $((++tap_count)) - $suite: $*"
  printf '%s\n' "${notes[@]}" | head -n 60 | cut -c1-400 | sed 's/^/# /'
  tap_failed=1
}

# tap_skip TITLE WHY
tap_skip() {
  echo "ok $((++tap_count)) - $suite: $1 # SKIP $2"
}

# tap_result TITLE: passed when nothing was noted since the last result
tap_result() {
  if ((${#notes[@]})); then
    tap_not_ok "$1"
  else
    tap_ok "$1"
  fi
  notes=()
}

tap_end() {
  ((tap_count)) || [[ -z ${DRAW-} ]] || tap_skip "all of it" "no test was drawn"
  echo "1..$tap_count"
  exit "$tap_failed"
}

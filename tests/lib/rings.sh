# shellcheck shell=bash
# Shared by the suites of relays that come back: jobs whose events are counted while they run, and whose ranks exchange
# messages until the test has seen enough. Needs system.sh and jobs.sh; a suite sets the array $job_options.

# shellcheck disable=SC2154 # of system.sh, jobs.sh and the suites

# start_told OPTION... COMMAND...: a job with its events in $tmp/events.
start_told() {
  : >"$tmp/events"
  start "${causeway[@]}" run --events "$tmp/events" "$@"
}

# How often an event was told until now.
count() {
  grep -c "\"event\":\"$1\"" "$tmp/events"
}

happened() {
  (($(count "$1") >= $2)) || gone "$pid"
}

# await_event EVENT COUNT
await_event() {
  await_true "$2 events $1" happened "$1" "$2"
}

# A job whose ranks exchange messages all the time until $work/go is there, and print then.
start_rings() {
  rm -f "$work/go"
  start_told "${job_options[@]}" "$@" "$actor" init "ring_until=$work/go" lines=200,40 ring lines=200,40 finalize
}

# Leaves in $lines how many lines such a job prints.
reference() {
  start_rings -n "$1"
  touch "$work/go"
  finish
  lines=$(wc -l <"$tmp/out")
}

# It ends well; nothing was lost, printed twice or restarted but relays, and ranks that were just connecting to one.
expect_untouched() {
  local ranks=$1 early starts
  touch "$work/go"
  finish
  expect_code 0
  expect_out_like "^rings of $ranks$"
  early=$(grep -c 'is back: it repeated 0 events' "$tmp/err")
  starts=$((ranks + early))
  [[ $(count rank_started) = "$starts" ]] || wrong "expected $starts starts of ranks, saw $(count rank_started)"
  [[ $(count rank_down) = "$early" && $(count rank_hung) = 0 ]] || wrong "expected no rank to go down"
  [[ $(wc -l <"$tmp/out") = "$lines" ]] || wrong "expected $lines lines, saw $(wc -l <"$tmp/out")"
}

# Whether no rank repeats what it did, nor is about to: of a program that looks for a file, each execution must see the
# same.
all_live() {
  local rank incarnation
  for rank in 0 1 2; do
    incarnation=$(sed -n "s/.*\"rank_started\",\"rank\":$rank,\"incarnation\":\([0-9]*\),.*/\1/p" "$tmp/events" | tail -n 1)
    ((incarnation == 1)) || grep -q "\"rank_live\",\"rank\":$rank,\"incarnation\":$incarnation," "$tmp/events" || return 1
    ! grep -q "\"rank_down\",\"rank\":$rank,\"incarnation\":$incarnation," "$tmp/events" || return 1
  done
}

# shellcheck shell=bash
# Shared by the suites of what comes back (relays, sessions, ranks from images): jobs whose events are counted while they
# run, and whose ranks exchange messages until the test has seen enough. Needs system.sh and jobs.sh; a suite may set the
# array $job_options.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh, jobs.sh and the suites

where=() # what stands before the command of a job
lines='' # how many such a job prints, where reference has found out

# start_told OPTION... COMMAND...: a job with its events in $tmp/events.
start_told() {
  : >"$tmp/events"
  start "${where[@]}" "${causeway[@]}" run --events "$tmp/events" "$@"
}

# count EVENT [RANK]: how often it was told until now, of all ranks or of one.
count() {
  grep -c "\"event\":\"$1\"${2:+,\"rank\":$2\b}" "$tmp/events"
}

# happened EVENT COUNT [RANK]: so often, or it will not any more.
happened() {
  (($(count "$1" "${3-}") >= $2)) || gone "$pid"
}

# await_event EVENT COUNT [RANK]
await_event() {
  await_true "$2 events $1" happened "$@"
}

# It goes on to its good end.
end_well() {
  touch "$work/go"
  finish
  expect_code 0
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

# rings_of RANKS [OPTION...]: such a job, whose ranks have all connected, after one that tells how many lines it prints.
rings_of() {
  reference "$1"
  start_rings -n "$@"
  await_event rank_up "$1"
}

# expect_rings RANKS: it ends well, with all that it prints, once each.
expect_rings() {
  end_well
  expect_out_like "^rings of $1$"
  [[ -z $lines || $(wc -l <"$tmp/out") = "$lines" ]] || wrong "expected $lines lines, saw $(wc -l <"$tmp/out")"
}

# It ends well; nothing was lost, printed twice or restarted but relays, and ranks that were just connecting to one.
expect_untouched() {
  local ranks=$1 early starts
  expect_rings "$ranks"
  early=$(grep -c 'is back: it repeated 0 events' "$tmp/err")
  starts=$((ranks + early))
  [[ $(count rank_started) = "$starts" ]] || wrong "expected $starts starts of ranks, saw $(count rank_started)"
  [[ $(count rank_down) = "$early" && $(count rank_hung) = 0 ]] || wrong "expected no rank to go down"
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

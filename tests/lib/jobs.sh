# shellcheck shell=bash
# Shared by the suites that run jobs of the actor (programs/actor.c), start relays, or kill ranks.
# Needs system.sh, and the command in the array $causeway. Ends with 0 when it is sourced.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh

programs=$root/build/programs # of make programs
actor=$programs/actor

# --- jobs of the actor ------------------------------------------------------------

# job RANKS STEP...: a job of the actor, in place of run's COMMAND.
job() {
  run "${causeway[@]}" run -n "$1" "$actor" "${@:2}"
}

# job_expect CODE REGEX RANKS STEP...
job_expect() {
  run_expect "$1" "$2" "${causeway[@]}" run -n "$3" "$actor" "${@:4}"
}

start_job() {
  start "${causeway[@]}" run -n "$1" "$actor" "${@:2}"
}

# expect_end CODE REGEX: of what start started.
expect_end() {
  finish
  expect_code "$1"
  expect_message "$2"
}

# Of the step pid=$work/pid.
rank_pid() {
  await_file "$work/pid.$1" && cat "$work/pid.$1"
}

now_ms() {
  echo $((${EPOCHREALTIME/[.,]/} / 1000))
}

# --- relays -----------------------------------------------------------------------

# The relay that the dispatcher $pid started.
own_relay() {
  local one
  for one in $(children_of "$pid"); do
    [[ $(tr '\0' ' ' <"/proc/$one/cmdline") = causeway\ relay* ]] && echo "$one"
  done
}

# start_named_relay NAME OPTION...: leaves its process in $helper, its first address in $address; it writes to
# $tmp/NAME.err.
start_named_relay() {
  helper "$1" "${causeway[@]}" relay "${@:2}"
  await_true "the relay to listen" grep -q 'listening on' "$tmp/$1.err"
  address=$(sed -n '1s/.*listening on \([^ ]*\).*/\1/p' "$tmp/$1.err")
}

start_relay() {
  start_named_relay relay "$@"
}

start_tcp_relay() {
  start_relay --listen tcp:127.0.0.1:0 --key-file "$work/key"
}

# --- ranks that come back ---------------------------------------------------------

restart_line='^causeway: rank [0-9]+ .*restarting it \(incarnation [0-9]+\)'
back_line='^causeway: rank [0-9]+ is back: it repeated [0-9]+ events? in [0-9.]+ s and goes on$'
delivered=0   # kills of --fault
lost=0        # processes of ranks that ended before their time, for whatever reason
restarts=0    # that `causeway run` told of
lines_wrong=0 # lines of output, too many or missing

# count_faults FILE: of --events, which is then FILE.last.
count_faults() {
  local fired downs
  fired=$(grep '"fault_fired"' "$1" 2>/dev/null | grep -vc 'stop:')
  downs=$(grep -c '"rank_down"' "$1" 2>/dev/null)
  delivered=$((delivered + fired))
  lost=$((lost + ${downs:-0}))
  [[ ! -e $1 ]] || mv -f "$1" "$1.last"
}

# expect_restarts LEAST [MOST]: standard error tells of so many, each rank's incarnations
# being 2, 3, 4, ...
expect_restarts() {
  local count
  count=$(grep -Ec -- "$restart_line" "$tmp/err")
  restarts=$((restarts + count))
  ((count >= $1)) || wrong "expected at least $1 restarts, saw $count"
  ((count <= ${2:-count})) || wrong "expected at most $2 restarts, saw $count"
  grep -E -- "$restart_line" "$tmp/err" | awk '
    match($0, /\(incarnation [0-9]+\)/) {
      number = substr($0, RSTART + 13) + 0
      if (number != (last[$3] ? last[$3] : 1) + 1) exit 1
      last[$3] = number
    }' || wrong "expected the incarnations of a rank to be 2, 3, 4, ..."
}

# Nothing else is on standard error.
expect_only_restarts() {
  local other
  other=$(grep -Ev -- "$restart_line|$back_line" "$tmp/err" | head -n 3)
  [[ -z $other ]] || wrong "expected nothing else on standard error than restarts, saw: $other"
}

# expect_lines FILE SEEN: the lines of SEEN are those of FILE, neither more nor fewer.
expect_lines() {
  local differences count
  differences=$(diff "$1" "$2")
  count=$(grep -c '^[<>]' <<<"$differences")
  lines_wrong=$((lines_wrong + count))
  [[ -z $differences ]] || wrong "$count lines are wrong or missing, as: $(head -n 5 <<<"$differences")"
}

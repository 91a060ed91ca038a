# shellcheck shell=bash
# Shared by the suites of jobs whose ranks have images taken: what has happened, by the events of the job, crashes, and
# checkpoint servers. Needs system.sh and jobs.sh, and the command in the array $causeway.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some are of system.sh

# shellcheck source=tests/lib/rings.sh
. "$root/tests/lib/rings.sh"

often=(--ckpt-every 100ms --max-restarts 1000)
server=()  # processes of servers that serve started, by number
address=() # of these
server_job=()

# --- what has happened ------------------------------------------------------------

# await_more COUNT NAME [RANK]
await_more() {
  await_event "$2" $(($(count "$2" "${3-}") + $1)) "${3-}"
}

# The process of a rank that was started last.
rank_process() {
  grep "\"rank_started\",\"rank\":$1\\b" "$tmp/events" | tail -n 1 | sed 's/.*"pid":\([0-9]*\).*/\1/'
}

# A rank dies, and goes on again.
crash() {
  local before
  before=$(count rank_live)
  kill -9 "$(rank_process "$1")"
  await_event rank_live $((before + 1))
}

# The checkpoint server of the job of the dispatcher $pid.
own_server() {
  unit_below "$pid" ckptsrv
}

has_own_server() {
  [[ -n $(own_server) ]] || gone "$pid"
}

# expect_lines COUNT REGEX: on standard error
expect_lines() {
  local count
  count=$(grep -Ec -- "$2" "$tmp/err")
  ((count == $1)) || wrong "expected $1 lines on standard error, saw $count: $2"
}

expect_event() {
  (($(count "$1") >= ${2-1})) || wrong "expected ${2-1} events $1, saw $(count "$1")"
}

expect_no_event() {
  (($(count "$1") == 0)) || wrong "expected no event $1: $(grep -m 1 "\"$1\"" "$tmp/events")"
}

# --- jobs -------------------------------------------------------------------------

# ask_now: images of all ranks, by hand; what it prints is in $work/now.
ask_now() {
  "${causeway[@]}" ckpt now "$pid" >"$work/now" 2>&1
}

# --- checkpoint servers -----------------------------------------------------------

# serve NUMBER [OPTION...]: starts a checkpoint server on a socket, or on $tcp_port; leaves it in ${server[NUMBER]}.
serve() {
  local of_job=${job-}
  helper "server$1" "${causeway[@]}" ckptsrv --dir "$work/images$1" --listen "${address[$1]-unix:$work/s$1}" \
    --key-file "$work/key" "${@:2}"
  server[$1]=$helper
  server_job[$1]=$job
  job=$of_job # that finish waits for
  await_true "server $1 to listen" listens "$1"
  address[$1]=$(sed -n '1s/.*listening on \([^ ,]*\).*/\1/p' "$tmp/server$1.err")
}

listens() {
  grep -q 'listening on' "$tmp/server$1.err"
}

make_key() {
  head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$1"
  echo >>"$1"
  chmod 600 "$1"
}

# kill_server NUMBER: waits until it has left its directory.
kill_server() {
  kill -9 "${server[$1]}"
  { wait "${server_job[$1]}"; } 2>/dev/null # where bash says how it was killed
  await_true "server $1 to be gone" gone "${server[$1]}"
}

before_test() {
  where=()
  lines=''
  server=()
  address=()
}

# The process that starts those of the ranks.
node() {
  local one
  for one in $(children_of "$pid"); do
    [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$one/cmdline") = *\ node\ * ]] && echo "$one"
  done
}

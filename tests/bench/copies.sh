# shellcheck shell=bash
# What copies of relays' logs on other hosts cost, and what they save: sections of bench.sh, which sources this after lib.sh,
# tests/hosts.sh and hosts.sh.
#
# Environment: COPIES_ROUNDS (default RUNS), COPIES_OPTIONS (of all jobs but stock's, "--no-ckpt"), COPIES_LOST_ROUNDS (of
#   jobs that lose hosts, 3), COPIES_LOSSES (of hosts, "0 1 2 3 4")

# shellcheck disable=SC2154 # bench.sh sets RUNS, programs and dir; tests/hosts.sh the names that begin with hosts_

COPIES_ROUNDS=${COPIES_ROUNDS:-$RUNS}
COPIES_OPTIONS=${COPIES_OPTIONS---no-ckpt}
COPIES_LOST_ROUNDS=${COPIES_LOST_ROUNDS:-3}
COPIES_LOSSES=${COPIES_LOSSES:-0 1 2 3 4}
COPIES_JOBS="1:4000 65536:2000 1048576:200" # bytes and round trips
COPIES_SIZES="1 65536 1048576"              # of NetPIPE
COPIES_FIRST_S=3                             # until the first host is lost ...
COPIES_NEXT_S=2                              # ... and the next one, when all are live again
COPIES_SOLVER_S=30                           # of the solver, without a loss
COPIES_TRY=4000                              # iterations whose time is taken
COPIES_ALLTOALL="40 65536"                   # rounds, and bytes for each rank

# copies_job HOSTS RANKS OPTION... COMMAND...: on the first HOSTS hosts, with a log
copies_job() {
  local names ranks=$2
  names=$(hosts_list | head -n "$1" | awk -v slots="$ranks" '{ printf "%s%s:%d", (NR > 1 ? "," : ""), $1, slots }')
  shift 2
  # shellcheck disable=SC2086 # several options
  timeout -k 5 "${stock_limit:-120}" "$causeway" run --host "$names" --launcher-args "-F $hosts_config" --wdir /tmp \
    $COPIES_OPTIONS -n "$ranks" "$@" 2>"$dir/stats" </dev/null && ! grep -q 'can no longer be restarted' "$dir/stats"
}

# --- messages ---------------------------------------------------------------------------------------

# Two ranks on two hosts: without copies; with them at each other's host; at a third one, which is there without also.
copies_two_off() { copies_job 2 "$1" --map-by node --log-copies 0 "${@:2}"; }
copies_two_on() { copies_job 2 "$1" --map-by node --log-copies 1 "${@:2}"; }
copies_third_off() { copies_job 3 "$1" --map-by node --spares 1 --log-copies 0 "${@:2}"; }
copies_third_on() { copies_job 3 "$1" --map-by node --spares 1 --log-copies 1 "${@:2}"; }
# Both on one host, with their copies on another one.
copies_one_off() { copies_job 2 "$1" --spares 1 --log-copies 0 "${@:2}"; }
copies_one_on() { copies_job 2 "$1" --spares 1 --log-copies 1 "${@:2}"; }

# copies_ping_once RUNNER: appends "BYTES MICROSECONDS", one way, to its samples, or "-" where there are none
copies_ping_once() {
  local job
  for job in $COPIES_JOBS; do
    if ! "$1" 2 "$programs/pingpong" "${job#*:}" "${job%:*}" >"$dir/out"; then
      uncounted "copies, $1 at ${job%:*} B"
      echo "pingpong -" >"$dir/out"
    fi
    awk -v bytes="${job%:*}" '$1 == "pingpong" { print bytes, $2 }' "$dir/out" >>"$dir/copies.$1"
  done
}

# copies_samples NAME...: those of NAME_off and NAME_on, and their ratios, into $dir/copies
copies_samples() {
  local name
  for name in "$@"; do
    sed "s/^/$name.off./" "$dir/copies.copies_${name}_off"
    sed "s/^/$name.on./" "$dir/copies.copies_${name}_on"
    ratios "$dir/copies.copies_${name}_on" "$dir/copies.copies_${name}_off" | sed "s/^/$name.by./"
    ratios "$dir/copies.copies_${name}_off" "$dir/copies.copies_${name}_on" | sed "s/^/$name.band./"
  done >"$dir/copies"
}

copies_ping() {
  local job name bytes
  declare -A where=([two]="two hosts, each other's backups" [third]="two hosts, backup on a third" [one]="one host, backup on another")
  title "Copies of the log: a message one way, 2 ranks, with copies against without, $COPIES_ROUNDS rounds"
  bench_hosts 3 "messages with copies of the log" || return
  rm -f "$dir"/copies.*
  take_turns "$COPIES_ROUNDS" "copies_two_off copies_two_on copies_third_off copies_third_on copies_one_off copies_one_on" \
    copies_ping_once
  hosts_down
  copies_samples two third one
  table l:ranks bytes "without us" "with us" "time, with / without" "bandwidth, with / without"
  for name in two third one; do
    for job in $COPIES_JOBS; do
      bytes=${job%:*}
      row "$dir/copies" "copies, $name at $bytes B" "${where[$name]}" "$bytes" "=quartiles $name.off.$bytes 2" \
        "=quartiles $name.on.$bytes 2" "=quartiles $name.by.$bytes 2" "=quartiles $name.band.$bytes 2"
    done
  done
}

# copies_net_once RUNNER: as hosts_net_once
copies_net_once() {
  # shellcheck disable=SC2034 # which hosts_net_once reads
  local HOSTS_SIZES=$COPIES_SIZES
  hosts_net_once "$1"
}

copies_net() {
  local runner bytes
  title "NetPIPE (NPmpich2) between two hosts, with copies of the log: one way, $COPIES_ROUNDS rounds"
  bench_hosts 2 "NetPIPE with copies of the log" || return
  rm -f "$dir"/hosts.*
  take_turns "$COPIES_ROUNDS" "stock_hosts copies_two_off copies_two_on" copies_net_once
  hosts_down
  for runner in copies_two_off copies_two_on; do
    ratios "$dir/hosts.$runner" "$dir/hosts.stock_hosts" >"$dir/hosts.by_$runner"
  done
  for runner in stock_hosts copies_two_off copies_two_on by_copies_two_off by_copies_two_on; do
    awk -v runner="$runner" '{ print runner "." $1, $2 }' "$dir/hosts.$runner"
  done >"$dir/hosts"
  echo "Microseconds. Stock is MPICH over TCP; each host has one rank and one relay, which is the other one's backup."
  table bytes "stock" "logged" "with copies" "logged / stock" "with copies / stock"
  for bytes in $COPIES_SIZES; do
    row "$dir/hosts" "NetPIPE with copies at $bytes B" "$bytes" "=quartiles stock_hosts.$bytes 2" \
      "=quartiles copies_two_off.$bytes 2" "=quartiles copies_two_on.$bytes 2" "=quartiles by_copies_two_off.$bytes 2" \
      "=quartiles by_copies_two_on.$bytes 2"
  done
}

# --- losses of hosts --------------------------------------------------------------------------------

# copies_lose COUNT: node1 to nodeCOUNT are lost, each when the ranks of the one before are live again, and all logs have
# copies; a line with the time of each
copies_lose() {
  local i
  sleep "$COPIES_FIRST_S"
  for ((i = 1; i <= $1; i++)); do
    echo "$EPOCHREALTIME"
    host_kill "$i"
    until copies_are_back "$i"; do sleep 0.2; done
    sleep "$COPIES_NEXT_S"
  done
}

# copies_are_back LOST: of so many hosts
copies_are_back() {
  jq -es --argjson lost "$1" '([.[] | select(.event == "rank_live" and .incarnation > 1)] | length) >= 4 * $lost and
    ([.[] | select(.event == "relay_moved")] | length) >= $lost and
    ([.[] | select(.event == "covered" or .event == "uncovered" or .event == "relay_moved")] | group_by(.number)
      | all(last.event == "covered"))' "$dir/events" >"$dir/back" 2>&1
}

# Seconds from each loss until the last rank is live again: copies_live KILLED..., each in seconds since 1970
copies_live() {
  printf '%s\n' "$@" | jq -s --slurpfile events "$dir/events" -r '
    def at: (.time | sub("\\.[0-9]+Z"; "Z") | fromdateiso8601) + (.time | capture("\\.(?<f>[0-9]+)Z").f | "0.\(.)" | tonumber);
    . as $killed | [$events[] | select(.event == "rank_live" and .incarnation > 1) | at] as $live
    | range(length) | $killed[.] as $from | ($killed[. + 1] // infinite) as $until
    | [$live[] | select(. >= $from and . < $until)] | if length == 0 then error("no rank is live again") else max - $from end'
}

copies_lost_job() {
  copies_job 8 16 --ppn 4 --spares 4 --host-timeout 1s "$@"
}

# Iterations that take COPIES_SOLVER_S
copies_count() {
  copies_lost_job --log-copies 0 "$programs/solver" 256 "$COPIES_TRY" 0 time |
    awk -v tried="$COPIES_TRY" -v want="$COPIES_SOLVER_S" '$1 == "time" { printf "%d\n", tried * want / $2 }'
}

# copies_lost_once COPIES LOSSES: appends "COPIES.LOSSES SECONDS" of the whole job, and "live.LOSSES SECONDS" of each loss.
# The solver makes $count iterations.
copies_lost_once() {
  local took loser=0 run=$1.$2
  local -a killed=()
  for loser in 1 2 3 4; do host_start "$loser"; done
  rm -f "$dir/events" "$dir/killed"
  copies_lose "$2" >"$dir/killed" &
  loser=$!
  if timed copies_lost_job --log-copies "$1" --events "$dir/events" "$programs/solver" 256 "$count" "$count" >"$dir/out"; then
    kill "$loser" 2>/dev/null
    wait "$loser" 2>/dev/null
    mapfile -t killed <"$dir/killed"
    ((${#killed[@]} == $2)) || { echo "the job ended before all its hosts were lost" >>"$dir/stats" && return 1; }
    echo "$run $took" >>"$dir/copies"
    (($2 == 0)) || copies_live "${killed[@]}" 2>>"$dir/stats" | sed "s/^/live.$2 /" >>"$dir/copies"
  else
    kill "$loser" 2>/dev/null
    wait "$loser" 2>/dev/null
    return 1
  fi
}

copies_lost() {
  local losses count
  title "A solver of 16 ranks on 4 hosts, copies of the log, 4 spare hosts, --host-timeout 1s: losses of hosts, $COPIES_LOST_ROUNDS rounds"
  bench_hosts 8 "losses of hosts with copies of the log" || return
  : >"$dir/copies"
  if count=$(copies_count) && [ -n "$count" ]; then
    take_turns "$COPIES_LOST_ROUNDS" "0 1" copies_round 0
    for losses in $COPIES_LOSSES; do
      ((losses == 0)) || rounds "$COPIES_LOST_ROUNDS" "$losses losses of hosts" copies_lost_once 1 "$losses"
    done
  fi
  hosts_down
  table "hosts lost" "s, without copies" "s, with copies" "with / without a loss, without copies" "s from a loss until all are live"
  copies_lost_rows
}

# copies_round COPIES LOSSES
copies_round() {
  copies_lost_once "$1" "$2" || uncounted "a solver, copies $1, losses of hosts $2"
}

copies_lost_rows() {
  local losses live without
  without=$(median 0.0 "$dir/copies")
  for losses in $COPIES_LOSSES; do
    live=-
    ((losses == 0)) || live="=quartiles live.$losses 2"
    sampled "$dir/copies" "1.$losses" || { missing "a solver that loses $losses hosts" && continue; }
    row "$dir/copies" "a solver that loses $losses hosts" "$losses" \
      "$( ((losses == 0)) && figure quartiles 0.0 "$dir/copies" 2 || echo -)" "=quartiles 1.$losses 2" \
      "$(ratio "$(median "1.$losses" "$dir/copies")" "$without")" "$live"
  done
}

# --- bytes on the network ---------------------------------------------------------------------------

# bytes that hosts 1 to COUNT have sent: copies_sent COUNT
copies_sent() {
  local i
  for ((i = 1; i <= $1; i++)); do
    on_host "$i" cat /sys/class/net/eth0/statistics/tx_bytes
  done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# copies_bytes_once COPIES NAME COMMAND...: appends "NAME.COPIES MB" that all hosts have sent meanwhile
copies_bytes_once() {
  local before
  before=$(copies_sent 4)
  if copies_job 4 16 --ppn 4 --log-copies "$1" "${@:3}" >"$dir/out"; then
    echo "$2.$1 $(awk -v a="$before" -v b="$(copies_sent 4)" 'BEGIN { print (b - a) / 1e6 }')" >>"$dir/copies"
  else
    uncounted "bytes on the network, $2, copies $1"
  fi
}

copies_bytes() {
  local name
  title "Bytes on the network, 16 ranks on 4 hosts, with copies of the log against without: MB that all hosts send, $COPIES_ROUNDS rounds"
  bench_hosts 4 "bytes on the network with copies of the log" || return
  : >"$dir/copies"
  take_turns "$COPIES_ROUNDS" "0 1" copies_bytes_once solver "$programs/solver" 256 2000 2000
  # shellcheck disable=SC2086 # two numbers
  take_turns "$COPIES_ROUNDS" "0 1" copies_bytes_once alltoall "$programs/alltoall" $COPIES_ALLTOALL
  hosts_down
  table l:program "without MB" "with MB" "with / without"
  for name in solver alltoall; do
    sampled "$dir/copies" "$name.0" "$name.1" || { missing "bytes on the network, $name" && continue; }
    row "$dir/copies" "bytes, $name" "$name" "=spread $name.0 1" "=spread $name.1 1" \
      "$(ratio "$(median "$name.1" "$dir/copies")" "$(median "$name.0" "$dir/copies")")"
  done
}

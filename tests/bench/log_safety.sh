# shellcheck shell=bash
# What it costs that a relay comes back from its log, and how fast it does: sections of bench.sh, which sources this
# after lib.sh.
#
# Environment: SAFETY_ROUNDS (default 2 RUNS + 1), SAFETY_RANKS (of a job whose relay is killed, 16)

# shellcheck disable=SC2154 # bench.sh sets RUNS, programs and dir; log_disk.sh LOG_DISK_DIR

SAFETY_ROUNDS=${SAFETY_ROUNDS:-$((2 * RUNS + 1))}
SAFETY_RANKS=${SAFETY_RANKS:-16}
SAFETY_JOBS="1:20000 65536:8000 1048576:500" # bytes and round trips
SAFETY_KILLS=3                                # of one relay in a job

# Appends "JOB MICROSECONDS", one way, to the samples of MODE, or "-" where there are none: safety_once MODE
safety_once() {
  local mode=$1 job
  for job in $SAFETY_JOBS; do
    if ! logged 2 --no-ckpt --log-safety "${mode/again/memory}" "$programs/pingpong" "${job#*:}" "${job%:*}" >"$dir/out"; then
      uncounted "log safety, series \"$mode\" at ${job%:*} B"
      echo "pingpong -" >"$dir/out"
    fi
    awk -v job="$job" '$1 == "pingpong" { print job, $2 }' "$dir/out" >>"$dir/safety.$mode"
  done
}

log_safety() {
  local job
  title "A log that outlives its relay: one way, 2 ranks, a relay for each job, $SAFETY_ROUNDS rounds"
  table bytes "memory us" "file us" "ratio (goal: at most 1.05 at 1 B, 1.15 at 64 KB)" "memory / memory"
  rm -f "$dir"/safety.*
  take_turns "$SAFETY_ROUNDS" "memory file again" safety_once
  {
    sed 's/^/memory./' "$dir/safety.memory"
    sed 's/^/file./' "$dir/safety.file"
    ratios "$dir/safety.file" "$dir/safety.memory" | sed 's/^/by./'
    ratios "$dir/safety.again" "$dir/safety.memory" | sed 's/^/equal./'
  } >"$dir/safety"
  for job in $SAFETY_JOBS; do
    row "$dir/safety" "log safety at ${job%:*} B" "${job%:*}" "=quartiles memory.$job 2" "=quartiles file.$job 2" \
      "=quartiles by.$job 2" "=quartiles equal.$job 2"
  done
}

# Appends "up MS" and "resumed MS", from the end of a relay's process, for each kill of the job's relay.
safety_times() {
  jq -rn 'reduce inputs as $e ({out: []};
      if $e.event == "relay_down" then .down = $e.t
      elif $e.event == "relay_up" then .out += ["up \(($e.t - .down) * 1000)"]
      elif $e.event == "session_resumed" and .down then .out += ["resumed \(($e.t - .down) * 1000)"]
      else . end) | .out[]' "$dir/events"
}

# safety_kills NAME RANKS FIRST COMMAND...: kills every 2 s, from FIRST seconds on
safety_kills() {
  local name=$1 ranks=$2 first=$3 i faults=()
  shift 3
  for ((i = 0; i < SAFETY_KILLS; i++)); do
    faults+=(--fault "kill:relay@$((first + 2 * i))s")
  done
  rm -f "$dir/events"
  if logged "$ranks" --no-ckpt --log-safety file --events "$dir/events" "${faults[@]}" "$@" >"$dir/out"; then
    safety_times | sed "s/^/$name./" >>"$dir/back"
  else
    uncounted "a relay that comes back, $name"
  fi
}

# Tokens go around in a ring until all kills were.
safety_ranks() {
  local ender
  rm -f "$dir/go"
  (sleep $((2 * SAFETY_KILLS + 2)) && touch "$dir/go") &
  ender=$!
  safety_kills ranks "$SAFETY_RANKS" 2 "$programs/actor" init "ring_until=$dir/go" finalize
  wait "$ender"
}

# Small messages: all of their log is read.
safety_log() {
  local seconds=$((2 * SAFETY_KILLS + 10))
  safety_kills log 2 8 "$programs/volume" 1024 0 "$seconds" && awk '$1 == "volume" { print "log.mb", $3 }' "$dir/out" >>"$dir/back"
}

relay_back() {
  local name
  title "A relay that is killed and comes back: $RUNS jobs, $SAFETY_KILLS kills in each"
  rm -f "$dir/back"
  touch "$dir/back"
  rounds "$RUNS" "$SAFETY_RANKS ranks" safety_ranks
  rounds "$RUNS" "a full log" safety_log
  table l:job "ms until it listens" "ms until the dispatcher's session goes on"
  for name in ranks log; do
    row "$dir/back" "a relay that comes back, $name" "$name" "=quartiles $name.up 1" "=quartiles $name.resumed 1"
  done
  echo
  echo "ranks: $SAFETY_RANKS of them. log: 2 ranks that send messages of 1 KiB at full speed, $(median log.mb "$dir/back") MB"
  echo "in all. Until it listens a new process is started and reads its log (goal: below 200 ms, and 1 s for each GB)."
}

# --- when the machine loses power -------------------------------------------------------------------------------------

SYNC_CLIENTS="1 8 64" # pairs of ranks, each with one message on its way
SYNC_SECONDS=${SYNC_SECONDS:-3}

# how many pages a second reach the disk, one after the other, in a file that is there already
sync_probe() {
  local probe=$dir_on_disk/probe
  dd if=/dev/zero of="$probe" bs=1M count=16 conv=fsync 2>/dev/null
  LC_ALL=C dd if=/dev/zero of="$probe" bs=4k count=4096 conv=notrunc oflag=direct,dsync 2>&1 |
    awk '/copied/ { printf "fsyncs %.0f\n", $1 / 4096 / $(NF - 3); found = 1 } END { exit !found }' >>"$dir/sync"
  rm -f "$probe"
}

# sync_job PAIRS: over the relay that runs
sync_job() {
  timeout -k 5 60 "$causeway" run --no-ckpt --relay "$(relay_address)" --key-file "$dir/key" -n $((2 * $1)) \
    "$programs/message_rate" "$SYNC_SECONDS" >"$dir/out" 2>"$dir/stats" </dev/null || return 1
  awk -v clients="$1" '$1 == "message_rate" { print "rate." clients, $2; found = 1 } END { exit !found }' \
    "$dir/out" >>"$dir/sync"
}

sync_round() {
  local clients
  sync_probe || uncounted "the disk's rate"
  start_relay "unix:$dir/relay" --key-file "$dir/key" --log-safety sync --log-dir "$dir_on_disk/log"
  for clients in $SYNC_CLIENTS; do
    sync_job "$clients" || uncounted "sync, $clients clients"
  done
  end_relay
}

sync_rate() {
  local clients by dir_on_disk
  title "A log that survives the loss of power: messages of 1 B, medians of $RUNS rounds"
  dir_on_disk=$(mktemp -d "$LOG_DISK_DIR/cwbench.XXXXXX") || {
    missing "sync: there is no directory on a disk"
    return
  }
  rm -f "$dir/sync"
  rounds "$RUNS" "a round of sync" sync_round
  rm -rf "$dir_on_disk"
  table clients "messages/s" "writes of a page to the disk/s" "ratio"
  for clients in $SYNC_CLIENTS; do
    by=$(ratio "$(median "rate.$clients" "$dir/sync")" "$(median fsyncs "$dir/sync")")
    row "$dir/sync" "sync, $clients clients" "$clients" "=median rate.$clients" "=median fsyncs" "$by"
  done
  echo
  echo "A client is a pair of ranks with one message on its way."
}

# shellcheck shell=bash
# What recovery costs and how fast it is: sections of bench.sh, which sources this after lib.sh.
#
# Environment: LOG_ROUNDS (with and without the log, default 8 RUNS + 1), RING_SECONDS (first
#   execution of the token ring, 5), RING_BYTES (its token, 64), SOLVER_SECONDS (5), SOLVER_SIZE (512),
#   SOLVER_RUNS (3), KILLS_MAX (10)

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir
# shellcheck disable=SC2016 # the dollars in single quotes are jq's

LOG_ROUNDS=${LOG_ROUNDS:-$((8 * RUNS + 1))}
RING_SECONDS=${RING_SECONDS:-5}
RING_BYTES=${RING_BYTES:-64}
RING_RANKS=8
SOLVER_SECONDS=${SOLVER_SECONDS:-5}
SOLVER_SIZE=${SOLVER_SIZE:-512}
SOLVER_RUNS=${SOLVER_RUNS:-3}
SOLVER_RANKS=4
solver_options=(--no-ckpt) # images have a section of their own
KILLS_MAX=${KILLS_MAX:-10}

# --- what the log costs ---------------------------------------------------------------------------

# bytes and round trips, and "apart" where each rank receives into another buffer than it sends from; the log of a
# job holds both ways of all of them
LOG_JOBS="1:20000 65536:8000 65536:8000:apart 1048576:1000 1048576:1000:apart"
LOG_MEMORY=3G # more than the largest of them

# Appends "JOB MICROSECONDS", one way, to the samples of MODE, or "-" where there are none: log_once MODE JOB
log_once() {
  local mode=$1 job=$2 bytes trips apart run=(ours 2)
  IFS=: read -r bytes trips apart <<<"$job"
  case $mode in
  with) run=(logged 2 --relay "$(relay_address)") ;;
  without | again) run+=(--relay "$(relay_address)") ;;
  fresh) run=(logged 2 --channel off) ;;
  esac
  if ! "${run[@]}" "$programs/pingpong" "$trips" "$bytes" ${apart:+"$apart"} >"$dir/out"; then
    uncounted "logging, series \"$mode\" at $bytes B"
    echo "pingpong -" >"$dir/out"
  fi
  awk -v job="$job" '$1 == "pingpong" { print job, $2 }' "$dir/out" >>"$dir/log.$mode"
}

log_all() {
  local job
  for job in $LOG_JOBS; do
    log_once "$1" "$job"
  done
}

# A job that takes memory from a virtual machine's host disturbs those that come next: such jobs ("fresh")
# are a series of their own, in turns with others without the log ("beside").
log_rounds() {
  start_relay "unix:$dir/relay" --log-memory "$LOG_MEMORY"
  keep_memory
  log_all with # the first use of memory
  rm -f "$dir/log.with"
  take_turns "$LOG_ROUNDS" "without with again" log_all
  end_relay
  take_turns "$RUNS" "beside fresh" log_all
}

# A ratio is of runs of the same round.
log_row() {
  local job=$1 bytes trips apart series cells=()
  IFS=: read -r bytes trips apart <<<"$job"
  for series in without with time bandwidth equal fresh slower; do
    awk -v series="$series" '{ print series "." $1, $2 }' "$dir/log.$series"
    cells+=("=quartiles $series.$job 2")
  done >"$dir/log"
  row "$dir/log" "logging, $job: no round ended well both with and without the log" "$bytes" "${apart:-one}" \
    $((2 * trips * bytes / 1000000)) "${cells[@]}"
}

log_cost() {
  local job
  title "Logging: one way with the log and without (\`--no-log\`), 2 ranks, $LOG_ROUNDS rounds"
  echo "Microseconds and ratios: median (lower to upper quartile). In each round each size runs without the log,"
  echo "with it, and once more without, at one relay whose memory a job has used before; a ratio is"
  echo "one of runs of the same round. Buffers apart: what comes does not go to where it is sent from. The log is in"
  echo "memory, so a job sends a bounded volume. without / without: a ratio of equal things. Fresh: each job"
  echo "has a relay of its own, and the system gives it the memory page by page meanwhile; of these there are fewer rounds"
  echo "($RUNS), of their own, and their ratio is to jobs without the log in the same round."
  log_rounds
  table bytes buffers "volume MB" "without us" "with us" "time / without" "bandwidth / without" "without / without" \
    "fresh us" "time / without"
  ratios "$dir/log.with" "$dir/log.without" >"$dir/log.time"
  ratios "$dir/log.without" "$dir/log.with" >"$dir/log.bandwidth"
  ratios "$dir/log.without" "$dir/log.again" >"$dir/log.equal"
  ratios "$dir/log.fresh" "$dir/log.beside" >"$dir/log.slower"
  for job in $LOG_JOBS; do
    log_row "$job"
  done | tee "$dir/log.table"
  echo
  awk -F'|' '$2 + 0 == 1 { printf "- 1 B latency: %.2f times that without the log (goal: at most 1.10)\n", $7 }
    $2 + 0 > 1 { printf "- %d KB bandwidth%s: %.2f times (goal: at least 0.90)\n", $2 / 1024,
                   $3 ~ /apart/ ? ", buffers apart" : "", $8 }' "$dir/log.table"
}

# lines "NAME NANOSECONDS" on standard input, to samples under MODE.NAME
clock_samples() {
  awk -v mode="$1" 'NF == 2 && $2 + 0 > 0 { print mode "." $1, $2 }' >>"$dir/clock"
}

clock_once() {
  "$programs/clock_call" </dev/null >"$dir/out" 2>"$dir/stats" && clock_samples plain <"$dir/out" &&
    logged 1 "$programs/clock_call" >"$dir/out" && clock_samples ours <"$dir/out"
}

# A rank that does nothing but wait on a clock
clock_log() {
  if ! logged 1 --no-ckpt --stats "$programs/clock_call" 5 >"$dir/out"; then
    missing "the log of a loop that waits on a clock"
    return
  fi
  awk -v log_bytes="$(stats_sum log_bytes)" '$1 == "wait" { printf "\nA loop that waits for %d s on MPI_Wtime: %.2f MB " \
    "of log a second, %.3f B for each of its readings, %.1f ns.\n", $2, log_bytes / $2 / 1e6, log_bytes / $3, $2 * 1e9 / $3 }' "$dir/out"
}

clock_cost() {
  local name
  title "Clocks: nanoseconds a call, medians of $RUNS interleaved runs"
  rounds "$RUNS" "clock_call" clock_once
  if [ ! -s "$dir/clock" ]; then
    missing "clocks: clock_call printed nothing"
    return
  fi
  table l:call "plain process" "under Causeway, recorded (goal: at most 40)"
  awk '{ sub(/^[a-z]*\./, "", $1); if (!seen[$1]++) print $1 }' "$dir/clock" | while read -r name; do
    row "$dir/clock" "clocks: $name ran only one way" "$name" "=spread plain.$name 1" "=spread ours.$name 1"
  done
  clock_log
}

# payload bytes, then a smaller and a larger count of round trips; their difference leaves start and end out
LOG_MEMORY_JOBS="1:50000:250000 1024:20000:100000 20480:2000:122000"

# "MESSAGES PAYLOAD-BYTES LOG-BYTES RESIDENT-BYTES" of one job
log_memory_job() {
  local bytes=$1 trips=$2
  if ! watch_job "$causeway" run -n 2 --no-ckpt --stats "$programs/pingpong" "$trips" "$bytes" ||
    grep -q 'can no longer be restarted' "$dir/stats"; then
    uncounted "memory of the log, $bytes B"
    return 1
  fi
  echo "$(stats_sum received) $(stats_sum received 1) $(stats_sum log_bytes) $(relay_resident)"
}

log_memory_row() {
  local bytes=$1 few=$2 many=$3
  echo "$few $many" | awk -v bytes="$bytes" 'NF == 8 && $5 > $1 && $7 > $3 {
    n = $5 - $1
    printf "| %d | %d | %.1f | %.1f |\n", bytes, n, (($7 - $3) - ($6 - $2)) / n, (($8 - $4) - ($6 - $2)) / n
    found = 1 } END { exit !found }'
}

log_memory() {
  local job bytes counts few many
  title "Memory of the log for each message, beyond its payload (goal: at most 64 B)"
  echo "Two jobs of different length, the difference divided by the messages that it has more. The resident"
  echo "memory of the relay is the kernel's count, beside what the relay itself counts."
  table "payload B" messages "log, B a message" "resident, B a message"
  for job in $LOG_MEMORY_JOBS; do
    bytes=${job%%:*}
    counts=${job#*:}
    few=$(log_memory_job "$bytes" "${counts%:*}")
    many=$(log_memory_job "$bytes" "${counts#*:}")
    log_memory_row "$bytes" "$few" "$many" ||
      missing "memory of the log at $bytes bytes: the two jobs counted '$few' and '$many'"
  done
}

# --- how fast a rank comes back -------------------------------------------------------------------

# for jq: the times of an event, in seconds since the start of the job, of one incarnation
times_of='def times($event; $incarnation): [.[] | select(.event == $event and .incarnation == $incarnation) | .t];
  def fired: [.[] | select(.event == "fault_fired") | .t];
  def only($what; $count): if length == $count then . else error("\(length) of \($count) \($what)") end;'

# Samples "KEY NUMBER" from the events file of the job that ran last: from_events FILE JQ-ARGUMENTS... PROGRAM
from_events() {
  local file=$1
  shift
  jq -rs "${@:1:$#-1}" "$times_of ${!#}" "$dir/events" >"$dir/new" 2>>"$dir/stats" && cat "$dir/new" >>"$file"
}

# ring ROUNDS RANKS OPTIONS...; the events file is $dir/events
ring() {
  local rounds=$1 ranks=$2
  shift 2
  rm -f "$dir/events"
  logged "$ranks" --no-ckpt --events "$dir/events" "$@" "$programs/token_ring" "$rounds" "$RING_BYTES" >"$dir/out"
}

ring_of() {
  ring "$2" "$1"
}

# Seconds of the first execution, until the kill, and of its repetition, of as many ranks at once. Both are
# measured to the disadvantage of the repetition: the first execution begins when the last rank has
# connected, the repetition when the first one has, still inside MPI_Init, and ends with the last one.
replay_once() {
  local rounds=$1 killed=$2 faults=() rank
  for ((rank = RING_RANKS - killed; rank < RING_RANKS; rank++)); do
    faults+=(--fault "kill:$rank@$((RING_SECONDS * 600))ms")
  done
  ring "$rounds" "$RING_RANKS" "${faults[@]}" &&
    from_events "$dir/replay" --argjson killed "$killed" --argjson ranks "$RING_RANKS" '
      ((fired | only("kills"; $killed) | min)
        - (times("rank_up"; 1) | only("ranks up"; $ranks) | max)) as $first
      | ((times("rank_live"; 2) | only("ranks live again"; $killed) | max)
        - (times("rank_up"; 2) | only("ranks up again"; $killed) | min)) as $again
      | "first.\($killed) \($first)", "again.\($killed) \($again)", "faster.\($killed) \($first / $again)"'
}

replay_speed() {
  local trips killed
  title "Replay: token ring of $RING_RANKS ranks, tokens of $RING_BYTES B, medians of $RUNS runs"
  if ! trips=$(count_for "$RING_SECONDS" ring_of "$RING_RANKS"); then
    missing "replay: the token ring did not run"
    return
  fi
  for killed in 1 "$RING_RANKS"; do
    rounds "$RUNS" "replay, $killed killed" replay_once "$trips" "$killed"
  done
  echo "$trips rounds; killed after $((RING_SECONDS * 600)) ms of about $((RING_SECONDS * 1000))."
  echo "First execution: from the last RANK_UP to the kill; replay: from the first RANK_UP of a new incarnation to the last RANK_LIVE."
  table "ranks killed at once" "first execution s" "replay s" "times faster (goal: at least 5)"
  for killed in 1 "$RING_RANKS"; do
    row "$dir/replay" "replay, $killed killed: no run had all of its kills and came back" "$killed" \
      "=spread first.$killed 2" "=spread again.$killed 3" "=spread faster.$killed 1"
  done
}

kill_to_live_once() {
  local rounds=$1
  ring "$rounds" 4 --fault kill:2@2s &&
    from_events "$dir/live" '
      map(select(.rank == 2))
      | (fired | only("kills"; 1)[0]) as $fired
      | (times("rank_down"; 1) | only("ranks down"; 1)[0]) as $down
      | (times("rank_started"; 2) | only("starts"; 1)[0]) as $started
      | (times("rank_up"; 2) | only("ranks up again"; 1)[0]) as $up
      | (times("rank_live"; 2) | only("ranks live again"; 1)[0]) as $live
      | "detection \(1000 * ($down - $fired))", "start \(1000 * ($started - $down))",
        "connect \(1000 * ($up - $started))", "replay \(1000 * ($live - $up))", "all \(1000 * ($live - $fired))"'
}

live_row() {
  row "$dir/live" "from kill to live: no run was killed and came back" "$2" "=spread $1 2"
}

kill_to_live() {
  local trips
  title "From kill to live again: token ring of 4 ranks, one killed when 2 s old, medians of $RUNS runs"
  if ! trips=$(count_for 4 ring_of 4); then
    missing "from kill to live: the token ring did not run"
    return
  fi
  rounds "$RUNS" "from kill to live" kill_to_live_once "$trips"
  table l:step ms
  live_row detection "detection: from the signal until the dispatcher knows"
  live_row start "start: until the new process is forked"
  live_row connect "exec, libraries and the first part of MPI_Init: until the relay knows it (RANK_UP)"
  live_row replay "replay: the rest of MPI_Init, then the program, until RANK_LIVE"
  live_row all "all of it"
  echo
  echo "MPI_Init opens its connection to the relay in its midst. What it sends and receives after that is in the"
  echo "log like everything else, so its second part is repeated, and counted, as replay. The medians of the"
  echo "steps need not add up to the median of the whole."
}

# --- [MPICH-V] figure 12: an application under many faults ----------------------------------------

# solver ITERATIONS OPTIONS...
solver() {
  local iterations=$1
  shift
  rm -f "$dir/events"
  logged "$SOLVER_RANKS" --events "$dir/events" "${solver_options[@]}" "$@" "$programs/solver" "$SOLVER_SIZE" "$iterations" 1000 \
    >"$dir/out"
}

# Residuals and checksum must be what they were the first time, which was without a kill.
solver_same() {
  [ -e "$dir/solver.first" ] || cp "$dir/out" "$dir/solver.first"
  cmp -s "$dir/solver.first" "$dir/out"
}

# so many kills, spread evenly over the shortest run without kills, and over the ranks
solver_once() {
  local iterations=$1 kills=$2 faults=() base_ms i
  base_ms=$(awk -v s="$(figure lowest 0 "$dir/solver" 2>/dev/null)" 'BEGIN { printf "%d", 1000 * s }')
  for ((i = 1; i <= kills; i++)); do
    faults+=(--fault "kill:$((i % SOLVER_RANKS))@$((base_ms * i / (kills + 1)))ms")
  done
  timed solver "$iterations" "${faults[@]}" || return 1
  if [ "$(jq -s 'map(select(.event == "fault_fired")) | length' "$dir/events")" != "$kills" ]; then
    echo "not all of the $kills kills came before the end" >>"$dir/stats"
    return 1
  fi
  if ! solver_same; then
    echo "the solver printed something else than without kills" >>"$dir/stats"
    return 1
  fi
  echo "$kills $took" >>"$dir/solver"
}

# solver_rows NAME: the table's rows, and the same for gnuplot
solver_rows() {
  local kills base kind
  base=$(median 0 "$dir/solver")
  for ((kills = 0; kills <= KILLS_MAX; kills++)); do
    row "$dir/solver" "solver with $kills kills: no run ended well with all of its kills and the same result" "$kills" \
      "=spread $kills 2" "$(ratio "$(median "$kills" "$dir/solver")" "$base")" || continue
    echo "$kills" "$(for kind in median lowest highest; do figure "$kind" "$kills" "$dir/solver"; done | paste -sd ' ')" >&3
  done 3>"build/bench/$1.dat"
}

solver_kills() {
  local iterations kills i
  title "Solver with 4 ranks, 0 to $KILLS_MAX kills: after figure 12 of [MPICH-V], medians of $SOLVER_RUNS runs"
  mkdir -p build/bench
  if ! iterations=$(count_for "$SOLVER_SECONDS" solver); then
    missing "solver under kills: the solver did not run"
    return
  fi
  for ((i = 0; i < SOLVER_RUNS; i++)); do
    for ((kills = 0; kills <= KILLS_MAX; kills++)); do
      solver_once "$iterations" "$kills" || uncounted "solver with $kills kills"
    done
  done
  echo "A grid of $SOLVER_SIZE by $SOLVER_SIZE, $iterations iterations. The kills are spread evenly over the time of the"
  echo "shortest run without kills, and over the ranks; without images (--no-ckpt) each new incarnation starts from the"
  echo "beginning."
  table kills s "times that without"
  solver_rows recovery
  sampled "$dir/solver" 0 || return
  plot recovery && echo && echo "The plot: build/bench/recovery.svg and .png."
}

plot() {
  gnuplot -e "data='build/bench/$1.dat'; base='build/bench/$1'" tests/bench/kills.gnuplot \
    2>"$dir/stats" || { missing "the plot: gnuplot failed"; return 1; }
}

# shellcheck shell=bash
# What the engines of a relay cost when many clients are there: sections of bench.sh, which sources this after
# lib.sh.
#
# Environment: ENGINES (default: all that run here), CROWD (idle connections, 1024), CROWD_SECONDS (how long
#   their CPU time is counted, 10), BURST (connections in one second, 1000), LOG_CLIENTS (2 16 64), LOG_RUNS
#   (with and without the log, default 2 RUNS + 1)

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway and dir

CROWD=${CROWD:-1024}
CROWD_SECONDS=${CROWD_SECONDS:-10}
BURST=${BURST:-1000}
LOG_CLIENTS=${LOG_CLIENTS:-2 16 64}
LOG_RUNS=${LOG_RUNS:-$((2 * RUNS + 1))}
CROWD_TCP=tcp:127.0.0.1:0
crowd=$PWD/build/crowd

# Those that run here; the others say why.
engines() {
  local engine
  for engine in ${ENGINES:-$("$causeway" relay --list-engines | cut -d ' ' -f 1)}; do
    if "$causeway" relay --engine "$engine" --listen "unix:$dir/no/such/dir" 2>&1 | grep -v '/no/such/dir' >"$dir/why"; then
      echo "- $engine does not run here: $(<"$dir/why")" >>"$dir/uncounted"
    else
      echo "$engine"
    fi
  done
}

# engine_relay ENGINE ADDRESS [OPTION...]: as start_relay
engine_relay() {
  start_relay "$2" --key-file "$dir/engine.key" --engine "$1" "${@:3}"
}

# What it shares with ranks is part of it (RssShmem)
resident_kb() {
  awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status" 2>/dev/null
}

# crowd_value KEY: of what the crowd printed
crowd_value() {
  awk -v key="$1" '$1 == key { print $2 }' "$dir/crowd"
}

# start_crowd COUNT RATE SECONDS [KEY-FILE [--rings]]: returns when each has been served or refused; $crowd_job is its process
start_crowd() {
  : >"$dir/crowd"
  "$crowd" "$(relay_address)" "$@" >"$dir/crowd" 2>"$dir/stats" &
  crowd_job=$!
  until grep -q there "$dir/crowd" || ! kill -0 "$crowd_job" 2>/dev/null; do sleep 0.05; done
  grep -q there "$dir/crowd"
}

# Whether all are ranks of a job, through sockets or with --rings through rings: crowd_there [--rings]
crowd_there() {
  local with_rings=$(($# ? CROWD : 0))
  start_crowd "$CROWD" 0 "$((CROWD_SECONDS + 30))" "$dir/engine.key" "$@" &&
    [ "$(crowd_value served) $(crowd_value rings)" = "$CROWD $with_rings" ]
}

# Memory and CPU time are those of ranks that wait: they have said HELLO, and so the relay does not close them.
# idle_once ENGINE NAME [--rings]
idle_once() {
  local engine=$1 name=$2 before after ticks crowd_job
  shift 2
  engine_relay "$engine" "unix:$dir/engine"
  before=$(resident_kb "$relay")
  if crowd_there "$@"; then
    sleep 1
    after=$(resident_kb "$relay")
    ticks=$(cpu_ticks "$relay")
    sleep "$CROWD_SECONDS"
    ticks=$(($(cpu_ticks "$relay") - ticks))
    awk -v e="$name" -v kb="$((after - before))" -v n="$CROWD" -v t="$ticks" -v s="$CROWD_SECONDS" \
      -v hz="$(getconf CLK_TCK)" 'BEGIN {
        printf "kb.%s %.3f\ncpu.%s %.3f\n", e, kb / n, e, 100 * t / hz / s }' >>"$dir/idle_crowd"
  else
    uncounted "idle connections, $name"
  fi
  kill "$crowd_job" 2>/dev/null
  wait "$crowd_job" 2>/dev/null
  end_relay
}

# idle_row ENGINE NAME [--rings]
idle_row() {
  local name=$2
  rounds "$RUNS" "" idle_once "$@"
  row "$dir/idle_crowd" "idle connections, $name: not all of them were served" "$name" "=spread kb.$name 1" \
    "=spread cpu.$name 2"
}

idle_crowd() {
  local engine
  title "Idle connections: $CROWD ranks that wait, medians of $RUNS runs"
  echo "Memory: resident memory of the relay with them minus without, by their number, in KB; what it shares with"
  echo "ranks counts. CPU: of the relay, as percent of one core, over $CROWD_SECONDS s. The engines: ranks that speak"
  echo "through sockets, though \`poll\` offers them rings. rings: engine \`poll\`, and ranks that take its rings,"
  echo "of which they have used what HELLO takes; rings through which much has gone hold 2 MiB a rank."
  table l:engine "KB a connection (goal: at most 32)" "CPU % (goal: below 1)"
  for engine in $(engines); do
    idle_row "$engine" "$engine"
    [ "$engine" != poll ] || idle_row poll rings --rings
  done
}

burst_once() {
  local engine=$1 on=$2 listen=$3 crowd_job
  engine_relay "$engine" "$listen"
  if start_crowd "$BURST" "$BURST" 0; then
    awk -v key="$engine.$on" '{ sub(/_ms/, ""); if (NF == 2) print $1 "." key, $2 }' "$dir/crowd" >>"$dir/burst"
  else
    uncounted "burst of connections, engine $engine, $on"
  fi
  wait "$crowd_job" 2>/dev/null
  end_relay
}

burst_row() {
  local engine=$1 on=$2 key=$1.$2
  rounds "$RUNS" "" burst_once "$@"
  row "$dir/burst" "burst of connections with engine $engine, $on" "$engine" "$on" "=lowest served.$key" \
    "=highest refused.$key" "=spread last.$key 0"
}

burst() {
  local engine
  title "A burst: $BURST connections within one second, $RUNS runs"
  echo "Served: heard the relay's CHALLENGE, in the worst run. The last one: from the first connect to the last"
  echo "CHALLENGE, in ms; the last connect is $((1000 - 1000 / BURST)) ms after the first."
  table l:engine l:socket "served (goal: all $BURST)" refused "the last one, ms"
  for engine in $(engines); do
    burst_row "$engine" unix "unix:$dir/engine"
    burst_row "$engine" tcp "$CROWD_TCP"
  done
}

# --- what the log costs under each of them ---------------------------------------------------------

LOG_SIZES="1 65536 1048576"
LOG_SECONDS=0.15      # that a size takes in a job, about
LOG_VOLUME=1000000000 # bytes that it moves at most
ENGINE_LOG_MEMORY=3G # more than the sizes of a job move together
SPIN_RANKS_A_CORE=2   # with more a job's own relay does not spin

# Appends a line "KEY FIGURE" for each size, of 1 B the time of one way, else the bandwidth, or "-" where there is
# none: engine_log_once MODE NAME CLIENTS
engine_log_once() {
  local run=ours key=$2.$3
  [ "$1" != with ] || run=logged
  # shellcheck disable=SC2086 # a list of sizes
  if ! "$run" "$3" --relay "$(relay_address)" --key-file "$dir/engine.key" "$programs/pairs" "$LOG_SECONDS" "$LOG_VOLUME" 0 \
    $LOG_SIZES >"$dir/out"; then
    uncounted "the log of $2, $3 clients, $1"
    : >"$dir/out"
  fi
  awk -v key="$key" -v sizes="$LOG_SIZES" '
    $1 == "pairs" { figure[$2] = $2 == 1 ? $7 : $4 }
    END { n = split(sizes, all, " ")
          for (i = 1; i <= n; i++) print key "." all[i], all[i] in figure ? figure[all[i]] : "-" }' \
    "$dir/out" >>"$dir/engine_log.$1"
}

# "again" is the same as "without": engine_log_rounds NAME CLIENTS
engine_log_rounds() {
  local mode
  engine_log_once with "$@" # the first use of memory
  rm -f "$dir"/engine_log.{without,with,again}
  take_turns "$LOG_RUNS" "without with again" engine_log_once "$@"
  for mode in with again; do
    ratios "$dir/engine_log.$mode" "$dir/engine_log.without" | sed "s/^/$mode./" >>"$dir/engine_log"
  done
}

# engine_log_row NAME CLIENTS ENGINE OPTION...
engine_log_row() {
  local name=$1 clients=$2 bytes cells=() options=("${@:4}")
  ((clients <= SPIN_RANKS_A_CORE * $(nproc))) || options+=(--spin 0)
  engine_relay "$3" "unix:$dir/engine" --log-memory "$ENGINE_LOG_MEMORY" "${options[@]}"
  keep_memory --key-file "$dir/engine.key"
  engine_log_rounds "$name" "$clients"
  end_relay
  for bytes in $LOG_SIZES; do
    cells+=("=spread with.$name.$clients.$bytes 2" "=fixed again.$name.$clients.$bytes 2")
  done
  row "$dir/engine_log" "the log of $name, $clients clients" "$name" "$clients" "${cells[@]}" >"$dir/row" &&
    cat "$dir/row" >>"$dir/engine_log.table"
  cat "$dir/row"
}

# engine_log_sum TEXT COLUMN COLUMN COLUMN: of the table, of 1 B and the other sizes
engine_log_sum() {
  awk -F'|' -v text="$1" -v a="$2" -v b="$3" -v c="$4" '
    { n += 3; ok += ($a + 0 <= 1.10) + ($b + 0 >= 0.90) + ($c + 0 >= 0.90)
      x += log($a); y += log($b); z += log($c) }
    END { if (n) printf "- %s: geometric means %.2f, %.2f and %.2f; %d of %d medians reach the goal\n", text,
            exp(x / NR), exp(y / NR), exp(z / NR), ok, n }' "$dir/engine_log.table"
}

engine_log() {
  local engine clients
  title "The log under each engine, over sockets: figures with it by those without, medians of $LOG_RUNS pairs of runs"
  touch "$dir/engine_log.table"
  echo "All pairs at once, as in netpipe/: the time of one way for 1 B, the bandwidth of all pairs for the others."
  echo "Jobs with and without the log take turns at one relay, whose memory was used before. again: jobs without"
  echo "the log by others without it, which are equal. rings: engine \`poll\` with memory shared with each rank."
  table l:engine clients "1 B (goal: at most 1.10)" again "64 KiB (goal: at least 0.90)" again \
    "1 MiB (goal: at least 0.90)" again
  for engine in $(engines) rings; do
    for clients in $LOG_CLIENTS; do
      if [ "$engine" = rings ]; then
        engine_log_row rings "$clients" poll
      else
        engine_log_row "$engine" "$clients" "$engine" --rings off
      fi
    done
  done
  echo
  engine_log_sum "with the log by without" 4 6 8
  engine_log_sum "without by without" 5 7 9
}

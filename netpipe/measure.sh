# shellcheck shell=bash
# One run of the comparison, and the samples of it: netpipe.sh sources this.
#
# A run has its relay to itself, so none is disturbed by another one's; causeway run starts it, and lets it spin where cores allow. A file of samples has a line
# for each size of each run: see $samples_head.

# shellcheck disable=SC2034,SC2154 # dir, causeway, pairs, and what options.sh sets

PERTURBATION=3 # bytes, as NetPIPE's own default
NETPIPE_TRIALS_MAX=4
MESSAGE_OVERHEAD=64 # bytes of a log for each message, beyond its payload
GRACE_SECONDS=1     # for a job of stock MPICH that has said all it will say
END_SECONDS_MAX=10  # for a job that was told to end
PORT_TRIES_MAX=20
LISTEN_TRIES_MAX=100 # every 20 ms

stock_limit=25 # of 8 ranks and more on 2 cores it does little: all of them spin
our_limit=120
samples_head=engine,log,clients,relays,repetition,bytes,overall_mbps,sum_mbps,fairness,latency_us
job=

# --- results --------------------------------------------------------------------------------------

# What must be the same when a comparison is gone on with
settings() {
  echo "sizes ${sizes[*]}, seconds $seconds, volume $volume"
}

open_results() {
  mkdir -p "$results" || exit 1
  samples=$results/samples.csv
  if ((resume)) && [ -e "$samples" ]; then
    [ "$(cat "$results/settings" 2>/dev/null)" = "$(settings)" ] ||
      bad "--resume: $results has samples of other settings: $(cat "$results/settings" 2>/dev/null)"
    return
  fi
  rm -f "$results"/{medians.csv,comparison.md,figure-*}
  settings >"$results/settings"
  echo "$samples_head" >"$samples" || exit 1
}

# has_samples REPETITION "ENGINE LOG CLIENTS RELAYS"
has_samples() {
  grep -q "^${2// /,},$1," "$samples"
}

# Lines "BYTES OVERALL SUM FAIRNESS LATENCY" become samples, or none when there are none.
keep_samples() {
  local key=$1
  [ -s "$dir/lines" ] || return 1
  awk -v key="$key" 'NF == 5 { print key "," $1 "," $2 "," $3 "," $4 "," $5 }' "$dir/lines" >>"$samples"
}

# --- memory ---------------------------------------------------------------------------------------

# What the log of a job with these sizes may take: bounded by the volume, and by what a relay can move in the
# time at most (messages a second, bytes a second): log_bytes CLIENTS SIZE...
log_bytes() {
  local longer
  longer=$(longer_for "$1")
  printf '%s\n' "${@:2}" | awk -v volume="$volume" -v seconds="$seconds" -v longer="$longer" -v overhead="$MESSAGE_OVERHEAD" '
    { bytes = $1 + overhead
      rate = 200000 * bytes < 2e9 ? 200000 * bytes : 2e9
      most = 1.2 * seconds * rate
      sum += (most < volume ? most : volume) * longer }
    END { printf "%.0f\n", sum + 64 * 1048576 }'
}

# The log of a relay must fit half of the memory that is free.
fit_memory() {
  local free
  [[ " ${logs[*]} " = *" on "* ]] || return
  free=$(awk '/^MemAvailable/ { printf "%.0f\n", $2 * 1024 }' /proc/meminfo)
  while (($(log_bytes "$most" "${sizes[@]}") > free / 2)); do
    volume=$((volume / 2))
    if ((volume < VOLUME_MIN)); then
      echo "netpipe.sh: $((free >> 20)) MiB of memory are free: too few for a log; --log off" >&2
      exit 1
    fi
    echo "netpipe: a size moves at most $((volume >> 10)) KiB, for $((free >> 20)) MiB of memory are free" >&2
  done
}

# --- jobs -----------------------------------------------------------------------------------------

# Ends the job that runs, with all that it started.
end_job() {
  local pids one i
  [ -n "$job" ] || return 0
  mapfile -t pids < <(pgrep -P "$job")
  pids+=("$job")
  kill "${pids[@]}" 2>/dev/null
  for ((i = 0; i < END_SECONDS_MAX * 10; i++)); do
    kill -0 "${pids[@]}" 2>/dev/null || break
    sleep 0.1
  done
  for one in "${pids[@]}"; do
    kill -9 "$one" 2>/dev/null
  done
  wait "$job" 2>/dev/null
  job=
}

# Whether the job has measured all it will measure
has_measured() {
  grep -qx end "$dir/out" || [ -s "$dir/np" ]
}

# Runs a command for an engine, its output in $dir/out, until it ends; or until it has measured, when it is stock
# MPICH, which may hang in MPI_Finalize. Returns how it ended: run_job ENGINE COMMAND...
run_job() {
  local engine=$1 status ticks=0
  shift
  rm -f "$dir/stats" "$dir/np"
  : >"$dir/out"
  "$@" >"$dir/out" &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    if ((interrupted)); then
      end_job
      return 1
    fi
    if [ "$engine" = stock ] && has_measured && ((++ticks > GRACE_SECONDS * 10)); then
      end_job
      return 0
    fi
    sleep 0.1
  done
  wait "$job" 2>/dev/null
  status=$?
  job=
  return "$status"
}

# [Relay] compares engines over sockets, and so do we; rings are one more of them. Fills the array "options" of who calls.
engine_options() {
  if [ "$1" = "$RINGS" ]; then
    options=(--engine poll --rings on)
  else
    options=(--engine "$1" --rings off)
  fi
}

# causeway_or_stock ENGINE LOG CLIENTS RELAYS LOG_BYTES PROGRAM...
causeway_or_stock() {
  local engine=$1 log=$2 clients=$3 relays=$4 log_bytes=$5 options=()
  shift 5
  if [ "$engine" = stock ]; then
    stock "$clients" "$@"
    return
  fi
  engine_options "$engine"
  ((relays == 1)) || options+=(--relays "$relays")
  if [ "$log" = on ]; then
    logged "$clients" "${options[@]}" --memory-max $((log_bytes * 2)) "$@"
  else
    ours "$clients" "${options[@]}" "$@"
  fi
}

# --- one pair: Debian's NetPIPE -------------------------------------------------------------------

# NetPIPE repeats a size as often as it is told, in three trials, and likewise its two neighbours.
netpipe_count() {
  awk -v size="$1" -v seconds="$seconds" -v volume="$volume" -v overhead="$MESSAGE_OVERHEAD" \
    -v trials="$NETPIPE_TRIALS_MAX" 'BEGIN {
    most = volume / (3 * trials * 2 * (size + overhead))
    wanted = seconds / (3 * trials) / (2 * (1e-5 + size / 2.5e9))
    printf "%d\n", wanted < most ? (wanted < 1 ? 1 : wanted) : most }'
}

# lines "BYTES MB/S SECONDS" of NetPIPE; one pair is all pairs
netpipe_lines() {
  awk 'NF == 3 && $3 > 0 { mbps = $1 * 8e-6 / $3; printf "%d %.6g %.6g 1 %.3f\n", $1, mbps, mbps, $3 * 1e6 }' \
    "$dir/np" 2>/dev/null
}

# netpipe_sizes WHAT ENGINE COMMAND...: a run of COMMAND for each size, which is given the size and NetPIPE's
# options
netpipe_sizes() {
  local what=$1 engine=$2 size count
  shift 2
  : >"$dir/lines"
  for size in "${sizes[@]}"; do
    count=$(netpipe_count "$size")
    if ((count == 0)); then
      note "$what: $size B need more than --volume"
      continue
    fi
    if run_job "$engine" "$@" "$size" -l "$size" -u "$size" -p "$PERTURBATION" -n "$count" -o "$dir/np"; then
      netpipe_lines >>"$dir/lines"
    elif ((!interrupted)); then
      uncounted "$what, $size B"
    fi
    ((interrupted)) && return
  done
}

# mpi_netpipe ENGINE LOG CLIENTS RELAYS SIZE OPTION...
mpi_netpipe() {
  causeway_or_stock "${@:1:4}" "$(log_bytes "$3" "$5")" NPmpich2 "${@:6}" >/dev/null
}

# Raw TCP: the receiver first, on a port that nobody has
raw_tcp() {
  local port receiver i
  shift # the size: there is no log
  for ((i = 0; i < PORT_TRIES_MAX; i++)); do
    port=$((20000 + RANDOM % 12000))
    timeout "$our_limit" NPtcp -P "$port" "$@" >/dev/null 2>&1 </dev/null &
    receiver=$!
    await_listener "$port" "$receiver" && break
    kill "$receiver" 2>/dev/null
    wait "$receiver"
  done
  timeout "$our_limit" NPtcp -h 127.0.0.1 -P "$port" "$@" >/dev/null 2>"$dir/stats" </dev/null && wait "$receiver"
}

await_listener() {
  local entry i
  entry=$(printf ':%04X 00000000:0000 0A' "$1")
  for ((i = 0; i < LISTEN_TRIES_MAX; i++)); do
    grep -q "$entry" /proc/net/tcp && return
    kill -0 "$2" 2>/dev/null || return
    sleep 0.02
  done
  return 1
}

# --- many pairs: our own program ------------------------------------------------------------------

# With more clients a size takes as many times longer, and moves as much more: who gets which share of a relay
# shows only when each pair makes many trips.
PAIRS_FEW=16
longer_for() {
  echo $(($1 > PAIRS_FEW ? $1 / PAIRS_FEW : 1))
}

# What stock MPICH printed before its time was over counts; a job of ours that does not end well does not.
pairs_sizes() {
  local what=$1 engine=$2 longer time status
  longer=$(longer_for "$4")
  shift
  time=$(awk -v seconds="$seconds" -v longer="$longer" 'BEGIN { print seconds * longer }')
  run_job "$engine" causeway_or_stock "$@" "$pairs" "$time" $((volume * longer)) "$PERTURBATION" "${sizes[@]}"
  status=$?
  ((interrupted)) && return
  : >"$dir/lines"
  if ((status == 0)) || [ "$engine" = stock ]; then
    awk '$1 == "pairs" && NF == 7 { print $2, $4, $5, $6, $7 }' "$dir/out" >"$dir/lines"
    sed -n "s/^skipped \(.*\)/$what: \1 B need more than --volume/p" "$dir/out" | while read -r line; do
      note "$line"
    done
  fi
  if ((status == 124)); then
    note "$what: did not end in $([ "$engine" = stock ] && echo "$stock_limit" || echo "$our_limit") s"
  elif ((status)); then
    uncounted "$what"
  fi
}

# What is told at the end, once
note() {
  grep -qxsF -- "- $*" "$dir/uncounted" || echo "- $*" >>"$dir/uncounted"
}

# --- a run ----------------------------------------------------------------------------------------

# measure_run REPETITION ENGINE LOG CLIENTS RELAYS: false when it gave no sample
measure_run() {
  local repetition=$1 what
  shift
  what=$(describe "$@")
  if [ "$1" = tcp ]; then
    netpipe_sizes "$what" tcp raw_tcp
  elif (($3 == 2)); then
    netpipe_sizes "$what" "$1" mpi_netpipe "$@"
  else
    pairs_sizes "$what" "$@" "$(log_bytes "$3" "${sizes[@]}")"
  fi
  ((interrupted)) && return
  keep_samples "$1,$2,$3,$4,$repetition"
}

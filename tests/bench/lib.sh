# shellcheck shell=bash
# Shared by the benchmarks: running jobs beside each other, medians, and reading what --stats and --events
# wrote. Who sources this sets $causeway and $dir (a directory of its own) before, and may set the seconds
# after which a job is ended: $stock_limit (60) and $our_limit (120).
#
# Samples are lines "KEY NUMBER" in a file. What could not be measured is said in the output where its figure
# would stand, and makes the benchmarks end with code 1.

# shellcheck disable=SC2154 # causeway and dir are set by who sources this

# as docs/benchmarks.md says: the peer is MPICH's own path over TCP, without shared memory
stock() {
  local ranks=$1
  shift
  UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 \
    timeout -k 5 "${stock_limit:-60}" mpirun.mpich -n "$ranks" "$@" 2>/dev/null </dev/null
}

# likewise over MPICH's own shared memory, as it is when nothing is set
stock_shm() {
  local ranks=$1
  shift
  timeout -k 5 "${stock_limit:-60}" mpirun.mpich -n "$ranks" "$@" 2>/dev/null </dev/null
}

# a job without recovery, which stock does not have either; its standard error is in $dir/stats
ours() {
  local ranks=$1
  shift
  timeout -k 5 "${our_limit:-120}" "$causeway" run -n "$ranks" --no-log "$@" 2>"$dir/stats" </dev/null
}

# Likewise with recovery. A job whose log ran out of room goes on without keeping it: it does not count.
logged() {
  local ranks=$1
  shift
  # shellcheck disable=SC2086 # several options
  timeout -k 5 "${our_limit:-120}" "$causeway" run ${log_options-} -n "$ranks" "$@" 2>"$dir/stats" </dev/null &&
    ! grep -q 'can no longer be restarted' "$dir/stats"
}

RELAY_WAIT=120 # seconds

# start_relay ADDRESS [OPTION...]: leaves its process in $relay. One that does not listen in time is ended; what is
# run at it then says so.
start_relay() {
  local deadline=$((SECONDS + RELAY_WAIT))
  : >"$dir/relay.err" # what the one before said must not be taken for its word
  "$causeway" relay --listen "$1" "${@:2}" 2>"$dir/relay.err" </dev/null &
  relay=$!
  until grep -q 'listening on' "$dir/relay.err" || ! kill -0 "$relay" 2>/dev/null; do
    ((SECONDS < deadline)) || kill -9 "$relay"
    sleep 0.1
  done
}

# where it listens
relay_address() {
  sed -n '1s/.*listening on \([^ ]*\).*/\1/p' "$dir/relay.err"
}

# A relay gives the memory of logs back with its last job: keep_memory KEY-OPTION... has a job that does nothing
keep_memory() {
  "$causeway" run --relay "$(relay_address)" "$@" sleep inf 2>"$dir/stats" </dev/null &
  keeper=$!
}

end_relay() {
  [ -z "${keeper-}" ] || kill "$keeper"
  keeper=
  kill "$relay" 2>/dev/null
  wait "$relay" 2>/dev/null
  return 0
}

# figure KIND KEY FILE [DIGITS]: what statistics.awk says of the samples of KEY
figure() {
  awk -f tests/bench/statistics.awk -v print_as="$1" -v key="$2" -v digits="${4:-0}" "$3"
}

median() {
  figure median "$@" || echo nan
}

# The ratios of two series that took turns, line by line: those of the same round find the machine, a relay and its
# memory in the same state. A line is "KEY NUMBER", or "KEY -" for a run that ended badly: ratios FILE BY-FILE
ratios() {
  paste -d ' ' "$1" "$2" | awk '$2 != "-" && $4 != "-" { print $1, $2 / $4 }'
}

ratio() {
  awk -v a="$1" -v b="$2" 'BEGIN { if (b + 0 > 0) printf "%.2f", a / b; else printf "?" }'
}

title() {
  printf '\n## %s\n\n' "$*"
}

missing() {
  echo
  echo "**Not measured: $*.**"
  touch "$dir/missing"
}

# table COLUMN...: the head of a table; the columns are numbers, but those that are given
# as l:COLUMN are text
table() {
  local column line='|' head='|'
  for column in "$@"; do
    if [[ $column = l:* ]]; then
      line+='---|'
    else
      line+='---:|'
    fi
    head+=" ${column#l:} |"
  done
  printf '\n%s\n%s\n' "$head" "$line"
}

# row FILE WHAT CELL...: a row of a table. A cell is text, or "=KIND KEY [DIGITS]" for a figure of the samples in FILE.
# Where samples of a figure are missing, the row is WHAT, said to be missing; then it is false.
row() {
  local file=$1 what=$2 cell line='|' kind key digits
  shift 2
  for cell in "$@"; do
    if [[ $cell = =* ]]; then
      read -r kind key digits <<<"${cell#=}"
      sampled "$file" "$key" || { missing "$what" && return 1; }
      cell=$(figure "$kind" "$key" "$file" "$digits")
    fi
    line+=" $cell |"
  done
  echo "$line"
}

# rounds COUNT WHAT COMMAND...: so many runs; one that ends badly gives no sample, and is told as WHAT
rounds() {
  local i
  for ((i = 0; i < $1; i++)); do
    "${@:3}" || uncounted "$2"
  done
}

# A run that ended badly, or in which not everything happened that should: it gives no sample, but is told at the
# end, with the last line of its standard error.
uncounted() {
  echo "- $*: $(tail -n 1 "$dir/stats" 2>/dev/null)" >>"$dir/uncounted"
}

# Whether FILE has at least one sample of each KEY: sampled FILE KEY...
sampled() {
  local file=$1 key
  shift
  for key in "$@"; do
    [ -e "$file" ] && figure count "$key" "$file" >/dev/null || return 1
  done
}

# The sum over all ranks of a column of --stats in $dir/stats, found by its name: stats_sum NAME [AFTER].
# AFTER 1: the column right of it, for "bytes" stands there twice.
stats_sum() {
  awk -v name="$1" -v after="${2:-0}" '
    $1 == "rank" { column = 0; for (i = 1; i <= NF; i++) if ($i == name) column = i + after }
    column && $1 ~ /^[0-9]+$/ { sum += $column; lines++ }
    END { if (!lines) exit 1; printf "%.0f\n", sum }' "$dir/stats"
}

# a counter of the relay in $dir/stats
stats_relay() {
  awk -v name="$1" '$1 == "relay:" { gsub(/[,;]/, ""); for (i = 1; i < NF; i++) if ($i == name) print $(i + 1) }' \
    "$dir/stats"
}

# Whoever goes second finds the machine as the first has left it, so they take turns, forwards and backwards:
# take_turns ROUNDS "MODE..." COMMAND ARG..., which is run as COMMAND MODE ARG...
take_turns() {
  local rounds=$1 modes i j turn
  read -ra modes <<<"$2"
  shift 2
  for ((i = 0; i < rounds; i++)); do
    for ((j = 0; j < ${#modes[@]}; j++)); do
      turn=$(((i + (i & 1 ? ${#modes[@]} - j : j)) % ${#modes[@]}))
      "$1" "${modes[turn]}" "${@:2}"
    done
  done
}

# The seconds that a command took, into $took, and those of processors that its processes had, into $cpu: of all that
# were waited for
timed() {
  local start=$EPOCHREALTIME status
  times >"$dir/times"
  "$@"
  status=$?
  took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
  times >>"$dir/times"
  # shellcheck disable=SC2034 # for the caller
  cpu=$(awk -F'[ms ]+' 'NR % 2 == 0 { sum = 60 * ($1 + $3) + $2 + $4 - sum } END { print sum }' "$dir/times")
  return "$status"
}

# Prints how often a program must do what it does so that it lasts SECONDS here and now, without its start and
# end: count_for SECONDS COMMAND..., which takes a count as its last argument.
DOUBLINGS_MAX=16
count_for() {
  local want=$1 count=500 before=0 took=0 i
  shift
  for ((i = 0; i < DOUBLINGS_MAX; i++)); do
    if ! timed "$@" "$count"; then
      uncounted "finding out how long $* $count takes"
      return 1
    fi
    # the last doubling added (took - before) seconds for count / 2
    awk -v t="$took" -v b="$before" -v c="$count" -v w="$want" 'BEGIN {
      if (!b || t - b < 0.5) exit 1
      printf "%d\n", w * (c / 2) / (t - b) + 1 }' && return 0
    before=$took
    count=$((count * 2))
  done
  return 1
}

cpu_ticks() {
  awk '{ print $14 + $15 }' "/proc/$1/stat" 2>/dev/null
}

# Runs a job, and keeps the CPU time and the largest resident memory of its relay
watch_job() {
  local job relay=
  rm -f "$dir/ticks" "$dir/hwm"
  "$@" >"$dir/watched" 2>"$dir/stats" </dev/null &
  job=$!
  while kill -0 "$job" 2>/dev/null; do
    [ -n "$relay" ] || relay=$(pgrep -P "$job" -f '^causeway relay' | head -n 1)
    [ -n "$relay" ] && cpu_ticks "$relay" | sed 's/^/relay /' >"$dir/new" && [ -s "$dir/new" ] &&
      mv "$dir/new" "$dir/ticks"
    [ -n "$relay" ] && grep VmHWM "/proc/$relay/status" >"$dir/new" 2>/dev/null && mv "$dir/new" "$dir/hwm"
    sleep 0.05
  done
  wait "$job"
}

# the largest resident memory of the relay that watch_job saw, bytes
relay_resident() {
  awk '/VmHWM/ { printf "%.0f\n", $2 * 1024 }' "$dir/hwm" 2>/dev/null
}

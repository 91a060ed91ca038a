# shellcheck shell=bash
# Channel memory beside the relay, and beside stock MPICH over TCP and over its own shared memory: a section of bench.sh,
# which sources this after programs.sh.
#
# Environment: CHANNEL_OPTIONS (of the jobs with channel memory, "--channel on"; those at the relay beside them
#   have a log if these have), CHANNEL_RANKS (cores, twice and four times as many), CHANNEL_MESSAGES (yes; empty: only
#   programs), CHANNEL_STEADY_SECONDS (of each run of the steady state, 4; 0: none), CHANNEL_PROGRAMS (PROGRAMS;
#   empty: none), CHANNEL_SECONDS (after which a run is ended, 20), OSU (the directory of the OSU micro benchmarks, built;
#   empty: they are not measured)

# shellcheck disable=SC2154 # bench.sh sets RUNS, programs and dir
# shellcheck disable=SC2317 # functions are called by their names

CHANNEL_OPTIONS=${CHANNEL_OPTIONS:---channel on}
CHANNEL_RANKS=${CHANNEL_RANKS:-$(nproc) $((2 * $(nproc))) $((4 * $(nproc)))}
CHANNEL_MESSAGES=${CHANNEL_MESSAGES-yes}
CHANNEL_PROGRAMS=${CHANNEL_PROGRAMS-$PROGRAMS}
OSU=${OSU-}
OSU_PROGRAMS="pt2pt/osu_latency pt2pt/osu_bw one-sided/osu_put_latency collective/osu_allreduce collective/osu_alltoall"
CHANNEL_SECONDS=${CHANNEL_SECONDS:-20}
CHANNEL_STEADY_SECONDS=${CHANNEL_STEADY_SECONDS:-4}
CHANNEL_SIZES="1 8192 65536 1048576" # bytes
channel_relay=relay
[[ " $CHANNEL_OPTIONS " != *" --no-log "* ]] || channel_relay=relay-without
CHANNEL_MODES="tcp shm $channel_relay channel"

# channel_cells KEY [KIND]: the medians of the four, and the last one's by the relay's and by the better stock's
channel_cells() {
  local mode cells=()
  for mode in $CHANNEL_MODES; do
    cells+=("$(program_cell "$1.$mode" "${2-}")")
  done
  [[ ${cells[3]} = *[0-9]* ]] || missing "$1${2:+, $2}: ${cells[*]}" >&2
  printf '%s|%s|%s|%s\n' "${cells[@]}" | awk -F'|' '
    function number(text) { return text ~ /^[0-9]/ ? text + 0 : 0 }
    function ratio(a, b) { return a && b ? sprintf(a / b < 0.1 ? "%.4f" : "%.2f", a / b) : "" }
    { tcp = number($1); shm = number($2); relay = number($3); ours = number($4)
      better = tcp && (!shm || tcp < shm) ? tcp : shm
      printf " %s | %s | %s | %s | %s | %s |", $1, $2, $3, $4, ratio(ours, relay), ratio(ours, better) }'
}

# --- messages, puts, collectives --------------------------------------------------------------------

# channel_count MODE RANKS: stock spins, so fewer where cores are shared, or it takes for ever
channel_count() {
  if [[ $1 = tcp || $1 = shm ]] && (($2 > $(nproc))); then
    echo $((240 / $2))
  else
    echo 2000
  fi
}

# Appends "KEY.MODE.KIND MICROSECONDS" to the samples. They count also when the run is ended: stock MPICH may hang in
# MPI_Finalize. channel_once MODE KEY RANKS COMMAND..., which is given a count
channel_once() {
  program_run "$1" "${@:3}" "$(channel_count "$1" "$3")" || uncounted "$2.$1"
  awk -v run="$2.$1" 'NF == 2 { print run "." $1, $2 }' "$dir/out" >>"$dir/program"
}

channel_netpipe_once() {
  program_run "$1" 2 NPmpich2 -l "$2" -u "$2" -p 0 -o np
  [ -s "$dir/work/np" ] || uncounted "NPmpich2, $1, $2 B"
  awk -v run="netpipe.$1" '{ print run "." $1, $3 * 1e6 }' "$dir/work/np" >>"$dir/program"
}

channel_messages() {
  local size ranks kind
  # shellcheck disable=SC2034 # for program_cell
  local CELL_DIGITS=2
  echo "Microseconds: of messages one way (bytes / microseconds are MB/s), of puts until they are flushed, mean of one call."
  table l:what ranks "stock TCP" "stock shm" "relay" "channel" "by relay" "by the better stock"
  for size in $CHANNEL_SIZES; do
    take_turns "$RUNS" "$CHANNEL_MODES" channel_netpipe_once "$size"
    echo "| NetPIPE, $size B | 2 |$(channel_cells netpipe "$size")"
  done
  take_turns "$RUNS" "$CHANNEL_MODES" channel_once put 2 "$programs/put_time"
  echo "| put and flush, 8 B | 2 |$(channel_cells put put)"
  for ranks in $CHANNEL_RANKS; do
    take_turns "$RUNS" "$CHANNEL_MODES" channel_once "collectives.$ranks" "$ranks" "$programs/collective_time"
    for kind in barrier allreduce alltoall; do
      echo "| $kind, 8 B | $ranks |$(channel_cells "collectives.$ranks" "$kind")"
    done
  done
}

# Of the second half of a run, the median of its tenths: what is new at first, such as memory of the log, is not in it
channel_steady_once() {
  program_run "$1" 2 "$programs/volume" "$2" 0 "$CHANNEL_STEADY_SECONDS" || uncounted "volume, $1, $2 B"
  awk -v bytes="$2" '$1 == "part" && $2 > 5 { print "steady", bytes / $3 }' "$dir/out" >"$dir/steady"
  ! sampled "$dir/steady" steady || echo "steady.$2.$1 $(median steady "$dir/steady" 3)" >>"$dir/program"
}

channel_steady() {
  local size
  # shellcheck disable=SC2034 # for program_cell
  local CELL_DIGITS=2
  echo
  echo "The steady state: messages to and fro for $CHANNEL_STEADY_SECONDS s, microseconds one way in the second half of it."
  table bytes "stock TCP" "stock shm" "relay" "channel" "by relay" "by the better stock"
  for size in $CHANNEL_SIZES; do
    take_turns "$RUNS" "$CHANNEL_MODES" channel_steady_once "$size"
    echo "| $size |$(channel_cells "steady.$size")"
  done
}

# channel_osu_once MODE PROGRAM: of bandwidths, the time that the bytes take
channel_osu_once() {
  local name=${2##*/}
  program_run "$1" 2 "$OSU/$2" || uncounted "$name, $1"
  awk -v run="$name.$1" '$1 ~ /^[0-9]+$/ && NF == 2 && $2 > 0 {
    print run "." $1, run ~ /_bw\./ ? $1 / $2 : $2 }' "$dir/out" >>"$dir/program"
}

channel_osu() {
  local each size
  # shellcheck disable=SC2034 # for program_cell
  local CELL_DIGITS=2
  echo
  echo "OSU micro benchmarks, microseconds; of osu_bw, those of the bytes at its bandwidth."
  table l:what bytes "stock TCP" "stock shm" "relay" "channel" "by relay" "by the better stock"
  for each in $OSU_PROGRAMS; do
    take_turns "$RUNS" "$CHANNEL_MODES" channel_osu_once "$each"
    for size in 8 8192 65536 1048576; do
      echo "| ${each##*/} | $size |$(channel_cells "${each##*/}" "$size")"
    done
  done
}

# --- programs ---------------------------------------------------------------------------------------

# channel_row NAME RANKS KEY
channel_row() {
  echo "| $1 | $2 |$(channel_cells "$3")$(channel_cells "$3" cpu)"
}

channel_programs() {
  local part
  echo
  echo "Programs. Seconds: of the steps of stencils and solvers, of the whole job for the others; and processor time of all"
  echo "processes of the whole job. A run is ended after $PROGRAM_SECONDS s, and one that takes half as long is not repeated."
  table l:program ranks "stock TCP" "stock shm" "relay" "channel" "by relay" "by the better stock" \
    "CPU: stock TCP" "stock shm" "relay" "channel" "by relay" "by the better stock"
  for part in $CHANNEL_PROGRAMS; do
    "$part"
  done
}

channel() {
  # shellcheck disable=SC2034 # for program
  local PROGRAM_MODES=$CHANNEL_MODES PROGRAM_RANKS=$CHANNEL_RANKS PROGRAM_ROW=channel_row
  local PROGRAM_SECONDS=$CHANNEL_SECONDS
  program_section "Channel memory ($CHANNEL_OPTIONS)"
  [ -z "$CHANNEL_MESSAGES" ] || channel_messages
  ((CHANNEL_STEADY_SECONDS == 0)) || channel_steady
  [ -z "$OSU" ] || channel_osu
  [ -z "$CHANNEL_PROGRAMS" ] || channel_programs
}

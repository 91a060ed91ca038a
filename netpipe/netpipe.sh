#!/bin/bash
# Compares relay engines by NetPIPE's method ([Relay] 5.1), beside stock MPICH over TCP and raw TCP.
#
#   netpipe.sh [OPTION...]
#
#   --engines LIST      of causeway relay --list-engines, over sockets, with commas between; and rings: poll with
#                       memory shared with each rank (default: all)
#   --sizes LIST        bytes, like 1,64K,1M (default: 1,1K,16K,64K,256K,1M)
#   --clients LIST      even numbers of ranks (default: 2,4,8,16,32,64)
#   --relays LIST       of the section with several relays (default: 2,4)
#   --log LIST          on, off or both (default: on,off)
#   --repetitions N     interleaved runs of everything (default: 3)
#   --seconds S         that a size takes in a run with up to 16 clients, about (default: 0.3); with 64 four times
#                       as long
#   --volume BYTES      that a size moves in a run at most, for the log is in memory (default: 768M); with 64 clients
#                       four times as much
#   --quick             1, 64K and 1M with 2, 16 and 64 clients and 2 relays, once: about three minutes
#   --results DIR       where samples, tables and figures go (default: netpipe/results)
#   --resume            keep the samples that are there, and go on
#   --help              this text
#
# Progress is on standard error, the tables are on standard output. Ctrl-C or SIGTERM ends it, with tables and
# figures of what it has. Ends with code 1 when an engine could not be measured, or 2 for bad usage.
#
# Environment: CAUSEWAY, the command (default: build/causeway of this tree)
set -u
called_in=$PWD
cd "$(dirname "$0")/.." || exit 1
causeway=$(realpath "${CAUSEWAY:-build/causeway}")
pairs=$PWD/build/programs/pairs

# shellcheck source=tests/bench/lib.sh
. tests/bench/lib.sh
# shellcheck source=netpipe/options.sh
. netpipe/options.sh
# shellcheck source=netpipe/measure.sh
. netpipe/measure.sh
# shellcheck source=netpipe/report.sh
. netpipe/report.sh

# --- what is to be run ----------------------------------------------------------------------------

# Runs are lines "ENGINE LOG CLIENTS RELAYS". Rings, stock MPICH and raw TCP stand among the engines.
rows_of() {
  local clients=$1 engine log
  for engine in "${engines[@]}"; do
    for log in "${logs[@]}"; do
      echo "$engine $log $clients 1"
    done
    ((clients == most)) && relay_rows "$engine"
  done
  echo "stock off $clients 1"
  ((clients == 2)) && echo "tcp off 2 1"
}

# [Relay] figure 9: the most clients, several relays; one relay is among the other runs.
relay_rows() {
  local count
  ((several_relays)) || return
  for count in "${relays[@]}"; do
    echo "$1 ${logs[-1]} $most $count"
  done
}

# Who goes first, or after whom, finds the machine in a state of its own, so they take turns: in the REPETITION
# of so many each begins one later, and every other one is backwards.
in_turn() {
  local by=$(($1 - 1)) rows
  mapfile -t rows
  by=$((by % ${#rows[@]}))
  printf '%s\n' "${rows[@]:by}" "${rows[@]:0:by}" | if (($1 % 2)); then cat; else tac; fi
}

# lines "REPETITION ENGINE LOG CLIENTS RELAYS"
plan() {
  local repetition clients
  for ((repetition = 1; repetition <= repetitions; repetition++)); do
    for clients in "${counts[@]}"; do
      rows_of "$clients" | in_turn "$repetition" | sed "s/^/$repetition /"
    done
  done
}

# --- running it -----------------------------------------------------------------------------------

# Seconds for what is left: runs with as many clients have taken so long before, or else all runs. Before any
# there is a guess: half as long again as the sizes are given, for calibration, and what a job takes besides, stock
# MPICH's limit of time spread over all.
GUESS_RUN_MS=3000
declare -A spent=() ran=()
spent_all=0
ran_all=0

count_time() {
  local clients=$1 ms=$2
  spent[$clients]=$((${spent[$clients]:-0} + ms))
  ran[$clients]=$((${ran[$clients]:-0} + 1))
  spent_all=$((spent_all + ms))
  ran_all=$((ran_all + 1))
}

guess_ms() {
  awk -v seconds="$seconds" -v sizes="${#sizes[@]}" -v run="$GUESS_RUN_MS" 'BEGIN {
    printf "%.0f\n", 1500 * seconds * sizes + run }'
}

left_seconds() {
  local clients ms=0 guess
  guess=$((ran_all ? spent_all / ran_all : $(guess_ms)))
  for clients in "$@"; do
    if [ -n "${ran[$clients]:-}" ]; then
      ms=$((ms + spent[$clients] / ran[$clients]))
    else
      ms=$((ms + guess))
    fi
  done
  echo $((ms / 1000))
}

describe() {
  local text="$1, log $2, $3 clients"
  (($4 == 1)) || text+=", $4 relays"
  echo "$text"
}

progress() {
  local left
  left=$(left_seconds "${@:7}")
  echo "netpipe: run $1: $(describe "$3" "$4" "$5" "$6"), repetition $2 of $repetitions;" \
    "about $((left / 60)) min $((left % 60)) s left" >&2
}

# A run that gave nothing is not tried again: it would take its whole time once more. One that is in the
# samples already is of a start before (--resume).
declare -A given_up=()
run_all() {
  local planned clients_left i repetition what start
  mapfile -t planned < <(plan)
  mapfile -t clients_left < <(plan | cut -d ' ' -f 4)
  for ((i = 0; i < ${#planned[@]} && !interrupted; i++)); do
    repetition=${planned[i]%% *}
    what=${planned[i]#* }
    if [ -n "${given_up[$what]:-}" ] || has_samples "$repetition" "$what"; then
      continue
    fi
    # shellcheck disable=SC2086 # what is a line of words
    progress "$((i + 1)) of ${#planned[@]}" "$repetition" $what "${clients_left[@]:i}"
    start=${EPOCHREALTIME/[.,]/}
    # shellcheck disable=SC2086
    measure_run "$repetition" $what || given_up[$what]=1
    count_time "${clients_left[i]}" $(((${EPOCHREALTIME/[.,]/} - start) / 1000))
  done
}

# --- the whole ------------------------------------------------------------------------------------

interrupted=0
interrupt() {
  interrupted=$1
  echo "netpipe: interrupted; what was measured is kept" >&2
}

clean() {
  end_job
  rm -rf "$dir"
}

main() {
  take_options "$@"
  dir=$(mktemp -d) || exit 1
  trap clean EXIT
  trap 'interrupt 130' INT
  trap 'interrupt 143' TERM HUP
  open_results
  fit_memory
  ((several_relays)) || echo "netpipe: causeway run knows no --relays; several relays are left out" >&2
  run_all
  trap - INT TERM HUP
  report || exit 1
  ((interrupted)) && exit "$interrupted"
  [ ! -e "$dir/missing" ]
}

main "$@"

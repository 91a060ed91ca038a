# shellcheck shell=bash
# Whole programs with as many ranks as cores and with twice as many, beside stock MPICH over TCP and over its own
# shared memory: sections of bench.sh, which sources this after lib.sh.
#
# Environment: PROGRAMS (stencils solvers scalapack; others, if there is OTHERS), PROGRAM_RANKS (cores and twice as many),
#   PROGRAM_SECONDS (after which a run is ended, 8), OTHERS (a directory of programs without arguments *.x, such as those
#   of the NAS parallel benchmarks)

# shellcheck disable=SC2154 # bench.sh sets RUNS, programs and dir

OTHERS=${OTHERS-}
PROGRAMS=${PROGRAMS:-stencils solvers scalapack ${OTHERS:+others}}
PROGRAM_RANKS=${PROGRAM_RANKS:-$(nproc) $((2 * $(nproc)))}
PROGRAM_SECONDS=${PROGRAM_SECONDS:-8}
PROGRAM_MODES="tcp shm with without"
scalapack_tests=/usr/lib/$(uname -m)-linux-gnu/scalapack/mpich-tests

# --- one run, one row -------------------------------------------------------------------------------

# program_run MODE RANKS COMMAND...: in a copy of $dir/input, its output in $dir/out
program_run() {
  local mode=$1 run=ours log_options=${log_options-}
  shift
  case $mode in
  tcp) run=stock ;;
  shm) run=stock_shm ;;
  with) run=logged ;;
  relay) run=logged ;;&
  relay | relay-without) set -- "$1" --channel off "${@:2}" ;;
  channel) run=logged log_options=$CHANNEL_OPTIONS ;;
  esac
  rm -rf "$dir/work" "$dir/stats"
  cp -r "$dir/input" "$dir/work"
  (
    cd "$dir/work" || exit
    export stock_limit=$PROGRAM_SECONDS our_limit=$PROGRAM_SECONDS OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    "$run" "$@" >"$dir/out"
  )
}

# Appends "KEY.MODE SECONDS" to the samples, KEY.MODE.KIND where the program times several kinds. WHAT its time is:
# printed, by itself as "KIND SECONDS", or whole, with start and end. KEY.MODE.cpu is the processor time of all
# processes. A run that fails or is not done in time is
# told; neither it nor one that took half of that time is repeated. program_once MODE KEY WHAT RANKS COMMAND...
program_once() {
  local run=$2.$1 mode=$1 what=$3 took cpu status
  shift 3
  grep -qsxF "$run" "$dir/failed" "$dir/late" && return
  timed program_run "$mode" "$@"
  status=$?
  if [ "$what" = printed ]; then
    # what a run printed before it was ended counts
    awk -v run="$run" '$1 == "stencil" || $1 == "time" { print run, $2; next }
      $2 ~ /^[0-9.]+$/ && NF == 2 { print run "." $1, $2 }' "$dir/out" >>"$dir/program"
  elif ((status == 0)); then
    echo "$run $took" >>"$dir/program"
  fi
  ((status)) || echo "$run.cpu $cpu" >>"$dir/program"
  case $status in
  0) ((2 * ${took%.*} < PROGRAM_SECONDS)) || echo "$run" >>"$dir/late" ;;
  124 | 137)
    echo "$run" >>"$dir/late"
    uncounted "$run: not done in $PROGRAM_SECONDS s"
    ;;
  *)
    echo "$run" >>"$dir/failed"
    uncounted "$run: ended with $status"
    ;;
  esac
}

# The median of so many samples as there are, or why there are none: program_cell RUN KIND
program_cell() {
  local sample=$1${2:+.$2}
  if sampled "$dir/program" "$sample"; then
    printf "%.${CELL_DIGITS:-4}f" "$(median "$sample" "$dir/program")"
  elif grep -qsxF "$1" "$dir/late"; then
    printf 'not in %d' "$PROGRAM_SECONDS"
  else
    printf -- -
  fi
}

# program_row NAME RANKS KEY GOAL [KIND]
program_row() {
  local mode cells=()
  for mode in tcp shm with without; do
    cells+=("$(program_cell "$3.$mode" "${5-}")")
  done
  [[ ${cells[2]}${cells[3]} = *[0-9]* ]] || missing "$1 on $2 ranks" "${cells[@]}"
  # where a program is not logged, its time without the log
  printf '%s|%s|%s|%s|%s|%s|%s\n' "$1" "$2" "${cells[@]}" "$4" | awk -F'|' '
    function time(text) { return text ~ /^[0-9]/ ? text + 0 : 0 }
    function ratio(a, b) { return a && b ? sprintf("%.2f", a / b) : "" }
    { tcp = time($3); shm = time($4); ours = time($5) ? time($5) : time($6)
      better = tcp && (!shm || tcp < shm) ? tcp : shm
      printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6,
        ratio(ours, tcp), ratio(ours, better), $7 }'
}

program_header() {
  table l:program ranks "stock TCP s" "stock shm s" "log s" "no log s" "by TCP" "by the better stock" "l:goal: at most"
}

# program NAME GOAL WHAT COMMAND...: a row for each number of ranks
program() {
  local name=$1 goal=$2 what=$3 ranks
  shift 3
  for ranks in $PROGRAM_RANKS; do
    take_turns "$RUNS" "$PROGRAM_MODES" program_once "${name// /_}.$ranks" "$what" "$ranks" "$@"
    "${PROGRAM_ROW:-program_row}" "$name" "$ranks" "${name// /_}.$ranks" "$goal"
  done
}

COARSE="1.10 by the better"
FINE="1.30 by TCP"

# --- programs ---------------------------------------------------------------------------------------

# A microsecond of work is the same count of cells in every run.
stencils() {
  local us
  us=$("$programs/stencil")
  program "stencil, 1 ms a step" "$COARSE" printed "$programs/stencil" 700 $((1000 * us)) 8192 10
  program "stencil, 45 us a step" "$FINE" printed "$programs/stencil" 4000 $((45 * us)) 1024 10
  program "stencil, 200 us, uneven by 50%" "" printed "$programs/stencil" 2000 $((200 * us)) 4096 10 50
}

solvers() {
  program "solver, 128 x 128" "$FINE" printed "$programs/solver" 128 8000 0 time
  program "solver, 512 x 512" "" printed "$programs/solver" 512 2500 0 time
  program "solver, 2048 x 2048" "$COARSE" printed "$programs/solver" 2048 150 0 time
}

# repeat COUNT WORD: as the lists of ScaLAPACK's input are
repeat() {
  printf "$2 %.0s" $(seq "$1")
}

# The input of ScaLAPACK's programs on a process grid of one row
scalapack_input() {
  local ranks=$1 sizes
  sizes=$(repeat 5 800)
  printf '%s\n' "'LU'" "'MPI'" "'LU.out'" 6 5 "$sizes" "$sizes" 1 32 1 1 1 1 1 1 "$ranks" 1.0 F >"$dir/input/LU.dat"
  sizes=$(repeat 5 600)
  printf '%s\n' "'LLT'" "'MPI'" "'LLT.out'" 6 "'U'" 5 "$sizes" 1 32 1 1 1 1 1 1 "$ranks" 3.0 F >"$dir/input/LLT.dat"
  printf '%s\n' "'QR'" "'MPI'" "'QR.out'" 6 1 "'QR'" 5 "$sizes" "$sizes" 1 32 32 1 1 "$ranks" 5.0 >"$dir/input/QR.dat"
  printf '%s\n' "'TRD'" "'MPI'" "'TRD.out'" 6 "'L'" 1 300 1 32 1 1 "$ranks" 10.0 >"$dir/input/TRD.dat"
}

scalapack() {
  local PROGRAM_RANKS_ALL=$PROGRAM_RANKS PROGRAM_RANKS
  for PROGRAM_RANKS in $PROGRAM_RANKS_ALL; do
    scalapack_input "$PROGRAM_RANKS"
    program "ScaLAPACK xdlu, 800" "$COARSE" whole "$scalapack_tests/xdlu"
    program "ScaLAPACK xdllt, 600" "$COARSE" whole "$scalapack_tests/xdllt"
    program "ScaLAPACK xdqr, 600" "$COARSE" whole "$scalapack_tests/xdqr"
    program "ScaLAPACK xdtrd, 300" "$FINE" whole "$scalapack_tests/xdtrd"
  done
}

others() {
  local each
  for each in "$OTHERS"/*.x; do
    program "$(basename "$each" .x)" "$COARSE" whole "$each"
  done
}

# program_section TITLE: begins a table
program_section() {
  title "$1, medians of $RUNS runs"
  rm -rf "$dir/program" "$dir/failed" "$dir/late" "$dir/input"
  mkdir "$dir/input"
}

programs() {
  local part
  program_section "Programs with as many ranks as cores, and with twice as many"
  echo "Seconds. Stencils and solvers: of their steps; the others: of the whole job. Ratios: with the log."
  echo "A run is ended after $PROGRAM_SECONDS s, and one that takes half as long is not repeated."
  program_header
  for part in $PROGRAMS; do
    "$part"
  done
}

# Two water molecules. Its global arrays are windows, of which README.Debian of nwchem-mpich says what it needs.
nwchem() {
  program_section "NWChem: the energy of two water molecules, by DFT"
  cat >"$dir/input/water.nw" <<'NW'
start water
geometry noautosym
O 0.0 0.0 0.0
H 0.757 0.587 0.0
H -0.757 0.587 0.0
O 0.0 2.9 0.3
H 0.757 3.4 0.3
H -0.757 3.4 0.3
end
basis
* library 6-31g
end
dft
xc b3lyp
end
task dft energy
NW
  program_header
  # its ranks open their basis sets as if to write
  ARMCI_USE_WIN_ALLOCATE=0 log_options=--trust-files program "NWChem" "$COARSE" whole nwchem.mpich water.nw
}

# --- polling ----------------------------------------------------------------------------------------

POLLING_TURNS=2000
POLLING_FENCES=20000

# polling_rows RANKS GOAL ARGUMENT: a row for each kind
polling_rows() {
  local ranks=$1 goal=$2 kind key=polling.$1.$3
  take_turns "$RUNS" "$PROGRAM_MODES" program_once "$key" printed "$ranks" "$programs/polling" "$POLLING_TURNS" "$3"
  # in the order that they come in, those that only some of the runs came to as well
  sed -n "s/^$key\.[a-z]*\.\([^ ]*\) .*/\1/p" "$dir/program" | awk '!seen[$0]++' >"$dir/kinds"
  while read -r kind; do
    program_row "$kind" "$ranks" "$key" "$goal" "$kind"
  done <"$dir/kinds"
}

polling() {
  program_section "Programs that poll"
  echo "Seconds: $POLLING_TURNS turns with so much computing between two calls of MPI, or $POLLING_FENCES fences"
  echo "on a window of one rank."
  program_header
  polling_rows 1 "2 by TCP" "$POLLING_FENCES"
  polling_rows 2 "2 by TCP" "$POLLING_FENCES"
  PROGRAM_MODES="tcp shm without" polling_rows 2 "3 by TCP" threads # such a job is not logged
}

#!/bin/bash
# Ranks are killed, and the job must come to the same end as without: every MPI program of the tests,
# and programs that nobody here wrote, killed at random, at chosen events, in MPI_Init, while they
# repeat themselves, in MPI_Finalize, one by one and all at once. Prints TAP; the last lines but
# one count the kills and the lines of output that were wrong or missing. Kills are at events, or while
# the job waits for them: on a machine of whatever speed each one comes before the job has ended.
#
#   kills.sh [OPTION...] [REGEX]
#
#   --slice         a selection, for about three minutes on two cores
#   --campaign N    go on with random kills until at least N were delivered
#   --relays        the relay of each job is killed too, at random times, and comes back from its log;
#                   a slice is a fifth of the above
#   --images        images of the ranks are taken all the time, and ranks go on from them
#   --fault-seed N  of the random kills (default 1)
#   REGEX           the tests whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
# shellcheck disable=SC2016,SC2317 # text for bash -c; the tests are called by t
set -u

suite=kills
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
find_causeway
campaign_rounds_max=100
slice=0
campaign=0
seed=1
outside=0 # kills by this script, not by --fault

fail() {
  echo "kills.sh: $*" >&2
  exit 2
}

usage() {
  sed -n '2,20s/^# \{0,1\}//p' "$0"
  exit "$1"
}

# --- killing ----------------------------------------------------------------------

before_test() {
  in_test=0
  job_options=()
  ((kill_relays)) && draw_relay_kills "$seed" "$1"
  [[ $images_every = 0 ]] || job_options+=(--ckpt-every "$images_every")
}

# Of jobs whose events nobody has looked at.
after_test() {
  count_faults "$tmp/events"
}

# relay_stays WHY: whether relays are killed, which is not for this test.
relay_stays() {
  ((kill_relays)) && skip "$1"
}

# reference RANKS COMMAND...: without kills, once for each command. Leaves the file of its output in
# $reference, and how many events each rank took in ${events[RANK]}.
reference() {
  reference=$tmp/reference.$(cksum <<<"$* ${input-}" | tr ' ' _)
  if [[ ! -e $reference ]]; then
    run "${causeway[@]}" run --stats -n "$@"
    expect_code 0
    cp "$tmp/out" "$reference"
    cp "$tmp/err" "$reference.err"
    awk '$1 == "rank" && $11 == "events" { table = NF; next }
      NF == table && /^ *[0-9]+ / { print $11 }' "$tmp/err" >"$reference.events"
  fi
  mapfile -t events <"$reference.events"
}

# fault_options FAULT...: leaves the options in $faults. A FAULT is one of --fault, or of these by ${events[RANK]}:
#   kill:RANK[,RANK...]@N%   at the event that is so far in what the first rank takes
#   random:COUNT             kills of ranks and at events that the seed chooses
fault_options() {
  local one
  faults=(--events "$tmp/events")
  RANDOM=$seed
  for one in "$@"; do
    if [[ $one =~ ^(kill:([0-9]+)[0-9,]*@)([0-9]+)%$ ]]; then
      one=${BASH_REMATCH[1]}event:$((1 + events[BASH_REMATCH[2]] * BASH_REMATCH[3] / 100))
    elif [[ $one = random:* ]]; then
      draw_kills "${one#*:}"
      continue
    fi
    faults+=(--fault "$one")
  done
}

# draw_kills COUNT: of the same rank one after another. At its last events a rank may have no need of others.
draw_kills() {
  local i rank event
  for ((i = 0; i < $1; i++)); do
    rank=$((RANDOM % ${#events[@]}))
    event=$((1 + (RANDOM * 32768 + RANDOM) % (1 + events[rank] * 95 / 100)))
    faults+=(--fault "kill:$rank@event:$event")
  done
}

# run_killed OPTION... -n RANKS COMMAND...: with the options of fault_options.
run_killed() {
  run "${causeway[@]}" run "${job_options[@]}" "${faults[@]}" "$@"
  count_faults "$tmp/events"
}

# start_killed OPTION... -n RANKS COMMAND...: likewise, in the background; finish_killed waits for it.
start_killed() {
  start "${causeway[@]}" run "${job_options[@]}" "${faults[@]}" "$@"
}

# split FAULT... -- ARGUMENT...: leaves the faults in $given, the rest in $rest.
split() {
  given=()
  while [[ $1 != -- ]]; do
    given+=("$1")
    shift
  done
  rest=("${@:2}")
}

# unchanged RESTARTS FAULT... -- RANKS COMMAND...: what the job prints is what it prints without
# faults, line by line, and there were so many restarts.
unchanged() {
  local faults given rest events
  split "${@:2}"
  reference "${rest[@]}"
  fault_options "${given[@]}"
  run_killed -n "${rest[@]}"
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
  expect_lines "$reference" "$tmp/out"
}

# kill_process SIGNAL PID: from outside
kill_process() {
  kill "-$1" "$2" || return
  outside=$((outside + 1))
  in_test=$((in_test + 1))
}

# kill_rank RANK: the process that the step pid=$work/pid of the actor tells of.
kill_rank() {
  kill_process 9 "$(rank_pid "$1")"
}

# await_err WHAT REGEX: until standard error of the job has it.
await_err() {
  await_true "$1" grep -Eq -- "$2" "$tmp/err"
}

await_restart() {
  await_err "rank $1 to be restarted" "^causeway: rank $1 .*restarting it( from image [0-9]+)? \(incarnation ${2:-2}\)"
}

await_back() {
  await_err "rank $1 to be back" "^causeway: rank $1 is back"
}

# finish_killed RESTARTS: it ends well.
finish_killed() {
  finish
  count_faults "$tmp/events"
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
}

# end_killed RESTARTS TEXT: likewise, and prints the text.
end_killed() {
  finish_killed "$1"
  expect_out "$2"
}

# goes_on RINGS RESTARTS FAULTS OPTION... -n RANKS COMMAND...: the actor's job waits for $work/go, which comes when the
# rank of the faults was restarted so often; it prints of so many rings.
goes_on() {
  local faults given rank=${3#*:}
  read -ra given <<<"$3"
  fault_options "${given[@]}"
  start_killed "${@:4}"
  await_restart "${rank%%@*}" $(($2 + 1))
  touch "$work/go"
  end_killed "$2" "$(yes 'ring of 2' | head -n "$1")"
}

# --- every program, at random -----------------------------------------------------

# listed KILLS: the programs of LIST, KILLS in a run.
listed() {
  local options=(--kills-per-run "$1" --fault-seed "$seed") line
  ((slice)) && options+=(--slice)
  ((kill_relays)) && options+=(--relays)
  [[ $images_every = 0 ]] || options+=(--images)
  while IFS= read -r line; do
    case $line in
      # a slice may have a few programs only, or none: looked at in the end
      *ok*' - '*'relays were killed' | *ok*' - '*'went on from images' | *'# SKIP no test was drawn') ;;
      'ok '*) echo "ok $((++tap_count)) - $suite: ${line#* - }" ;;
      'not ok '*)
        echo "not ok $((++tap_count)) - $suite: ${line#* - }"
        tap_failed=1
        ;;
      '# kills delivered: '*) count_listed "$line" ;;
      1..*) ;;
      *) echo "$line" ;;
    esac
  done < <(CAUSEWAY=${causeway[*]} "$here/programs.sh" "${options[@]}" "$only" 2>&1)
}

count_listed() {
  local numbers
  read -r -a numbers <<<"${1//[!0-9]/ }"
  ((${#numbers[@]} == 6)) || return
  delivered=$((delivered + numbers[0]))
  lost=$((lost + numbers[1]))
  restarts=$((restarts + numbers[2]))
  relays_killed=$((relays_killed + numbers[3]))
  images_stored=$((images_stored + numbers[4]))
  images_used=$((images_used + numbers[5]))
}

# --- programs whose output is known -----------------------------------------------

# The lines are numbered, each has the checksum over all before, and each task is done once.
check_log() {
  awk -v tasks="$1" '
    $0 == "ok master_worker" { ok++; next }
    {
      line = $0
      gsub(/[:,]/, "")
      lines++
      checksum = (checksum * 31 + $4 * 7 + $8) % 1000003
      if ($1 != "line" || $2 != lines || $10 != checksum || done[$6]++) {
        if (bad++ < 3) print line
        lines = $2
        checksum = $10
      }
    }
    END {
      missing = tasks - lines
      print bad + (missing < 0 ? -missing : missing) + (ok == 1 ? 0 : 1)
    }' "$tmp/out" >"$work/bad"
  local count
  count=$(tail -n 1 "$work/bad")
  lines_wrong=$((lines_wrong + count))
  [[ $count = 0 ]] || wrong "$count lines are wrong or missing, as: $(head -n 3 "$work/bad")"
}

# master_worker RESTARTS TASKS FAULT...: its output is not the same twice, so it must agree with itself.
# Rank 0 takes an event a task; what workers take depends on who is quicker, but some they do.
master_worker() {
  local faults events=("$2" 100 100 100)
  fault_options "${@:3}"
  run_killed -n 4 "$programs/master_worker" "$2" log
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
  check_log "$2"
}

solver() {
  unchanged "$@" -- 4 "$programs/solver" 256 "$iterations" 100
}

ring() {
  unchanged "$@" -- 4 "$programs/token_ring" "$iterations" 64
}

known_tests() {
  local iterations=6000
  ((slice)) && iterations=3000
  t "master_worker, all are killed, one after another" master_worker 4 2000 kill:3@event:30 \
    kill:1@event:60 kill:0@event:1200 kill:2@event:90
  t "master_worker, killed at random" master_worker 3 20000 random:3
  t "the solver, ranks are killed one after another" solver 4 kill:3@20% kill:2@40% kill:1@60% \
    kill:0@80%
  t "the solver, killed at random" solver 3 random:3
  t "a ring, killed at random" ring 3 random:3
  t "handlers of signals that are left" unchanged 2 kill:1@50% kill:0@70% -- 2 "$programs/left"
  # every byte is checked again when it comes from the log, which is copied into in either of two ways
  t "large messages, a rank is killed" unchanged 1 kill:1@95% -- 2 "$programs/sizes" 4194304
  t "large messages to ranks that sleep, one is killed" unchanged 1 kill:1@95% -- \
    2 --spin 0 "$programs/sizes" 4194304
}

# --- many at once, and the same again ---------------------------------------------

times_ten() {
  local i all=()
  for ((i = 1; i <= 10; i++)); do
    all+=("kill:1@event:$((i * 150))")
  done
  ring 10 "${all[@]}"
}

storm_of() {
  unchanged 6 random:3 kill:1@30% kill:0@50% kill:7@70% -- 8 "$programs/token_ring" 4000 256
}

many_tests() {
  local iterations=3000
  t "all ranks but rank 0 at the same event" ring 3 kill:1@event:1500 kill:2@event:1500 \
    kill:3@event:1500
  t "all ranks at once, twice" ring 8 kill:0,1,2,3@30% kill:0,1,2,3@80%
  t "the same rank ten times" times_ten
  # both are due before the first one's death is heard of: the second is for the next incarnation
  t "the same rank twice at a time" goes_on 2 2 'kill:1@200ms kill:1@200ms' -n 2 "$actor" init ring=20 \
    "await=$work/go" ring=20 finalize
  t "8 ranks, killed here and there" storm_of
  t "killed again while it repeats" ring 3 kill:1@event:2500 kill:1@event:1200 kill:1@event:2000
  t "killed again at its first event" ring 3 kill:1@event:1500 kill:1@event:1 kill:1@event:1
  t "one is killed while another one repeats" ring 4 kill:1,2@event:2500 \
    kill:1,3@event:1200
}

# --- at the beginning and at the end ----------------------------------------------

# killed_at_end RANK STEP...: the steps of the end, where it waits for $work/go.
killed_at_end() {
  start_job 2 init ring=50 "${@:2}"
  rank_pid "$1" >/dev/null
  sleep 0.3
  kill_rank "$1"
  await_restart "$1"
  touch "$work/go"
  end_killed 1 'ring of 2'
}

edge_tests() {
  local rank ms times=(1 3 5 10 15 20 30 40 60 80 120 200)
  ((slice)) && times=(5 20 60)
  for rank in 0 1; do
    # the other one comes when this one was killed, which so is in MPI_Init at the latest
    for ms in "${times[@]}"; do
      t "killed $ms ms after the start, rank $rank" goes_on 1 1 "kill:$rank@${ms}ms" -n 2 "$actor" \
        "$((1 - rank)):await=$work/go" init ring=20 finalize
    done
    t "killed at the first event, rank $rank" unchanged 1 "kill:$rank@event:1" -- 2 "$actor" init ring=20 finalize
    t "killed in MPI_Finalize, rank $rank" killed_at_end "$rank" "$rank:pid=$work/pid" \
      "$((1 - rank)):await=$work/go" finalize
    t "killed after MPI_Finalize, rank $rank" killed_at_end "$rank" finalize "$rank:pid=$work/pid" \
      "$rank:await=$work/go"
  done
  t "killed before MPI_Init" goes_on 1 1 kill:1@100ms -n 2 "$actor" "1:await=$work/go" init ring=20 finalize
}

# --- programs that nobody here wrote ----------------------------------------------

# What NetPIPE prints for each size of message, without its times.
netpipe_lines() {
  sed -nE 's/^( *[0-9]+: +[0-9]+ bytes) .*/\1/p' "$1"
}

# What it has printed, each figure as it stands in its file: what was measured before it was killed is
# repeated to the last digit.
netpipe_agrees() {
  awk 'NR == FNR { figure[$1] = $2; next }
    / times --> / { lines++; off = figure[$2] - $(NF - 4); if (off * off > 0.0051 * 0.0051) bad = 1 }
    END { exit bad || lines == 0 }' "$work/np.out" "$work/err" ||
    wrong "expected what it printed to be what it wrote to its file"
}

# netpipe RESTARTS FAULT... -- OPTION...: it prints parts of lines to standard error, so what it prints goes
# to files, where causeway's own messages do not come in between.
netpipe() {
  local faults given rest events limit=150 # 52,000 round trips, beside images and what others compute
  split "${@:2}"
  cd "$work" || return
  reference 2 NPmpich2 "${rest[@]}" -p 0 -o np.out
  rm -f np.out
  fault_options "${given[@]}"
  run_killed --output-dir "$work/seen" -n 2 NPmpich2 "${rest[@]}" -p 0 -o np.out
  cd "$tmp" || return
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
  cat "$work"/seen/rank.{0,1}.out >"$work/out"
  cat "$work"/seen/rank.{0,1}.err >"$work/err"
  expect_lines <(sort "$reference") <(sort "$work/out")
  expect_lines <(netpipe_lines "$reference.err") <(netpipe_lines "$work/err")
  netpipe_agrees
}

# Runs a program by scalapack.sh, whose list has its verdict. Its command is a script that adds options
# to `causeway run`, given in $work/options.
scalapack_once() {
  limit=300 run env CAUSEWAY="$work/causeway" EXPLAIN=0 "$here/scalapack.sh" "$1"
  [[ $code = 0 ]] || wrong "$(<"$tmp/out")"
}

# scalapack RESTARTS NAME FAULT...: of its some 50000 events a rank (fewer where a test says so).
scalapack() {
  local restarted faults events=(50000 50000 50000 50000)
  printf '#!/bin/bash\nexec %q run $(<%q) "${@:2}"\n' "${causeway[0]}" "$work/options" >"$work/causeway"
  chmod +x "$work/causeway"
  fault_options "${@:3}"
  echo "${job_options[*]} ${faults[*]}" >"$work/options"
  scalapack_once "$2"
  if [[ $(<"$tmp/out") = *SKIP* ]]; then
    skip "scalapack-mpi-test is not installed"
    return
  fi
  count_faults "$tmp/events"
  restarted=$(grep '"rank_started"' "$tmp/events.last" | grep -Ec '"incarnation": ?([2-9]|[1-9][0-9])')
  enough_restarts "$restarted" "$1" "$1"
}

others_tests() {
  t "NPmpich2, rank 0 is killed in the middle" netpipe 1 kill:0@50% -- -l 1 -u 8192 -n 2000
  t "NPmpich2, rank 1 is killed in the middle" netpipe 1 kill:1@50% -- -l 1 -u 8192 -n 2000
  t "NPmpich2 whose loops last as long as a clock says" netpipe 2 kill:0@event:2000 \
    kill:1@event:4000 -- -l 1 -u 64
  t "ScaLAPACK's xclu" scalapack 1 xclu kill:1@50%
  t "ScaLAPACK's zpb2tst" scalapack 2 zpb2tst kill:0@event:300 kill:2@event:400
  ((slice)) && return
  t "NPmpich2, killed at random" netpipe 3 random:3 -- -l 1 -u 8192 -n 2000
  t "ScaLAPACK's xdsep" scalapack 2 xdsep kill:3@event:6500 kill:0@60%
  t "ScaLAPACK's xdlu" scalapack 3 xdlu random:3
}

# --- input and output -------------------------------------------------------------

# printed_files RESTARTS FAULT...: every rank in a file of its own, where nothing comes in between.
printed_files() {
  local faults file
  run "${causeway[@]}" run --no-log --output-dir "$work/expected" -n 3 "$programs/partial_lines" 500
  fault_options "${@:2}"
  run_killed --output-dir "$work/seen" -n 3 "$programs/partial_lines" 500
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
  for file in rank.{0,1,2}.{out,err}; do
    expect_lines "$work/expected/$file" "$work/seen/$file"
  done
}

# Of one rank alone the parts of lines come out in order, tagged once a line, also when it is killed
# within a line.
printed_tagged() {
  local faults events line steps=()
  for ((line = 1; line <= 400; line++)); do
    steps+=("0:part=$line, " "0:part=and a " ring)
  done
  reference 2 "$actor" init "${steps[@]}" finalize
  fault_options kill:0@40% kill:0@70%
  run_killed --tag-output -n 2 "$actor" init "${steps[@]}" finalize
  expect_code 0
  expect_restarts 2 2
  expect_lines <(sed 's/^/[0] /' "$reference") "$tmp/out"
}

# An end without a newline is not repeated.
printed_end() {
  start_job 2 init ring 0:part=one "0:part= two" "pid=$work/pid" "await=$work/go" \
    0:part=three ring finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  sleep 0.3 # long enough for the part of a line to be shown
  kill_rank 0
  await_back 0
  touch "$work/go"
  finish
  expect_code 0
  expect_restarts 1 1
  [[ $(<"$tmp/out") = $'ring of 2\none twothreering of 2' ]] || wrong "expected each part once"
}

# 40 MB, killed while they are printed: who reads them waits then.
printed_much() {
  local events lines=0:lines=200000,100
  local steps=(init "0:pid=$work/pid" ring "$lines" ring "$lines" ring finalize)
  reference 2 "$actor" "${steps[@]}"
  mkfifo "$work/pipe"
  start bash -c 'exec "${@:2}" >"$1"' _ "$work/pipe" "${causeway[@]}" run \
    "${job_options[@]}" -n 2 "$actor" "${steps[@]}"
  {
    head -c 10000000
    kill_rank 0
    await_restart 0
    head -c 15000000
    kill_rank 0
    await_restart 0 3
    cat
  } <"$work/pipe" >"$tmp/out"
  finish_killed 2
  expect_lines "$reference" "$tmp/out"
}

numbered_lines() {
  seq -f 'line %06.0f of what comes in' "$1" >"$work/input"
}

# echoed RESTARTS FAULT... of the events of rank 0 and others while it reads lines.
echoed() {
  local faults
  numbered_lines 4000
  input=$work/input
  fault_options "${@:2}"
  run_killed -n 3 "$programs/stdin_echo" echo
  input=''
  expect_code 0
  expect_restarts "$1" "$1"
  expect_only_restarts
  expect_lines <(cat "$work/input" && echo 'ok stdin_echo') "$tmp/out"
}

# It is killed where it waits for more of its input, which comes when it was.
echoed_slowly() {
  local faults
  numbered_lines 2000
  fault_options kill:0@500ms kill:0@700ms
  start bash -c '{ head -n 1000 "$1"; until [[ -e $2 ]]; do sleep 0.05; done; tail -n 1000 "$1"; } | "${@:3}"' _ \
    "$work/input" "$work/go" "${causeway[@]}" run "${job_options[@]}" "${faults[@]}" -n 3 "$programs/stdin_echo" echo
  await_restart 0 3
  touch "$work/go"
  finish_killed 2
  expect_lines <(cat "$work/input" && echo 'ok stdin_echo') "$tmp/out"
}

# What rank 0 found of it, and when, is told to others. The first line comes alone, for stdio.
looked_for() {
  local faults feed
  # shellcheck disable=SC2016 # the inner shell's
  feed='echo first; until grep -qsx first "$0"; do sleep 0.05; done; for ((i = 0; i < 60; i++)); do printf "%*d\n" $((i * 7 % 90 + 1)) $i; sleep 0.02; done'
  fault_options kill:0@event:300 kill:0@event:700
  start bash -c "{ $feed; } | "'"$@"' "$tmp/out" "${causeway[@]}" run "${job_options[@]}" "${faults[@]}" -n 3 "$programs/stdin_ways"
  finish_killed 2
  feed=$(bash -c "${feed//sleep/:}" "$tmp/out"; echo .)
  feed=${feed#first$'\n'}
  expect_lines <(printf 'first\n%d bytes, sum %s\nok stdin_ways\n' $((${#feed} - 1)) "$(sum_of "${feed%.}")") "$tmp/out"
}

# As stdin_ways adds them up, after the first line.
sum_of() {
  perl -e 'use integer; $s = 102; $s = $s * 31 + ord for split //, $ARGV[0]; printf "%x", $s' "$1"
}

# More than is kept of it.
too_much_input() {
  relay_stays "the job would end with its relay" && return
  head -c 20000000 /dev/zero | tr '\0' 'x' >"$work/input"
  input=$work/input
  start "${causeway[@]}" run -n 2 "$actor" init ring 0:cat "pid=$work/pid" stuck
  input=''
  await_err "a warning" '^causeway: rank 0 can no longer be restarted: '
  kill_rank 0
  finish
  expect_code 137
  expect_err_like '^causeway: rank 0 .*killed by signal 9.*cannot be restarted because'
}

# To a file that all share, by a program that may do so twice.
files_written() {
  local faults
  fault_options kill:0@event:1000 kill:1@event:1500 kill:3@event:2000
  run_killed --trust-files -n 4 "$programs/mpiio_once" "$tmp" 100
  expect_code 0
  expect_restarts 3 3
  expect_only_restarts
  expect_out 'ok mpiio_once'
  rm -f "$tmp/mpiio_once.tmp"
}

# The events are lines of JSON, and tell what happened.
events_told() {
  local it
  ring 1 kill:1@50%
  for it in job_started rank_started rank_up fault_fired rank_down rank_live rank_ended job_ended; do
    grep -q "\"$it\"" "$tmp/events.last" || wrong "expected the event $it"
  done
  if command -v jq >/dev/null; then
    jq -es 'map(.t | type == "number") | all' "$tmp/events.last" >/dev/null ||
      wrong "expected lines of JSON"
  fi
}

# Where a rank's memory would lie elsewhere, it says so when it starts, and is not restarted.
random_addresses() {
  run "$programs/without" personality "${causeway[@]}" run --fault kill:1@event:30 -n 2 "$actor" init ring=40 finalize
  expect_code 137
  expect_err_like '^causeway: rank [01] can no longer be restarted: its memory would lie elsewhere: personality'
  expect_err_like '^causeway: rank 1 .*cannot be restarted because its memory would lie elsewhere'
}

io_tests() {
  local iterations=3000
  t "--output-dir, ranks are killed" printed_files 3 kill:0@event:800 kill:1@event:400 \
    kill:2@event:600
  t "parts of lines with --tag-output" printed_tagged
  t "a part of a line that was shown before" printed_end
  t "40 MB of output" printed_much
  t "standard input, all are killed" echoed 3 kill:1@event:1000 kill:0@event:3000 kill:2@event:4000
  t "standard input that comes slowly" echoed_slowly
  t "standard input, looked for in many ways" looked_for
  t "standard input that is too long to be kept" too_much_input
  t "addresses are drawn at random" random_addresses
  t "one-sided communication beside a thread that allocates" unchanged 2 kill:1@event:20000 kill:1@event:25000 -- 3 \
    "$programs/rma_beside"
  t "MPI-IO" files_written
  t "--events" events_told
}

# --- killed from outside ----------------------------------------------------------

# from_outside SIGNAL [watcher]: to rank 1, or to the process between it and the dispatcher
from_outside() {
  local it
  start_job 2 init ring=100 "pid=$work/pid" "await=$work/go" ring=100 finalize
  rank_pid 0 >/dev/null
  it=$(rank_pid 1)
  [[ -z ${2-} ]] || it=$(ps -o ppid= -p "$it" | tr -d ' ')
  ((it != pid && it > 1)) || wrong "rank 1 has no watcher: its parent is $it"
  kill_process "$1" "$it"
  await_restart 1
  await_back 1
  touch "$work/go"
  end_killed 1 $'ring of 2\nring of 2'
}

# One that is stopped is taken for dead, and replaced. When it goes on its relay refuses it, and it ends.
stopped() {
  local old
  start "${causeway[@]}" run "${job_options[@]}" --channel off --alive-timeout 2s -n 2 "$actor" init ring=100 "pid=$work/pid" \
    "await=$work/go" ring=100 "0:await=$work/end" ring finalize
  rank_pid 0 >/dev/null
  old=$(rank_pid 1)
  kill -STOP "$old"
  await_restart 1
  await_back 1
  touch "$work/go"
  gone "$old" && wrong "the stopped process was ended: it may be on a machine that cannot be reached"
  kill -CONT "$old"
  await_true "the replaced process to end" gone "$old"
  touch "$work/end"
  finish
  expect_code 0
  expect_restarts 1 1
  expect_out $'ring of 2\nring of 2\nring of 2'
}

# A signal to the dispatcher ends the job also while a rank repeats itself.
interrupted() {
  start_job 2 init ring=20000 "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill_rank 1
  await_restart 1
  kill -INT "$pid"
  finish
  expect_code 130
}

over_tcp() {
  local faults events
  relay_stays "it was started by hand" && return
  start_tcp_relay
  reference 4 "$programs/solver" 256 2000 100
  fault_options kill:1@30% random:2
  run_killed --relay "$address" --key-file "$work/key" -n 4 "$programs/solver" 256 2000 100
  expect_code 0
  expect_restarts 3 3
  expect_only_restarts
  expect_lines "$reference" "$tmp/out"
  kill -0 "$helper" || wrong "the relay is gone"
}

# What `causeway status` shows of a job with a rank that came back.
status_shown() {
  relay_stays "incarnations are counted" && return
  start_job 2 init ring=100 "pid=$work/pid" "await=$work/go" ring finalize
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  kill_rank 1
  await_back 1
  "${causeway[@]}" status "$pid" >"$work/status" 2>&1 || wrong "status: $(<"$work/status")"
  grep -Eq '^ *1 +[^ ]+ +[0-9]+ +2 +live ' "$work/status" ||
    wrong "expected rank 1 as incarnation 2, live: $(<"$work/status")"
  "${causeway[@]}" status --json "$pid" >"$work/json" 2>&1 || wrong "status --json: $(<"$work/json")"
  grep -Eq '"incarnation": ?2' "$work/json" || wrong "expected incarnation 2: $(<"$work/json")"
  touch "$work/go"
  end_killed 1 $'ring of 2\nring of 2'
}

outside_tests() {
  t "kill -9 of a rank" from_outside KILL
  t "kill of a rank" from_outside TERM
  t "kill -9 of the process that watches a rank" from_outside KILL watcher
  t "a rank that is stopped, is replaced, and goes on" stopped
  t "a rank that is stopped, and stays so" goes_on 2 1 stop:1@300ms --alive-timeout 2s -n 2 "$actor" init ring=100 \
    "await=$work/go" ring=100 finalize
  t "SIGINT while a rank repeats itself" interrupted
  t "a relay on tcp" over_tcp
  t "two programs, one of which a script starts" unchanged 2 kill:1@event:10 kill:2@event:15 -- \
    2 "$actor" init ring=20 ring=20 finalize : -n 2 bash -c "exec \"$actor\" init ring=20 ring=20 finalize"
  # the script's process is killed, not that of the MPI program
  t "a rank that is a script" goes_on 2 1 kill:1@200ms -n 2 \
    bash -c "\"$actor\" init ring=20 await=$work/go ring=20 finalize; true"
  t "status" status_shown
}

# --- what is not restarted --------------------------------------------------------

# ends CODE REGEX RESTARTS OPTION... -n RANKS COMMAND...: with so many restarts before, or FROM-TO.
ends() {
  run "${causeway[@]}" run --events "$tmp/events" "${job_options[@]}" "${@:4}"
  count_faults "$tmp/events"
  expect_code "$1"
  expect_restarts "${3%-*}" "${3#*-}"
  grep -E '^causeway' "$tmp/err" | tail -n 1 | grep -Eq -- "$2" ||
    wrong "expected as the last line of causeway's: $2"
}

# The first process aborts, those after it do not.
aborts_once() {
  run "${causeway[@]}" run "${job_options[@]}" -n 3 "$programs/crash" once 1 200 "$work/happened"
  expect_code 0
  expect_restarts 1 1
  expect_err_like '^causeway: rank 1 .*signal 6'
  expect_out 'ok crash'
}

program_deleted() {
  cp "$actor" "$work/program"
  start "${causeway[@]}" run "${job_options[@]}" "$@" -n 2 "$work/program" init ring "pid=$work/pid" stuck
  rank_pid 0 >/dev/null && rank_pid 1 >/dev/null
  rm "$work/program"
  kill_rank 1
  finish
  expect_code '1|126|127'
  expect_err_like "rank 1.*incarnation 2.*$work/program.*No such file|image .* cannot be restored: .*$work/program.* does not exist"
}

# diverges HOW MESSAGE [OPTION...]: what the last rank sends again is not what it sent, as MESSAGE says. It kills itself,
# so that this is after all ranks have what it sent, with whatever MPI.
diverges() {
  ends 1 "^causeway: .*rank 2.*incarnation 2.* does not repeat .*$2" 1 "${@:3}" -n 3 "$programs/diverges" \
    "$1" "$work/number" "$work/deaths"
  [[ ! -s $tmp/out ]] || wrong "expected no output"
}

# diverges_so HOW: it sends to somebody else, or anything else but other bytes.
diverges_so() {
  diverges "$1" 'at poll [0-9]+, act [0-9]+.*, it sends .*where it had .*; since .*: .*'
}

# diverges_traced: where it differs is told, with the calls that led there.
diverges_traced() {
  mkdir "$work/trace"
  export CAUSEWAY_TRACE=$work/trace
  diverges_so length
  unset CAUSEWAY_TRACE
  awk '/^the operation of operation [0-9]+ differs/ { seen = 1 }
    seen && /^  earlier: send, rank 0, .* 8 bytes/ { seen = 2 }
    seen == 2 && /^  now: send, rank 0, .* 9 bytes/ { seen = 3 }
    seen == 3 && /MPI_Send\+/ { seen = 4 }
    END { exit seen != 4 }' "$work/trace/rank.2.2.difference" || wrong "expected the send that differs, saw:
$(cut -c1-150 "$work/trace/rank.2.2.difference")"
}

# differs HOW SINCE [OPTION...]: its messages carry something else.
differs() {
  diverges "$1" "at poll [0-9]+, act [0-9]+.*, an? (message|active message) of [0-9]+ bytes to rank 0 with tag .*, has other contents: hash [0-9a-f]{16}, it was [0-9a-f]{16}; since $2$" \
    --contents-differ end "${@:3}"
}

# differs_and_goes_on HOW [OPTION...]: it is told once.
differs_and_goes_on() {
  run "${causeway[@]}" run "${job_options[@]}" "${@:2}" -n 3 "$programs/diverges" "$1" "$work/number" \
    "$work/deaths" 2
  expect_code 0
  expect_restarts 2 2
  expect_out 'ok diverges'
  expect_err_like '^causeway: rank 2 repeats a message with other contents; .*: act [0-9]+, .* has other contents: hash'
  (($(grep -c 'repeats a message' "$tmp/err") == 1)) || wrong "expected to be told once"
}

# The last rank, in a loop that does nothing but ask a clock, and is told the same for a while each time.
repeats_waiting() {
  local faults
  : >"$work/go"
  fault_options
  run_killed -n 2 "$programs/readings" 10 0 "$work/go"
  expect_code 0
  expect_restarts 1 1
  expect_out 'ok readings'
}

# What the last rank sends depends on how full the disk is, which its first process has changed.
repeats_disk() {
  run "${causeway[@]}" run "${job_options[@]}" -n 3 "$programs/diverges" disk "$work/number" "$work/deaths"
  expect_code 0
  expect_restarts 1 1
  expect_out 'ok diverges'
}

# It says once for each rank that it cannot be restarted, and why.
from_threads() {
  local faults count
  fault_options kill:1@event:150
  run_killed -n 2 "$programs/threads"
  expect_code 137
  expect_restarts 0 0
  count=$(grep -Ec '^causeway: (rank [01]|the ranks) can no longer be restarted: ' "$tmp/err")
  ((count >= 1 && count <= 2)) || wrong "expected one warning for each rank, saw $count"
  expect_err_like '^causeway: rank 1 .*killed by signal 9.*cannot be restarted because'
}

# log_full FAULT...: the log takes less than what is sent.
log_full() {
  local faults
  fault_options "$@"
  run_killed --no-ckpt --log-memory 16M --log-disk 0 -n 2 "$programs/token_ring" 2000 40000
  expect_err_like '^causeway: (rank [01]|the ranks) can no longer be restarted: .*--log-memory'
}

log_full_unkilled() {
  log_full
  expect_code 0
  expect_out 'ok token_ring'
}

log_full_killed() {
  log_full kill:1@event:1600
  expect_code 137
  expect_restarts 0 0
  expect_err_like '^causeway: rank 1 .*killed by signal 9.*cannot be restarted because'
}

limit_tests() {
  t "a fault of the program once" aborts_once
  t "what it sends depends on the room on a disk" repeats_disk
  t "it waits on a clock when it is killed" repeats_waiting
  ((kill_relays)) && return # what follows has no log, or no good end
  t "the same fault of the program twice" ends 139 'rank 1 .*signal 11.*same' 1 \
    --channel off -n 3 "$programs/crash" segv 1 200
  # how far a process came is known once the next one has repeated that, and it may have taken what came just before
  t "the same fault of the program, thrice with channel memory" ends 139 'rank 1 .*signal 11.*same' 2-5 \
    --channel on -n 3 "$programs/crash" segv 1 200
  t "--max-restarts 3, four times killed" ends '1|137' 'rank 1 .*(3 restarts|restarted 3 times|max-restarts)' 3 \
    --max-restarts 3 --fault=kill:1@event:{100,200,300,400} -n 2 "$actor" init ring=1000 finalize
  t "--max-restarts 0" ends '1|137' 'rank 1 .*(0 restarts|max-restarts)' 0 \
    --max-restarts 0 --fault kill:1@event:100 -n 2 "$actor" init ring=1000 finalize
  t "its program was deleted" program_deleted
  t "MPI from several threads, killed" from_threads
  [[ $images_every = 0 ]] || return # the log begins anew at an image, and what came before it is not repeated
  t "a log that is full" log_full_unkilled
  t "a log that is full, killed" log_full_killed
  t "it sends another length" diverges_so length
  t "it sends with another tag" diverges_so tag
  t "it sends to another rank" diverges_so dst
  t "it sends once more" diverges_so count
  t "it waits where it had asked for the time" diverges clock 'it waits where it had asked for the time'
  t "it sends another length, and is traced" diverges_traced
  t "it sends other bytes" differs contents '.*: .*'
  t "it sends what the kernel gave it at random" differs random '.*: .*'
  t "it sends other bytes, the last of many" differs large '.*: .*'
  t "it sends other bytes at the end of a vector" differs vector 'act [0-9]+ at poll [0-9]+, which agreed: no input'
  t "it puts other bytes into a window" differs put '.* messages? of collectives from rank 0'
  t "it sends other bytes, and what it was told before is named" differs inputs \
    'act [0-9]+ at poll [0-9]+, which agreed: 17 clock readings, 2 random numbers, 2 file names, 1 call that failed, 1 probe, 1 message from rank 0 with tag 7'
  t "it sends other bytes and all are compared" differs large '.*: .*' --check-contents all
  t "it sends other bytes, and goes on" differs_and_goes_on contents
  t "it sends other bytes, and has threads" differs_and_goes_on threads --contents-differ end
}

# --- all of it --------------------------------------------------------------------

enough() {
  ((delivered >= campaign)) || wrong "only $delivered kills were delivered in $rounds rounds"
}

# Random kills alone, each round with another seed.
go_on() {
  local rounds=0 iterations=6000
  while ((delivered < campaign && rounds < campaign_rounds_max)); do
    rounds=$((rounds + 1))
    seed=$((seed + 1))
    listed 4
    t "master_worker, seed $seed" master_worker 4 20000 random:4
    t "the solver, seed $seed" solver 4 random:4
    t "a ring, seed $seed" ring 4 random:4
    t "8 ranks, seed $seed" storm_of
    t "NPmpich2, seed $seed" netpipe 3 random:3 -- -l 1 -u 8192 -n 2000
    t "ScaLAPACK's xdlu, seed $seed" scalapack 4 xdlu random:4
  done
  t "at least $campaign kills" enough
}

# number OPTION TEXT: the text, when it is a number.
number() {
  [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] || fail "$1 '$2': expected a number from 1 up"
  echo "$2"
}

parse() {
  while [[ ${1-} = -* ]]; do
    case $1 in
      --slice) slice=1 ;;
      --relays) kill_relays=1 ;;
      --images) images_every=30ms ;;
      --campaign) campaign=$(number "$1" "${2-}") && shift || exit 2 ;;
      --fault-seed) seed=$(number "$1" "${2-}") && shift || exit 2 ;;
      -h | --help) usage 0 ;;
      *) usage 2 >&2 ;;
    esac
    shift
  done
  ((slice && kill_relays)) && export DRAW=${DRAW:-1/5 $seed}
  ((kill_relays)) && suite+=", and relays"
  [[ $images_every = 0 ]] || suite+=", with images"
  only=${1-}
}

main() {
  local it
  parse "$@"
  for it in "${causeway[@]}" "$programs"/{actor,crash,solver}; do
    [[ -x $it ]] || fail "no $it"
  done
  lib_start
  cd "$tmp" || exit 2
  listed 2
  known_tests
  many_tests
  edge_tests
  others_tests
  io_tests
  outside_tests
  limit_tests
  ((campaign)) && go_on
  ((kill_relays && tap_count)) && test_relays_killed
  test_images_used
  echo "# kills delivered: $delivered by --fault, $outside from outside; ranks lost: $lost, restarts: $restarts," \
    "relays killed: $relays_killed, images stored: $images_stored, used: $images_used"
  echo "# lines wrong or missing: $lines_wrong"
  tap_end
}

main "$@"

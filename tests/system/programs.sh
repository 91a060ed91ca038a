#!/bin/bash
# Runs the MPI programs of tests/system/programs, as its LIST says, and expects of each
# exit code 0 and nothing but "ok NAME" on standard output. Prints TAP.
#
#   programs.sh [OPTION...] [REGEX]
#
#   --slice               each with one number of ranks only
#   --relay-tcp           a few of them, over one relay of their own on tcp
#   --kills EVERY         a random rank is killed again and again, about every EVERY (like 300ms)
#   --kills-per-run N     N kills, of random ranks at random times of the run
#   --relays              relays are killed while ranks are, or alone, and come back from their logs
#   --images              images of the ranks are taken all the time, and ranks go on from them
#   --fault-seed N        for all three: other ranks and times (default 1)
#   REGEX                 those whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#   ENGINE    of the relays (default: the command's own)
#
# A line of LIST is: name, numbers of ranks (with commas between), seconds, arguments.
# With kills the last line but one is "# kills delivered: N, ranks lost: N, restarts: N, relays killed: N, images stored: N, used: N".
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite=programs
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
list=$here/programs/LIST
over_tcp='^(p2p_modes|collectives|datatypes|probe|rma_lock)$'
# What cannot be repeated: mpiio empties a file that others write to meanwhile, threads calls MPI
# from several threads.
not_repeatable='^(mpiio|threads)$'
# Writes to a file that all ranks share, and may do so twice.
trusted=mpiio_once
slice=0
tcp=0
every=''
per_run=0
seed=1
relay=()

fail() {
  echo "programs.sh: $*" >&2
  exit 2
}

usage() {
  sed -n '2,20s/^# \{0,1\}//p' "$0"
  exit "$1"
}

rows() {
  grep -Ev '^[[:space:]]*(#|$)' "$list"
}

killing() {
  [[ -n $every ]] || ((per_run || kill_relays))
}

before_test() {
  in_test=0
  job_options=()
  ((kill_relays)) && draw_relay_kills "$seed" "$1"
  [[ $images_every = 0 ]] || job_options+=(--ckpt-every "$images_every")
}

# program NAME RANKS SECONDS ARGUMENT...
program() {
  cd "$work" || return
  limit=$(($3 + 15)) # the dispatcher's own time limit comes first
  if killing; then
    run_and_kill "$@"
  else
    run_program "$@"
  fi
  cd "$tmp" || return
}

# Standard error is not looked at: a program may say something there.
run_program() {
  run "${causeway[@]}" run "${relay[@]}" "${faults[@]}" -n "$2" --timeout "$3" \
    "$root/build/programs/$1" "${@:4}"
  expect_code 0
  expect_out "ok $1"
}

run_and_kill() {
  local faults=() before
  if ((per_run)); then
    before=$(now_ms)
    run_program "$@"
    choose_kills "$2" $(($(now_ms) - before))
    find "$work" -mindepth 1 -delete
  elif [[ -n $every ]]; then
    faults=(--fault "kill:random@$every" --fault-seed "$seed")
  fi
  faults+=(--events "$tmp/events" "${job_options[@]}")
  [[ $1 != "$trusted" ]] || faults+=(--trust-files)
  run_program "$@"
  count_faults "$tmp/events"
  expect_restarts 0
  expect_only_restarts
}

# choose_kills RANKS MS: within the time that the run took without kills.
choose_kills() {
  local i
  for ((i = 0; i < per_run; i++)); do
    faults+=(--fault "kill:$((RANDOM % $1))@$((1 + RANDOM % $2))ms")
  done
}

# The largest of the numbers that is at most 4, or the first.
middle() {
  local one best=$1
  for one in "$@"; do
    ((one <= 4)) && best=$one
  done
  echo "$best"
}

row() {
  local name=$1 counts one
  IFS=, read -r -a counts <<<"$2"
  ((slice)) && counts=("$(middle "${counts[@]}")")
  for one in "${counts[@]}"; do
    t "$name${4+ ${*:4}} ($one ranks$transport)" program "$name" "$one" "$3" "${@:4}"
  done
}

all_rows() {
  local fields
  while read -r -a fields; do
    ((${#fields[@]} >= 3)) || fail "$list: expected name, ranks and seconds: ${fields[*]}"
    ((tcp)) && [[ ! ${fields[0]} =~ $over_tcp ]] && continue
    killing && [[ ${fields[0]} =~ $not_repeatable ]] && continue
    row "${fields[@]}"
  done < <(rows)
}

# The kernel chooses the port. The relay is no helper of a test: it stays for all.
start_shared_relay() {
  local address
  env -u "$mark" "${causeway[@]}" relay --listen tcp:127.0.0.1:0 --key-file "$tmp/key" 2>"$tmp/relay.err" \
    </dev/null &
  relay_pid=$!
  kept+=("$relay_pid")
  await_true "the relay to listen" grep -q 'listening on' "$tmp/relay.err" ||
    fail "the relay does not start: $(<"$tmp/relay.err")"
  address=$(sed -n '1s/.*listening on \([^ ]*\).*/\1/p' "$tmp/relay.err")
  relay=(--relay "$address" --key-file "$tmp/key")
}

# The relay saw nothing that it had to complain of, and ends well.
end_shared_relay() {
  kill "$relay_pid"
  wait "$relay_pid"
  code=$?
  kept=()
  expect_code 0
  [[ $(wc -l <"$tmp/relay.err") = 1 ]] || wrong "the relay says: $(<"$tmp/relay.err")"
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
      --relay-tcp) tcp=1 ;;
      --relays) kill_relays=1 ;;
      --images) images_every=30ms ;;
      --kills)
        [[ -n ${2-} ]] || fail "--kills: expected a time, like 300ms"
        every=$2 && shift
        ;;
      --kills-per-run) per_run=$(number "$1" "${2-}") && shift || exit 2 ;;
      --fault-seed) seed=$(number "$1" "${2-}") && shift || exit 2 ;;
      -h | --help) usage 0 ;;
      *) usage 2 >&2 ;;
    esac
    shift
  done
  [[ -z $every ]] || ((per_run == 0)) || fail "--kills and --kills-per-run exclude each other"
  ((tcp == 0 || kill_relays == 0)) || fail "--relay-tcp and --relays exclude each other"
  only=${1-}
}

main() {
  local transport='' faults=()
  parse "$@"
  RANDOM=$seed
  find_causeway
  [[ -x ${causeway[0]} ]] || fail "no command ${causeway[0]}"
  [[ -r $list ]] || fail "no $list"
  lib_start
  if ((tcp)); then
    transport=', tcp'
    start_shared_relay
  fi
  killing && transport+=", killed, seed $seed"
  ((kill_relays)) && transport+=", and relays"
  [[ $images_every = 0 ]] || transport+=", with images"
  all_rows
  ((tcp)) && t "the relay that carried them" end_shared_relay
  ((kill_relays && tap_count)) && test_relays_killed
  test_images_used
  killing && echo "# kills delivered: $delivered, ranks lost: $lost, restarts: $restarts, relays killed: $relays_killed, images stored: $images_stored, used: $images_used"
  tap_end
}

main "$@"

#!/bin/bash
# Runs the MPI programs of tests/system/programs, as its LIST says, and expects of each
# exit code 0 and nothing but "ok NAME" on standard output. Prints TAP.
#
#   programs.sh [--slice] [--relay-tcp] [REGEX]
#
#   --slice      each with one number of ranks only
#   --relay-tcp  a few of them, over one relay of their own on tcp
#   REGEX        those whose titles match
#
# Environment:
#   CAUSEWAY  the command (default: build/causeway of this tree)
#
# A line of LIST is: name, numbers of ranks (with commas between), seconds, arguments.
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite=programs
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/system/lib.sh
. "$here/lib.sh"
list=$here/programs/LIST
over_tcp='^(p2p_modes|collectives|datatypes|probe|rma_lock)$'
slice=0
tcp=0
relay=()

fail() {
  echo "programs.sh: $*" >&2
  exit 2
}

usage() {
  sed -n '2,14s/^# \{0,1\}//p' "$0"
  exit "$1"
}

rows() {
  grep -Ev '^[[:space:]]*(#|$)' "$list"
}

# program NAME RANKS SECONDS ARGUMENT...
program() {
  cd "$work" || return
  limit=$(($3 + 15)) # the dispatcher's own time limit comes first
  run_program "$@"
  cd "$tmp" || return
}

run_program() {
  run "${causeway[@]}" run "${relay[@]}" -n "$2" --timeout "$3" "$root/build/programs/$1" "${@:4}"
  expect_code 0
  expect_out "ok $1"
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
    row "${fields[@]}"
  done < <(rows)
}

# The kernel chooses the port. The relay is no helper of a test: it stays for all.
start_tcp_relay() {
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
end_tcp_relay() {
  kill "$relay_pid"
  wait "$relay_pid"
  code=$?
  kept=()
  expect_code 0
  [[ $(wc -l <"$tmp/relay.err") = 1 ]] || wrong "the relay says: $(<"$tmp/relay.err")"
}

parse() {
  while [[ ${1-} = -* ]]; do
    case $1 in
      --slice) slice=1 ;;
      --relay-tcp) tcp=1 ;;
      -h | --help) usage 0 ;;
      *) usage 2 >&2 ;;
    esac
    shift
  done
  only=${1-}
}

main() {
  local transport=''
  parse "$@"
  read -r -a causeway <<<"${CAUSEWAY:-$root/build/causeway}"
  causeway[0]=$(realpath "${causeway[0]}")
  [[ -x ${causeway[0]} ]] || fail "no command ${causeway[0]}"
  [[ -r $list ]] || fail "no $list"
  lib_start
  if ((tcp)); then
    transport=', tcp'
    start_tcp_relay
  fi
  all_rows
  ((tcp)) && t "the relay that carried them" end_tcp_relay
  tap_end
}

main "$@"

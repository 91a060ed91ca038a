# shellcheck shell=bash
# Shared by the suites of jobs on several hosts (tests/hosts.sh): the hosts node1 to node3, commands of jobs on them,
# what the jobs tell, and what stays. After tests/lib/system.sh.

# shellcheck disable=SC2034,SC2154 # some of these are for the suites, some from them

# shellcheck source=tests/hosts.sh
. "$root/tests/hosts.sh"
solver=$root/build/programs/solver
three=node1:2,node2:2,node3:2

# hosts_start TITLE [COUNT]: the hosts, three if not said, which share $tmp with this machine, until the end of the suite; where there can be none
# the suite ends
hosts_start() {
  trap 'hosts_down; lib_end' EXIT
  export HOSTS_SHARED=$tmp # also when a host is started again
  hosts_up "${2:-3}" 2>"$tmp/err"
  case $? in
  0) ;;
  77)
    tap_skip "$1" "$(<"$tmp/err")"
    tap_end
    ;;
  *)
    cat "$tmp/err"
    tap_not_ok "$1"
    tap_end
    ;;
  esac
}

# on LIST OPTION... PROGRAM ARG...: the command of a job
on() {
  job_command=("${causeway[@]}" run --host "$1" --launcher-args "-F $hosts_config" --events "$work/events" "${@:2}")
}

# on_hosts LIST OPTION... PROGRAM ARG...: runs it
on_hosts() {
  on "$@"
  run "${job_command[@]}"
}

# expect_solver SIZE ITERATIONS [RANKS]: it printed what it prints on this machine alone
expect_solver() {
  "${causeway[@]}" run -n "${3:-4}" "$solver" "$1" "$2" 1000 >"$work/alone" 2>&1
  cmp -s "$work/alone" "$tmp/out" || wrong "the solver printed something else than on one machine: $(<"$work/alone")"
  expect_code 0
}

# event NAME [RANK]: how many there are
event() {
  jq -s --arg name "$1" --argjson rank "${2:-null}" \
    'map(select(.event == $name and ($rank == null or .rank == $rank))) | length' "$work/events" 2>/dev/null
}

event_is_there() {
  (($(event "$@") > 0))
}

# started_on RANK HOST INCARNATION: it was started there, as this incarnation or a later one
started_on() {
  jq -es --argjson rank "$1" --arg host "$2" --argjson least "$3" 'any(.[];
    .event == "rank_started" and .rank == $rank and .host == $host and .incarnation >= $least)' "$work/events" >/dev/null 2>&1
}

# nothing_stays HOST...: no process of Causeway, and no directory of a node
nothing_stays() {
  local host
  for host in "$@"; do
    await_true "the processes of node$host to end" none_on "$host"
    says ls -d "$hosts_dir/$host"/tmp/causeway-* 2>/dev/null && wrong "node$host has a directory of a node"
  done
}

none_on() {
  ! says on_host "$1" pgrep causeway
}

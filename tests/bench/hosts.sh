# shellcheck shell=bash
# Between hosts, which are network namespaces of this machine (tests/hosts.sh): sections of bench.sh, which sources this
# after lib.sh and tests/hosts.sh.
#
# Environment: HOSTS_ROUNDS (default RUNS), HOSTS_START_RANKS (of jobs whose start is timed, "8 64"), HOSTS_START_MANY
#   (likewise, without stock, "128 256 512")

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir; tests/hosts.sh the names that begin with hosts_
# shellcheck disable=SC2016,SC2317 # the dollars in single quotes are jq's; functions are called by their names

HOSTS_ROUNDS=${HOSTS_ROUNDS:-$RUNS}
HOSTS_START_RANKS=${HOSTS_START_RANKS:-8 64}
HOSTS_START_MANY=${HOSTS_START_MANY-128 256 512}
HOSTS_START_STOCK_S=20    # after which a run of stock is ended
HOSTS_START_STOCK_FAILS=2 # runs of so many ranks that ended badly, after which stock has no other
HOSTS_SIZES="1 1048576" # bytes
HOSTS_LOST_AT_S=4
HOSTS_CUT_AT_S=3
HOSTS_CUT_S=2

# bench_hosts N WHAT: the hosts 1 to N, or that WHAT is not measured
bench_hosts() {
  hosts_up "$1" 2>"$dir/stats" && return
  missing "$2: $(tail -n 1 "$dir/stats")"
  hosts_down
  return 1
}

# stock_hosts RANKS COMMAND...: stock MPICH over TCP, the ranks by turns on the hosts, as lib.sh has it on one. Its
# processes are started by ssh, and find this machine at the address of the device that leads to them.
stock_hosts() {
  local ranks=$1 names
  shift
  names=$(hosts_list | cut -d ' ' -f 1 | paste -sd ,)
  UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MPIR_CVAR_NOLOCAL=1 timeout -k 5 "${stock_limit:-60}" \
    mpirun.mpich -launcher ssh -launcher-exec "$hosts_ssh" -iface "cw$hosts_number" -hosts "$names" -wdir /tmp \
    -n "$ranks" "$@" 2>"$dir/stats" </dev/null
}

# hosts_job RANKS OPTION... COMMAND...: Causeway, the ranks by turns on the hosts.
hosts_job() {
  local ranks=$1 names
  shift
  names=$(hosts_list | awk -v slots="$ranks" '{ printf "%s%s:%d", (NR > 1 ? "," : ""), $1, slots }')
  timeout -k 5 "${stock_limit:-60}" "$causeway" run --host "$names" --map-by node --launcher-args "-F $hosts_config" \
    --wdir /tmp -n "$ranks" "$@" 2>"$dir/stats" </dev/null
}

relay_each() {
  hosts_job "$1" --no-log "${@:2}"
}

relay_one() {
  hosts_job "$1" --no-log --relay-at cluster "${@:2}"
}

# hosts_net_once RUNNER: appends "BYTES MICROSECONDS", one way, to the samples of the runner. Rank 0 writes them, on
# host 1. They count also when the run is ended: on a loaded machine stock MPICH may hang in MPI_Finalize, rank 0 in PMI's
# barrier, rank 1 polling.
hosts_net_once() {
  local size out=$hosts_dir/1/tmp/np
  for size in $HOSTS_SIZES; do
    rm -f "$out"
    "$1" 2 NPmpich2 -l "$size" -u "$size" -p 0 -o /tmp/np >/dev/null
    if [ -s "$out" ]; then
      awk '{ print $1, $3 * 1e6 }' "$out" >>"$dir/hosts.$1"
    else
      uncounted "NPmpich2 between two hosts, $1, $size B"
    fi
  done
}

hosts_net() {
  local size runner
  title "NetPIPE (NPmpich2) between two hosts: one way, $HOSTS_ROUNDS rounds"
  bench_hosts 2 "NetPIPE between hosts" || return
  rm -f "$dir"/hosts.*
  take_turns "$HOSTS_ROUNDS" "stock_hosts relay_each relay_one" hosts_net_once
  hosts_down
  for runner in each one; do
    ratios "$dir/hosts.relay_$runner" "$dir/hosts.stock_hosts" >"$dir/hosts.by_$runner"
  done
  for runner in stock_hosts relay_each relay_one by_each by_one; do
    awk -v runner="$runner" '{ print runner "." $1, $2 }' "$dir/hosts.$runner"
  done >"$dir/hosts"
  echo "After [MPICH-V] figure 7. Microseconds; each host has one rank. A message passes two relays where each host has one."
  echo "Goal with a relay on each host: at most 2.5 times stock's time at 1 B, 1.11 times at 1 MB (0.9 of its bandwidth)."
  table bytes "stock" "relay on each host" "one relay" "each / stock" "one / stock"
  for size in $HOSTS_SIZES; do
    row "$dir/hosts" "NetPIPE between hosts at $size B" "$size" "=quartiles stock_hosts.$size 2" \
      "=quartiles relay_each.$size 2" "=quartiles relay_one.$size 2" "=quartiles by_each.$size 2" "=quartiles by_one.$size 2"
  done
}

# --- the loss of a host ---------------------------------------------------------------------------

# Seconds of events, since 1970; of the last one where there are several ranks.
hosts_lost_once() {
  local killed
  rm -f "$dir/events"
  host_start 2
  stock_limit=120 hosts_job 8 --spares 1 --ppn 4 --relay-at cluster --host-timeout 1s --ckpt-every 500ms \
    --events "$dir/events" "$programs/solver" 256 8000 8000 >"$dir/out" &
  sleep "$HOSTS_LOST_AT_S"
  killed=$EPOCHREALTIME
  host_kill 2
  wait $! || return 1
  jq -rs --argjson killed "$killed" '
    def at: (.time | sub("\\.[0-9]+Z"; "Z") | fromdateiso8601) + (.time | capture("\\.(?<f>[0-9]+)Z").f | "0.\(.)" | tonumber);
    def last_of($event): [.[] | select(.event == $event and (.incarnation // 0) > 1) | at] | max;
    ([.[] | select(.event == "host_lost") | at][0]) as $lost
    | last_of("rank_started") as $started | last_of("rank_up") as $up | last_of("rank_live") as $live
    | if ([.[] | select(.event == "rank_restored")] | length) < 4 then error("not all went on from images") else
      "lost \($lost - $killed)", "started \($started - $lost)", "up \($up - $started)", "live \($live - $up)",
      "all \($live - $killed)" end' "$dir/events" >"$dir/new" 2>>"$dir/stats" && cat "$dir/new" >>"$dir/hosts"
}

hosts_lost() {
  title "From the loss of a host until its 4 ranks are live again on a spare one, --host-timeout 1s, images, $HOSTS_ROUNDS rounds"
  bench_hosts 3 "the loss of a host" || return
  rm -f "$dir/hosts"
  rounds "$HOSTS_ROUNDS" "the loss of a host" hosts_lost_once
  hosts_down
  table "s until it is given up" "until the last process is started" "restored and connected" "live" "all of it"
  row "$dir/hosts" "the loss of a host" "=spread lost 2" "=spread started 2" "=spread up 2" "=spread live 2" "=spread all 2"
}

# --- a cut ----------------------------------------------------------------------------------------

# hosts_cut_once NAME OPTION...: seconds from the end of a cut until a byte has come back again
hosts_cut_once() {
  local joined
  rm -f "$dir/events"
  hosts_job 2 "${@:2}" --events "$dir/events" "$programs/gap" $((HOSTS_CUT_AT_S + HOSTS_CUT_S + 5)) >"$dir/out" &
  sleep "$HOSTS_CUT_AT_S"
  host_cut 2
  sleep "$HOSTS_CUT_S"
  joined=$EPOCHREALTIME
  host_join 2
  wait $! || return 1
  ! grep -Eq '"event":"(rank_down|host_lost)"' "$dir/events" || return 1
  awk -v name="$1" -v cut="$HOSTS_CUT_S" -v joined="$joined" '$1 == "gap" && $2 > cut * 0.9 {
    print name, $3 - joined; found = 1 } END { exit !found }' "$dir/out" >>"$dir/hosts"
}

hosts_cut() {
  title "Two hosts that are cut from each other for $HOSTS_CUT_S s: from its end until a byte has come back, $HOSTS_ROUNDS rounds"
  bench_hosts 2 "a cut between hosts" || return
  rm -f "$dir/hosts"
  rounds "$HOSTS_ROUNDS" "a cut, a relay on each host" hosts_cut_once each
  rounds "$HOSTS_ROUNDS" "a cut, one relay" hosts_cut_once one --relay-at cluster
  hosts_down
  echo "No rank is restarted. A round in which one is does not count."
  table "" "s"
  row "$dir/hosts" "a cut, a relay on each host" "relay on each host" "=spread each 2"
  row "$dir/hosts" "a cut, one relay" "one relay" "=spread one 2"
}

# --- the start of many ranks ----------------------------------------------------------------------

# hosts_start_once RUNNER RANKS: of a program that does one round. Where many ranks share few cores, those of stock, which
# poll, may not come to an end: such a run is ended, and after HOSTS_START_STOCK_FAILS of them there is no other.
hosts_start_once() {
  local run=$1.$2 status stock_limit=120 patience=(--host-timeout 100s)
  if [[ $1 = stock_hosts ]]; then
    (($(hosts_start_failed "$run") < HOSTS_START_STOCK_FAILS)) || return 0
    stock_limit=$HOSTS_START_STOCK_S patience=()
  fi
  timed "$1" "$2" "${patience[@]}" "$programs/token_ring" 1 8 >"$dir/out"
  status=$?
  ((status)) || { echo "$run $took" >>"$dir/hosts" && return; }
  echo "$run -" >>"$dir/hosts"
  uncounted "${run/./, } ranks: $(hosts_start_why "$status")"
}

# hosts_start_failed RUN: how many runs of it ended badly
hosts_start_failed() {
  grep -cx "$1 -" "$dir/hosts"
}

# hosts_start_why STATUS: what a run that ended badly had done
hosts_start_why() {
  case $1 in
  124 | 137) printf 'no end in %d s' "$((stock_limit))" ;;
  *) printf 'ended with %d' "$1" ;;
  esac
  ! grep -q '^ok ' "$dir/out" || printf ', after the round of messages, in MPI_Finalize'
}

# hosts_start_row RANKS: beside stock, as far as that came to an end
hosts_start_row() {
  local stock=stock_hosts.$1 ours=relay_each.$1 cell=- ratio=- failed
  failed=$(hosts_start_failed "$stock")
  if sampled "$dir/hosts" "$stock"; then
    cell=$(figure spread "$stock" "$dir/hosts" 2)
    ratio=$(ratio "$(median "$ours" "$dir/hosts")" "$(median "$stock" "$dir/hosts")")
  fi
  [ "$failed" = 0 ] || cell+="; failed: $failed, see below"
  row "$dir/hosts" "$1 ranks on 8 hosts" "$1" "$cell" "=spread $ours 2" "$ratio"
}

hosts_start() {
  local ranks
  title "The start of ranks on 8 hosts: seconds of a whole job that does one round of messages, $HOSTS_ROUNDS rounds"
  bench_hosts 8 "the start of ranks on hosts" || return
  : >"$dir/hosts"
  for ranks in $HOSTS_START_RANKS; do
    take_turns "$HOSTS_ROUNDS" "stock_hosts relay_each" hosts_start_once "$ranks"
  done
  for ranks in $HOSTS_START_MANY; do
    take_turns "$HOSTS_ROUNDS" relay_each hosts_start_once "$ranks"
  done
  hosts_down
  echo "Goal at 64: below 2 s, and below mpirun.mpich's by ssh."
  table ranks "mpirun.mpich s" "causeway run s" "causeway / mpirun.mpich"
  for ranks in $HOSTS_START_RANKS $HOSTS_START_MANY; do
    hosts_start_row "$ranks"
  done
}

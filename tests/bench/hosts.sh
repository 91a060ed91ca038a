# shellcheck shell=bash
# Between hosts, which are network namespaces of this machine (tests/hosts.sh): sections of bench.sh, which sources this
# after lib.sh and tests/hosts.sh.
#
# Environment: HOSTS_ROUNDS (default RUNS)

# shellcheck disable=SC2154 # bench.sh sets RUNS and dir; tests/hosts.sh the names that begin with hosts_

HOSTS_ROUNDS=${HOSTS_ROUNDS:-$RUNS}
HOSTS_SIZES="1 1048576" # bytes

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
  local size
  title "NetPIPE (NPmpich2) between two hosts: one way, $HOSTS_ROUNDS rounds"
  bench_hosts 2 "NetPIPE between hosts" || return
  rm -f "$dir"/hosts.*
  take_turns "$HOSTS_ROUNDS" stock_hosts hosts_net_once
  hosts_down
  table bytes "stock us"
  for size in $HOSTS_SIZES; do
    row "$dir/hosts.stock_hosts" "NetPIPE between hosts at $size B" "$size" "=quartiles $size 2"
  done
}

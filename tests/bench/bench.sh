#!/bin/bash
# The figures of docs/benchmarks.md, each beside stock MPICH over TCP in the same run. Every figure is the
# median of RUNS interleaved runs. Prints markdown; the figures of recovery (recovery.sh) and of engines
# (engines.sh) compare Causeway with itself. Ends with code 1 when something could not be measured.
#
# Environment: RUNS (default 5), IDLE_SECONDS (60), SECTIONS (all by default; those of hosts need
# root); more in recovery.sh, engines.sh, programs.sh, channel.sh, log_disk.sh, hosts.sh, copies.sh
set -u
cd "$(dirname "$0")/../.." || exit 1
RUNS=${RUNS:-5}
IDLE_SECONDS=${IDLE_SECONDS:-60}
SECTIONS=${SECTIONS:-netpipe counts collectives programs nwchem polling channel idle memory unexpected sessions log_cost clock_cost
  log_memory log_disk log_safety relay_back sync_rate replay_speed kill_to_live solver_kills images images_solver
  images_kills images_flat idle_crowd burst engine_log sites_crossings
  $( ((EUID)) || echo sites_time hosts_net hosts_lost hosts_cut hosts_start copies_ping copies_net copies_lost copies_bytes
    tunnels grid_net grid_solver grid_third grid_cuts grid_connections)}
causeway=$PWD/build/causeway
programs=$PWD/build/programs
dir=$(mktemp -d)
trap ending EXIT

ending() {
  hosts_down
  rm -rf "$dir"
}

# shellcheck source=tests/bench/lib.sh
. tests/bench/lib.sh
# shellcheck source=tests/bench/recovery.sh
. tests/bench/recovery.sh
# shellcheck source=tests/bench/engines.sh
. tests/bench/engines.sh
# shellcheck source=tests/bench/programs.sh
. tests/bench/programs.sh
# shellcheck source=tests/bench/channel.sh
. tests/bench/channel.sh
# shellcheck source=tests/bench/sessions.sh
. tests/bench/sessions.sh
# shellcheck source=tests/bench/log_disk.sh
. tests/bench/log_disk.sh
# shellcheck source=tests/bench/log_safety.sh
. tests/bench/log_safety.sh
# shellcheck source=tests/bench/images.sh
. tests/bench/images.sh
# shellcheck source=tests/hosts.sh
. tests/hosts.sh
# shellcheck source=tests/bench/hosts.sh
. tests/bench/hosts.sh
# shellcheck source=tests/bench/copies.sh
. tests/bench/copies.sh
# shellcheck source=tests/bench/sites.sh
. tests/bench/sites.sh
# shellcheck source=tests/bench/tunnels.sh
. tests/bench/tunnels.sh
# shellcheck source=tests/grid.sh
. tests/grid.sh
# shellcheck source=tests/lib/on_grid.sh
. tests/lib/on_grid.sh
# shellcheck source=tests/bench/grid.sh
. tests/bench/grid.sh

netpipe_once() {
  local runner=$1 out=$dir/np
  rm -f "$out"
  (cd "$dir" && "$runner" 2 NPmpich2 -l 1 -u 8388608 -p 0 -o "$out" >/dev/null)
  # bytes, seconds one way
  [ -f "$out" ] && awk '{ print $1, $3 * 1e6 }' "$out" >>"$dir/netpipe.$runner"
}

netpipe() {
  title "NetPIPE (NPmpich2), 2 ranks: one way, medians of $RUNS runs"
  for _ in $(seq "$RUNS"); do
    netpipe_once stock
    netpipe_once ours
  done
  table bytes "stock us" "Causeway us" "latency ratio" "stock MB/s" "Causeway MB/s" "bandwidth ratio"
  awk '{ print $1 }' "$dir/netpipe.stock" | sort -nu | while read -r size; do
    s=$(median "$size" "$dir/netpipe.stock")
    o=$(median "$size" "$dir/netpipe.ours")
    awk -v n="$size" -v s="$s" -v o="$o" 'BEGIN {
      printf "| %d | %.2f | %.2f | %.2f | %.1f | %.1f | %.2f |\n", n, s, o, o / s, n / s, n / o, s / o }'
  done | tee "$dir/netpipe.table"
  echo
  awk -F'|' '$2 + 0 == 1 { print "1 B latency:" $5 "times stock (goal: at most 1.5)" }
    $2 + 0 == 65536 { print "64 KB bandwidth:" $8 "times stock (goal: at least 1.1)" }
    $2 + 0 == 1048576 { print "1 MB bandwidth:" $8 "times stock (goal: at least 1.1)" }
    $2 + 0 == 8388608 { print "8 MB bandwidth:" $8 "times stock (goal: at least 1.1)" }
    NR == 1 || $8 + 0 < low { low = $8 + 0; at = $2 + 0 }
    END { printf "lowest bandwidth ratio of all sizes: %.2f at %d B (goal: at least 0.6)\n", low, at }' \
    "$dir/netpipe.table" | sed 's/^/- /'
}

# what one message costs: counted in two jobs of different length, so that start and end cancel out
count_job() {
  ours 2 --channel off --stats "$programs/pingpong" "$1" 1 >/dev/null
  echo "$(stats_sum syscalls) $(stats_sum switches) $(stats_sum polls) $(stats_sum sleeps)" \
    "$(stats_relay syscalls) $(stats_relay switches) $(stats_relay wakeups) $(stats_relay allocations)"
}

counts() {
  local few many n=40000
  title "What one small message costs (1 B round trips, 2 ranks)"
  few=$(count_job 20000)
  many=$(count_job 60000)
  # 40,000 round trips are 80,000 messages; each rank takes part in every message as sender or receiver
  echo "$few $many" | awk -v n=$((2 * n)) 'NF != 16 { exit 1 } {
    printf "| | ranks, both | relay |\n|---|---:|---:|\n"
    printf "| system calls a message | %.2f | %.2f |\n", ($9 - $1) / n, ($13 - $5) / n
    printf "| context switches a message | %.2f | %.2f |\n", ($10 - $2) / n, ($14 - $6) / n
    printf "| calls for progress, wakeups | %.2f | %.2f |\n", ($11 - $3) / n, ($15 - $7) / n
    printf "| allocations a message | none: a pool of its own | %.5f |\n", ($16 - $8) / n }' ||
    missing "what a message costs: no counters in what --stats printed"
  echo
  echo "What such calls cost here, in nanoseconds, both ends in one process:"
  echo
  "$programs/primitives" | sed 's/-/ /g; s/^/- /'
}

collectives() {
  local ranks s o
  title "Oversubscribed: barriers and 8-byte allreduces, mean of one in microseconds, 2 cores"
  table ranks l:operation "stock us" "Causeway us" "stock / Causeway (goal: at least 10)"
  for ranks in 8 16; do
    rm -f "$dir"/c.*
    for _ in 1 2 3; do
      # stock spins: fewer of them, or it takes for ever
      stock "$ranks" "$programs/collective_time" $((240 / ranks)) >>"$dir/c.stock"
      ours "$ranks" "$programs/collective_time" 1000 >>"$dir/c.ours"
    done
    for what in barrier allreduce; do
      s=$(median $what "$dir/c.stock")
      o=$(median $what "$dir/c.ours")
      echo "| $ranks | $what | $s | $o | $(ratio "$s" "$o") |"
    done
  done
}

idle() {
  title "Idle: 4 ranks, 3 of them blocked in MPI_Recv for $IDLE_SECONDS s"
  watch_job "$causeway" run -n 4 "$programs/idle" "$IDLE_SECONDS"
  awk -v seconds="$IDLE_SECONDS" -v hz="$(getconf CLK_TCK)" '
    $1 == "idle-ranks-percent" { ranks = $2 }
    $1 == "relay" { relay = 100 * $2 / hz / seconds }
    END { printf "- ranks %.2f%% of one core, relay %.2f%%, together %.2f%% (goal: below 2%%)\n",
          ranks, relay, ranks + relay }' "$dir/watched" "$dir/ticks"
}

memory() {
  title "Memory of the relay: one message of 256 MB, its receive posted"
  watch_job "$causeway" run -n 2 --no-log --channel off --stats "$programs/big_message" 268435456
  awk '/VmHWM/ { printf "- resident at most %.1f MiB (goal: below 64)\n", $2 / 1024 }' "$dir/hwm"
  sed -n 's/.*memory [0-9]* bytes, at most \([0-9]*\).*/\1/p' "$dir/stats" |
    awk '{ printf "- of which messages and blocks: %.1f MiB\n", $1 / 1048576 }'
}

unexpected() {
  local a b
  title "100,000 unexpected messages with distinct tags, microseconds a receive"
  rm -f "$dir/u"
  for _ in $(seq "$RUNS"); do
    ours 2 "$programs/unexpected_time" 100000 >>"$dir/u"
  done
  a=$(median in-order "$dir/u")
  b=$(median reverse "$dir/u")
  echo "- in order $a, in reverse $b: $(ratio "$b" "$a") times (goal: at most 3)"
}

echo "# Benchmarks"
echo
echo "Made by \`make bench\` on $(nproc) cores of $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo),"
echo "Linux $(uname -r), MPICH $(mpichversion 2>/dev/null | awk '/^MPICH Version/ { print $3 }'); stock is the same"
echo "MPICH with \`UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1\`, in the same run."
echo "Beside stock Causeway runs with \`--no-log\`, since stock has no recovery either; what recovery costs has"
echo "sections of its own."
for section in $SECTIONS; do
  $section
done
if [ -e "$dir/uncounted" ]; then
  title "Runs that do not count"
  cat "$dir/uncounted"
fi
[ ! -e "$dir/missing" ]

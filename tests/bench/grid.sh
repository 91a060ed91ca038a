# shellcheck shell=bash
# Sites that only SSH joins, which are network namespaces of this machine (tests/grid.sh): sections of bench.sh, which
# sources this after lib.sh, engines.sh and tests/grid.sh. They need root. The peers, TCP itself and stock MPICH, go over
# the same ways as if there were no firewalls (grid_open).
#
# Environment: GRID_ROUNDS (default RUNS), GRID_RANKS (of the solver, 12), GRID_SIZE and GRID_STEPS (of its grid, 2048 200)

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir; tests/grid.sh the names that begin with hosts_ and grid_
# shellcheck disable=SC2016,SC2317 # functions are called by their names

GRID_ROUNDS=${GRID_ROUNDS:-$RUNS}
GRID_RANKS=${GRID_RANKS:-12}
GRID_SIZE=${GRID_SIZE:-2048}
GRID_STEPS=${GRID_STEPS:-200}
GRID_NEAR=a1:a2 # in one site
GRID_LARGE=1048576
GRID_RANDOM_TRIPS=10
GRID_THIRD_SIZE=256
GRID_THIRD_STEPS=1000
GRID_CUT_AT_S=3
GRID_CUT_S=10
GRID_START_MAX_S=60
GRID_COUNTED_S=8 # for so long a job lasts whose connections are counted
# FROM:TO:MS:MBIT, one way, as [Relay] figures 10 and 11: a is Bordeaux, b Orsay, c Rennes, d Sophia
GRID_WAYS="a:b:4:108 a:c:4:110 a:d:5:68 b:c:5:95 b:d:9:42 c:d:9:40"

# bench_grid WHAT SITE...: the sites a b ... with their services, or that WHAT is not measured. As grid_up; SITE:noin is
# published at b.
bench_grid() {
  grid_sites=("${@:2}")
  grid_sites=("${grid_sites[@]/%:noin/:b}")
  export HOSTS_SHARED=$dir
  GRID_SLOTS=$GRID_RANKS grid_file "${grid_sites[@]}" >"$dir/grid.conf"
  if grid_up "${@:2}" 2>"$dir/stats" >&2; then
    grid_publish "${grid_sites[@]}"
    bench_services up && return
  fi
  missing "$1: $(tail -n 1 "$dir/stats")"
  grid_down
  return 1
}

# bench_services up|down
bench_services() {
  grid_services "$1" "$dir/grid.conf" "${grid_sites[@]}" >"$dir/stats" 2>&1
}

bench_ways() {
  local way from to ms mbit
  for way in $GRID_WAYS; do
    IFS=: read -r from to ms mbit <<<"$way"
    grid_slow "$from" "$to" "$ms" "$mbit" || return
  done
}

# grid_run HOST... -- OPTION... COMMAND...: Causeway, a rank on each
grid_run() {
  local hosts=()
  while [[ $1 != -- ]]; do
    hosts+=("$1")
    shift
  done
  grid_ranks "${hosts[@]}" >"$dir/ranks"
  timeout -k 5 "${our_limit:-120}" "$grid_front" "$causeway" run -f "$dir/grid.conf" --rankfile "$dir/ranks" \
    -n "${#hosts[@]}" --no-ckpt --wdir /tmp "${@:2}" 2>"$dir/stats" </dev/null
}

# the address that a host has in its site
grid_address() {
  awk -v host="$1" '$1 == host { split($2, all, ","); print all[1] }' "$hosts_dir/list"
}

# --- ways -----------------------------------------------------------------------------------------

# grid_net_tcp FROM TO OPTION...: NetPIPE over TCP itself
grid_net_tcp() {
  local to
  on_host "$2" timeout 60 NPtcp "${@:3}" >/dev/null 2>&1 &
  to=$!
  sleep 0.3
  on_host "$1" timeout 60 NPtcp -h "$(grid_address "$2")" "${@:3}" -o /tmp/np >/dev/null 2>"$dir/stats"
  wait "$to"
}

grid_net_off() {
  grid_run "$1" "$2" -- --no-log NPmpich2 "${@:3}" -o /tmp/np >/dev/null
}

grid_net_on() {
  grid_run "$1" "$2" -- NPmpich2 "${@:3}" -o /tmp/np >/dev/null
}

# Writes what NetPIPE does: bytes, Mbit/s, seconds
grid_net_random() {
  grid_run "$1" "$2" -- --no-log "$programs/pingpong" "$GRID_RANDOM_TRIPS" "$GRID_LARGE" random |
    awk -v bytes="$GRID_LARGE" '{ print bytes, bytes * 8 / $2, $2 / 1e6 }' >"$hosts_dir/$1/tmp/np"
}

# grid_net_once RUNNER FROM TO BYTES REPEATS: appends "FROM:TO:BYTES MICROSECONDS", one way
grid_net_once() {
  local out=$hosts_dir/$2/tmp/np
  rm -f "$out"
  "grid_net_$1" "$2" "$3" -l "$4" -u "$4" -p 0 -n "$5"
  if [ -s "$out" ]; then
    awk -v key="$2:$3:$4" '{ print key, $3 * 1e6 }' "$out" >>"$dir/grid.$1"
  else
    echo "$2:$3:$4 -" >>"$dir/grid.$1"
    uncounted "NetPIPE from $2 to $3, $1, $4 B"
  fi
}

# what each round of the file adds to that of another: grid_added FILE BY-FILE
grid_added() {
  paste -d ' ' "$1" "$2" | awk '$2 != "-" && $4 != "-" { print $1, $2 - $4 }'
}

# grid_net_samples: those of all runners, and what comes of them, into $dir/grid as "RUNNER.KEY NUMBER"
grid_net_samples() {
  local one
  for one in off on; do
    grid_added "$dir/grid.$one" "$dir/grid.tcp" >"$dir/grid.added_$one"
    ratios "$dir/grid.$one" "$dir/grid.tcp" >"$dir/grid.by_$one"
  done
  grep ":$GRID_LARGE " "$dir/grid.tcp" >"$dir/grid.tcp_large"
  ratios "$dir/grid.random" "$dir/grid.tcp_large" >"$dir/grid.by_random"
  for one in tcp off on random added_off added_on by_off by_on by_random; do
    awk -v one="$one" '{ print one "." $1, $2 }' "$dir/grid.$one"
  done >"$dir/grid"
  for one in tcp off on random; do
    awk -v one="$one" '$2 != "-" { split($1, key, ":"); print one ".mbit." $1, key[3] * 8 / $2 }' "$dir/grid.$one"
  done >>"$dir/grid"
}

# grid_net_pairs: lines "FROM:TO WAY", the way as text
grid_net_pairs() {
  local way from to ms mbit
  echo "$GRID_NEAR one site"
  for way in $GRID_WAYS; do
    IFS=: read -r from to ms mbit <<<"$way"
    echo "${from}1:${to}1 $ms ms, $mbit Mbit/s"
  done
}

grid_net_rows() {
  local pair way
  while read -r pair way; do
    "$1" "$pair" "$way"
  done < <(grid_net_pairs)
}

grid_net_measure() {
  take_turns "$GRID_ROUNDS" "tcp off on" grid_net_once "${1%:*}" "${1#*:}" 1 20
  take_turns "$GRID_ROUNDS" "tcp off on random" grid_net_once "${1%:*}" "${1#*:}" "$GRID_LARGE" 4
}

grid_latency_row() {
  row "$dir/grid" "latency between $1" "$1" "$2" "=spread tcp.$1:1" "=spread off.$1:1" "=spread added_off.$1:1" \
    "=spread on.$1:1" "=spread added_on.$1:1"
}

grid_bandwidth_row() {
  local key=$1:$GRID_LARGE
  row "$dir/grid" "bandwidth between $1" "$1" "$2" "=spread tcp.mbit.$key 1" "=spread off.mbit.$key 1" \
    "=spread by_off.$key 2" "=spread on.mbit.$key 1" "=spread by_on.$key 2" "=spread random.mbit.$key 1" \
    "=spread by_random.$key 2"
}

grid_net() {
  title "NetPIPE between nodes of four sites, through tunnels and two relays: $GRID_ROUNDS rounds"
  bench_grid "NetPIPE between sites" a b c d || return
  grid_open && bench_ways
  rm -f "$dir"/grid.{tcp,off,on,random}
  grid_net_rows grid_net_measure
  grid_down
  grid_net_samples
  echo "After [Relay] figures 10 and 11, with the ways between their clusters. TCP: NPtcp between the same nodes, as if there"
  echo "were no firewalls; in one site messages pass one relay and no tunnel."
  echo
  echo "One byte, microseconds one way:"
  table l:from:to l:way TCP "no log" "added" "with log" "added"
  grid_net_rows grid_latency_row
  echo
  echo "$GRID_LARGE bytes, Mbit/s, and times the time of TCP. NetPIPE's bytes are all the same, which tunnels pack; random"
  echo "ones cannot be packed."
  table l:from:to l:way TCP "no log" "times" "with log" "times" "random, no log" times
  grid_net_rows grid_bandwidth_row
}

# --- a solver -------------------------------------------------------------------------------------

# grid_nodes SITES: prints a host for each rank of the solver, as many at each of the first sites
grid_nodes() {
  local rank site host=1
  for ((rank = 0; rank < GRID_RANKS; rank++)); do
    site=$((rank * $1 / GRID_RANKS + 1))
    host=$((3 - host))
    echo "$(cut -c "$site" <<<abcd)$host"
  done | sort
}

# grid_solver_stock SITES COMMAND...: its processes are started from a1, and find it at the address that it has there
grid_solver_stock() {
  local hosts=() host
  for host in $(grid_nodes "$1"); do
    hosts+=("$(grid_address "$host"):1")
  done
  on_host a1 env HOME=/run/home/root UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MPIR_CVAR_NOLOCAL=1 \
    timeout -k 5 "${our_limit:-120}" mpirun.mpich -launcher ssh -iface eth0 -hosts "$(IFS=, && echo "${hosts[*]}")" \
    -wdir /tmp -n "$GRID_RANKS" "${@:2}" 2>"$dir/stats" </dev/null
}

grid_solver_off() {
  # shellcheck disable=SC2046 # hosts
  grid_run $(grid_nodes "$1") -- --no-log "${@:2}"
}

grid_solver_on() {
  # shellcheck disable=SC2046 # hosts
  grid_run $(grid_nodes "$1") -- "${@:2}"
}

# grid_solver_once RUNNER SITES ENGINE: appends "RUNNER.ENGINE.SITES SECONDS", of the iterations alone
grid_solver_once() {
  local took
  took=$("grid_solver_$1" "$2" "$programs/solver" "$GRID_SIZE" "$GRID_STEPS" "$GRID_STEPS" time | tee "$dir/out" |
    awk '$1 == "time" { print $2 }')
  grep '^checksum' "$dir/out" >>"$dir/grid.sums"
  if [[ -n $took ]]; then
    echo "$1.$3.$2 $took" >>"$dir/grid"
  else
    uncounted "the solver over $2 sites, $1, engine $3"
  fi
}

# grid_solver_engine ENGINE MODES: the services with that engine, and all its jobs
grid_solver_engine() {
  local sites
  GRID_SLOTS=$GRID_RANKS GRID_RELAY="options = \"--engine $1\";" grid_file "${grid_sites[@]}" >"$dir/grid.conf"
  bench_services down
  if ! bench_services up; then
    uncounted "the services with engine $1"
    return
  fi
  for sites in 1 2 3 4; do
    take_turns "$GRID_ROUNDS" "$2" grid_solver_once "$sites" "$1"
  done
}

# grid_solver_row ENGINE RUNNER WHAT
grid_solver_row() {
  local key=$2.$1
  row "$dir/grid" "the solver, $3" "$3" "=spread $key.1 2" "=spread $key.2 2" "=spread $key.3 2" "=spread $key.4 2" \
    "$(ratio "$(median "$key.4" "$dir/grid")" "$(median "stock.$grid_first.4" "$dir/grid")")"
}

grid_solver_data() {
  local runner engine sites
  for runner in off on; do
    for engine in $grid_engines; do
      for sites in 1 2 3 4; do
        echo "$engine $runner $sites $(median "$runner.$engine.$sites" "$dir/grid")"
      done
    done
  done >build/bench/grid.dat
  for sites in 1 2 3 4; do
    echo "stock - $sites $(median "stock.$grid_first.$sites" "$dir/grid")"
  done >>build/bench/grid.dat
}

grid_solver() {
  local engine grid_engines grid_first modes="stock off on"
  title "A solver with $GRID_RANKS ranks over 1 to 4 sites: seconds, $GRID_ROUNDS rounds"
  bench_grid "a solver over sites" a b c d || return
  grid_engines=$(engines)
  grid_first=${grid_engines%%[[:space:]]*}
  rm -f "$dir"/grid "$dir/grid.sums"
  grid_open && bench_ways
  for engine in $grid_engines; do
    grid_solver_engine "$engine" "$modes"
    modes="off on"
  done
  grid_down
  echo "After [Relay] figure 12, with the ways between their clusters. A grid of $GRID_SIZE by $GRID_SIZE, $GRID_STEPS steps, each with"
  echo "an exchange with neighbours and an allreduce. Stock: MPICH over TCP, as if there were no firewalls;"
  echo "its ranks poll, so it suffers where there are more of them than cores, here in all columns."
  echo "Different results: $(($(sort -u "$dir/grid.sums" | wc -l) - 1)) of $(wc -l <"$dir/grid.sums") runs."
  table l:relays "1 site" "2 sites" "3 sites" "4 sites" "4 sites, times stock"
  grid_solver_row "$grid_first" stock "stock"
  for engine in $grid_engines; do
    grid_solver_row "$engine" off "$engine, no log"
    grid_solver_row "$engine" on "$engine, with log"
  done
  mkdir -p build/bench && grid_solver_data
  gnuplot -e "data='build/bench/grid.dat'; base='build/bench/grid'; engines='${grid_engines//$'\n'/ }'" \
    tests/bench/grid.gnuplot 2>"$dir/stats" ||
    missing "the plot of the solver over sites: $(tail -n 1 "$dir/stats")"
}

# --- over a third site ----------------------------------------------------------------------------

# grid_third_file: a and b reach each other over the gateway of c alone
grid_third_file() {
  echo 'name = "test"; sites = ('
  grid_site_of 1 a 'gateway = "a-gate"; reaches = [ "c" ];'
  echo ,
  grid_site_of 2 b 'gateway = "b-gate"; reaches = [ "c" ];'
  echo ,
  grid_site_of 3 c
  echo ');'
}

# grid_third_once KEY: appends "KEY SECONDS"
grid_third_once() {
  grid_run a1 a2 b1 b2 -- --no-log "$programs/solver" "$GRID_THIRD_SIZE" "$GRID_THIRD_STEPS" 0 time >"$dir/out" || return
  awk -v key="$1" '$1 == "time" { print key, $2 }' "$dir/out" >>"$dir/grid.$1"
}

grid_third() {
  title "A solver of two ranks at each of two sites, without delay, straight and over a third site: seconds, $GRID_ROUNDS rounds"
  bench_grid "a way over a third site" a b c || return
  rm -f "$dir"/grid.{straight,third}
  rounds "$GRID_ROUNDS" "the solver straight" grid_third_once straight
  bench_services down
  grid_third_file >"$dir/grid.conf"
  bench_services up
  rounds "$GRID_ROUNDS" "the solver over a third site" grid_third_once third
  grid_down
  cat "$dir"/grid.{straight,third} >"$dir/grid"
  table "one gateway" "two, of which one is a third site's" times
  row "$dir/grid" "a way over a third site" "=spread straight 2" "=spread third 2" \
    "$(ratio "$(median third "$dir/grid")" "$(median straight "$dir/grid")")"
}

# --- a cut ----------------------------------------------------------------------------------------

# grid_cut_once SITE: seconds from the end of a cut until a byte has come back again
grid_cut_once() {
  local joined
  rm -f "$dir/events"
  grid_run a1 "${1}1" -- --events "$dir/events" "$programs/gap" $((GRID_CUT_AT_S + GRID_CUT_S + 5)) >"$dir/out" &
  sleep "$GRID_CUT_AT_S"
  grid_cut a "$1"
  sleep "$GRID_CUT_S"
  joined=$EPOCHREALTIME
  grid_join a "$1"
  wait $! || return 1
  ! grep -Eq '"event":"(rank_down|host_lost)"' "$dir/events" || return 1
  awk -v key="$1" -v cut="$GRID_CUT_S" -v joined="$joined" '$1 == "gap" && $2 > cut * 0.9 {
    print key, $3 - joined; found = 1 } END { exit !found }' "$dir/out" >>"$dir/grid"
}

grid_cuts() {
  title "Two sites that are cut from each other for $GRID_CUT_S s: from its end until a byte has come back, $GRID_ROUNDS rounds"
  bench_grid "a cut between sites" a b c:noin || return
  rm -f "$dir/grid"
  rounds "$GRID_ROUNDS" "a cut between sites" grid_cut_once b
  rounds "$GRID_ROUNDS" "a cut from a site that lets nothing in" grid_cut_once c
  grid_down
  echo "No rank is restarted; a round in which one is does not count. Goal: below 1 s."
  table l:between s
  row "$dir/grid" "a cut between sites" "sites with gateways" "=spread b 2"
  row "$dir/grid" "a cut from a site that lets nothing in" "one of them lets nothing in" "=spread c 2"
}

# --- connections ----------------------------------------------------------------------------------

# grid_count RANKS: prints the connections between a and b in a job of so many ranks
grid_count() {
  local job end=$((SECONDS + GRID_START_MAX_S)) i hosts=()
  for ((i = 0; i < $1; i++)); do
    hosts+=("$(cut -c $((i % 2 + 1)) <<<ab)$((i / 2 % 2 + 1))")
  done
  : >"$dir/events"
  grid_run "${hosts[@]}" -- --events "$dir/events" "$programs/gap" "$GRID_COUNTED_S" >"$dir/out" &
  job=$!
  until (($(grep -c '"event":"rank_up"' "$dir/events") >= $1 || SECONDS >= end)); do sleep 0.2; done
  sleep 3
  grid_crossings | awk '$1 == "a" && $2 == "b" { print $3 }'
  wait "$job"
}

# grid_connections_row WHAT
grid_connections_row() {
  local ranks cells=()
  for ranks in 2 8 24; do
    cells+=("$(grid_count "$ranks")")
  done
  row - "" "$1" "${cells[@]}"
}

grid_connections() {
  title "Connections between two sites, by the number of ranks in a job"
  bench_grid "connections between sites" a b || return
  table l:way "2 ranks" "8 ranks" "24 ranks"
  grid_connections_row "near"
  grid_slow a b 10
  bench_services down && bench_services up && grid_connections_row "10 ms one way"
  sed -i '1s/^/connections = 1; /' "$dir/grid.conf"
  bench_services down && bench_services up && grid_connections_row "10 ms one way, \`connections = 1\`"
  grid_down
}

#!/bin/bash
# The demonstration of `make grid`: a solver over three sites, of which one lets nothing in. On the way a rank is killed,
# and a site is cut off for 10 s; it prints what it prints on this machine alone. The sites are network namespaces of
# this machine (tests/grid.sh), 10 ms apart. Needs root for that.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/grid.sh
. tests/grid.sh
causeway=$PWD/build/causeway
solver=("$PWD/build/programs/solver" 256 "${STEPS:-8000}" 1000)
DELAY_MS=5 # each way
CUT_S=10
START_MAX_S=60 # until the ranks talk

fail() {
  echo "$*" >&2
  exit 1
}

title() {
  printf '\n--- %s\n' "$*"
}

# of the front, or of another host
say_and_run() {
  echo "$1\$ causeway ${*:2}"
  grid_exec "$1" "$causeway" "${@:2}" || fail "causeway $2 should have ended well"
}

has_event() {
  grep -q "\"event\":\"$1\"" "$dir/events" 2>/dev/null
}

down() {
  [[ -z ${grid_is_up-} ]] || grid_down
  rm -rf "$dir"
}

title "Three sites are made, each with a gateway and two nodes; only SSH to the gateways of a and b gets through"
dir=$(mktemp -d)
export HOSTS_SHARED=$dir
trap down EXIT
grid_up a b c:noin || fail "no grid could be made"
grid_is_up=1
grid_slow all all "$DELAY_MS"
grid_publishes 22001 c1
grid_list

cat >"$dir/grid.conf" <<END
name = "demo";
sites = (
  { name = "a"; gateway = "a-gate"; relay = { host = "a1"; port = 7000; }; ckptsrv = { host = "a2"; port = 7100; };
    hosts = ( { name = "a1"; slots = 2; }, { name = "a2"; slots = 2; } ); },
  { name = "b"; gateway = "b-gate"; relay = { host = "b1"; port = 7000; }; ckptsrv = { host = "b2"; port = 7100; };
    hosts = ( { name = "b1"; slots = 2; }, { name = "b2"; slots = 2; } ); },
  { name = "c"; published = { at = "b"; port = 22001; };
    relay = { host = "c1"; port = 7000; };
    hosts = ( { name = "c1"; slots = 2; }, { name = "c2"; slots = 2; } ); }
);
END
title "The grid file"
cat "$dir/grid.conf"

title "Its services; site c lets nothing in, so they are started there, and it is published at b"
say_and_run c1 up -f "$dir/grid.conf" --site c
say_and_run front up -f "$dir/grid.conf"
say_and_run front status -f "$dir/grid.conf"

title "A solver on a grid of 256 x 256, 9 ranks on this machine"
"$causeway" run -n 9 "${solver[@]}" | tee "$dir/here"

title "The same over the three sites; rank 4 is killed after 2 s, and site b is cut off for $CUT_S s"
command=(run -f "$dir/grid.conf" --map-by site -n 9 --fault kill:4@2s --events "$dir/events" "${solver[@]}")
echo "front\$ causeway ${command[*]}"
grid_exec front "$causeway" "${command[@]}" >"$dir/there" &
job=$!
for ((i = 0; i < 10 * START_MAX_S; i++)); do
  has_event rank_down && break
  sleep 0.1
done
sleep 1
echo "site b is cut off"
grid_cut b all
sleep "$CUT_S"
grid_join b all
echo "site b is there again; connections between sites now:"
grid_crossings
wait "$job" || fail "the job should have ended well"
cat "$dir/there"
has_event rank_down || fail "rank 4 should have been killed"
cmp -s "$dir/here" "$dir/there" || fail "both should have printed the same"
echo "Both printed the same, to the last digit."

title "The end"
say_and_run front down -f "$dir/grid.conf"

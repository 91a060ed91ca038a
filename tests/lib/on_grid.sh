# shellcheck shell=bash
# Shared by the suites and benchmarks of grids (tests/grid.sh): a grid file for sites, their services, and ranks at hosts. After
# tests/grid.sh; needs the command in the array $causeway.

# shellcheck disable=SC2154 # of tests/grid.sh, and the suites
GRID_PUBLISHED=22000 # and the number of a site: its port at another one's gateway
# where gateways have causeway, which is in no PATH there
export CAUSEWAY_TUNNEL_PROGRAM=${CAUSEWAY_TUNNEL_PROGRAM:-${root:-$PWD}/build/causeway}

# grid_site_of NUMBER SITE [SETTINGS]: prints what a grid file has of a site with a gateway; SETTINGS go before the rest
grid_site_of() {
  local site=$2 open="gateway = \"$2-gate\";"
  [[ -z ${3-} ]] || open=$3
  cat <<TEXT
  { name = "$site"; $open
    relay = { host = "${site}1"; port = 7000; ${GRID_RELAY-} }; ckptsrv = { host = "${site}2"; port = 7100; };
    hosts = ( { name = "${site}1"; slots = ${GRID_SLOTS:-4}; }, { name = "${site}2"; slots = ${GRID_SLOTS:-4}; } ); }
TEXT
}

# grid_file SITE...: prints a grid file; SITE:AT lets nothing in, and is published at the gateway of AT
grid_file() {
  local one number=0 open
  echo 'name = "test"; sites = ('
  for one in "$@"; do
    ((number++ == 0)) || echo ,
    open=
    [[ $one = "${one%:*}" ]] || open="published = { at = \"${one#*:}\"; port = $((GRID_PUBLISHED + number)); };"
    grid_site_of "$number" "${one%:*}" "$open"
  done
  echo ');'
}

# grid_ranks HOST...: prints a rankfile with a rank on each
grid_ranks() {
  local rank=0 host
  local -A used=()
  for host in "$@"; do
    echo "rank $((rank++))=$host.${host:0:1} slot=$((used[$host]++))"
  done
}

# grid_publish SITE...: as grid_file; the keys of what is published are known to all
grid_publish() {
  local one number=0
  for one in "$@"; do
    ((number++))
    [[ $one = "${one%:*}" ]] || grid_publishes $((GRID_PUBLISHED + number)) "${one%:*}1"
  done
}

# grid_services up|down FILE SITE...: as grid_file; of all sites, and first those that let nothing in, from inside
grid_services() {
  local one
  for one in "${@:3}"; do
    [[ $one = "${one%:*}" || $1 = down ]] ||
      grid_exec "${one%:*}1" "${causeway[@]}" up -f "$2" --site "${one%:*}" || return
  done
  "$grid_front" "${causeway[@]}" "$1" -f "$2"
}

# --- of suites, after tests/lib/system.sh -----------------------------------------

# grid_start COMMAND...: the sites of a suite, as that makes them, which share $tmp with this machine, until its end; where
# there can be none it ends
grid_start() {
  trap 'grid_down; lib_end' EXIT
  export HOSTS_SHARED=$tmp
  "$@" 2>"$tmp/err"
  case $? in
  0) return ;;
  77) tap_skip "sites" "$(<"$tmp/err")" ;;
  *)
    wrong "$(<"$tmp/err")"
    tap_not_ok "sites"
    ;;
  esac
  tap_end
}

# three_sites: a, b, and c that lets nothing in. What sshd starts there has no mark: services stay from test to test.
three_sites() {
  local mark=''
  grid_up a b c:noin && grid_publish a b c:b
}

# services up|down: those of $tmp/grid.conf at the three sites; they stay from test to test
services() {
  (
    unset "$mark"
    grid_services "$1" "$tmp/grid.conf" a b c:b
  )
}

# services_start: or the suite ends
services_start() {
  services up >"$tmp/up" 2>&1 && return
  wrong "$(<"$tmp/up")"
  tap_not_ok "the services of a grid"
  tap_end
}

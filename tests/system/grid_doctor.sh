#!/bin/bash
# causeway doctor of a grid (tests/grid.sh): three sites, of which one lets nothing in and is published at another one.
# What is of no use is named, with the cause, and the rest is looked at all the same. Prints TAP.
#
#   grid_doctor.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite="doctor of grids"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-150}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/grid.sh
. "$here/../grid.sh"
# shellcheck source=tests/lib/on_grid.sh
. "$root/tests/lib/on_grid.sh"
only=${1-}
published=22003 # site c, at b

# doctor OPTION...: from the front
doctor() {
  run "$grid_front" "${causeway[@]}" doctor -f "$tmp/grid.conf" "$@"
  expect_silence
}

# helper_on HOST NAME COMMAND...: as helper, there
helper_on() {
  helper "$2" env HOSTS_NUMBER="$hosts_number" "$root/tests/grid.sh" exec "$1" "${@:3}"
}

# relays [SITE...]: starts them, with the grid's key; all without names
relays() {
  local site
  (($#)) || set -- a b c
  for site in "$@"; do
    helper_on "${site}1" "relay-$site" "${causeway[@]}" relay --listen "tcp:${site}1:7000" --key-file "${key:-$state/key}"
    await_true "the relay of $site" grep -q 'listening on' "$tmp/relay-$site.err"
  done
}

# c keeps its port at b open.
publish() {
  helper_on c1 publisher ssh -N -o ExitOnForwardFailure=yes -R "127.0.0.1:$published:127.0.0.1:22" b-gate
  await_true "c to be published" says on_host b-gate ss -Hltn "sport = :$published"
}

before_test() {
  grid_file a b c:b >"$tmp/grid.conf"
}

# What a test starts on hosts is not below this shell.
after_test() {
  local host
  stop_helpers
  for host in a1 b1 c1; do
    on_host "$host" pkill -x causeway
    on_host "$host" pkill -x -f "ssh -N .*$published.*"
    await_true "the processes of $host to end" none_on "$host"
  done
}

none_on() {
  ! says on_host "$1" pgrep causeway
}

# good SITE...: its gateway and hosts are well, and its relay
good() {
  local site
  for site in "$@"; do
    expect_out_like "^ok      $site: its relay at port 7000 of ${site}1 takes the grid's key$"
    expect_out_like "^ok      ${site}1.$site: Causeway .* MPICH "
    expect_out_like "^ok      ${site}2.$site: its clock differs"
  done
}

# bad LEVEL WHO TEXT...: a line says so
bad() {
  local text
  for text in "${@:3}"; do
    expect_out_like "^$1 +$2: .*$text"
  done
}

# not_looked_at SITE
not_looked_at() {
  expect_out_like "^  -\?->  $1: not looked at"
  grep -q "^[a-z]* *${1}1\.$1: " "$tmp/out" && wrong "the hosts of $1 should not be looked at"
}

# sshd_has HOST LINE...: its sshd, started anew, has these lines first
sshd_has() {
  local config=$hosts_dir/$1/run/sshd/config
  [[ -e $work/sshd ]] || cp "$config" "$work/sshd"
  { printf '%s\n' "${@:2}" && cat "$work/sshd"; } >"$config"
  host_kill_sshd "$1"
  host_start "$1"
}

# --- the tests --------------------------------------------------------------------

well() {
  local from to
  relays
  publish
  doctor
  expect_code 0
  good a b c
  expect_out_like '^ok      c: 127.0.0.1 port 22003 \(2 gateways from here\) is known'
  for from in a b c "this machine"; do
    for to in a b c; do
      [[ $from = "$to" ]] || expect_out_like "^ok      $from: gets to $to$"
    done
  done
  expect_out_like '^b: gateway b-gate port 22$' '^c: published at b, port 22003$' '^  a1 +4 slots, relay at port 7000$'
  expect_out_like '^  ----> c, over b$'
  grep -vE '^(ok |$|[a-z]|  )' "$tmp/out" && wrong "it should be well"
}

# Nothing is missing once causeway up has done its work.
after_up() {
  grid_services up "$tmp/grid.conf" a b c:b >"$work/up" 2>&1 || wrong "causeway up: $(<"$work/up")"
  doctor
  grid_services down "$tmp/grid.conf" a b c:b >"$work/down" 2>&1 || wrong "causeway down: $(<"$work/down")"
  expect_code 0
  good a b c
}

# From a host of a site, which reaches the others of it directly.
from_within() {
  relays
  publish
  mkdir -p "$hosts_dir/a2/run/home/root/.local/state/causeway/test"
  cp -p "$state/key" "$hosts_dir/a2/run/home/root/.local/state/causeway/test"
  run env HOSTS_NUMBER="$hosts_number" "$root/tests/grid.sh" exec a2 "${causeway[@]}" doctor -f "$tmp/grid.conf"
  expect_code 0
  good a b c
  expect_out_like '^a, where this machine is: gateway a-gate'
  grep -q '^this machine' "$tmp/out" && wrong "this machine is at a site"
}

slow() {
  relays a b
  grid_slow a b 20 || { skip "no packets can be delayed here" && return; }
  doctor
  grid_fast a b
  good a b
}

not_published() {
  relays
  doctor
  expect_code 1
  good a b
  bad missing c "not published at port $published of b: 'causeway up -f .* --site c' on one of its hosts"
  not_looked_at c
}

no_relay() {
  relays a c
  publish
  doctor
  expect_code 0
  good a c
  bad warning b "its relay does not run: nobody listens at port 7000 of b1; 'causeway up -f $tmp/grid.conf' starts it"
  expect_out_like '^ok +a: gets to b$'
}

another_key() {
  relays a
  head -c 32 /dev/urandom | xxd -p -c 64 >"$work/key"
  chmod 600 "$work/key"
  key=$work/key relays b
  doctor
  expect_code 1
  good a
  bad missing b "at port 7000 of b1 is no relay that takes the key of this grid: .*wrong credential"
}

# another_place HOME: our key for logins is there by another name
another_place() {
  mv "$1/.ssh/id_ed25519" "$1/.ssh/id_grid"
}

usual_place() {
  mv "$1/.ssh/id_grid" "$1/.ssh/id_ed25519"
}

# For ssh and for tunnels, here and at a
named_key() {
  relays a b
  sed -i 's|name = "[ab]";|& key = "~/.ssh/id_grid";|' "$tmp/grid.conf"
  another_place "$grid_home"
  another_place "$hosts_dir/a1/run/home/root"
  doctor
  usual_place "$grid_home"
  usual_place "$hosts_dir/a1/run/home/root"
  good a b
  expect_out_like '^ok +a: gets to b$'
}

gateway_is_cut() {
  relays
  publish
  grid_cut b all
  doctor --timeout 4s
  grid_join b all
  expect_code 1
  good a
  bad missing b 'b-gate.*firewall is in the way.*ssh -F .*ssh_config .*gateway.b true'
  bad missing c 'b-gate'
  not_looked_at b
}

no_name() {
  relays a
  sed -i 's/"b-gate"/"b-gate.invalid"/' "$tmp/grid.conf"
  doctor
  expect_code 1
  good a
  bad missing b 'gateway b-gate.invalid: .*its name is not known here'
}

no_sshd() {
  relays a
  host_kill_sshd b-gate
  doctor
  host_start b-gate
  expect_code 1
  good a
  bad missing b 'b-gate:22: Connection refused; no sshd listens there'
}

unknown_key() {
  local print
  relays a b
  print=$(ssh-keygen -l -f "$hosts_dir/b-gate/run/sshd/key" | cut -d ' ' -f 2)
  sed -i.whole '/^b-gate,/d' "$grid_home/.ssh/known_hosts"
  doctor
  mv "$grid_home/.ssh/known_hosts.whole" "$grid_home/.ssh/known_hosts"
  expect_code 1
  good a
  bad missing b "gateway b-gate: its key, ${print//+/\\+}, is not known" 'ssh -F .*StrictHostKeyChecking=ask gateway.b true'
  not_looked_at b
}

no_key_accepted() {
  relays a b
  mv "$hosts_dir/b-gate/run/sshd/authorized" "$work/authorized"
  doctor
  mv "$work/authorized" "$hosts_dir/b-gate/run/sshd/authorized"
  expect_code 1
  good a
  bad missing b 'gateway b-gate: it does not let root in; 0 keys of an agent and 1 of .* were tried'
}

no_forwarding() {
  relays a b
  sshd_has b-gate 'AllowTcpForwarding no'
  doctor
  sshd_has b-gate
  expect_code 1
  good a
  bad missing b 'gateway b-gate: forwarding to b1 port 7000.*its sshd forbids to forward there: see AllowTcpForwarding'
}

# The way of the relay is open, and no other.
some_forwarding() {
  relays a b
  sshd_has b-gate 'PermitOpen b1:7000 b1:22 b2:22'
  doctor
  sshd_has b-gate
  good a b
  bad ok a 'gets to the relay of b, and no other port there'
  expect_out_like '^  ----> b: to its relay alone$'
}

# The front reaches both.
between_sites() {
  relays a b
  grid_cut a b
  doctor
  grid_join a b
  expect_code 1
  good a b
  bad missing a "does not get to b: .*b-gate.*or take b out of its 'reaches'"
  bad missing b 'does not get to a: .*a-gate'
  expect_out_like '^  -X->  b: does not get there$'
}

no_causeway() {
  relays a b
  sed -i "s|name = \"b\";|& causeway = \"/no/causeway\";|" "$tmp/grid.conf"
  doctor
  expect_code 1
  good a
  bad missing 'b[12].b' "/no/causeway: No such file.*install it.*'causeway' in a grid file"
}

# Within a site
closed_host() {
  relays a
  host_close a2
  doctor
  host_join a2
  expect_code 1
  bad missing a2.a 'it does not reach a1, where the relay of its site is, over TCP: .*firewall'
}

no_way() {
  relays a b
  sed -i 's/^);/); reaches = [ "a" ];/; s|name = "a";|& reaches = [];|' "$tmp/grid.conf"
  doctor
  expect_code 1
  good a
  bad missing b "no way leads there from this machine: see 'reaches' in $tmp/grid.conf"
}

usage() {
  run_expect 2 'not with -f' "${causeway[@]}" doctor -f x --host a
  run_expect 2 'not with -f' "${causeway[@]}" doctor -f x ./a.out
  run_expect 2 'give -f FILE' "${causeway[@]}" doctor --here a
  run_expect 2 "expected 0.1 s to 600 s" "${causeway[@]}" doctor -f x --timeout 1h
  run_expect 1 'grid file: .*/no/grid: No such file' "${causeway[@]}" doctor -f /no/grid
  echo 'name = "g"; sits = ();' >"$work/grid"
  run_expect 2 'grid, line 1: sits: there is no such setting' "${causeway[@]}" doctor -f "$work/grid"
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
grid_start grid_up a b c:noin
grid_publish a b c:b
state=$grid_home/.local/state/causeway/test
(umask 077 && mkdir -p "$state")
"${causeway[@]}" relay --listen "unix:$tmp/once" --key-file "$state/key" 2>/dev/null &
while [[ ! -s $state/key ]]; do sleep 0.01; done
kill $!
wait $!

t "all is well" well
t "after causeway up" after_up
t "from a host of a site" from_within
t "a slow way" slow
t "a site that is not published" not_published
t "a relay does not run" no_relay
t "a relay has another key" another_key
t "the key for logins is named" named_key
t "a gateway is cut off" gateway_is_cut
t "a gateway has no name" no_name
t "a gateway has no sshd" no_sshd
t "the key of a gateway is not known" unknown_key
t "no key of ours is accepted" no_key_accepted
t "forwarding is forbidden" no_forwarding
t "forwarding to the relay alone" some_forwarding
t "sites do not reach each other" between_sites
t "causeway is not there" no_causeway
t "a host does not reach the relay of its site" closed_host
t "no way in the grid file" no_way
t "usage" usage
tap_end

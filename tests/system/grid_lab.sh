#!/bin/bash
# The grids of tests/grid.sh: that only SSH to gateways passes between sites, and not to or from those that are closed;
# names, keys and tunnels; that ways are slow, cut and joined; and that nothing of them is left. Prints TAP.
#
#   grid_lab.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="grids in namespaces"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/grid.sh
. "$here/../grid.sh"
# shellcheck source=tests/lib/hosts_net.sh
. "$here/../lib/hosts_net.sh"
only=${1-}
grid=$root/tests/grid.sh

# --- what the tests run -----------------------------------------------------------

# there HOST CMD...: on that host, as the command does it
there() {
  run env HOSTS_NUMBER="$hosts_number" "$grid" exec "$@"
}

# connects HOST TO PORT: whether that host gets a connection
connects() {
  there "$1" timeout "${4:-5}" bash -c ': <>"/dev/tcp/$0/$1"' "$2" "$3"
  ((code == 0))
}

expect_open() {
  connects "$@" || wrong "$1 should reach port $3 of $2"
}

# One second is long here for what passes.
expect_closed() {
  ! connects "$@" 1 || wrong "$1 should not reach port $3 of $2"
}

# anybody ADDRESS PORT: whether somebody at the internet who has no firewall gets a connection
anybody() {
  run nsenter --net="/run/netns/cw$hosts_number-internet" timeout 1 bash -c ': <>"/dev/tcp/$0/$1"' "$@"
  ((code == 0))
}

# listener HOST PORT: accepts connections there
listener() {
  helper "listener-$1" env HOSTS_NUMBER="$hosts_number" "$grid" exec "$1" perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "0.0.0.0:$ARGV[0]", Listen => 9, ReuseAddr => 1) or die; $| = 1;
    print "ready\n"; close $c while $c = $s->accept' "$2"
  await_true "a listener on $1" test -s "$tmp/listener-$1.out"
}

# took COMMAND...: prints how many milliseconds it takes: the least of three times, for others use this machine too
took() {
  local i start ms least=''
  for i in 1 2 3; do
    start=$EPOCHREALTIME
    "$@" || return
    ms=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    [[ -n $least ]] && ((least < ms)) || least=$ms
  done
  echo "$least"
}

# expect_late MS COMMAND...: it takes that long, or longer
expect_late() {
  local ms
  ms=$(took "${@:2}") || { wrong "failed: ${*:2}" && return; }
  ((ms >= $1)) || wrong "took $ms ms, expected at least $1: ${*:2}"
}

# expect_soon MS COMMAND...: it takes less
expect_soon() {
  local ms
  ms=$(took "${@:2}") || { wrong "failed: ${*:2}" && return; }
  ((ms < $1)) || wrong "took $ms ms, expected less than $1: ${*:2}"
}

# --- the tests: what passes -------------------------------------------------------

logins() {
  local host
  for host in a-gate a1 a2 b-gate b1 b2 d-gate d1 d2; do
    login "$host" hostname
    expect_code 0
    expect_silence
    expect_out "$host"
  done
  login plain@b2 id -un
  expect_out plain
}

between_sites() {
  there a1 ssh b2 hostname
  expect_out b2
  there b-gate ssh a1 ssh d2 hostname
  expect_out d2
  there c2 runuser -u plain -- ssh plain@a2 'id -un; hostname'
  expect_out plain$'\n'a2
}

names() {
  local one
  there a1 getent hosts a2
  expect_out_like "^10.$hosts_number.1.2 +a2"
  there b1 getent hosts a-gate
  expect_out_like "^$hosts_net.1 +a-gate"
  there a1 getent hosts a-gate
  expect_out_like "^10.$hosts_number.1.254 +a-gate"
  there front getent hosts front
  expect_out_like "^$hosts_net.100 +front"
  for one in "a1 b1" "b-gate a1" "front a1" "a1 front"; do
    there "${one% *}" getent hosts "${one#* }"
    expect_code 2
  done
}

private_addresses() {
  local one
  for one in a1 a-gate front c1; do
    expect_closed "$one" "10.$hosts_number.2.1" 22
    expect_closed "$one" "10.$hosts_number.2.254" 22
  done
}

only_ssh() {
  listener b-gate 7000
  listener b1 7000
  listener front 22
  expect_open b1 b-gate 7000
  expect_open b-gate b1 7000
  expect_open front front 22
  expect_closed a1 b-gate 7000
  expect_closed a-gate b-gate 7000
  expect_closed front b-gate 7000
  expect_closed a1 "$hosts_net.100" 22
  expect_closed b-gate "$hosts_net.100" 22
}

# who also knows what address leads where
nobody_else() {
  listener b-gate 7000
  anybody "$hosts_net.2" 22 || wrong "port 22 of b-gate should be open to anybody"
  ! anybody "$hosts_net.2" 7000 || wrong "port 7000 of b-gate should not be open"
  ! anybody "$hosts_net.3" 22 || wrong "port 22 of c-gate should not be open"
  ip -n "cw$hosts_number-internet" route add "10.$hosts_number.2.0/24" via "$hosts_net.2"
  ! anybody "10.$hosts_number.2.1" 22 || wrong "b1 should not be reached by its private address"
  ip -n "cw$hosts_number-internet" route delete "10.$hosts_number.2.0/24"
}

nothing_in() {
  expect_closed front c-gate 22
  expect_closed a1 c-gate 22
  expect_closed b-gate c-gate 22
  expect_open c1 c-gate 22
  expect_open c1 a-gate 22
  expect_open c-gate b-gate 22
}

nothing_out() {
  expect_closed d1 a-gate 22
  expect_closed d-gate a-gate 22
  expect_open d1 d2 22
  expect_open a1 d-gate 22
  expect_open front d-gate 22
}

# Nodes have no address outside.
hidden() {
  there a1 ssh b-gate 'echo $SSH_CONNECTION'
  expect_out_like "^$hosts_net.1 [0-9]+ $hosts_net.2 22"
}

# tunnelled HOST ADDRESS: causeway tunnel there gets to an sshd
tunnelled() {
  there "$1" "${causeway[@]}" tunnel "$2"
  expect_out_like '^SSH-2.0'
}

tunnels() {
  tunnelled front ssh:root@b-gate/b1:22
  tunnelled front "ssh:root@$hosts_net.2/127.0.0.1:22"
  tunnelled a1 ssh:root@b-gate/b1:22
  tunnelled c1 ssh:root@a-gate,root@b-gate/b2:22
  there c1 "${causeway[@]}" tunnel ssh:root@d-gate/b1:22
  expect_code 1
}

# --- ways that are slow or cut ----------------------------------------------------

expect_crossings() {
  [[ $(grid_crossings) = *"$1"* ]]
}

crossings() {
  local session
  ! grid_crossings | grep -vq ' 0$' || wrong "expected no connection: $(grid_crossings)"
  helper session env HOSTS_NUMBER="$hosts_number" "$grid" exec a1 ssh b2 sleep 30
  session=$job
  await_true "one connection from a to b" expect_crossings "a b 1"
  helper session2 "$hosts_ssh" -n b1 sleep 30
  await_true "one from the front to b" expect_crossings "b front 1"
  expect_crossings "a front 0" || wrong "expected no connection of a and the front"
  on_host a1 pkill -x ssh
  { wait "$session"; } 2>/dev/null
  await_true "its end" expect_crossings "a b 0"
}

# can_slow SITE SITE MS [MBIT]: false when it is not possible here
can_slow() {
  grid_slow "$@" 2>"$tmp/slow"
  case $? in
  0) return 0 ;;
  77) skip "$(<"$tmp/slow")" ;;
  *) wrong "the way could not be made slow: $(<"$tmp/slow")" ;;
  esac
  return 1
}

# A connection is there after the packets of one round trip.
late() {
  can_slow a b 300 || return
  expect_late 600 connects a1 b-gate 22
  expect_late 600 connects b-gate a-gate 22
  expect_soon 600 connects a1 d-gate 22
  expect_soon 600 connects front b-gate 22
  grid_slow_way b a 600
  expect_late 900 connects a1 b-gate 22
  grid_fast a b
  expect_soon 600 connects a1 b-gate 22
}

late_from_all() {
  can_slow all b 300 || return
  expect_late 600 connects a1 b-gate 22
  expect_late 600 connects front b-gate 22
  expect_soon 600 connects a1 d-gate 22
  grid_fast b all
  expect_soon 600 connects front b-gate 22
  says ip -n "cw$hosts_number-internet" link show type tun && wrong "a wire is left"
}

# sends FROM TO: 250,000 bytes
sends() {
  there "$1" bash -c 'head -c 250000 /dev/zero | ssh "$0" wc -c' "$2"
  [[ $(<"$tmp/out") = 250000 ]]
}

narrow() {
  local before
  before=$(took sends a1 b-gate)
  can_slow a b 5 1 || return
  expect_late $((before + 1000)) sends a1 b-gate
  expect_late 2000 sends b1 a1
  expect_soon 2000 sends a1 d1
  grid_fast a b
  expect_soon 2000 sends a1 b-gate
}

# received SITE: packets that have come from elsewhere
received() {
  nsenter --net="/run/netns/$(grid_space "$1")" awk '/^Ip: [0-9]/ { print $4 }' /proc/net/snmp
}

# What was said meanwhile comes later, and both ends repeat it in vain before.
cut_and_joined() {
  local here there
  talk a-gate
  grid_cut front a
  here=$(received front)
  there=$(received a)
  say meanwhile
  stands_still 1
  [[ $(received front) = "$here" && $(received a) = "$there" ]] || wrong "packets passed a way that is cut"
  ! was_said meanwhile || wrong "a line passed a way that is cut"
  expect_closed front a-gate 22
  expect_open front b-gate 22
  expect_open b1 a-gate 22
  grid_join front a
  await_true "what was said meanwhile" was_said meanwhile
  end_talk
  expect_open front a-gate 22
}

one_direction() {
  talk a-gate
  grid_cut_way a front
  say meanwhile
  await_true "what was said to a site that cannot be heard" was_said meanwhile
  stands_still 0.5
  grid_join a front
  end_talk
}

# also while packets are on their way
cut_from_all() {
  can_slow a all 20 50
  grid_cut all a
  expect_closed front a-gate 22
  expect_closed b1 a-gate 22
  expect_closed a1 d-gate 22
  expect_open a1 a2 22
  expect_open b1 d-gate 22
  grid_join a all
  expect_open b1 a-gate 22
  expect_open a1 d-gate 22
  grid_fast all all
}

# As the hosts of tests/hosts.sh: the functions about a host know those of a grid.
node_cut() {
  host_cut_to a1
  expect_closed a-gate a1 22
  expect_open a-gate a2 22
  host_join a1
  host_close a1
  listener a1 7000
  expect_open a-gate a1 22
  expect_closed a-gate a1 7000
  host_join a1
  expect_open a-gate a1 7000
}

killed() {
  local one
  for one in a-gate a1; do
    host_kill "$one"
    refused 'refused|timed out|closed' "$one"
    login b1 hostname
    expect_out b1
    host_start "$one"
    login "$one" hostname
    expect_out "$one"
  done
  expect_open a1 b-gate 22
  expect_closed b1 "10.$hosts_number.1.1" 22
}

# --- the command, and what is left ------------------------------------------------

as_command() {
  local other=$((hosts_number + 32)) system
  system=$(md5sum /etc/hosts /etc/passwd /etc/shadow)
  export HOSTS_NUMBER=$other
  GRID_NODES=1 run "$grid" up x front:x y:noin:noout
  expect_out "x-gate 10.$other.1.254,198.18.$other.1 runs"$'\n'"x1 10.$other.1.1 runs"$'\n'"\
y-gate 10.$other.2.254,198.18.$other.2 runs"$'\n'"y1 10.$other.2.1 runs"$'\n'"front 10.$other.1.100"
  run "$grid" exec front bash -c 'cd; pwd; ssh x1 hostname; getent hosts x-gate front'
  expect_out_like "^$hosts_place/$other/front/home$"
  expect_out_like "^x1$"
  expect_out_like "^10.$other.1.254 +x-gate"
  expect_out_like "^10.$other.1.100 +front"
  run "$grid" exec x1 getent hosts front
  expect_out_like "^10.$other.1.100 +front"
  run "$grid" ssh -n x-gate timeout 1 ssh y1 hostname
  expect_code 124
  run "$grid" kill x1
  run "$grid" slow x y 10
  run_expect 0 '' "$grid" cut x y
  run_expect 0 '' "$grid" join x y
  run "$grid" crossings
  expect_out 'x y 0'
  run "$grid" list
  expect_out_like "^x1 10.$other.1.1 off"
  run "$grid" down
  run_expect 0 '' "$grid" down
  unset HOSTS_NUMBER
  set_gone "$other"
  [[ $(md5sum /etc/hosts /etc/passwd /etc/shadow) = "$system" ]] || wrong "a file of the system is changed"
}

refusals() {
  export HOSTS_NUMBER=$((hosts_number + 32))
  run_expect 2 '^grid: A: expected SITE' "$grid" up A
  run_expect 2 '^grid: a:out: expected SITE' "$grid" up a:out
  run_expect 2 '^grid: a site is named twice' "$grid" up a b a:noin
  run_expect 2 '^grid: front:c: there is no such site' "$grid" up a b front:c
  run_expect 2 '^grid: 9 sites: expected 1 to 8' "$grid" up a b c d e f g h i
  run_expect 2 '^grid: front:a:noin: expected SITE' "$grid" up a front:a:noin
  GRID_NODES=0 run_expect 2 '^grid: 0 nodes' "$grid" up a
  set_gone "$HOSTS_NUMBER"
  export HOSTS_NUMBER=$hosts_number
  run_expect 2 '^grid: e: there is no such site' "$grid" cut a e
  run_expect 1 '^hosts: e1 is off' "$grid" exec e1 true
  unset HOSTS_NUMBER
}

# A suite that is killed while it uses its grid; the next removes what it has left.
killed_suite() {
  local number
  start bash -c '. "$1" && grid_up a b && { grid_slow a b 10; echo "$hosts_number"; exec sleep 60; }' - "$grid"
  await_true "a grid" test -s "$tmp/out"
  kill -9 "$pid"
  finish
  number=$(<"$tmp/out")
  run bash -c '. "$1" && hosts_take; status=$?; hosts_down; exit $status' - "$grid"
  expect_code 0
  set_gone "$number"
  [[ $number != "$hosts_number" ]] || wrong "a set that is in use was taken"
  login b1 hostname
  expect_out b1
}

taken_down() {
  local number=$hosts_number
  grid_slow a b 10
  grid_down
  grid_down
  set_gone "$number"
}

# --- all of it --------------------------------------------------------------------

ending() {
  grid_down
  lib_end
}

lib_start
find_causeway
trap ending EXIT
grid_up a b c:noin d:noout 2>"$tmp/err"
case $? in
0) tap_ok "four sites" ;;
77)
  tap_skip "all of it" "$(<"$tmp/err")"
  tap_end
  ;;
*)
  wrong "$(<"$tmp/err")"
  tap_not_ok "four sites"
  tap_end
  ;;
esac

t "each host can be logged in to" logins
t "logins from one site to another" between_sites
t "a site's names are known there alone, those of gateways everywhere" names
t "private addresses lead to nobody elsewhere" private_addresses
t "only SSH to gateways passes between sites" only_ssh
t "... from anybody" nobody_else
t "a site that lets nothing in" nothing_in
t "a site that lets nothing out" nothing_out
t "nodes go out by way of their gateway" hidden
t "causeway tunnel" tunnels
t "connections between sites are counted" crossings
t "ways that take time" late
t "all ways of a site take time" late_from_all
t "a narrow way" narrow
t "a way is cut and joined" cut_and_joined
t "a way is cut in one direction" one_direction
t "a site is cut off from all" cut_from_all
t "a node is cut off within its site" node_cut
t "a gateway and a node are killed, and started again" killed
t "the command" as_command
t "wrong arguments" refusals
t "what a suite leaves behind that is killed is removed" killed_suite
t "nothing is left" taken_down
tap_end

#!/bin/bash
# The hosts and grids of tests (tests/hosts.sh, tests/grid.sh), where a mistake in them would let other suites pass for
# nothing: only SSH to gateways passes between sites, and not to or from those that are closed; what is cut is cut, and
# comes back; what a suite leaves is found and removed. Prints TAP.
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
only=${1-}
grid=$root/tests/grid.sh

# --- what the tests run -----------------------------------------------------------

# there HOST CMD...: on that host, as the command does it
there() {
  run env HOSTS_NUMBER="$hosts_number" "$grid" exec "$@"
}

# login NAME CMD: without any question
login() {
  run "$hosts_ssh" -n -o BatchMode=yes -o ConnectTimeout=5 "$@"
}

# connects HOST TO PORT [SECONDS]: whether that host gets a connection
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

# took HOST TO: prints how many milliseconds a connection takes: the least of three times, for others use this machine too
took() {
  local i start ms least=''
  for i in 1 2 3; do
    start=$EPOCHREALTIME
    connects "$@" 22 || return
    ms=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    [[ -n $least ]] && ((least < ms)) || least=$ms
  done
  echo "$least"
}

# expect_late HOST TO: after the packets of one round trip of 600 ms, or more
expect_late() {
  (($(took "$@") >= 600)) || wrong "a connection from $1 to $2 should take 600 ms"
}

expect_soon() {
  (($(took "$@") < 600)) || wrong "a connection from $1 to $2 should take less than 600 ms"
}

# talk HOST: a session in which it writes ticks, and puts each line that say sends into its file /tmp/said
talk() {
  mkfifo "$work/lines"
  exec 7<>"$work/lines"
  : >"$work/ticks"
  "$hosts_ssh" -o BatchMode=yes "$(host_name "$1")" '
    rm -f /tmp/said
    while sleep 0.1 && echo tick; do :; done &
    while read -r line; do echo "$line" >>/tmp/said; done' <"$work/lines" >"$work/ticks" 2>"$tmp/err" 7>&- &
  talking=$!
  said=$hosts_dir/$1/tmp/said
  await_true "the first ticks" ticks_after 0
}

say() {
  echo "$1" >&7
}

ticks() {
  wc -l <"$work/ticks"
}

# ticks_after COUNT: whether there are more by now
ticks_after() {
  (($(ticks) > $1))
}

was_said() {
  grep -qsx "$1" "$said"
}

# It still goes both ways, then ends.
end_talk() {
  say last
  await_true "what was said last" was_said last
  await_true "more ticks" ticks_after "$(ticks)"
  kill "$talking"
  { wait "$talking"; } 2>/dev/null
  exec 7>&-
}

no_ticks() {
  local before
  sleep 0.3 # those on the way
  before=$(ticks)
  sleep 0.7
  ! ticks_after "$before" || wrong "expected no ticks, saw $(($(ticks) - before))"
}

# set_gone NUMBER
set_gone() {
  ip netns list | grep -q "^cw$1-" && wrong "namespaces of set $1 are left"
  ip link show "cw$1" >/dev/null 2>&1 && wrong "the link cw$1 is left"
  [[ ! -e $hosts_place/$1 ]] || wrong "the directory of set $1 is left"
  grep -qsz "$hosts_place/$1\$" /proc/[0-9]*/cmdline && wrong "processes of set $1 are left"
  return 0
}

# --- what passes ------------------------------------------------------------------

between_sites() {
  there a1 ssh b2 hostname
  expect_out b2
  there c2 runuser -u plain -- ssh plain@a2 'id -un; hostname'
  expect_out plain$'\n'a2
  there a1 ssh b-gate 'echo $SSH_CONNECTION' # nodes have no address outside
  expect_out_like "^$hosts_net.1 [0-9]+ $hosts_net.2 22"
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
  expect_open c1 c-gate 22
  expect_open c1 a-gate 22
}

nothing_out() {
  expect_closed d1 a-gate 22
  expect_closed d-gate a-gate 22
  expect_open d1 d2 22
  expect_open a1 d-gate 22
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

late() {
  can_slow a b 300 || return
  expect_late a1 b-gate
  expect_late b-gate a-gate
  expect_soon a1 d-gate
  expect_soon front b-gate
  grid_fast a b
  expect_soon a1 b-gate
  grid_slow all b 300
  expect_late front b-gate
  grid_fast b all
  expect_soon front b-gate
}

# cut_and_joined HOST CUT JOIN: by these commands; what was said meanwhile comes later.
cut_and_joined() {
  talk "$1"
  $2
  say meanwhile
  no_ticks
  ! was_said meanwhile || wrong "a line passed a way that is cut"
  $3
  await_true "what was said meanwhile" was_said meanwhile
  end_talk
}

# It hears nothing, but is heard.
deaf() {
  local before
  talk a1
  host_cut_to a1
  before=$(ticks)
  say meanwhile
  await_true "ticks of a host that hears nothing" ticks_after "$before"
  ! was_said meanwhile || wrong "something got to the host"
  host_join a1
  await_true "what was said meanwhile" was_said meanwhile
  end_talk
}

# dumb HOST CUT JOIN: it hears, but is not heard.
dumb() {
  talk "$1"
  $2
  say meanwhile
  await_true "what was said to who cannot be heard" was_said meanwhile
  no_ticks
  $3
  end_talk
}

cut_from_all() {
  grid_cut all a
  expect_closed front a-gate 22
  expect_closed b1 a-gate 22
  expect_closed a1 d-gate 22
  expect_open a1 a2 22
  expect_open b1 d-gate 22
  grid_join a all
  expect_open b1 a-gate 22
  expect_open a1 d-gate 22
}

closed_node() {
  host_close a1
  listener a1 7000
  expect_open a-gate a1 22
  expect_closed a-gate a1 7000
  host_join a1
  expect_open a-gate a1 7000
}

killed() {
  local one before
  for one in a-gate a1; do
    login "$one" 'echo kept >/tmp/kept; setsid sleep 60 >/dev/null 2>&1 & exit'
    says marked || wrong "a process left on $one is not found"
    before=$(on_host "$one" cat /proc/sys/kernel/random/boot_id)
    host_kill "$one"
    none_marked || wrong "a process outlived $one"
    login "$one" true
    expect_code 255
    login b1 hostname
    expect_out b1
    host_start "$one"
    login "$one" cat /tmp/kept
    expect_out kept
    [[ $(on_host "$one" cat /proc/sys/kernel/random/boot_id) != "$before" ]] || wrong "$one has the boot id of before"
  done
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
  run "$grid" exec front bash -c 'cd; pwd; ssh x1 hostname'
  expect_out "$hosts_place/$other/front/home"$'\n'x1
  run "$grid" kill x1
  run "$grid" list
  expect_out_like "^x1 10.$other.1.1 off"
  run "$grid" down
  run_expect 0 '' "$grid" down
  set_gone "$other"
  run "$root/tests/hosts.sh" up 1
  expect_out "node1 198.18.$other.1 runs"
  run "$root/tests/hosts.sh" down
  unset HOSTS_NUMBER
  set_gone "$other"
  [[ $(md5sum /etc/hosts /etc/passwd /etc/shadow) = "$system" ]] || wrong "a file of the system is changed"
}

# killed_suite SECONDS: one that is killed so long after it began to make a grid; the next removes what it has left
killed_suite() {
  local number
  start bash -c '. "$1" && hosts_take && echo "$hosts_number" && HOSTS_NUMBER=$hosts_number && rm -rf "$hosts_dir" &&
    grid_up a b && grid_slow a b 10; exec sleep 60' - "$grid"
  await_true "a set" test -s "$tmp/out"
  sleep "$1"
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

t "logins from one site to another" between_sites
t "private addresses lead to nobody elsewhere" private_addresses
t "only SSH to gateways passes between sites" only_ssh
t "... from anybody" nobody_else
t "a site that lets nothing in" nothing_in
t "a site that lets nothing out" nothing_out
t "connections between sites are counted" crossings
t "ways that take time" late
t "a way is cut and joined" cut_and_joined a-gate "grid_cut front a" "grid_join front a"
t "a way is cut in one direction" dumb a-gate "grid_cut_way a front" "grid_join a front"
t "a site is cut off from all" cut_from_all
t "a host is cut off and joined" cut_and_joined a1 "host_cut a1" "host_join a1"
t "a host hears nothing" deaf
t "a host is not heard" dumb a1 "host_cut_from a1" "host_join a1"
t "a host with closed ports" closed_node
t "a gateway and a node are killed, and started again" killed
t "the commands" as_command
for seconds in 0.1 1 4; do
  t "what a suite leaves behind that is killed after $seconds s is removed" killed_suite "$seconds"
done
t "nothing is left" taken_down
tap_end

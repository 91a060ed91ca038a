#!/bin/bash
# Relays on two sites, of which only SSH leads to the other one: node2 (tests/hosts.sh) lets nothing in but SSH, and its
# relay listens on its loopback device. Programs run over both, tunnels are killed and cut, and gateways are refused
# that are not what they should be. Prints TAP.
#
#   tunnels.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2317 # the tests are called by t
set -u

suite=tunnels
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/jobs.sh
. "$here/../lib/jobs.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}
port=7000

# Keys and known hosts of who runs the relay here, and both relays.
sites() {
  HOME=$work/home
  far=ssh:root@$hosts_net.2/127.0.0.1:$port
  mkdir -p "$HOME/.ssh"
  cp "$hosts_dir/key" "$HOME/.ssh/id_ed25519"
  sed "s/^node[0-9]*,//" "$hosts_dir/known_hosts" >"$HOME/.ssh/known_hosts"
  start_named_relay near --listen "tcp:$hosts_net.$HOSTS_FRONT:0" --key-file "$work/key"
  near=$address
  start_far
}

start_far() {
  helper far env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 "${causeway[@]}" relay \
    --listen "tcp:127.0.0.1:$port" --key-file "$work/key"
  await_true "the relay of node2 to listen" grep -q 'listening on' "$tmp/far.err"
}

end_far() {
  on_host 2 pkill -x causeway
  await_true "the processes of node2 to end" none_on 2
}

# over_sites OPTION... PROGRAM...: the command of a job, two ranks at each
over_sites() {
  on node1:2,node2:2 --no-ckpt --relay "$near" --relay "$far" --key-file "$work/key" --relay-map '0*2,1*2' -n 4 "$@"
}

expect_untouched() {
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  [[ $(event host_lost) = 0 ]] || wrong "a host was given up"
}

# No tunnel outlives its relay.
no_tunnels() {
  end_far
  kill "$(child_of_relay)" 2>/dev/null
  await_true "the tunnels to end" no_tunnel_is_left
}

child_of_relay() {
  pgrep -f "causeway relay --listen tcp:$hosts_net.$HOSTS_FRONT:0 --key-file $work/key"
}

tunnels() {
  pgrep -f "causeway tunnel --fd [0-9]+ $far"
}

no_tunnel_is_left() {
  ! says tunnels
}

solved() {
  sites
  [[ -z $1 ]] || far=$1
  ! timeout 2 bash -c ": <>/dev/tcp/$hosts_net.2/$port" 2>/dev/null || wrong "node2 should let nothing in but SSH"
  over_sites "$solver" 200 2000 1000
  run "${job_command[@]}"
  expect_untouched
  expect_solver 200 2000
  no_tunnels
}

through_another() {
  solved "ssh:root@$hosts_net.1,root@$hosts_net.2/127.0.0.1:$port"
}

# Messages of megabytes are on their way when tunnels die.
killed() {
  local i
  sites
  over_sites "$root/build/programs/sizes" 67108864
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  for ((i = 0; i < 20; i++)); do
    sleep 0.1
    tunnels | xargs -r kill -9
  done
  finish
  expect_untouched
  expect_code 0
  no_tunnels
}

cut_off() {
  sites
  over_sites "$solver" 200 6000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  host_cut 2
  sleep 3
  host_join 2
  host_close 2
  finish
  expect_untouched
  expect_solver 200 6000
  no_tunnels
}

# sshd is killed with all its sessions, and started again.
sshd_killed() {
  sites
  over_sites --host-timeout 20s "$solver" 200 6000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  on_host 2 pkill -9 -x sshd
  sleep 1
  on_host 2 /usr/sbin/sshd -f /run/sshd/config -E /run/sshd/log
  finish
  expect_untouched
  expect_solver 200 6000
  no_tunnels
}

# refused TEXT: nobody comes to the relay of node2
refused() {
  over_sites "$solver" 100 100 100
  run "${job_command[@]}"
  expect_code 1
  grep -Eq -- "$1" "$tmp/err" || wrong "expected on standard error: $1"
  no_tunnels
}

unknown_key() {
  sites
  sed -i "/^$hosts_net.2 /d" "$HOME/.ssh/known_hosts"
  refused "gateway $hosts_net.2: its key, SHA256:[A-Za-z0-9+/]{43}, is not known .*'ssh -p 22 $hosts_net.2' once"
}

no_known_hosts() {
  sites
  rm "$HOME/.ssh/known_hosts"
  refused "gateway $hosts_net.2: its key, SHA256:.* is not known"
}

changed_key() {
  local other
  sites
  other=$(awk -v name="$hosts_net.1" '$1 == name { print $2, $3 }' "$HOME/.ssh/known_hosts")
  sed -i "s#^$hosts_net.2 .*#$hosts_net.2 $other#" "$HOME/.ssh/known_hosts"
  refused "gateway $hosts_net.2: its key is not the one that is known, but SHA256:.*ssh-keygen"
}

no_permission() {
  sites
  ssh-keygen -q -t ed25519 -N '' -f "$work/other"
  cp "$work/other" "$HOME/.ssh/id_ed25519"
  refused "gateway $hosts_net.2: it does not let root in; 0 keys of an agent and 1 of $HOME/.ssh were tried"
}

no_forwarding() {
  local authorized=$hosts_dir/2/run/sshd/authorized
  sites
  sed -i 's/^ssh-/no-port-forwarding &/' "$authorized"
  refused "gateway $hosts_net.2: forwarding to 127.0.0.1 port $port \(it may be forbidden"
  sed -i 's/^no-port-forwarding //' "$authorized"
}

nobody_listens() {
  sites
  far=ssh:root@$hosts_net.2/127.0.0.1:7009
  refused "forwarding to 127.0.0.1 port 7009 .*nobody listens"
}

old_algorithms() {
  sites
  on_host 2 pkill -x sshd
  on_host 2 /usr/sbin/sshd -f /run/sshd/config -E /run/sshd/log -o Ciphers=aes128-cbc -o MACs=hmac-sha1
  run "${causeway[@]}" tunnel "$far"
  expect_code 1
  grep -q "gateway $hosts_net.2: agreeing on algorithms" "$tmp/err" || wrong "expected that they are refused"
  no_tunnels
  on_host 2 pkill -x sshd
  on_host 2 /usr/sbin/sshd -f /run/sshd/config -E /run/sshd/log
}

another_relay() {
  sites
  end_far
  head -c 32 /dev/urandom | xxd -p -c 64 >"$work/other"
  helper far env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 "${causeway[@]}" relay \
    --listen "tcp:127.0.0.1:$port" --key-file "$work/other.key"
  await_true "the relay of node2 to listen" grep -q 'listening on' "$tmp/far.err"
  refused "relay $far: .*(credential|key)"
}

# As with ssh -W.
# shellcheck disable=SC2016 # perl's, and of the other shell
by_hand() {
  sites
  helper echo env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:7001", Listen => 1, ReuseAddr => 1) or die; $c = $s->accept;
    while (sysread $c, $_, 65536) { syswrite $c, $_ } close $c'
  sleep 1
  head -c 20000000 /dev/urandom >"$work/sent"
  run bash -c '"${@:3}" <"$1" | cmp - "$1"' _ "$work/sent" - "${causeway[@]}" tunnel "ssh:root@$hosts_net.2/127.0.0.1:7001"
  expect_code 0
  no_tunnels
}

# Its other end does not hang up, and it ends all the same when who had it is gone.
# shellcheck disable=SC2016 # perl's
nobody_is_left() {
  sites
  helper sink env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:7001", Listen => 1, ReuseAddr => 1) or die; $c = $s->accept; sleep 60'
  sleep 1
  helper client perl -MSocket -e '
    socketpair my $a, my $b, AF_UNIX, SOCK_STREAM, 0; $^F = 1000;
    if (!fork) { close $a; open STDIN, "<&", $b; open STDOUT, ">&", $b; close $b; exec @ARGV } close $b;
    sleep 60' "${causeway[@]}" tunnel "ssh:root@$hosts_net.2/127.0.0.1:7001"
  await_true "the tunnel" says pgrep -f "causeway tunnel ssh:root@$hosts_net.2/127.0.0.1:7001"
  sleep 1
  kill -9 "$helper"
  await_true "the tunnel to end" no_such "causeway tunnel ssh:root@$hosts_net.2/127.0.0.1:7001"
  no_tunnels
}

no_such() {
  ! says pgrep -f "$1"
}

bad_addresses() {
  local one
  for one in ssh: ssh:a ssh:/b:1 ssh:a/b ssh:a/b:0 ssh:a/b:70000 ssh:a:x/b:1 ssh:-a/b:1 ssh:a@/b:1 ssh:@a/b:1 ssh:a,/b:1 \
    ssh:a,b,c,d,e/f:1 'ssh:a b/c:1' 'ssh:[::1/b:1' ssh:a/b:1/c; do
    run "${causeway[@]}" tunnel "$one"
    expect_code 2
    grep -q "expected ssh:\[USER@\]GATEWAY" "$tmp/err" || wrong "expected that $one is refused, saw: $(<"$tmp/err")"
  done
  run "${causeway[@]}" relay --listen ssh:a/b:1 --key-file "$work/key"
  expect_code 1
  grep -q 'nobody can listen there' "$tmp/err" || wrong "expected that nobody can listen there, saw: $(<"$tmp/err")"
}

lib_start
find_causeway
t "addresses that are wrong" bad_addresses
hosts_start "three hosts"
host_close 2

t "a solver over two sites" solved ''
t "... by way of another gateway" through_another
t "tunnels are killed in large messages" killed
t "the site is cut off for a time" cut_off
t "sshd is killed, and started again" sshd_killed
t "a gateway whose key is not known" unknown_key
t "... where no key is known" no_known_hosts
t "a gateway with another key" changed_key
t "a key without permission" no_permission
t "forwarding is forbidden" no_forwarding
t "nobody listens behind the gateway" nobody_listens
t "a gateway that offers old algorithms" old_algorithms
t "another relay is there" another_relay
t "bytes through a tunnel" by_hand
t "nobody is left at this end of a tunnel" nobody_is_left
tap_end

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

# Whatever else is said of the key.
revoked_key() {
  sites
  sed -i "/^$hosts_net.2 /{p; s/^/@revoked /}" "$HOME/.ssh/known_hosts"
  refused "gateway $hosts_net.2: its key, SHA256:.* is revoked"
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
  refused "gateway $hosts_net.2: it does not let root in; 0 keys of an agent and 1 of CAUSEWAY_SSH_KEYS and $HOME/.ssh were tried"
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

# One connection to port 7001 of node2 is answered by its own bytes.
# shellcheck disable=SC2016 # perl's
echo_there() {
  helper echo env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:7001", Listen => 1, ReuseAddr => 1) or die; $c = $s->accept;
    while (sysread $c, $_, 65536) { syswrite $c, $_ } close $c'
  sleep 1
}

# bytes_come_back BYTES OPTION...: through a tunnel to that
# shellcheck disable=SC2016 # of the other shell
bytes_come_back() {
  local gate=${gate:-root@$hosts_net.2}
  [[ -e $work/sent ]] || head -c "$1" /dev/urandom >"$work/sent"
  run bash -c '"${@:3}" <"$1" | cmp - "$1"' _ "$work/sent" - "${command[@]:-${causeway[@]}}" tunnel "${@:2}" "ssh:$gate/127.0.0.1:7001"
  expect_code 0
}

# As with ssh -W.
by_hand() {
  sites
  echo_there
  bytes_come_back 20000000
  no_tunnels
}

# It has more keys than a gateway lets be tried, of a kind that lets nobody in, and the right one last.
full_agent() {
  sites
  for it in 1 2 3 4 5 6 7; do
    ssh-keygen -q -t rsa -b 1024 -N '' -f "$work/rsa$it"
  done
  export SSH_AUTH_SOCK=$work/agent
  helper agent ssh-agent -D -a "$SSH_AUTH_SOCK"
  await_true "an agent" test -S "$SSH_AUTH_SOCK"
  ssh-add -q "$work"/rsa? "$HOME/.ssh/id_ed25519" 2>/dev/null
  [[ $(ssh-add -l | wc -l) = 8 ]] || wrong "the agent should have 8 keys"
  rm "$HOME/.ssh/id_ed25519"
  echo_there
  bytes_come_back 1000
  unset SSH_AUTH_SOCK
}

# Who takes bytes slowly where a tunnel leads gets all of them: it says nothing, and reads when all has been sent.
# shellcheck disable=SC2016 # perl's
slow_sink() {
  helper sink env HOSTS_NUMBER="$hosts_number" "$root/tests/hosts.sh" exec 2 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:7001", Listen => 1, ReuseAddr => 1) or die;
    $c = $s->accept; shutdown $c, 1; sleep shift; while (sysread $c, $_, 65536) { $n += length; select undef, undef, undef, 0.01 }
    print "got $n\n"' "${SINK_SLEEPS:-3}"
  sleep 1
}

# all_arrive BYTES OPTION...
# shellcheck disable=SC2016 # of the other shell
all_arrive() {
  sites
  slow_sink
  run bash -c 'head -c "$1" /dev/urandom | "${@:2}"' _ "$1" "${causeway[@]}" tunnel "${@:2}" "ssh:root@$hosts_net.2/127.0.0.1:7001"
  expect_code 0
  await_true "the last byte" grep -q got "$tmp/sink.out"
  grep -qx "got $1" "$tmp/sink.out" || wrong "of $1 bytes: $(<"$tmp/sink.out")"
  no_tunnels
}

# The sshd of a tunnel stands still, whose kernel acknowledges all.
sshd_stopped() {
  start_striped "$@"
  await_true "its bytes to come back" grep -q some "$tmp/out"
  on_host 2 pkill -STOP -f 'sshd: root'
  finish
  expect_code 1
  grep -q "gateway $hosts_net.2: the tunnel to a relay: no answer" "$tmp/err" || wrong "expected that it does not answer, saw: $(<"$tmp/err")"
  on_host 2 pkill -CONT -f 'sshd: root'
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
  await_true "the far end to be gone" nothing_of_stripes
  no_tunnels
}

no_such() {
  ! says pgrep -f "$1"
}

# --- striped tunnels --------------------------------------------------------------

# what a striped tunnel has at the gateway: processes, and a socket
nothing_of_stripes() {
  ! says on_host 2 pgrep -f 'causeway tunnel --merge' &&
    ! on_host 2 grep -q causeway-tunnel /proc/net/unix
}

stripes_are_there() {
  (($(on_host 2 pgrep -fc 'causeway tunnel --merge') >= $1))
}

expect_several() {
  grep -q 'causeway tunnel: several connections' "$tmp/err" || wrong "expected several connections, saw: $(<"$tmp/err")"
}

# expect_one WHY
expect_one() {
  grep -Eq "causeway tunnel: one connection: $1" "$tmp/err" || wrong "expected one connection: $1; saw: $(<"$tmp/err")"
}

export CAUSEWAY_TUNNEL_PROGRAM=$root/build/causeway # which is in no PATH at the gateways

striped_job() {
  local -x CAUSEWAY_TUNNEL_CONNECTIONS=4
  local log=$hosts_dir/2/run/sshd/log before
  before=$(grep -c 'Starting session: command for root' "$log")
  solved "${1-}"
  (($(grep -c 'Starting session: command for root' "$log") >= before + 4)) ||
    wrong "expected connections of a striped tunnel at node2"
}

striped_through_another() {
  striped_job "ssh:root@$hosts_net.1,root@$hosts_net.2/127.0.0.1:$port"
}

# What can and what cannot be packed, both ways at once; each twice the window of sshd.
striped_bytes() {
  sites
  echo_there
  head -c 100000000 /dev/urandom >"$work/sent"
  head -c 100000000 /dev/zero >>"$work/sent"
  bytes_come_back 0 --verbose --connections 4
  expect_several
  await_true "the far end to be gone" nothing_of_stripes
  no_tunnels
}

# Both directions are full at once over one connection, too.
full_both_ways() {
  sites
  echo_there
  bytes_come_back 200000000 --connections 1
  no_tunnels
}

striped_nobody_is_left() {
  local -x CAUSEWAY_TUNNEL_CONNECTIONS=4
  nobody_is_left
}

# One connection of a tunnel is killed, again and again.
one_killed() {
  local -x CAUSEWAY_TUNNEL_CONNECTIONS=4
  local i
  sites
  over_sites "$root/build/programs/sizes" 67108864
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  for ((i = 0; i < 10; i++)); do
    sleep 0.3
    tunnels | shuf -n 1 | xargs -r kill -9
  done
  finish
  expect_untouched
  expect_code 0
  await_true "the far ends to be gone" nothing_of_stripes
  no_tunnels
}

# start_striped [CONNECTIONS]: a tunnel that has all its connections, four, and waits for more to carry
# shellcheck disable=SC2016 # of the other shell
start_striped() {
  sites
  echo_there
  start bash -c 'exec "$@" < <(echo some; exec tail -s 0.1 --pid=$$ -f /dev/null)' _ "${causeway[@]}" tunnel --connections "${1:-4}" "ssh:root@$hosts_net.2/127.0.0.1:7001"
  [[ ${1:-4} = 1 ]] || await_true "all connections" stripes_are_there "${1:-4}"
}

local_end_killed() {
  start_striped
  kill -9 "$pid"
  finish
  await_true "the far end to be gone" nothing_of_stripes
  await_true "its processes here to end" no_such "causeway tunnel --connections 4 ssh:root@$hosts_net.2"
  no_tunnels
}

# The far end hears nothing of it any more, but SSH goes on.
near_end_stopped() {
  local i
  start_striped
  await_true "its bytes to come back" grep -q some "$tmp/out"
  kill -STOP "$pid"
  for ((i = 0; i < 100; i++)); do
    nothing_of_stripes && break
    sleep 1
  done
  kill -CONT "$pid"
  nothing_of_stripes || wrong "the far end should be gone"
  finish
  expect_code 1
  no_tunnels
}

one_lost() {
  start_striped
  await_true "its bytes to come back" grep -q some "$tmp/out"
  sleep 0.5
  on_host 2 pkill -9 -f -n 'sshd: root@notty'
  finish
  expect_code 1
  grep -Eq "gateway $hosts_net.2: (the tunnel|one of the connections of the tunnel broke)" "$tmp/err" || wrong "expected that a connection broke, saw: $(<"$tmp/err")"
  await_true "the far end to be gone" nothing_of_stripes
  no_tunnels
}

# The socket's name can be seen by all.
# shellcheck disable=SC2016 # perl's
no_token() {
  start_striped
  on_host 2 perl -MSocket -e 'open F, "/proc/net/unix"; ($n) = map { /@(causeway-tunnel-\S+)/ } <F>;
    for (1 .. 20) { socket my $s, AF_UNIX, SOCK_STREAM, 0; connect $s, pack("Sa*", AF_UNIX, "\0$n") or die "connect: $!";
      $_ % 2 and syswrite $s, "x" x 32; sysread $s, $_, 1 and die "answered" }' >"$work/perl" 2>&1 || wrong "$(<"$work/perl")"
  await_true "its bytes to come back" grep -q some "$tmp/out"
  stripes_are_there 4 || wrong "a connection was lost"
  kill -9 "$pid"
  finish
  no_tunnels
}

# falls_back WHY OPTION...: bytes come back over one connection
falls_back() {
  echo_there
  bytes_come_back 1000000 --verbose "${@:2}"
  expect_one "$1"
  no_tunnels
}

none_at_gateway() {
  local -x CAUSEWAY_TUNNEL_PROGRAM=
  local place command
  sites
  place=$(mktemp -d "/tmp/cwalone.XXXXXX")
  cp "$root/build/causeway" "$place"
  command=("$place/causeway")
  falls_back "gateway $hosts_net.2: a command ended early" --connections 4
  rm -r "$place"
}

# Where this machine has its own may be a place there where any user can put a program.
planted_at_gateway() {
  local -x CAUSEWAY_TUNNEL_PROGRAM=
  local place command
  sites
  place=$(mktemp -d "/tmp/cwalone.XXXXXX")
  cp "$root/build/causeway" "$place"
  command=("$place/causeway")
  on_host 2 mkdir -p "$place"
  printf '#!/bin/sh\n: >%s/called\n' "$place" | on_host 2 tee "$place/causeway" >/dev/null
  on_host 2 chmod +x "$place/causeway"
  falls_back "gateway $hosts_net.2: a command ended early" --connections 4
  ! on_host 2 test -e "$place/called" || wrong "the planted program was run"
  on_host 2 rm -r "$place"
  rm -r "$place"
}

# another_at_gateway TEXT: the causeway that is found there says it
another_at_gateway() {
  on_host 2 mount -t tmpfs tmpfs /usr/local/bin
  printf '#!/bin/sh\n%s\n' "$1" | on_host 2 tee /usr/local/bin/causeway >/dev/null
  on_host 2 chmod +x /usr/local/bin/causeway
}

older_at_gateway() {
  local -x CAUSEWAY_TUNNEL_PROGRAM=
  sites
  another_at_gateway 'echo "usage: causeway tunnel ..." >&2; exit 2'
  falls_back "gateway $hosts_net.2: a command ended early" --connections 4
  on_host 2 umount /usr/local/bin
}

other_version_at_gateway() {
  local -x CAUSEWAY_TUNNEL_PROGRAM=
  sites
  another_at_gateway 'printf "\nCWMERGE\n\377\0\0\0\0\0\0\0it speaks another version"; head -c 231 /dev/zero; exec cat'
  falls_back "gateway $hosts_net.2: causeway tunnel --merge: it speaks another version" --connections 4
  on_host 2 umount /usr/local/bin
}

# forced COMMAND WHY: with the key of the test nothing else can be run
forced() {
  local authorized=$hosts_dir/2/run/sshd/authorized
  sites
  sed -i "s#^ssh-#command=\"$1\" &#" "$authorized"
  falls_back "$2" --connections 4
  sed -i 's/^command="[^"]*" //' "$authorized"
}

near_and_far() {
  local gate way=$((27100 + hosts_number))
  sites
  echo_there
  bytes_come_back 1000000 --verbose
  expect_one "the gateway is near"
  sed -i "/^$hosts_net.2 /{p; s/^$hosts_net.2 /[127.0.0.1]:$way /}" "$HOME/.ssh/known_hosts"
  helper way "$root/build/programs/delay" "$way" "$hosts_net.2" 22 20
  gate=root@127.0.0.1:$way
  echo_there
  bytes_come_back 0 --verbose
  expect_several
  no_tunnels
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
t "the gateway's key is revoked" revoked_key
t "a gateway with another key" changed_key
t "a key without permission" no_permission
t "forwarding is forbidden" no_forwarding
t "nobody listens behind the gateway" nobody_listens
t "a gateway that offers old algorithms" old_algorithms
t "another relay is there" another_relay
t "bytes through a tunnel" by_hand
t "an agent with many keys" full_agent
t "nobody is left at this end of a tunnel" nobody_is_left
t "bytes both ways at once" full_both_ways
t "a slow reader at the end gets all" all_arrive 8000000 --connections 1
t "a gateway's sshd stands still" sshd_stopped 1
t "striped: a solver over two sites" striped_job
t "... by way of another gateway" striped_through_another
t "striped: bytes through a tunnel" striped_bytes
t "striped: nobody is left at this end" striped_nobody_is_left
t "striped: single connections are killed in large messages" one_killed
t "striped: the near end is killed" local_end_killed
t "striped: the near end says nothing any more" near_end_stopped
t "striped: a connection is lost at the gateway" one_lost
t "striped: a slow reader at the end gets all" all_arrive 50000000 --connections 4
t "striped: a gateway's sshd stands still" sshd_stopped
t "striped: who has not the token" no_token
t "striped: the gateway has no Causeway" none_at_gateway
t "striped: a program is planted at the gateway" planted_at_gateway
t "... an older one" older_at_gateway
t "... another version" other_version_at_gateway
t "... lets no commands run" forced /bin/false "gateway .*: a command ended early"
t "... runs one that says nothing" forced "cat >/dev/null" "gateway .*: no answer in time"
t "a gateway that is near, and one that is far" near_and_far
tap_end

#!/bin/bash
# The hosts of tests/hosts.sh: that they can be logged in to, are apart from each other, can be cut off, killed, slowed
# down and brought back, and that nothing of them is left. Prints TAP.
#
#   hosts_net.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="hosts in namespaces"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-60}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/hosts.sh
. "$here/../hosts.sh"
# shellcheck source=tests/lib/hosts_net.sh
. "$here/../lib/hosts_net.sh"
only=${1-}
hosts=$root/tests/hosts.sh

# --- what the tests run -----------------------------------------------------------

# there I CMD...: on that host, as the command does it
there() {
  run env HOSTS_NUMBER="$hosts_number" "$hosts" exec "$@"
}

# --- the tests --------------------------------------------------------------------

logins() {
  local i
  for i in 1 2 3; do
    login "node$i" hostname
    expect_code 0
    expect_silence
    expect_out "node$i"
  done
}

names() {
  there 0 getent hosts node3
  expect_out_like "^$hosts_net.3 +node3"
  there 1 bash -c 'read -r -t 5 line </dev/tcp/node2/22; echo "$line"'
  expect_out_like '^SSH-2.0'
  there 1 getent hosts front
  expect_out_like "^$hosts_net.254 "
}

apart() {
  local file i
  on_host 1 touch /tmp/mine /dev/shm/mine /run/user/0/mine
  for i in /tmp /dev/shm /run/user/0; do
    file=$i/mine
    on_host 1 test -e "$file" || wrong "node1 has no $file"
    ! on_host 2 test -e "$file" || wrong "node2 has $file of node1"
    [[ ! -e $file ]] || wrong "the front has $file of node1"
    on_host 1 rm "$file"
  done
  there 1 ps -e -o comm=
  expect_out_like '^sshd'
  [[ $(grep -c . "$tmp/out") -lt 8 ]] || wrong "node1 sees more processes than its own"
  [[ $(on_host 1 cat /proc/sys/kernel/random/boot_id) != "$(on_host 2 cat /proc/sys/kernel/random/boot_id)" ]] ||
    wrong "two hosts have one boot id"
}

# as lib/system.sh looks for them
found_when_left() {
  login node1 'sleep 60 >/dev/null 2>&1 & exit'
  says marked || wrong "a process left on a host is not found"
  on_host 1 pkill -x sleep
}

users() {
  login plain.node1 'id -un; echo "$XDG_RUNTIME_DIR"; test -w "$XDG_RUNTIME_DIR" && test -w "$HOME" && echo writes'
  expect_out "plain"$'\n'"/run/user/60901"$'\n'writes
  login prints.node2 'echo done'
  expect_out "Welcome to node2!"$'\n'done
}

password() {
  refused 'Permission denied \(password\)' asks.node1
  printf '#!/bin/sh\necho secret\n' >"$work/answer"
  chmod +x "$work/answer"
  run env SSH_ASKPASS="$work/answer" SSH_ASKPASS_REQUIRE=force "$hosts_ssh" asks.node1 id -un
  expect_out asks
}

no_such_host() {
  refused 'No route to host|timed out' absent
  refused 'Could not resolve' unknown.invalid
}

# cut_and_joined I SECONDS: what was said meanwhile comes later
cut_and_joined() {
  talk 1
  host_cut "$1"
  say meanwhile
  stands_still "$2"
  ! was_said meanwhile || wrong "a line passed a link that is cut"
  host_join "$1"
  await_true "what was said meanwhile" was_said meanwhile
  end_talk
}

cut_refuses() {
  host_cut 2
  refused 'timed out|No route' node2
  login node1 hostname
  expect_out node1
  host_join 2
  await_true "a host that is joined again" reached node2
}

deaf() {
  local before
  talk 1
  host_cut_to 1
  before=$(ticks)
  say meanwhile
  await_true "ticks of a host that hears nothing" ticks_after "$before"
  ! was_said meanwhile || wrong "something got to the host"
  host_join 1
  await_true "what was said meanwhile" was_said meanwhile
  end_talk
}

dumb() {
  talk 1
  host_cut_from 1
  say meanwhile
  await_true "what was said to a host that cannot be heard" was_said meanwhile
  stands_still 0.5
  host_join 1
  end_talk
}

# transfer_ms: of 250,000 bytes from host 1
transfer_ms() {
  local start=$EPOCHREALTIME
  login node1 'head -c 250000 /dev/zero'
  expect_code 0
  echo $(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
}

# slowed I DELAY
slowed() {
  local took
  host_slow "$1" 1mbit ${2:+"$2"} 2>"$tmp/err"
  case $? in
  0)
    took=$(transfer_ms)
    ((took > 1500)) || wrong "250,000 bytes at 1 Mbit/s took $took ms"
    ;;
  77) skip "$(<"$tmp/err")" ;;
  *) wrong "the host could not be slowed down" ;;
  esac
  host_fast "$1"
}

killed() {
  local pid before
  login node2 'echo kept >/tmp/kept; setsid sleep 60 >/dev/null 2>&1 & exit'
  before=$(on_host 2 cat /proc/sys/kernel/random/boot_id)
  pid=$(host_pid 2)
  host_kill 2
  none_marked || wrong "a process outlived its host"
  gone "$pid" || wrong "the host's first process still runs"
  says ip netns pids "cw$hosts_number-2" && wrong "the host still has processes"
  [[ $(hosts_list) = *"node2 $hosts_net.2 off"* ]] || wrong "the list does not say that it is off"
  refused 'Connection refused' node2
  login node1 hostname
  expect_out node1
  host_start 2
  login node2 'cat /tmp/kept'
  expect_out kept
  [[ $(on_host 2 cat /proc/sys/kernel/random/boot_id) != "$before" ]] || wrong "it has the boot id of before"
}

# The connections of a host that is killed behind a cut link do not end.
killed_unheard() {
  talk 2
  host_cut 2
  host_kill 2
  sleep 1
  gone "$talking" && wrong "the session has ended"
  kill "$talking"
  { wait "$talking"; } 2>/dev/null
  host_start 2
  host_join 2
  login node2 hostname
  expect_out node2
}

sshd_killed() {
  login node3 'setsid sleep 60 >/dev/null 2>&1 & exit'
  talk 3
  host_kill_sshd 3
  await_true "the session to end" gone "$talking"
  { wait "$talking"; } 2>/dev/null
  refused 'Connection refused' node3
  on_host 3 pkill -x sleep || wrong "other processes have ended too"
  host_start 3
  host_start 3 # changes nothing
  login node3 hostname
  expect_out node3
}

# --- what is left -----------------------------------------------------------------

as_command() {
  local other=$((hosts_number + 32)) system
  system=$(md5sum /etc/hosts /etc/passwd /etc/shadow)
  export HOSTS_NUMBER=$other
  run "$hosts" up 2
  expect_out "node1 198.18.$other.1 runs"$'\n'"node2 198.18.$other.2 runs"
  run "$hosts" exec 2 hostname
  expect_out node2
  run "$hosts" exec 0 getent hosts node2
  expect_out_like "^198.18.$other.2 "
  run "$hosts" ssh -n plain.node1 id -un
  expect_out plain
  run "$hosts" kill 1
  run "$hosts" list
  expect_out "node1 198.18.$other.1 off"$'\n'"node2 198.18.$other.2 runs"
  run "$hosts" up 1 # anew
  expect_out "node1 198.18.$other.1 runs"
  run "$hosts" down
  run_expect 0 '' "$hosts" down
  unset HOSTS_NUMBER
  set_gone "$other"
  [[ $(md5sum /etc/hosts /etc/passwd /etc/shadow) = "$system" ]] || wrong "a file of the system is changed"
}

# killed_suite SECONDS: one that is killed so long after it began to make hosts; the next removes what it has left
killed_suite() {
  local number
  start bash -c '. "$1" && hosts_take && echo "$hosts_number" && HOSTS_NUMBER=$hosts_number && rm -rf "$hosts_dir" &&
    hosts_up 2 && sleep 60' - "$hosts"
  await_true "a set" test -s "$tmp/out"
  sleep "$1"
  kill -9 "$pid"
  finish
  number=$(<"$tmp/out")
  run bash -c '. "$1" && hosts_up 1; status=$?; hosts_down; exit $status' - "$hosts"
  expect_code 0
  set_gone "$number"
  [[ $number != "$hosts_number" ]] || wrong "a set that is in use was taken"
  login node1 hostname
  expect_out node1
}

# A namespace that appears after the set of a killed suite was removed is in nobody's way.
stale_space() {
  local other=$((hosts_number + 32))
  ip netns add "cw$other-switch"
  HOSTS_NUMBER=$other run_expect 0 '' "$hosts" up 1
  HOSTS_NUMBER=$other run_expect 0 '' "$hosts" down
  set_gone "$other"
}

refusals() {
  HOSTS_NUMBER=$((hosts_number + 32)) run_expect 2 '^hosts: 0 is not a number' "$hosts" up 0
  HOSTS_NUMBER=$hosts_number run_expect 2 "^hosts: there can be no set $hosts_number: it is in use" \
    bash -c '. "$1" && hosts_up 1' - "$hosts"
  HOSTS_NUMBER=64 run_expect 2 '^hosts: there can be no set 64' "$hosts" up 1
  HOSTS_NUMBER=$hosts_number run_expect 1 '^hosts: node9 is off' "$hosts" exec 9 true
}

taken_down() {
  local number=$hosts_number
  hosts_down
  hosts_down
  set_gone "$number"
}

# --- all of it --------------------------------------------------------------------

ending() {
  hosts_down
  lib_end
}

lib_start
trap ending EXIT
hosts_up 3 2>"$tmp/err"
case $? in
0) tap_ok "three hosts" ;;
77)
  tap_skip "all of it" "$(<"$tmp/err")"
  tap_end
  ;;
*)
  wrong "$(<"$tmp/err")"
  tap_not_ok "three hosts"
  tap_end
  ;;
esac

t "each can be logged in to" logins
t "names have addresses" names
t "each has directories, memory and processes of its own" apart
t "what a session leaves behind is found" found_when_left
t "an ordinary user, and one whose shell prints" users
t "a user who must type a password" password
t "names without a host" no_such_host
t "a link is cut and joined" cut_and_joined 1 1
t "the link of the front is cut and joined" cut_and_joined 0 1
t "who is cut off cannot be logged in to, others can" cut_refuses
t "a host hears nothing" deaf
t "a host is not heard" dumb
t "a slow host" slowed 1 ''
t "a slow front" slowed 0 ''
t "a slow host that is far away" slowed 1 20ms
t "a host is killed, and started again" killed
t "a host is killed unheard" killed_unheard
t "an sshd is killed" sshd_killed
t "the command" as_command
t "wrong arguments" refusals
for seconds in 0.1 0.5 2; do
  t "what a suite leaves behind that is killed after $seconds s is removed" killed_suite "$seconds"
done
t "what appears after a set was removed is removed" stale_space
t "nothing is left" taken_down
tap_end

#!/bin/bash
# Jobs whose ranks are on several hosts (tests/hosts.sh): they compute what they compute on one; ranks are restarted
# from images; hosts are lost, links are cut, logins are refused. Prints TAP.
#
#   hosts_jobs.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="jobs on several hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}

# --- the tests --------------------------------------------------------------------

solved() {
  on_hosts "$three" "$@" -n 4 "$solver" 200 2000 1000
  expect_silence
  expect_solver 200 2000
  nothing_stays 1 2 3
}

# Each rank says where it is.
placed() {
  local expected=$1
  shift
  on_hosts "$three" "$@" bash -c 'echo "$PMI_RANK $(hostname)"'
  sort -n -o "$tmp/out" "$tmp/out"
  [[ $(cut -d ' ' -f 2 "$tmp/out" | tr -d '\n' | sed 's/node//g') = "$expected" ]] ||
    wrong "expected ranks on nodes $expected, saw: $(<"$tmp/out")"
}

# Where no number is said.
placed_by_cores() {
  local cores
  cores=$(getconf _NPROCESSORS_ONLN)
  three=node1,node2,node3 placed 123 -n 3
  three=node1,node2:2 placed "$(printf '1%.0s' $(seq "$cores"))22" -n $((cores + 2))
}

streams() {
  seq 20000 >"$work/in"
  input=$work/in on_hosts node2:1,node1:1 -n 2 bash -c 'cat; echo "rank $PMI_RANK" >&2'
  expect_code 0
  cmp -s "$work/in" "$tmp/out" || wrong "what rank 0 read is not what was given"
  grep -q 'rank 1' "$tmp/err" || wrong "stderr of rank 1 is missing"
  on_hosts node2:1,node1:1 -n 2 bash -c 'exit $((PMI_RANK * 7))'
  expect_code 7
}

# Ranks have the umask of causeway run, whatever that is on the host.
with_umask() {
  local before
  before=$(umask)
  umask 027
  on_hosts node2:1,node1:1 -n 2 bash -c 'echo "$(umask)"'
  umask "$before"
  expect_code 0
  expect_out $'0027\n0027'
}

# What the user's configuration has for logins by hand.
login_by_hand() {
  {
    printf 'Host *\n RemoteCommand true\n StdinNull yes\n ForkAfterAuthentication yes\n'
    cat "$hosts_config"
  } >"$work/config"
  on_hosts node1:1,node2:1 --launcher-args "-F $work/config" -n 2 bash -c 'echo here'
  expect_code 0
  expect_out $'here\nhere'
}

# A rank that crashes goes on from its image, on its own host.
restarted() {
  on_hosts "$three" --ckpt-every 200ms --fault kill:1@event:14000 --fault kill:3@event:20000 "$@" -n 4 "$solver" 300 8000 1000
  [[ $(event rank_restored) -ge 1 ]] || wrong "no rank went on from an image"
  expect_solver 300 8000
}

# Ranks of a host share channel memory, and reach the others through the relays. One that crashes goes on from its
# image, or from its beginning.
with_channel() {
  on_hosts "$three" "$@" -n 6 "$root/build/programs/storm"
  expect_code 0
  expect_out 'ok storm'
  [[ $(event rank_down) = 2 ]] || wrong "there are $(event rank_down) events rank_down"
  nothing_stays 1 2 3
}

# lost_for_good HOSTS OPTION...: a host is lost whose ranks cannot go on elsewhere; with channel memory, wherever there is
# a free slot, for their logs are lost with it.
lost_for_good() {
  on "$1" --host-timeout 1s -n 4 "${@:2}" "$solver" 300 400000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  host_kill 2
  finish
  host_start 2
  expect_code 1
  grep -q 'node2' "$tmp/err" || wrong "nobody names node2"
  nothing_stays 1
}

# What a rank says of its image comes later than what the checkpoint server says of it.
slow_node() {
  printf '%s\n' '#!/bin/bash' "exec $hosts_ssh \"\$@\" | perl -e 'while (sysread STDIN, \$_, 65536) {
    select undef, undef, undef, 0.3; syswrite STDOUT, \$_ }'" >"$work/launcher"
  chmod +x "$work/launcher"
  on "$three" --launcher "$work/launcher" --ckpt-every 500ms -n 4 \
    "$root/build/programs/actor" init "ring_until=$work/go" finalize
  job_command=("${job_command[@]/--launcher-args/--verbose}")
  job_command=("${job_command[@]/-F $hosts_config/--verbose}")
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  sleep 3
  on_host 2 pkill -9 -x actor
  await_true "rank 3 to go on from an image" event_is_there rank_restored 3
  touch "$work/go"
  finish
  expect_code 0
  [[ $(event image_failed) = 0 ]] || wrong "$(event image_failed) images failed"
}

lost_with_spare() {
  on "$three" --spares 1 --relay-at cluster --host-timeout 1s --ckpt-every 300ms -n 4 "$solver" 300 5000 1000
  start "${job_command[@]}"
  await_true "images of rank 2" event_is_there image_stored 2
  await_true "images of rank 3" event_is_there image_stored 3
  host_kill 2
  finish
  host_start 2
  grep -q 'rank [23] was on host node2, which is lost; restarting it' "$tmp/err" || wrong "nobody says that node2 is lost"
  [[ $(event rank_restored) -ge 1 ]] || wrong "no rank went on from an image"
  [[ $(event host_lost) = 1 ]] || wrong "there are $(event host_lost) events host_lost"
  [[ $(jq -r 'select(.event == "rank_started" and .incarnation > 1) | .host' "$work/events" | sort -u) = node3 ]] ||
    wrong "the ranks did not go on on node3"
  expect_solver 300 5000
  nothing_stays 1 3
}

# The ranks go to the spare host, and back when that is lost.
lost_and_back() {
  on "$three" --spares 1 --relay-at cluster --host-timeout 1s --ckpt-every 300ms -n 4 \
    "$root/build/programs/actor" init "ring_until=$work/go" finalize
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  host_kill 2
  await_true "rank 3 on node3" started_on 3 node3 2
  host_start 2
  await_true "node2 to be back" event_is_there host_back
  host_kill 3
  await_true "rank 3 on node2" started_on 3 node2 3
  touch "$work/go"
  finish
  host_start 3
  expect_code 0
  [[ $(event host_lost) = 2 ]] || wrong "there are $(event host_lost) events host_lost"
  nothing_stays 1 2
}

lost_with_its_relay() {
  on "$three" --spares 1 --host-timeout 1s -n 4 "$solver" 300 400000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  host_kill 2
  finish
  host_start 2
  expect_code 1
  grep -q 'node2' "$tmp/err" || wrong "nobody names node2"
  nothing_stays 1 3
}

# Cut off for less than the time-out, all wait, and nothing is restarted.
cut_for_a_time() {
  on "$three" "$@" -n 4 "$solver" 300 3000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  host_cut 2
  sleep 2
  host_join 2
  finish
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  [[ $(event host_lost) = 0 ]] || wrong "a host was given up"
  expect_solver 300 3000
}

# In one direction only: first nothing gets there, then nothing comes back.
cut_in_one_direction() {
  on "$three" "$@" -n 4 "$solver" 300 3000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  host_cut_to 2
  sleep 1
  host_join 2
  sleep 0.5
  host_cut_from 2
  sleep 1
  host_join 2
  finish
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  expect_solver 300 3000
}

# The node goes on without the login that brought it there, until another one comes.
sshd_killed() {
  on "$three" "$@" -n 4 "$solver" 300 3000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  on_host 2 pkill -9 -x sshd
  sleep 1
  on_host 2 /usr/sbin/sshd -f /run/sshd/config -E /run/sshd/log
  finish
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  [[ $(event host_lost) = 0 ]] || wrong "a host was given up"
  expect_solver 300 3000
  nothing_stays 1 2 3
}

watchers_killed() {
  on "$three" --ckpt-every 300ms "$@" -n 4 "$solver" 300 5000 1000
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  on_host 2 pkill -9 -x causeway-watch
  finish
  [[ $(event rank_down) = 2 ]] || wrong "expected 2 ranks to go down, saw $(event rank_down)"
  expect_solver 300 5000
  nothing_stays 1 2 3
}

# All hosts but one, one after the other.
only_one_is_left() {
  on node2:2,node3:2,node1:4 --relay-at cluster --host-timeout 1s --ckpt-every 300ms -n 4 "$solver" 300 8000 1000
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  host_kill 2
  await_true "rank 1 on node1" started_on 1 node1 2
  host_kill 3
  finish
  host_start 2
  host_start 3
  [[ $(event host_lost) = 2 ]] || wrong "there are $(event host_lost) events host_lost"
  expect_solver 300 8000
  nothing_stays 1
}

# Machines of one name, as clones and containers have it, are not one.
named_alike() {
  on_host 2 hostname "$(hostname)"
  on_hosts node1:2,node2:2 "$@" -n 4 "$solver" 200 2000 1000
  on_host 2 hostname node2
  expect_solver 200 2000
}

slow_host() {
  host_slow 2 20mbit || return 0
  on_hosts "$three" --ckpt-every 500ms "$@" -n 4 "$solver" 300 2000 1000
  host_fast 2
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  expect_solver 300 2000
}

# Nobody tells the host: it ends its ranks by itself.
fenced() {
  on "$three" --spares 1 --relay-at cluster --host-timeout 1s --ckpt-every 300ms -n 4 "$solver" 300 5000 1000
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  host_cut 2
  finish
  await_true "the cut host to end its processes" none_on 2
  host_join 2
  expect_solver 300 5000
  nothing_stays 1 2 3
}

dispatcher_killed() {
  on "$three" --host-timeout 1s -n 4 "$solver" 300 400000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  kill -9 "$pid"
  finish
  nothing_stays 1 2 3
  run "${causeway[@]}" run true # which removes the directory of the other one
}

# of_own_node OPTION...: a job with images on other hosts; the node of this machine is killed, or stopped by $signal
of_own_node() {
  local node
  on node1:2,node2:2 "$@" --host-timeout 2s --ckpt-every 300ms -n 4 \
    "$root/build/programs/actor" init "ring_until=$work/go" finalize
  start "${job_command[@]}"
  await_true "images of rank 3" event_is_there image_stored 3
  node=$(pgrep -P "$pid" -f 'node --here')
  kill "-${signal-KILL}" "$node"
  await_true "that to be told" grep -Eq "^causeway: the node of this machine \(causeway node, pid $node\): ${why-the connection was closed}; it is lost$" "$tmp/err"
}

# The ranks and their relays are on other hosts, and so is the checkpoint server with --ckptsrv: all go on.
own_node() {
  of_own_node "$@"
  await_true "the node to be back" event_is_there host_back
  touch "$work/go"
  finish
  expect_code 0
  [[ $(event rank_down) = 0 ]] || wrong "a rank was restarted"
  nothing_stays 1 2 3
}

own_node_with_images() {
  own_node
  grep -q 'no more images are taken: host localhost: it is lost, and with it the job.s own checkpoint server' "$tmp/err" ||
    wrong "nobody says that there are no more images"
}

own_node_with_relay() {
  of_own_node --relay-at cluster
  finish
  expect_code 1
  grep -Eq '^causeway: relay unix:.*/relay: host localhost: it is lost$' "$tmp/err" || wrong "nobody says that the relay is lost"
  nothing_stays 1 2
}

own_node_stopped() {
  signal=STOP why='nothing was heard of it for [2-9]\.[0-9] s \(--host-timeout\)' own_node --ckptsrv node3
}

interrupted() {
  on "$three" -n 4 "$solver" 300 400000 1000
  start "${job_command[@]}"
  await_true "rank 3" event_is_there rank_up 3
  "${causeway[@]}" status >"$work/status"
  [[ $(awk '$2 ~ /^node/ { printf "%s ", $2 }' "$work/status") = "node1 node1 node2 node2 " ]] ||
    wrong "status says: $(<"$work/status")"
  kill -TERM "$pid"
  finish
  expect_code 143
  nothing_stays 1 2 3
}

# refused TEXT HOST [OPTION...]: such a host is refused within seconds, by name
refused() {
  local start=$SECONDS
  on_hosts "node1,$2" "${@:3}" -n 2 "$solver" 100 100 100
  expect_code 1
  grep -Eq -- "$2.*$1" "$tmp/err" || wrong "expected on standard error: $2 ... $1"
  ((SECONDS - start < 60)) || wrong "it took $((SECONDS - start)) s"
  nothing_stays 1
}

# A node dies when so many bytes of what it says have come: at once, in its greeting, at the start of its relay or of
# its ranks. The job is refused by the name of the host, or goes on elsewhere.
killed_at_its_start() {
  local bytes
  printf '%s\n' '#!/bin/bash' "[[ -e $work/killed || \$* != *node2* ]] && exec $hosts_ssh \"\$@\"" \
    "exec $hosts_ssh \"\$@\" | perl -e 'my \$left = shift; while (\$left > 0 && sysread STDIN, \$_, \$left) {
    \$left -= length; syswrite STDOUT, \$_ } open my \$f, \">\", \"$work/killed\"; exec \"bash\", \"-c\",
    \". $root/tests/hosts.sh; hosts_use $hosts_number; on_host 2 pkill -9 -x causeway; cat >/dev/null\"' \
    \"\$(<$work/bytes)\"" >"$work/launcher"
  chmod +x "$work/launcher"
  for bytes in $(shuf -n 4 -e 0 1 20 21 50 150 300 400 600 900 1500); do
    rm -f "$work/killed"
    echo "$bytes" >"$work/bytes"
    on "$three" --spares 1 --relay-at cluster --host-timeout 1s -n 4 "$solver" 200 1000 1000
    job_command=("${job_command[@]/--launcher-args/--launcher}")
    job_command=("${job_command[@]/-F $hosts_config/$work/launcher}")
    run "${job_command[@]}"
    [[ $code = 0 || ($code = 1 && $(<"$tmp/err") = *node2*) ]] || wrong "after $bytes bytes it ended with code $code"
    ((code)) || expect_solver 200 1000
    nothing_stays 1 3
    await_true "the processes of node2 to end" none_on 2
  done
  on_hosts node2 -n 1 true # which removes what the killed ones have left
  nothing_stays 2
}

# What plain has started there, root reaches by plain's own login.
other_user() {
  on_hosts "node1:2,plain.node2:2" "$@" --ckpt-every 200ms --fault kill:2@event:14000 -n 4 "$solver" 300 6000 1000
  [[ $(event rank_restored) -ge 1 ]] || wrong "no rank went on from an image"
  expect_solver 300 6000
  nothing_stays 1 2
}

prints() {
  on_hosts node1:1,prints.node2:1 -n 2 bash -c 'echo "$PMI_RANK"'
  expect_code 0
  [[ $(sort "$tmp/out") = 0$'\n'1 ]] || wrong "the ranks printed: $(<"$tmp/out")"
}

netpipe() {
  on_hosts node1:1,node2:1 -n 2 NPmpich2 -l 1 -u 65536 -p 0 -n 20 -o /tmp/np
  expect_code 0
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
hosts_start "three hosts"

t "a solver, a relay on each host" solved
t "a solver, one relay" solved --relay-at cluster
t "a solver, without channel memory" solved --channel off
t "by slot" placed 1122 -n 4
t "by node" placed 1231 -n 4 --map-by node
t "by cores" placed_by_cores
t "input, output, exit codes" streams
t "umask" with_umask
t "what ssh is configured to do at a login by hand" login_by_hand
t "ranks that crash, a relay on each host" restarted --channel off
t "ranks that crash, one relay" restarted --relay-at cluster
t "ranks that crash, with channel memory" restarted
t "ranks with channel memory that crash at their beginning" with_channel --no-ckpt --fault kill:1@event:40 --fault kill:4@event:90
t "a host with channel memory is lost" lost_for_good node1:4,node2:2 --map-by node
t "what nodes say comes late" slow_node
t "a host is lost, and there is a spare one" lost_with_spare
t "a host is lost and comes back" lost_and_back
t "a host is lost, and there is no other" lost_for_good node1:2,node2:2 --relay-at cluster
t "a host is lost with its relay" lost_with_its_relay
t "a host is cut off for a time, a relay on each host" cut_for_a_time
t "a host is cut off for a time, one relay" cut_for_a_time --relay-at cluster
t "nothing gets to a host, or comes from it, for a time" cut_in_one_direction
t "... with one relay" cut_in_one_direction --relay-at cluster
t "a host that is cut off ends its ranks" fenced
t "all hosts but one are lost" only_one_is_left
t "a host that has this machine's name, a relay on each host" named_alike
t "a host that has this machine's name, one relay" named_alike --relay-at cluster
t "a slow host" slow_host
t "sshd is killed" sshd_killed
t "sshd is killed, one relay" sshd_killed --relay-at cluster
t "watchers are killed" watchers_killed
t "the dispatcher is killed" dispatcher_killed
t "the node of this machine is killed, with the checkpoint server" own_node_with_images
t "... with nothing that the ranks need" own_node --ckptsrv node3
t "... with the relay" own_node_with_relay
t "the node of this machine is stopped" own_node_stopped
t "the job is interrupted" interrupted
t "a host that cannot be reached" refused 'No route|timed out' absent
t "a name without a host" refused 'resolve' unknown.invalid
t "a user who must type a password" refused 'Permission denied' asks.node2
t "a host without Causeway" refused 'No such file|not found' node1 --agent /no/causeway
t "a user whose shell prints" prints
t "another user" other_user
t "another user, one relay" other_user --relay-at cluster
t "nodes that are killed at their start" killed_at_its_start
t "NetPIPE between two hosts" netpipe
tap_end

#!/bin/bash
# Jobs on several hosts whose programs are on this machine only (causeway run --stage): they are sent whole, to where
# nobody else can change them, go with the job, and images of them can be used on each host. Prints TAP.
#
#   hosts_stage.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="programs sent to hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-120}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/lib/on_hosts.sh
. "$root/tests/lib/on_hosts.sh"
only=${1-}
big=$((192 << 20)) # bytes of a program that takes its time

# new_site: programs are in $here_only, which hosts do not have; each host has another empty directory $stage
new_site() {
  local i
  rm -rf "$here_only" "$stage" && mkdir "$here_only" "$stage"
  for i in 1 2 3; do
    on_host "$i" umount "$stage" 2>/dev/null
    rm -rf "${hosts_dir:?}/$i$stage" && mkdir "$hosts_dir/$i$stage"
  done
}

# program NAME [TEXT]: a script that prints it with its rank
program() {
  printf '#!/bin/bash\necho "%s $PMI_RANK"\n' "${2-$1}" >"$here_only/$1"
  chmod 755 "$here_only/$1"
}

# big_program NAME: one that takes its time to be sent
big_program() {
  program "$1"
  echo exit >>"$here_only/$1"
  truncate -s "$big" "$here_only/$1"
}

# staged HOSTS ARG...: runs a job with --stage
staged() {
  on_hosts "$1" --stage-dir "$stage" --verbose "${@:2}"
}

# count_sent TEXT: how many hosts have said so
count_sent() {
  grep -c "host node.: .* $1" "$tmp/err"
}

# expect_sent N: that many hosts got a program, in a job that ended well
expect_sent() {
  local n
  expect_code 0
  n=$(count_sent 'was sent to it')
  ((n == $1)) || wrong "expected $1 hosts to get a program, saw $n"
}

# expect_printed LINE...: in any order
expect_printed() {
  [[ $(sort "$tmp/out") = "$(printf '%s\n' "$@" | sort)" ]] || wrong "expected $*; the ranks printed: $(<"$tmp/out")"
}

# expect_failed TEXT: the job names node2 and says so
expect_failed() {
  expect_code 1
  grep -Eq "host node2: .*$1" "$tmp/err" || wrong "expected on standard error: host node2: ... $1"
  nothing_stays 1 2
}

# expect_none HOST...: nothing of what was sent is there any more
expect_none() {
  local host
  for host; do
    [[ -z $(on_host "$host" find "$stage" -mindepth 1) ]] || wrong "something stays on node$host: $(on_host "$host" find "$stage")"
  done
}

# the file of a program that comes
is_coming() {
  compgen -G "$hosts_dir/$1$stage/causeway-stage-*/.*[0-9a-f]" >/dev/null
}

# --- the tests --------------------------------------------------------------------

sent() {
  new_site
  printf '#!/bin/bash\necho "I am $0 of $(stat -c "%%.9Y %%a" "$0") in $(stat -c "%%a %%u" "${0%%/*}")"\n' >"$here_only/hello"
  chmod 755 "$here_only/hello"
  touch -d '@1577934245.678901234' "$here_only/hello"
  staged node1,node2,node3 --spares 1 -n 2 "$here_only/hello"
  expect_sent 3
  (($(grep -cEx "I am $stage/causeway-stage-[^/]*/hello of 1577934245.678901234 555 in 700 $(id -u)" "$tmp/out") == 2)) ||
    wrong "the ranks printed: $(<"$tmp/out")"
  expect_none 1 2 3
  nothing_stays 1 2 3
}

same_name() {
  new_site
  mkdir "$here_only/a" "$here_only/b"
  program a/p a
  program b/p b
  staged node1,node2,node3 -n 1 "$here_only/a/p" : -n 1 "$here_only/b/p" : -n 1 "$here_only/a/p"
  expect_sent 6
  expect_printed "a 0" "b 1" "a 2"
  expect_none 1 2 3
}

mpi_program() {
  new_site
  cp "$solver" "$here_only/solves"
  staged localhost:2,node2:2 -n 4 "$here_only/solves" 200 2000 1000
  (($(count_sent 'was sent to it') == 1)) || wrong "it was not sent to node2"
  grep -q 'host localhost: .* was sent to it' "$tmp/err" || wrong "it was not sent to this machine too"
  expect_solver 200 2000
}

# The hosts share the directory.
shared() {
  new_site
  big_program p
  mkdir "$tmp/shared"
  on_hosts node1:1,node2:1 --stage-dir "$tmp/shared" -n 2 "$here_only/p"
  expect_code 0
  expect_printed "p 0" "p 1"
  [[ -z $(ls "$tmp/shared") ]] || wrong "something stays: $(find "$tmp/shared")"
}

no_space() {
  new_site
  big_program p
  on_host 2 mount -t tmpfs -o size=1m tmpfs "$stage"
  staged node1,node2 -n 2 "$here_only/p"
  expect_failed "writing p to $stage/.*No space left.*--stage-dir"
  expect_none 1 2
  on_host 2 umount "$stage"
  on_host 2 mount -t tmpfs -o size=1m,noexec tmpfs "$stage"
  program q
  staged node1,node2 -n 2 "$here_only/q"
  expect_failed "q cannot be executed.*noexec"
  expect_none 1 2
  on_host 2 umount "$stage"
  new_site
}

cut_for_a_time() {
  new_site
  big_program p
  on node1:1,node2:1 --stage-dir "$stage" --verbose -n 2 "$here_only/p"
  start "${job_command[@]}"
  await_true "the program to come" is_coming 2
  host_cut 2
  sleep 2
  host_join 2
  finish
  expect_sent 2
  expect_printed "p 0" "p 1"
}

connection_broken() {
  new_site
  big_program p
  on node1:1,node2:1 --stage-dir "$stage" --verbose -n 2 "$here_only/p"
  start "${job_command[@]}"
  await_true "the program to come" is_coming 2
  on_host 2 pkill -9 -x sshd
  host_start 2
  finish
  grep -q 'host node2: the session with its node goes on' "$tmp/err" || wrong "the connection was not broken"
  expect_sent 2
  expect_printed "p 0" "p 1"
}

# host_lost HOW...: on the way a host is lost; nothing at all stays after the next job
host_lost() {
  new_site
  big_program p
  on node1:1,node2:1 --stage-dir "$stage" --host-timeout 3s -n 2 "$here_only/p"
  start "${job_command[@]}"
  await_true "the program to come" is_coming 2
  "$@"
  finish
  host_start 2
  staged node1,node2 -n 2 "$here_only/p"
  expect_sent 2
  expect_printed "p 0" "p 1"
  expect_none 1 2
}

dispatcher_killed() {
  kill -9 "$pid"
  await_true "the nodes to end" none_on 2
  expect_none 2
}

others_may_use_it() {
  new_site
  program p
  on_host 2 chmod 777 "$stage"
  staged node1,node2 -n 2 "$here_only/p"
  expect_failed "the directory $stage/.* for a program: others may put another one in its place"
  new_site
}

# A rank goes on on another host, from an image that names its program.
restored_elsewhere() {
  new_site
  cp "$solver" "$here_only/solves"
  on "$three" --stage-dir "$stage" --spares 1 --relay-at cluster --host-timeout 3s --ckpt-every 300ms -n 4 \
    "$here_only/solves" 300 5000 1000
  start "${job_command[@]}"
  await_true "images of rank 2" event_is_there image_stored 2
  await_true "images of rank 3" event_is_there image_stored 3
  host_kill 2
  finish
  host_start 2
  [[ $(event rank_restored) -ge 1 ]] || wrong "no rank went on from an image"
  [[ $(jq -r 'select(.event == "rank_started" and .incarnation > 1) | .host' "$work/events" | sort -u) = node3 ]] ||
    wrong "the ranks did not go on on node3"
  expect_solver 300 5000
  nothing_stays 1 3
  expect_none 1 3
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
hosts_start "three hosts"
here_only=$(mktemp -d /tmp/cwonly.XXXXXX)
stage=$(mktemp -d /tmp/cwstage.XXXXXX)
trap 'rm -rf "$here_only" "$stage"; hosts_down; lib_end' EXIT

t "a program is sent" sent
t "programs of the same name" same_name
t "an MPI program, also to this machine" mpi_program
t "hosts that share the directory" shared
t "no room, no execution" no_space
t "a host is cut off meanwhile for a time" cut_for_a_time
t "the connection breaks meanwhile" connection_broken
t "a host is lost meanwhile" host_lost host_kill 2
t "the dispatcher is killed meanwhile" host_lost dispatcher_killed
t "a place that others may change" others_may_use_it
t "a rank goes on on another host" restored_elsewhere
tap_end

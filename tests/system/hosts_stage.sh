#!/bin/bash
# Jobs on several hosts whose programs are on this machine only (causeway run --stage): they are sent once, whole, to
# where nobody else can change them, and images of them can be used on each host. Prints TAP.
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
  place=$stage/causeway-stage-$(id -u)
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

# programs_on HOST: how many are kept there
programs_on() {
  find "$hosts_dir/$1$place" -mindepth 2 -type f 2>/dev/null | wc -l
}

# expect_kept HOST N
expect_kept() {
  (($(programs_on "$1") == $2)) || wrong "expected $2 programs on node$1, saw: $(ls -lR "$hosts_dir/$1$place")"
}

is_coming() {
  compgen -G "$hosts_dir/$1$place/*.new/*" >/dev/null
}

# --- the tests --------------------------------------------------------------------

sent_once() {
  local i
  new_site
  program hello
  touch -d '2020-01-02 03:04:05.678901234' "$here_only/hello"
  staged node1,node2,node3 --spares 1 -n 2 "$here_only/hello"
  expect_sent 3
  expect_printed "hello 0" "hello 1"
  for i in 1 2 3; do
    expect_kept "$i" 1
    [[ $(stat -c '%a %u' "$hosts_dir/$i$place") = "700 $(id -u)" ]] || wrong "others may use the directory on node$i"
    [[ $(stat -c %.9Y "$hosts_dir/$i$place"/*/hello) = "$(stat -c %.9Y "$here_only/hello")" ]] ||
      wrong "the time of change is another one on node$i"
  done
  staged node1,node2,node3 --spares 1 -n 2 "$here_only/hello"
  expect_sent 0
  (($(count_sent 'is there already') == 3)) || wrong "the hosts do not say that they have it"
  program hello other
  staged node1,node2 -n 2 "$here_only/hello"
  expect_sent 2
  expect_printed "other 0" "other 1"
  expect_kept 1 2
  expect_kept 3 1
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
  expect_kept 1 2
}

mpi_program() {
  new_site
  cp "$solver" "$here_only/solves"
  staged localhost:2,node2:2 -n 4 "$here_only/solves" 200 2000 1000
  [[ -x $(echo "$place"/*/solves) ]] || wrong "it was not sent to this machine too"
  expect_solver 200 2000
}

at_once() {
  local job=() i
  new_site
  big_program p
  on node1,node2 --stage-dir "$stage" --launcher-args "-F $hosts_config" -n 2 "$here_only/p"
  for i in 1 2 3; do
    "${job_command[@]}" >"$work/out$i" 2>"$work/err$i" &
    job+=($!)
  done
  for i in 1 2 3; do
    wait "${job[i - 1]}" || wrong "job $i: $(<"$work/err$i")"
    [[ $(sort "$work/out$i") = "p 0"$'\n'"p 1" ]] || wrong "job $i printed $(<"$work/out$i")"
  done
  expect_kept 1 1
  expect_kept 2 1
}

no_space() {
  new_site
  big_program p
  on_host 2 mount -t tmpfs -o size=1m tmpfs "$stage"
  staged node1,node2 -n 2 "$here_only/p"
  expect_failed "no room in $place for p: $big bytes are needed.*--stage-dir"
  [[ -z $(on_host 2 find "$place" -mindepth 1) ]] || wrong "something stays on node2"
  on_host 2 umount "$stage"
  on_host 2 mount -t tmpfs -o size=1m,noexec tmpfs "$stage"
  program q
  staged node1,node2 -n 2 "$here_only/q"
  expect_failed "q cannot be executed.*noexec"
  on_host 2 umount "$stage"
  new_site
}

# Programs that no job uses make room for the next.
makes_room() {
  new_site
  on_host 2 mount -t tmpfs -o size=1m tmpfs "$stage"
  for i in 1 2 3; do
    program "p$i"
    echo exit >>"$here_only/p$i"
    truncate -s 400k "$here_only/p$i"
    staged node2 -n 1 "$here_only/p$i"
    expect_sent 1
  done
  [[ $(on_host 2 find "$place" -type f -printf '%f ') = *p3* ]] || wrong "the last program is not there"
  [[ $(on_host 2 find "$place" -type f -printf '%f ') = *p1* ]] && wrong "the first program is still there"
  on_host 2 umount "$stage"
}

cut_for_a_time() {
  new_site
  big_program p
  on node1,node2 --stage-dir "$stage" --verbose -n 2 "$here_only/p"
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
  on node1,node2 --stage-dir "$stage" --verbose -n 2 "$here_only/p"
  start "${job_command[@]}"
  await_true "the program to come" is_coming 2
  on_host 2 pkill -9 -x sshd
  host_start 2
  finish
  grep -q 'host node2: the session with its agent goes on' "$tmp/err" || wrong "the connection was not broken"
  expect_sent 2
  expect_printed "p 0" "p 1"
}

# host_lost HOW...: on the way a host is lost; nothing that counts stays, and nothing at all after the next job
host_lost() {
  new_site
  big_program p
  program q
  on node1,node2 --stage-dir "$stage" --host-timeout 3s -n 2 "$here_only/p"
  start "${job_command[@]}"
  await_true "the program to come" is_coming 2
  "$@"
  finish
  host_start 2
  compgen -G "$hosts_dir/2$place/*[^w]/" >/dev/null && wrong "what came in part counts as whole"
  staged node1,node2 -n 2 "$here_only/q"
  expect_sent 2
  is_coming 2 && wrong "what is left of the cut transfer stays"
  expect_kept 2 1
  staged node1,node2 -n 2 "$here_only/p"
  expect_code 0
  expect_printed "p 0" "p 1"
}

dispatcher_killed() {
  kill -9 "$pid"
  await_true "the agents to end" none_on 2
  is_coming 2 && wrong "what is left of the cut transfer stays"
}

# of_somebody_else HOW...: node2 has something else in place of the directory
of_somebody_else() {
  new_site
  program p
  mkdir -p "$hosts_dir/2/tmp/target"
  "$1"
  staged node1,node2 -n 2 "$here_only/p"
  expect_failed "the directory $place for programs: $2"
  [[ -z $(on_host 2 find -L "$place" /tmp/target -mindepth 1) ]] || wrong "something was put there"
  new_site
}

other_owner() {
  on_host 2 install -d -m 700 -o plain "$place"
}

a_link() {
  on_host 2 ln -s /tmp/target "$place"
}

open_to_all() {
  on_host 2 install -d -m 777 "$place"
}

# What is kept is not what it was, though its size and time are the same.
damaged() {
  local file
  new_site
  program p
  touch -d @1000000000 "$here_only/p"
  staged node1,node2 -n 2 "$here_only/p"
  expect_sent 2
  file=$(echo "$hosts_dir/2$place"/*/p)
  chmod 755 "$file"
  sed -i s/p/q/ "$file"
  touch -d @1000000000 "$file"
  chmod 555 "$file"
  staged node1,node2 -n 2 "$here_only/p"
  expect_sent 1
  expect_printed "p 0" "p 1"
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
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
hosts_start "three hosts"
here_only=$(mktemp -d /tmp/cwonly.XXXXXX)
stage=$(mktemp -d /tmp/cwstage.XXXXXX)
trap 'rm -rf "$here_only" "$stage"; hosts_down; lib_end' EXIT

t "a program is sent once; a changed one again" sent_once
t "programs of the same name" same_name
t "an MPI program, also to this machine" mpi_program
t "three jobs send a program at once" at_once
t "no room, no execution" no_space
t "unused programs make room" makes_room
t "a host is cut off meanwhile for a time" cut_for_a_time
t "the connection breaks meanwhile" connection_broken
t "a host is lost meanwhile" host_lost host_kill 2
t "the dispatcher is killed meanwhile" host_lost dispatcher_killed
t "a directory of somebody else" of_somebody_else other_owner 'it belongs to user'
t "a link in its place" of_somebody_else a_link 'it is a symbolic link'
t "a directory that others may use" of_somebody_else open_to_all 'others may use it'
t "a program that was damaged there" damaged
t "a rank goes on on another host" restored_elsewhere
tap_end

#!/bin/bash
# causeway doctor of several hosts (tests/hosts.sh): each that is of no use is named, with the cause, and the others are
# looked at all the same. Prints TAP.
#
#   hosts_doctor.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="doctor of several hosts"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-90}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/hosts.sh
. "$here/../hosts.sh"
only=${1-}

# doctor LIST OPTION... [PROGRAM]
doctor() {
  run "${causeway[@]}" doctor --host "$1" --launcher-args "-F $hosts_config" "${@:2}"
  expect_silence
}

# good HOST...: they were looked at, and nothing is wrong
good() {
  local host
  for host in "$@"; do
    expect_out_like "^ok      $host: Causeway "
    grep -v '^ok ' "$tmp/out" | grep -q " $host: " && wrong "something is wrong with $host"
  done
}

# bad LEVEL HOST TEXT...: a line says so
bad() {
  local text
  for text in "${@:3}"; do
    expect_out_like "^$1 +$2: .*$text"
  done
}

# wrapper TEXT: leaves the path of a causeway in $wrapper that runs this script first, on all hosts
wrapper() {
  wrapper=$work/causeway
  printf '#!/bin/bash\n%s\nexec %q "$@"\n' "$1" "${causeway[0]}" >"$wrapper"
  chmod +x "$wrapper"
}

# Nothing is left on a host.
after_test() {
  local host
  [[ -n ${hosts_number-} ]] || return
  for host in 1 2 3; do
    await_true "the processes of node$host to end" none_on "$host"
  done
}

none_on() {
  ! says on_host "$1" pgrep causeway
}

# --- the tests --------------------------------------------------------------------

three_good() {
  doctor node1,node2,node3
  expect_code 0
  good node1 node2 node3
  [[ $(wc -l <"$tmp/out") = 6 ]] || wrong "expected two lines for each host"
}

hostfile() {
  printf 'node3 slots=2\n# none\nnode1\n' >"$work/hosts"
  run "${causeway[@]}" doctor --hostfile "$work/hosts" --launcher "$hosts_ssh" "$root/build/programs/solver"
  expect_code 0
  good node3 node1
}

# refused HOST TEXT...: such a host is named at once, and the others are good
refused() {
  local start=$SECONDS
  doctor "node1,$1,node3"
  expect_code 1
  bad missing "$1" "${@:2}"
  good node1 node3
  ((SECONDS - start < 40)) || wrong "it took $((SECONDS - start)) s"
}

no_sshd() {
  host_kill_sshd 2
  refused node2 'Connection refused; no sshd listens there'
  host_start 2
}

unknown_key() {
  doctor node1 --launcher-args "-F $hosts_config -oUserKnownHostsFile=/dev/null"
  expect_code 1
  bad missing node1 'Host key verification failed.*log in once by hand'
}

no_causeway() {
  doctor node1,node2 --agent /no/causeway
  expect_code 1
  bad missing 'node[12]' '/no/causeway: No such file.*install it.*--agent'
}

# What a causeway without reports does.
other_version() {
  wrapper '[[ $(hostname) != node2 ]] || { [[ $1 = --version ]] && echo "causeway 0.0" && exit; echo usage >&2; exit 2; }'
  doctor node1,node2,node3 --agent "$wrapper"
  expect_code 1
  bad missing node2 'is Causeway 0.0, and here is Causeway [0-9.]+; install the same version'
  good node1 node3
}

prints() {
  doctor node1,prints.node2
  expect_code 0
  good node1
  bad warning prints.node2 'prints on standard output \("Welcome to node2! "\).*start files'
}

limits() {
  wrapper '[[ $(hostname) != node2 ]] || ulimit -n 200 -v 8000000'
  doctor node1,node2 --agent "$wrapper"
  expect_code 1
  good node1
  bad warning node2 '200 open files a process.*ulimit -n'
  bad missing node2 'address space: reserving.*ulimit -v'
}

# answers CHECK: node2 answers this to the doctor's check, and has a clock that is late; for a wrapper
answers() {
  printf '[[ $(hostname) != node2 || $1 != node ]] || exec python3 %q same %q' "$root/tests/lib/fake_node.py" \
    '{"check": {'"$1"'}, "listen": {"port": 9}}'
}

another_kind() {
  wrapper "$(answers '"machine": "x86_64", "mpich": "4.3", "features": [0, 0, 0, 0, 0, 0, 0, 0, 0]')"
  doctor node1,node2,node3 --agent "$wrapper"
  expect_code 1
  good node3
  bad warning node2 'its clock is [0-9.]+ s behind this machine'
  bad missing node2 'this machine does not reach it over TCP: .*firewall' 'it does not reach this machine over TCP: no'
  expect_out_like '^warning processors: a rank cannot go on on node2 from an image of node1, node3, for it lacks features'
  expect_out_like '^warning MPICH: .* on node1, node3; 4.3 on node2; install the same version'
}

another_machine() {
  wrapper "$(answers '"machine": "aarch64"')"
  doctor node1,node2 --agent "$wrapper"
  expect_code 1
  bad missing node2 'of the architecture aarch64'
}

endless() {
  wrapper "[[ \$(hostname) != node2 ]] || exec yes$1"
  doctor node1,node2 --agent "$wrapper"
  expect_code 1
  good node1
  bad missing node2 "$2"
}

closed() {
  host_close 2
  doctor node1,node2,node3
  host_join 2
  expect_code 1
  good node3
  bad missing node1 'it does not reach node2 over TCP: .*timed out; let no firewall'
  bad missing node2 'this machine does not reach it over TCP: .*timed out' 'it does not reach this machine' \
    'it does not reach node3'
}

# In a directory, and of a program, that the hosts do not have.
not_there() {
  local place
  place=$(mktemp -d /tmp/cwtest.XXXXXX)
  cp "$root/build/programs/solver" "$place"
  cd "$place" || return
  doctor node1 ./solver
  cd "$OLDPWD" || return
  rm -r "$place"
  expect_code 1
  bad warning node1 "the directory $place: No such file or directory; .*--wdir"
  bad missing node1 "$place/.*solver"
}

this_machine() {
  run_expect 0 '' "${causeway[@]}" doctor --host localhost
  expect_out_like '^ok      localhost: Causeway '
}

usage() {
  run_expect 2 'give --host or --hostfile' "${causeway[@]}" doctor --launcher ssh
  run_expect 2 'no/such/file' "${causeway[@]}" doctor --hostfile /no/such/file
  run_expect 2 "'--ppn'" "${causeway[@]}" doctor --host a --ppn 3
}

# --- all of them ------------------------------------------------------------------

lib_start
find_causeway
t "usage" usage
trap 'hosts_down; lib_end' EXIT
HOSTS_SHARED="$tmp" hosts_up 3 2>"$tmp/err"
case $? in
0) ;;
77)
  tap_skip "three hosts" "$(<"$tmp/err")"
  tap_end
  ;;
*)
  cat "$tmp/err"
  tap_not_ok "three hosts"
  tap_end
  ;;
esac

t "three good hosts" three_good
t "a hostfile, and a program" hostfile
t "a host that cannot be reached" refused absent 'No route|timed out' 'firewall'
t "a name without a host" refused unknown.invalid 'resolve.*/etc/hosts'
t "a user who must type a password" refused asks.node2 'Permission denied.*ssh-copy-id'
t "a host without sshd" no_sshd
t "a host whose key is unknown" unknown_key
t "a host without Causeway" no_causeway
t "a host with another version" other_version
t "a user whose shell prints" prints
t "limits of one host" limits
t "another processor, MPICH and time" another_kind
t "another architecture" another_machine
t "output without an end" endless '' 'none of them of Causeway'
t "a greeting without an end" endless ' "$(printf "\nCAUSEWAY-NODE:2f1c\n")"' 'a greeting that is too large'
t "closed ports" closed
t "a directory and a program that are not there" not_there
t "this machine" this_machine
tap_end

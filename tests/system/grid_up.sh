#!/bin/bash
# causeway up, down and status -f, over the sites of a grid (tests/grid.sh): a and b have gateways, c lets nothing in and
# is published at b. Prints TAP.
#
#   grid_up.sh [REGEX]    runs the tests whose titles match
# shellcheck disable=SC2016,SC2317 # text of scripts; the tests are called by t
set -u

suite="services of a grid"
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-100}
# shellcheck source=tests/lib/system.sh
. "$here/../lib/system.sh"
# shellcheck source=tests/grid.sh
. "$here/../grid.sh"
# shellcheck source=tests/lib/on_grid.sh
. "$here/../lib/on_grid.sh"
only=${1-}
published=22001

# --- what the tests run -----------------------------------------------------------

# before_test: the grid file; the site of the machine is by --here, for the front has this machine's name
before_test() {
  conf=$work/grid.conf
  write_conf
}

# write_conf: with the program of each site in ${program[SITE]}, and the ports ${relay_port[SITE]}
write_conf() {
  cat >"$conf" <<TEXT
name = "lab";
sites = (
  { name = "a"; gateway = "a-gate"; $(of_site a)
    hosts = ( { name = "a1"; }, { name = "a2"; } );
    ckptsrv = { host = "a2"; port = 7100; }; },
  { name = "b"; gateway = "b-gate"; $(of_site b)
    hosts = ( { name = "b1"; } ); },
  { name = "c"; published = { at = "b"; port = $published; }; $(of_site c)
    hosts = ( { name = "c1"; } );
    ckptsrv = { host = "c1"; port = 7100; }; }
);
TEXT
}

of_site() {
  echo "relay = { host = \"${1}1\"; port = 7000; }; causeway = \"${program:-${causeway[0]}}\"; ${key-}"
}

# from HOST SITE COMMAND [ARG...]: causeway there; front: where the user works
from() {
  run env HOSTS_NUMBER="$hosts_number" "$root/tests/grid.sh" exec "$1" "${causeway[@]}" "$3" -f "$conf" --here "$2" "${@:4}"
}

outside() {
  from front - "$@"
}

# Site c can be published from inside alone; the key is where the user works.
all_up() {
  from c1 c up --site c
  expect_code 0
  expect_err_like 'the key of grid lab is not on this machine .*, so site c is published, and no more'
  expect_service c publish 'running .*started'
  [[ $(wc -l <"$tmp/out") = 2 ]] || wrong "expected the publishing alone"
  outside up
  expect_code 0
}

all_down() {
  outside down
  expect_code 0
  nothing_left
}

# nothing_left: no process of a service, and no file, at any host
nothing_left() {
  local host
  for host in a1 a2 b1 c1; do
    await_true "the processes of $host to end" no_process "$host"
    [[ -z $(files_of "$host") ]] || wrong "$host: files are left: $(files_of "$host")"
  done
}

no_process() {
  [[ -z $(processes_of "$1") ]]
}

processes_of() {
  on_host "$1" pgrep -a 'causeway|ssh$'
}

# The images of a checkpoint server are the user's.
files_of() {
  on_host "$1" find /run/home/root/.local/state/causeway/lab -mindepth 1 -maxdepth 1 ! -name '*.images' ! -name key ! -name ssh_config \
    2>/dev/null
}

# expect_service SITE SERVICE STATE: as the table that came says
expect_service() {
  grep -Eq "^$1 +$2 .*  $3" "$tmp/out" || wrong "expected of site $1, $2: $3"
}

# pid_of SITE SERVICE: as the table that came says
pid_of() {
  sed -nE "s/^$1 +$2 .*, pid ([0-9]+).*/\1/p" "$tmp/out"
}

look() {
  outside status "$@"
}

# runs SITE SERVICE: whether it does, by status
runs() {
  look --site "$1"
  grep -Eq "^$1 +$2 .*  running" "$tmp/out"
}

# --- the tests --------------------------------------------------------------------

up_and_down() {
  all_up
  expect_service a relay running
  expect_service c publish 'running since .*runs already'
  look
  expect_code 0
  expect_silence
  expect_service a relay 'running since 20[0-9-]* [0-9:]*Z, pid [0-9]+'
  expect_service a ckptsrv running
  expect_service b doors running
  expect_service c publish running
  [[ $(grep -c ' running ' "$tmp/out") = 9 ]] || wrong "expected nine services"
  all_down
  look
  expect_code 1
  expect_service a relay stopped
  expect_err_like 'site c, host c1: at gateway 127.0.0.1:22001 of site c \(2 of 2 on the way\).*causeway up -f .* --site c'
}

as_json() {
  all_up
  look --json
  expect_code 0
  python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["grid"] == "lab" and len(d["services"]) == 9, d
assert all(s["state"] == "running" and s["pid"] > 0 for s in d["services"])' <"$tmp/out" || wrong "no such document"
  all_down
}

again() {
  local before
  all_up
  before=$(pid_of a relay)
  outside up
  expect_code 0
  expect_service a relay 'running .*runs already'
  expect_service b doors 'running .*runs already'
  [[ $(pid_of a relay) = "$before" ]] || wrong "another relay runs"
  all_down
  outside down --site a
  expect_code 0
  expect_service a relay 'stopped: did not run'
}

# With everything that it had started.
killed() {
  local pid
  outside up --site a
  pid=$(pid_of a relay)
  on_host a1 kill -9 "$pid"
  look --site a
  expect_code 1
  expect_service a relay failed
  expect_err_like 'site a, relay on a1: it was killed'
  outside up --site a
  expect_code 0
  expect_service a relay 'running .*started'
  expect_service a ckptsrv 'running .*runs already'
  on_host a1 pkill -9 -x causeway-relay
  await_true "the relay to be started again by its keeper" relay_is_there
  runs a relay || wrong "the relay should be kept"
  outside down --site a
  expect_code 0
  nothing_left
}

relay_is_there() {
  says on_host a1 pgrep -x causeway-relay
}

# The process with the listener is there, and its keeper died.
killed_and_left() {
  outside up --site a
  on_host a1 kill -9 "$(pid_of a doors)"
  outside down --site a
  expect_code 0
  nothing_left
}

out_of_reach() {
  grid_cut all b
  outside up
  expect_code 1
  expect_service a relay 'running .*started'
  expect_service b relay unreachable
  expect_err_like 'site b, host b1: at gateway b-gate:22 of site b \(1 of 1 on the way\): .*(timed out|timeout)'
  grid_join all b
  host_kill b1
  outside up --site b
  expect_code 1
  expect_err_like 'site b, host b1: at the host itself: '
  host_start b1
  outside down --site a
  nothing_left
}

other_version() {
  printf '#!/bin/bash\nexec python3 %q 0.19\n' "$root/tests/lib/fake_node.py" >"$work/other"
  chmod +x "$work/other"
  program=$work/other
  write_conf
  unset program
  outside up --site b
  expect_code 1
  expect_err_like 'site b, host b1: Causeway 0.19 is there .*, and here is Causeway 0.1 '
  nothing_left
}

no_program() {
  program=/no/such/causeway
  write_conf
  unset program
  outside up --site b
  expect_code 1
  expect_err_like 'site b, host b1: after the login: .*/no/such/causeway'
}

port_in_use() {
  helper taken env HOSTS_NUMBER="$hosts_number" "$root/tests/grid.sh" exec a1 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "0.0.0.0:7000", Listen => 9, ReuseAddr => 1) or die; $| = 1;
    print "ready\n"; sleep 1000'
  await_true "a listener" test -s "$tmp/taken.out"
  outside up --site a
  expect_code 1
  expect_service a relay failed
  expect_service a ckptsrv running
  expect_err_like 'site a, relay on a1: it ended with code 1: .*tcp:a1:7000.*Address already in use'
  stop_helpers
  outside up --site a
  expect_code 0
  outside down --site a
  nothing_left
}

other_configuration() {
  outside up --site b
  sed -i 's/b1"; port = 7000;/&  options = "--memory-max 1G";/' "$conf"
  outside up --site b
  expect_code 1
  expect_err_like 'site b, relay on b1: it runs with another configuration'
  outside down --site b
  outside up --site b
  expect_code 0
  on_host b1 pgrep -f 'memory-max 1G' >/dev/null || wrong "the option is not there"
  outside down --site b
  nothing_left
}

# Through b, from a machine of no site: the port of c1 itself, which says who it is.
reach_published() {
  run "$grid_front" timeout 20 "${causeway[@]}" tunnel "ssh:b-gate,127.0.0.1:$published/127.0.0.1:22" </dev/null
  grep -q '^SSH-2.0' "$tmp/out"
}

publication() {
  from c1 c up --site c
  expect_code 0
  reach_published || wrong "c1 should be reached"
  on_host c1 pkill -9 -x ssh
  await_true "site c to be published again" reach_published
  runs c publish || wrong "it should be published"
  on_host c1 grep -q 'killed by signal 9' /run/home/root/.local/state/causeway/lab/c.publish/log ||
    wrong "the log should say how it ended"
  outside down --site c
  expect_code 0
  expect_service c publish stopped
  nothing_left
}

# A port that another has: it goes on trying, and says so.
not_published() {
  helper taken env HOSTS_NUMBER="$hosts_number" "$root/tests/grid.sh" exec b-gate perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:'"$published"'", Listen => 9, ReuseAddr => 1) or die; $| = 1;
    print "ready\n"; sleep 1000'
  await_true "a listener" test -s "$tmp/taken.out"
  from c1 c up --site c
  expect_code 1
  expect_service c publish waiting
  expect_err_like 'site c, publish on c1: .*remote port forwarding failed.*; it goes on trying'
  stop_helpers
  await_true "site c to be published" reach_published
  from c1 c down --site c
  expect_code 0
  nothing_left
}

# A rank of a at b reaches its relay, and its images.
doors() {
  local bytes
  all_up
  for one in "b1 7001" "b1 7017" "a1 7003" "a1 7019" "c1 7002"; do
    bytes=$(on_host "${one% *}" timeout 20 perl -MIO::Socket::INET -e '
      $s = IO::Socket::INET->new("$ARGV[0]:$ARGV[1]") or die; print $s "GET / HTTP/1.0\n\n" x 50; $s->shutdown(1);
      $n = sysread($s, $b, 100); print defined $n ? "end" : "error"' "${one% *}" "${one#* }")
    [[ $bytes = end ]] || wrong "port ${one#* } of ${one% *} should lead to somebody who does not take this: $bytes"
  done
  for one in a b c; do
    bytes=$(on_host "${one}1" cat "/run/home/root/.local/state/causeway/lab/$one.doors/log")
    [[ -z $bytes ]] || wrong "the doors of $one complain: $bytes"
  done
  all_down
}

# The user's home and those at the sites have other names, and no key has a usual one.
own_key() {
  rename_keys id_ed25519 id_grid
  key='key = "~/.ssh/id_grid";'
  write_conf
  unset key
  doors
  rename_keys id_grid id_ed25519
}

rename_keys() {
  local home
  for home in "$hosts_dir"/front/home "$hosts_dir"/*/run/home/root; do
    mv "$home/.ssh/$1" "$home/.ssh/$2"
  done
}

# The way to a site stays until all of its hosts have ended their services.
slow_to_end() {
  sed -i '/name = "c"/,$ { s/{ name = "c1"; }/&, { name = "c2"; }/; s/ckptsrv = { host = "c1"/ckptsrv = { host = "c2"/ }' "$conf"
  all_up
  on_host c2 pkill -STOP -f '^causeway ckptsrv' || wrong "c2 should have a checkpoint server"
  all_down
  no_process c2 || wrong "c2 still has $(processes_of c2)"
}

# Ranks at three sites, one of which lets nothing in, with images.
job() {
  all_up
  from front - run -n 4 --map-by site --ckpt-every 1s "$root/build/programs/solver" 200 2000 1000
  expect_code 0
  expect_out_like 'ok solver'
  all_down
}

secrets() {
  local key host
  all_up
  key=$(head -c 64 "$grid_home/.local/state/causeway/lab/key")
  for host in a1 a2 b1 c1; do
    on_host "$host" bash -c 'cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr "\0" "\n"' | grep -q "$key" &&
      wrong "the key is on a command line, or in an environment, of $host"
    on_host "$host" bash -c 'cat /run/home/root/.local/state/causeway/lab/*/{log,info}*' | grep -q "$key" &&
      wrong "the key is in a log of $host"
    [[ -z $(on_host "$host" find /run/home/root/.local/state/causeway -perm /077) ]] || wrong "others may read files of $host"
  done
  all_down
}

usage() {
  run "$grid_front" "${causeway[@]}" up
  expect_code 2
  expect_err_like 'no -f FILE'
  outside up --site d
  expect_code 2
  expect_err_like '--site d: grid lab has no such site'
  outside status 1234
  expect_code 2
}

# --- all of it --------------------------------------------------------------------

# The key of c1, under the name by which it is published
know_published() {
  local known line
  line="[127.0.0.1]:$published $(cut -d ' ' -f 1,2 "$hosts_dir/c1/run/sshd/key.pub")"
  for known in "$hosts_dir"/front/home/.ssh/known_hosts "$hosts_dir"/*/run/home/root/.ssh/known_hosts; do
    echo "$line" >>"$known"
  done
}

lib_start
find_causeway
grid_start grid_up a b c:noin
know_published

t "up, status and down" up_and_down
t "status --json" as_json
t "up again" again
t "a relay is killed" killed
t "who keeps doors is killed, then down" killed_and_left
t "a site and a host out of reach" out_of_reach
t "another version at a site" other_version
t "no program at a site" no_program
t "a port in use" port_in_use
t "another configuration" other_configuration
t "a site that lets nothing in is published, and again" publication
t "a port for it that another has" not_published
t "a service that is slow to end where nothing gets in" slow_to_end
t "doors" doors
t "a key of the grid file" own_key
t "a job over all sites" job
t "the key is nowhere to be seen" secrets
t "wrong arguments" usage
tap_end

#!/bin/bash
# Hosts for tests, all on this machine. A host has its own network, processes, host name, users, sshd, and its own
# /tmp, /run and /dev/shm; all else of the file system it shares with this machine, as with a network file system.
# This machine takes part as the front, host 0. Needs root. No file of the system is changed.
#
#   tests/hosts.sh up N           makes the hosts node1 to nodeN
#   tests/hosts.sh down           removes them, and all that runs there
#   tests/hosts.sh list           a line for each: name, address, "runs" or "off"
#   tests/hosts.sh exec I CMD...  runs a command on host I, as root; exec 0: on the front, which knows the hosts' names
#   tests/hosts.sh kill | start | cut | close | join I    as host_kill ... below
#   tests/hosts.sh slow I RATE [DELAY] | fast I
#   tests/hosts.sh ssh ARG...     ssh with the configuration that knows the hosts
#
# Suites source this file, and call the functions below. Several sets of hosts may be there at once: each has a
# number, which is also in its addresses, 198.18.NUMBER.I (a network for tests: RFC 2544). The commands above use set 0;
# a suite takes a free number. hosts_up first removes all sets whose suites were killed.
#
# Users: root and plain log in with the key of the test; prints likewise, and its shell prints at its start; asks has
# to type its password, "secret". plain.node1 is node1 with the user plain; so are prints.node1 and asks.node1.
# absent is a name with an address that no host has; unknown.invalid has none.
#
# Environment:
#   HOSTS_NUMBER  use this set
#   HOSTS_SHARED  directories below /tmp or /run that the hosts share with this machine, as they do this tree
#   HOSTS_PLACE   where the files of all sets are (default: /var/tmp/causeway-hosts)

[[ :$PATH: = *:/usr/sbin:* ]] || PATH=$PATH:/usr/sbin:/sbin
hosts_self=$(realpath "${BASH_SOURCE[0]}")
hosts_place=${HOSTS_PLACE:-/var/tmp/causeway-hosts}
HOSTS_MAX=200           # of a set
HOSTS_NUMBER_MAX=63     # of a set
HOSTS_TAKEN_MAX=31      # of one that a suite takes; the others are for HOSTS_NUMBER
HOSTS_START_MAX_S=20    # until the sshd of a host listens
HOSTS_KILLED_MAX_S=10   # until killed processes are gone
HOSTS_FRONT=254         # the last part of addresses
HOSTS_ABSENT=253
hosts_users=(plain prints asks)
hosts_uid=60901 # of the first
# of "secret"
# shellcheck disable=SC2016 # no variables
hosts_password='$6$causeway$yi6oALYJLXWHA/IsoTpCBHe0a4rr8v4ePRbGxo.KVPYggzQ7YmBVTlO.UBc/VY5zTsAvCZa3Pz7vOI1t7gpUk0'

# --- sets of hosts ----------------------------------------------------------------

# hosts_possible: says why there can be no hosts here, and is false then
hosts_possible() {
  local tool
  [[ $(id -u) = 0 ]] || { echo "hosts: only root can make hosts" && return 1; }
  for tool in ip nft sshd ssh ssh-keygen nsenter unshare; do
    type -P "$tool" >/dev/null && continue
    echo "hosts: there is no command $tool: 'make deps-check' installs it"
    return 1
  done
  unshare --net --mount --pid --uts --fork true 2>/dev/null && return
  echo "hosts: no namespaces can be made here"
  return 1
}

# hosts_use NUMBER: that all functions are about this set
hosts_use() {
  hosts_number=$1
  hosts_dir=$hosts_place/$1
  hosts_net=198.18.$1
  hosts_config=$hosts_dir/ssh_config # for ssh -F
  hosts_ssh=$hosts_dir/ssh           # a command: ssh with it
}

# hosts_up N: makes the hosts 1 to N, which then can be logged in to. 77: there can be none here, and why.
hosts_up() {
  local i
  hosts_possible >&2 || return 77
  (($1 >= 1 && $1 <= HOSTS_MAX)) || { echo "hosts: $1 is not a number from 1 to $HOSTS_MAX" >&2 && return 2; }
  hosts_take || return
  for ((i = 1; i <= $1; i++)); do
    echo "$i $hosts_net.$i"
  done >"$hosts_dir/list"
  hosts_files && hosts_names >"$hosts_dir/etc/hosts" && hosts_client && hosts_network && hosts_boot
}

# Starts all hosts.
hosts_boot() {
  local host
  for host in $(hosts_all); do
    host_boot "$host" || return
  done
  for host in $(hosts_all); do
    host_ready "$host" || return
  done
}

# Removes the set that is in use, if there is one.
hosts_down() {
  [[ -n ${hosts_number-} ]] || return 0
  hosts_remove "$hosts_number"
  hosts_number='' # another suite may take it now
}

# The file "list" of a set has a line for each host: what functions call it, and its addresses, with commas in between.
hosts_all() {
  cut -d ' ' -f 1 "$hosts_dir/list" 2>/dev/null
}

hosts_list() {
  local host addresses
  [[ ! -e $hosts_dir/list ]] || while read -r host addresses; do
    echo "$(host_name "$host") $addresses $([[ -n $(host_pid "$host") ]] && echo runs || echo off)"
  done <"$hosts_dir/list"
}

# host_name I: a host that functions call by a number is a node; those of a grid (tests/grid.sh) they call by the name
host_name() {
  [[ $1 != [0-9]* ]] || printf node
  echo "$1"
}

# hosts_front CMD...: runs a command on the front, to which the hosts' names have addresses
hosts_front() {
  # shellcheck disable=SC2016 # for the other shell
  unshare --mount bash -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' - "$hosts_dir/etc/hosts" "$@"
}

# Takes a number, when what is left of others is removed.
hosts_take() {
  local one number lock
  mkdir -p "$hosts_place" || return
  [[ -O $hosts_place ]] || { echo "hosts: $hosts_place is another user's" >&2 && return 2; }
  exec {lock}>"$hosts_place/lock" || return
  flock "$lock"
  for one in "$hosts_place"/[0-9]*; do
    [[ ! -d $one ]] || hosts_owned "${one##*/}" || hosts_remove "${one##*/}"
  done
  number=${HOSTS_NUMBER-}
  if [[ -z $number ]]; then
    for ((number = 1; number <= HOSTS_TAKEN_MAX; number++)); do
      [[ -d $hosts_place/$number ]] || break
    done
  fi
  if [[ ! $number =~ ^[0-9]{1,2}$ ]] || ((number > HOSTS_NUMBER_MAX)) ||
    ! mkdir "$hosts_place/$number" 2>/dev/null; then
    echo "hosts: there can be no set $number: it is in use, or not a number from 0 to $HOSTS_NUMBER_MAX" >&2
    exec {lock}>&-
    return 2
  fi
  hosts_use "$number"
  hosts_remove_spaces "$number" # what the last command of a killed suite made after its set was removed
  if [[ -n ${hosts_kept-} ]]; then
    echo kept
  else
    hosts_process $$
  fi >"$hosts_dir/owner"
  exec {lock}>&-
}

# hosts_process PID: names a process for ever: its number and when it started. Nothing when there is none.
hosts_process() {
  local line
  line=$(cat "/proc/$1/stat" 2>/dev/null) || return
  read -ra line <<<"${line##*) }"
  echo "$1 ${line[19]}"
}

# hosts_owned NUMBER: whether the process that made it still runs; that of a command need not
hosts_owned() {
  local pid owner
  owner=$(cat "$hosts_place/$1/owner" 2>/dev/null)
  read -r pid _ <<<"$owner"
  [[ $owner = kept || (-n $pid && $(hosts_process "$pid") = "$owner") ]]
}

# hosts_remove NUMBER: whatever state it is in
hosts_remove() {
  hosts_remove_spaces "$1"
  rm -rf "${hosts_place:?}/$1"
}

hosts_remove_spaces() {
  local spaces one
  mapfile -t spaces < <(ip netns list | awk -v set="cw$1-" 'index($1, set) == 1 { print $1 }')
  for one in "${spaces[@]}"; do
    hosts_end_all "$one"
    ip netns delete "$one"
  done
  ip link delete "cw$1" 2>/dev/null
  return 0
}

# hosts_end_all NAMESPACE: all processes there
hosts_end_all() {
  local pids end=$((SECONDS + HOSTS_KILLED_MAX_S))
  while mapfile -t pids < <(ip netns pids "$1" 2>/dev/null) && ((${#pids[@]} && SECONDS < end)); do
    kill -9 "${pids[@]}" 2>/dev/null
    sleep 0.01
  done
}

# --- its files --------------------------------------------------------------------

# Keys, users, and configurations of each sshd
hosts_files() {
  local host addresses
  mkdir "$hosts_dir/etc" &&
    ssh-keygen -q -t ed25519 -N '' -C test -f "$hosts_dir/key" &&
    hosts_users_files || return
  while read -r host addresses; do
    host_files "$host" "$addresses" || return
  done <"$hosts_dir/list"
}

# The machine's users, with root and ours as described above.
hosts_users_files() {
  local it id=$hosts_uid password
  awk -F: 'BEGIN { OFS = FS } $1 == "root" { $6 = "/run/home/root"; $7 = "/bin/bash" } { print }' /etc/passwd \
    >"$hosts_dir/etc/passwd"
  awk -F: 'BEGIN { OFS = FS } $1 == "root" { $2 = "*"; $3 = $8 = "" } { print }' /etc/shadow >"$hosts_dir/etc/shadow"
  cp /etc/group "$hosts_dir/etc/group"
  for it in "${hosts_users[@]}"; do
    password='*'
    [[ $it != asks ]] || password=$hosts_password
    echo "$it:x:$id:$id::/run/home/$it:/bin/bash" >>"$hosts_dir/etc/passwd"
    echo "$it:$password:::::::" >>"$hosts_dir/etc/shadow"
    echo "$it:x:$id:" >>"$hosts_dir/etc/group"
    id=$((id + 1))
  done
  chmod 600 "$hosts_dir/etc/shadow"
}

hosts_names() {
  local i
  echo "127.0.0.1 localhost"
  echo "$hosts_net.$HOSTS_FRONT front"
  echo "$hosts_net.$HOSTS_ABSENT absent"
  for i in $(hosts_all); do
    echo "$hosts_net.$i node$i $(printf "%s.node$i " "${hosts_users[@]}")"
  done
}

hosts_client() {
  local i it
  {
    for i in $(hosts_all); do
      printf 'Host node%d *.node%d\n  HostName %s.%d\n  HostKeyAlias node%d\n' "$i" "$i" "$hosts_net" "$i" "$i"
    done
    printf 'Host absent\n  HostName %s.%d\n' "$hosts_net" "$HOSTS_ABSENT"
    for it in "${hosts_users[@]}"; do
      printf 'Host %s.*\n  User %s\n' "$it" "$it"
    done
    hosts_client_config "$hosts_dir/key" "$hosts_dir/known_hosts"
  } >"$hosts_config"
  printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "$hosts_config" >"$hosts_ssh"
  chmod +x "$hosts_ssh"
}

# hosts_client_config KEY KNOWN-HOSTS: the part of a configuration that all hosts share
hosts_client_config() {
  cat <<TEXT
Host *
  User root
  IdentityFile $1
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile $2
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
TEXT
}

# host_files I ADDRESSES: what is /tmp and /run there, with the keys and the configuration of its sshd
host_files() {
  local dir=$hosts_dir/$1 it uid=0
  mkdir -p "$dir"/{tmp,run/sshd,run/user,run/home,run/lock} &&
    chmod 1777 "$dir/tmp" &&
    ssh-keygen -q -t ed25519 -N '' -C "$(host_name "$1")" -f "$dir/run/sshd/key" || return
  echo "$(host_name "$1"),$2 $(cut -d ' ' -f 1,2 "$dir/run/sshd/key.pub")" >>"$hosts_dir/known_hosts"
  for it in root "${hosts_users[@]}"; do
    mkdir -m 700 "$dir/run/user/$uid" "$dir/run/home/$it" || return
    chown "$uid:$uid" "$dir/run/user/$uid" "$dir/run/home/$it" || return
    uid=$((uid ? uid + 1 : hosts_uid))
  done
  cp "$hosts_dir/key.pub" "$dir/run/sshd/authorized"
  # shellcheck disable=SC2016 # for the other shell
  echo 'echo "Welcome to $(hostname)!"' >"$dir/run/home/prints/.bashrc"
  host_sshd_config "$dir" >"$dir/run/sshd/config"
}

# What sshd starts has the mark of the suite (lib/processes.sh), so that it is found when it is left behind.
host_sshd_config() {
  local it uid=0
  cat <<TEXT
ListenAddress 0.0.0.0
HostKey /run/sshd/key
PidFile /run/sshd/pid
UsePAM no
StrictModes no
AuthorizedKeysFile /run/sshd/authorized
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 200
MaxSessions 200
PrintMotd no
PrintLastLog no
X11Forwarding no
LogLevel VERBOSE
TEXT
  for it in root "${hosts_users[@]}"; do
    printf 'Match User %s\n  SetEnv XDG_RUNTIME_DIR=/run/user/%d%s\n' "$it" "$uid" "${mark:+ $mark=1}"
    uid=$((uid ? uid + 1 : hosts_uid))
  done
  printf 'Match User asks\n  PasswordAuthentication yes\n  PubkeyAuthentication no\n'
}

# --- its network ------------------------------------------------------------------

# One switch. Its port p0 goes to the front, pI to host I.
hosts_network() {
  local host address
  hosts_switches switch &&
    ip link add "cw$hosts_number" type veth peer name p0 netns "cw$hosts_number-switch" &&
    ip address add "$hosts_net.$HOSTS_FRONT/24" dev "cw$hosts_number" &&
    ip link set "cw$hosts_number" up &&
    ip -n "cw$hosts_number-switch" link set p0 master switch up || return
  while read -r host address; do
    host_link "$host" switch "$address" || return
  done <"$hosts_dir/list"
}

# hosts_switches NAME...: switches, in a namespace of their own, where no firewall of this machine has a say. Rules come
# after the first of them: those of a namespace without a bridge are not asked later either (Linux 6.18).
hosts_switches() {
  local name
  ip netns add "cw$hosts_number-switch" || return
  for name in "$@"; do
    on_switch ip link add "$name" type bridge forward_delay 0 && on_switch ip link set "$name" up || return
  done
  on_switch nft -f - <<'TEXT'
table bridge hosts {
  set from { type ifname; }
  set to { type ifname; }
  set closed { type ifname; }
  chain forward {
    type filter hook forward priority 0;
    iifname @from drop
    oifname @to drop
    iifname @closed tcp dport != 22 tcp flags & (syn | ack) == syn drop
    oifname @closed tcp dport != 22 tcp flags & (syn | ack) == syn drop
  }
}
TEXT
}

# host_link I SWITCH ADDRESS: its namespace, with the device eth0
host_link() {
  local space=cw$hosts_number-$1 switch=cw$hosts_number-switch
  ip netns add "$space" &&
    ip -n "$space" link set lo up &&
    ip -n "$space" link add eth0 type veth peer name "p$1" netns "$switch" &&
    ip -n "$space" address add "$3/24" dev eth0 &&
    ip -n "$space" link set eth0 up &&
    ip -n "$switch" link set "p$1" master "$2" up
}

on_switch() {
  nsenter --net="/run/netns/cw$hosts_number-switch" "$@"
}

# host_cut I: pulls the cable. What is sent meanwhile is lost, and nobody is told.
host_cut() {
  on_switch ip link set "p$1" down
}

# host_cut_to I, host_cut_from I: nothing gets to it, from it
host_cut_to() {
  on_switch nft add element bridge hosts to "{ p$1 }"
}

host_cut_from() {
  on_switch nft add element bridge hosts from "{ p$1 }"
}

# host_close I: as a firewall does: no new connections over TCP to it and from it, but to an sshd
host_close() {
  on_switch nft add element bridge hosts closed "{ p$1 }"
}

# host_join I: undoes all of these. For up to 3 s others may go on to take it for unreachable, as ARP found it.
host_join() {
  on_switch nft delete element bridge hosts to "{ p$1 }" 2>/dev/null
  on_switch nft delete element bridge hosts from "{ p$1 }" 2>/dev/null
  on_switch nft delete element bridge hosts closed "{ p$1 }" 2>/dev/null
  on_switch ip link set "p$1" up
}

# host_slow I RATE [DELAY]: limits both directions to RATE, as 10mbit; each packet is DELAY late, as 5ms. 77: this
# kernel has nothing that does so. With a delay it needs netem, without it tbf.
host_slow() {
  local how=(tbf rate "$2" burst 32kb latency 200ms)
  [[ -z ${3-} ]] || how=(netem delay "$3" rate "$2" limit 10000)
  host_queues "$1" replace "${how[@]}" && return
  host_fast "$1"
  echo "hosts: this kernel has no ${how[0]}, which delays packets" >&2
  return 77
}

# host_fast I: undoes it
host_fast() {
  host_queues "$1" delete
  return 0
}

# host_queues I ACTION [ARG...]: tc qdisc at both ends of its link
host_queues() {
  local there=(nsenter --net="/run/netns/cw$hosts_number-$1") device=eth0
  (($1)) || { there=() && device=cw$hosts_number; }
  on_switch tc qdisc "$2" dev "p$1" root "${@:3}" 2>/dev/null &&
    "${there[@]}" tc qdisc "$2" dev "$device" root "${@:3}" 2>/dev/null
}

# --- its hosts --------------------------------------------------------------------

# host_pid I: the first process there, here. When it is killed, all of the host's processes are.
host_pid() {
  local pid
  pid=$(cat "$hosts_dir/$1/pid" 2>/dev/null) && grep -qs $'^NSpid:.*\t1$' "/proc/$pid/status" &&
    [[ /proc/$pid/ns/net -ef /run/netns/cw$hosts_number-$1 ]] && echo "$pid"
}

# on_host I CMD...: runs a command there as root, in the directory /, with the environment that it has here
on_host() {
  local pid
  pid=$(host_pid "$1")
  [[ -n $pid ]] || { echo "hosts: $(host_name "$1") is off" >&2 && return 1; }
  nsenter --target "$pid" --mount --uts --ipc --net --pid -- "${@:2}"
}

# host_kill I: ends all its processes at once. Their connections end as those of killed processes do; where the host's
# end must not be heard, cut its link before.
host_kill() {
  local pid end=$((SECONDS + HOSTS_KILLED_MAX_S))
  pid=$(host_pid "$1")
  [[ -n $pid ]] || return 0
  kill -9 "$pid"
  while [[ -e /proc/$pid ]]; do
    ((SECONDS < end)) || { echo "hosts: the processes of $(host_name "$1") do not end" >&2 && return 1; }
    sleep 0.01
  done
}

# host_start I: a host that is off is switched on, with the files that it had in /tmp and /run/user; one that runs gets
# its sshd back.
host_start() {
  if [[ -z $(host_pid "$1") ]]; then
    host_boot "$1"
  else
    on_host "$1" env -i PATH="$PATH" "$hosts_self" sshd
  fi && host_ready "$1"
}

# host_kill_sshd I: all processes of sshd, so that nobody can log in and all who have are cut off
host_kill_sshd() {
  on_host "$1" pkill -9 -x sshd
}

# host_boot I: starts its first process; host_ready waits for the rest
host_boot() {
  local dir=$hosts_dir/$1 clock
  clock=$(awk -v host="$1" '$1 == host { print 100000 * NR }' "$hosts_dir/list")
  rm -f "$dir/pid" "$dir/ready" "$dir/run/sshd/pid"
  setsid env -i PATH="$PATH" HOSTS_SHARED="${HOSTS_SHARED-}" nsenter --net="/run/netns/cw$hosts_number-$1" \
    unshare --pid --fork --mount --uts --ipc --time --monotonic "$clock" --boottime "$clock" \
    "$hosts_self" init "$hosts_dir" "$1" \
    </dev/null >>"$dir/log" 2>&1 &
  disown
}

host_ready() {
  local end=$((SECONDS + HOSTS_START_MAX_S))
  while ((SECONDS < end)); do
    [[ -e $hosts_dir/$1/run/sshd/pid && -n $(host_pid "$1") ]] && return
    sleep 0.02
  done
  echo "hosts: $(host_name "$1") does not start: $(tail -n 3 "$hosts_dir/$1/log" "$hosts_dir/$1/run/sshd/log" 2>&1)" >&2
  return 1
}

# --- inside -----------------------------------------------------------------------

# host_init DIR I: the first process of a host, which sees to its orphans
host_init() {
  local pid
  # here /proc still is that of the outer namespace
  read -r pid _ </proc/self/stat
  host_mounts "$1" "$1/$2" && hostname "$(host_name "$2")" && host_sshd || exit 1
  echo "$pid" >"$1/$2/pid"
  while :; do
    sleep infinity &
    wait
  done
}

# host_mounts SET-DIR HOST-DIR: with the files of /etc that are the host's own, or else the set's
host_mounts() {
  local one tree from
  tree=$(realpath "${hosts_self%/*}/..")
  mount --make-rprivate / || return
  for one in "$tree" ${HOSTS_SHARED-}; do
    case $one in
    /tmp/* | /run/*) mkdir -p "$2$one" && mount --rbind "$one" "$2$one" || return ;;
    esac
  done
  for one in passwd shadow group hosts; do
    from=$2/etc/$one
    [[ -e $from ]] || from=$1/etc/$one
    mount --bind "$from" "/etc/$one" || return
  done
  cat /proc/sys/kernel/random/uuid >"$2/boot_id" # another boot of another machine
  mount --rbind "$2/tmp" /tmp &&
    mount --rbind "$2/run" /run &&
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
    mount -t sysfs sysfs /sys &&
    mount -t proc proc /proc &&
    mount --bind "$2/boot_id" /proc/sys/kernel/random/boot_id
}

# Starts it where it does not run. It writes /run/sshd/pid when it listens.
host_sshd() {
  [[ $(cat "/proc/$(cat /run/sshd/pid)/comm") != sshd ]] 2>/dev/null || return 0
  rm -f /run/sshd/pid
  "$(type -P sshd)" -f /run/sshd/config -E /run/sshd/log
}

# --- as a command -----------------------------------------------------------------

hosts_command() {
  local what=${1-}
  shift
  hosts_use "${HOSTS_NUMBER:-0}"
  case $what in
  init) host_init "$@" ;;
  sshd) host_sshd ;;
  up) hosts_keep hosts_up "${1:-3}" && hosts_list ;;
  down) hosts_down ;;
  list) hosts_list ;;
  ssh) "$hosts_ssh" "$@" ;;
  exec)
    if [[ ${1-} = 0 ]]; then
      hosts_front "${@:2}"
    else
      on_host "$@"
    fi
    ;;
  kill | start | cut | close | join | slow | fast) "host_$what" "$@" ;;
  *) hosts_usage "$hosts_self" ;;
  esac
}

# hosts_keep FUNCTION ARG...: that makes the set, anew; it stays when this command has ended
hosts_keep() {
  local number=$hosts_number
  hosts_down
  HOSTS_NUMBER=$number hosts_kept=yes "$@"
}

# hosts_usage FILE: what is written at its start
hosts_usage() {
  sed -n '2,/^$/s/^# \{0,1\}//p' "$1" >&2
  return 2
}

if [[ ${BASH_SOURCE[0]} = "$0" ]]; then
  set -u
  hosts_command "$@"
fi

#!/bin/bash
# A grid for tests, all on this machine: sites, and the internet between them. A site is some hosts (tests/hosts.sh) in a
# network of their own, which a gateway joins to the internet. Needs root. No file of the system is changed.
#
#   tests/grid.sh up [SITE...]    makes them; default: a b c. A site is a letter, with
#                                   :noin   nothing comes in from outside, its hosts can go out
#                                   :noout  nothing goes out, others can come in
#                                 front:SITE is where the front is, if not at the internet
#   tests/grid.sh down            removes them, and all that runs there
#   tests/grid.sh list            a line for each host: name, addresses, "runs" or "off"; and the front's
#   tests/grid.sh exec HOST CMD...      runs a command there, as root; exec front: where the user works
#   tests/grid.sh ssh ARG...            ssh, from the front
#   tests/grid.sh kill | start HOST     as host_kill, host_start of tests/hosts.sh
#   tests/grid.sh cut | join SITE SITE  as grid_cut ... below
#   tests/grid.sh slow SITE SITE MS [MBIT] | fast SITE SITE
#   tests/grid.sh open                  as if there were no firewalls
#   tests/grid.sh crossings             connections that are established between sites
#
# Hosts: site a has the gateway a-gate and the nodes a1, a2, each with an sshd; that of a-gate alone can be reached from
# outside. Over the internet only TCP to port 22 of gateways passes: what else a host sends is lost. Nodes go
# out by way of their gateway, with its address. Names: everybody knows the gateways, and a site's hosts each other.
# A host is called by its name: all functions of tests/hosts.sh about a host (on_host a1, host_kill a1, host_cut a1 ...)
# work. A gateway that is killed still passes on what its nodes send (it is the kernel that does): cut it as well.
#
# Addresses: 198.18.NUMBER.K of the gateway of the K-th site; in that site 10.NUMBER.K.1 and 2 the nodes, .254 the gateway.
# The front is .100 where it is. NUMBER is the set's, as in tests/hosts.sh; the commands above use set 32.
#
# The front is no host of its own: commands there run on this machine with its files and processes, but in the front's
# network, with its names and its home, $grid_home. Nothing comes in to a front at the internet.
#
# SSH: the homes of all users have a key that all users of all hosts take, known_hosts with all names and addresses, and
# a configuration by which "ssh b1" goes by way of b-gate; so "causeway run --host b1 --relay ssh:b-gate/b1:PORT" works.
#
# Functions, after grid_up SITE...: grid_down, grid_list, grid_exec, grid_cut, grid_cut_way (FROM TO: one direction),
# grid_join, grid_slow, grid_slow_way, grid_fast, grid_crossings. SITE is a site's letter, "front" when it is at the
# internet, or "all". grid_open: no firewalls any more, as grid_open below. Commands: "$grid_front" CMD... runs one on the front, as the same process; "$hosts_ssh" is ssh there.
# Slow ways need build/wire (make build/wire). $hosts_dir/HOST/tmp and .../run are a host's /tmp and /run.
#
# Environment: as tests/hosts.sh; GRID_NODES: nodes of a site (default: 2)

# shellcheck source=tests/hosts.sh
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
GRID_NODES=${GRID_NODES:-2}
GRID_NODES_MAX=9
GRID_SITES_MAX=8
GRID_FRONT=100 # the last part of addresses
GRID_GATE=254
GRID_COMMAND_SET=32
GRID_WIRE_MAX_S=5 # until it is there
GRID_TABLES=1000  # of routes: the first that wires use

# --- all of it --------------------------------------------------------------------

# grid_up SITE...: as the command. 77: there can be no grid here, and why.
grid_up() {
  local sites='' view=front
  hosts_possible >&2 || return 77
  grid_parse "$@" && hosts_take || return
  grid_use
  echo "$sites" >"$hosts_dir/sites"
  grid_hosts >"$hosts_dir/list"
  hosts_files && grid_files && grid_network && hosts_boot
}

grid_down() {
  hosts_down
}

grid_list() {
  hosts_list
  awk '$2 == "front" { print $2, $1 }' "$hosts_dir/front/etc/hosts" 2>/dev/null
}

# grid_exec HOST CMD...: as root, with the home that root has there, and otherwise the environment of this command
grid_exec() {
  if [[ $1 = front ]]; then
    "$grid_front" "${@:2}"
  else
    on_host "$1" env HOME=/run/home/root "${@:2}"
  fi
}

# grid_crossings: a line "SITE SITE COUNT" for each two, of the connections over TCP that are established now. Each ends
# at the port 22 of a gateway, which sees the others' gateways.
grid_crossings() {
  local site
  for site in $(grid_ends all); do
    ip netns exec "$(grid_space "$site")" ss -Htn state established 'sport = :22' |
      awk -v site="$site" -v net="$hosts_net" '{ print site, net, $4 }'
  done | awk '
    NR == FNR { names[$2] = $1; order[++count] = $1; next }
    { split($3, peer, ":"); last = substr(peer[1], length($2) + 2) }
    index(peer[1], $2 ".") == 1 { seen[$1, names[last]]++ }
    END {
      for (i = 1; i <= count; i++)
        for (j = i + 1; j <= count; j++)
          print order[i], order[j], seen[order[i], order[j]] + seen[order[j], order[i]]
    }' "$hosts_dir/sites" -
}

grid_use() {
  grid_home=$hosts_dir/front/home
  grid_front=$hosts_dir/front/run
}

# grid_parse SITE...: leaves where the front is in $view, and in $sites what the file "sites" has: a line for each place
# at the internet: name, the last part of its address, and what its firewall does with connections in and out
grid_parse() {
  local one in out count=0
  for one in "$@"; do
    [[ $one =~ ^([a-z])(:noin)?(:noout)?$|^front:([a-z])$ ]] ||
      grid_wrong "$one: expected SITE[:noin][:noout] or front:SITE" || return
    if [[ -n ${BASH_REMATCH[4]} ]]; then
      view=${BASH_REMATCH[4]}
      continue
    fi
    in=${BASH_REMATCH[2]:+drop} out=${BASH_REMATCH[3]:+drop}
    sites+="${BASH_REMATCH[1]} $((++count)) ${in:-accept} ${out:-accept}"$'\n'
  done
  ((count >= 1 && count <= GRID_SITES_MAX)) || grid_wrong "$count sites: expected 1 to $GRID_SITES_MAX" || return
  ((GRID_NODES >= 1 && GRID_NODES <= GRID_NODES_MAX)) ||
    grid_wrong "$GRID_NODES nodes: expected 1 to $GRID_NODES_MAX" || return
  [[ -z $(cut -d ' ' -f 1 <<<"$sites" | sort | uniq -d | tr -d '\n') ]] || grid_wrong "a site is named twice" || return
  if [[ $view = front ]]; then
    sites+="front $GRID_FRONT drop accept"$'\n'
  else
    [[ $'\n'$sites = *$'\n'"$view "* ]] || grid_wrong "front:$view: there is no such site" || return
  fi
  sites=${sites%$'\n'}
}

grid_wrong() {
  echo "grid: $*" >&2
  return 2
}

# --- its files --------------------------------------------------------------------

# Prints the list of hosts.
grid_hosts() {
  local site number net i
  while read -r site number _; do
    [[ $site != front ]] || continue
    net=10.$hosts_number.$number
    echo "$site-gate $net.$GRID_GATE,$hosts_net.$number"
    for ((i = 1; i <= GRID_NODES; i++)); do
      echo "$site$i $net.$i"
    done
  done <"$hosts_dir/sites"
}

# What each host and the front know of the others
grid_files() {
  local host it uid
  mkdir -p "$hosts_dir/front/etc" "$grid_home" && grid_names "$view" >"$hosts_dir/front/etc/hosts" &&
    awk -F: -v home="$grid_home" 'BEGIN { OFS = FS } $1 == "root" { $6 = home } { print }' /etc/passwd \
      >"$hosts_dir/front/etc/passwd" &&
    grid_keys "$view" "$grid_home" 0 && grid_commands || return
  for host in $(hosts_all); do
    mkdir "$hosts_dir/$host/etc" && grid_names "${host:0:1}" >"$hosts_dir/$host/etc/hosts" || return
    uid=0
    for it in root "${hosts_users[@]}"; do
      grid_keys "${host:0:1}" "$hosts_dir/$host/run/home/$it" "$uid" || return
      uid=$((uid ? uid + 1 : hosts_uid))
    done
  done
}

# Those that tests call.
grid_commands() {
  cat >"$grid_front" <<TEXT
#!/bin/sh
exec nsenter --net=/run/netns/cw$hosts_number-front unshare --mount sh -c '
  mount --bind "$hosts_dir/front/etc/hosts" /etc/hosts && mount --bind "$hosts_dir/front/etc/passwd" /etc/passwd &&
    export HOME="$grid_home" && exec "\$@"' - "\$@"
TEXT
  printf '#!/bin/sh\nexec %s ssh "$@"\n' "$grid_front" >"$hosts_ssh"
  chmod +x "$grid_front" "$hosts_ssh"
}

# grid_names VIEW: what /etc/hosts is in that site, or on a front at the internet
grid_names() {
  local host addresses front=$hosts_net.$GRID_FRONT
  echo "127.0.0.1 localhost"
  while read -r host addresses; do
    if [[ ${host:0:1} = "$1" ]]; then
      echo "${addresses%,*} $host"
      front=${addresses%.*}.$GRID_FRONT
    elif [[ $host = *-gate ]]; then
      echo "${addresses#*,} $host"
    fi
  done <"$hosts_dir/list"
  [[ $1 != "$view" ]] || echo "$front front"
}

# grid_keys VIEW HOME UID: its .ssh
# shellcheck disable=SC2088 # it is ssh that knows of ~
grid_keys() {
  local site
  mkdir -m 700 "$2/.ssh" &&
    cp "$hosts_dir/key" "$2/.ssh/id_ed25519" &&
    cp "$hosts_dir/known_hosts" "$2/.ssh/known_hosts" &&
    for site in $(grid_ends all); do
      [[ $site = "$1" || $site = front ]] || printf 'Host %s?\n  ProxyJump %s-gate\n' "$site" "$site"
    done >"$2/.ssh/config" &&
    hosts_client_config '~/.ssh/id_ed25519' '~/.ssh/known_hosts' >>"$2/.ssh/config" &&
    chown -R "$3:$3" "$2/.ssh"
}

# grid_publishes PORT HOST: everybody knows the key of HOST for that port of the loopback device of any gateway, where it
# will be published
grid_publishes() {
  local file
  for file in "$grid_home" "$hosts_dir"/*/run/home/*; do
    echo "[127.0.0.1]:$1 $(awk -v host="$2" 'index($1, host ",") == 1 { print $2, $3 }' "$hosts_dir/known_hosts")" \
      >>"$file/.ssh/known_hosts"
  done
}

# --- its network ------------------------------------------------------------------

# Each site has a switch, and each gateway a device "wan" that goes to the router which is the internet.
grid_network() {
  local site number in out
  # shellcheck disable=SC2046 # names
  hosts_switches $(awk '$1 != "front" { print "lan-" $1 }' "$hosts_dir/sites") && grid_internet || return
  while read -r site number in out; do
    if [[ $site = front ]]; then
      grid_space_add front
    else
      grid_site "$site" "$number"
    fi && grid_wan "$site" "$number" && grid_firewall "$site" "$in" "$out" || return
  done <"$hosts_dir/sites"
}

# grid_site SITE NUMBER: the network of its hosts
grid_site() {
  local net=10.$hosts_number.$2 i
  host_link "$1-gate" "lan-$1" "$net.$GRID_GATE" || return
  for ((i = 1; i <= GRID_NODES; i++)); do
    grid_member "$1$i" "lan-$1" "$net.$i" || return
  done
  [[ $view != "$1" ]] || grid_member front "lan-$1" "$net.$GRID_FRONT"
}

# grid_member HOST SWITCH ADDRESS: a host that is no gateway
grid_member() {
  host_link "$@" && ip -n "cw$hosts_number-$1" route add "$hosts_net.0/24" via "${3%.*}.$GRID_GATE"
}

grid_internet() {
  grid_space_add internet && on_internet bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' && on_internet nft -f - <<'TEXT'
table ip internet {
  set cut { type ipv4_addr . ipv4_addr; }
  chain forward {
    type filter hook forward priority 0;
    ip saddr . ip daddr @cut drop
  }
}
TEXT
}

grid_space_add() {
  ip netns add "cw$hosts_number-$1" && ip -n "cw$hosts_number-$1" link set lo up
}

on_internet() {
  nsenter --net="/run/netns/cw$hosts_number-internet" "$@"
}

# grid_space SITE: the namespace where its way to the internet begins
grid_space() {
  local gate=-gate
  [[ $1 != front ]] || gate=''
  echo "cw$hosts_number-$1$gate"
}

# grid_wan SITE NUMBER: the device wan of its gateway; the router's is named as the site
grid_wan() {
  local space router=cw$hosts_number-internet
  space=$(grid_space "$1")
  ip -n "$space" link add wan type veth peer name "to-$1" netns "$router" &&
    ip -n "$space" address add "$hosts_net.$2/32" dev wan &&
    ip -n "$space" link set wan up &&
    ip -n "$router" address add "$hosts_net.$GRID_GATE/32" dev "to-$1" &&
    ip -n "$router" link set "to-$1" up &&
    ip -n "$router" route add "$hosts_net.$2/32" dev "to-$1" &&
    ip -n "$space" route add "$hosts_net.$GRID_GATE/32" dev wan &&
    ip -n "$space" route add "$hosts_net.0/24" via "$hosts_net.$GRID_GATE" dev wan
}

# grid_firewall SITE IN OUT: what its gateway lets through to port 22 of gateways; both "accept" or "drop"
grid_firewall() {
  local there=(nsenter --net="/run/netns/$(grid_space "$1")")
  "${there[@]}" bash -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' && "${there[@]}" nft -f - <<TEXT
table ip site {
  chain input {
    type filter hook input priority 0;
    iifname "wan" ct state established,related accept
    iifname "wan" tcp dport 22 $2
    iifname "wan" drop
  }
  chain forward {
    type filter hook forward priority 0; policy drop;
    iifname "wan" ct state established,related accept
    oifname "wan" tcp dport 22 $3
  }
  chain output {
    type filter hook output priority 0;
    oifname "wan" ct state established,related accept
    oifname "wan" tcp dport 22 $3
    oifname "wan" drop
  }
  chain leave {
    type nat hook postrouting priority 100;
    oifname "wan" masquerade
  }
}
TEXT
}

# --- ways between sites -----------------------------------------------------------

# grid_cut SITE SITE: all packets between them are lost, and nobody is told; grid_cut_way FROM TO: those in one direction
grid_cut() {
  grid_both way_cut "$@"
}

grid_cut_way() {
  grid_ways way_cut "$@"
}

# grid_join SITE SITE: undoes it
grid_join() {
  grid_both way_join "$@"
}

# grid_slow SITE SITE MS [MBIT]: each packet is MS milliseconds late, and no more than MBIT megabits pass a second, in
# each direction; grid_slow_way FROM TO MS [MBIT]: in one. What is on its way then is lost. 77: it cannot be done here.
grid_slow() {
  grid_both way_slow "$@"
}

grid_slow_way() {
  grid_ways way_slow "$@"
}

# grid_fast SITE SITE: undoes it
grid_fast() {
  grid_both way_fast "$@"
}

# grid_ends SITE: prints the sites that are meant
grid_ends() {
  awk -v site="$1" 'site == "all" || site == $1 { print $1 }' "$hosts_dir/sites"
}

grid_known() {
  [[ -n $(grid_ends "$1") ]] || grid_wrong "$1: there is no such site"
}

# grid_ways FUNCTION FROM TO [ARG...]: calls it for each two sites that are meant
grid_ways() {
  local from to
  grid_known "${2-}" && grid_known "${3-}" || return
  for from in $(grid_ends "$2"); do
    for to in $(grid_ends "$3"); do
      [[ $from = "$to" ]] || "$1" "$from" "$to" "${@:4}" || return
    done
  done
}

grid_both() {
  grid_ways "$@" && { [[ $2 = "$3" ]] || grid_ways "$1" "$3" "$2" "${@:4}"; }
}

# grid_number SITE: the last part of its address at the internet
grid_number() {
  awk -v site="$1" 'site == $1 { print $2 }' "$hosts_dir/sites"
}

# way_element FROM TO: as nft writes it
way_element() {
  echo "{ $hosts_net.$(grid_number "$1") . $hosts_net.$(grid_number "$2") }"
}

way_cut() {
  on_internet nft add element ip internet cut "$(way_element "$@")"
}

way_join() {
  on_internet nft delete element ip internet cut "$(way_element "$@")" 2>/dev/null
  return 0
}

# way_slow FROM TO MS [MBIT]: the router sends what goes that way through a wire of its own (lib/wire.c), which is gone
# with its device
way_slow() {
  local wire=$1-$2 end=$((SECONDS + GRID_WIRE_MAX_S)) table
  way_fast "$1" "$2"
  setsid env -i nsenter --net="/run/netns/cw$hosts_number-internet" "${hosts_self%/*}/../build/wire" "$wire" "$3" "${4:-0}" \
    </dev/null >"$hosts_dir/wire.$wire" 2>&1 &
  disown
  until on_internet ip link set "$wire" txqueuelen 10000 up 2>/dev/null; do
    if [[ -s $hosts_dir/wire.$wire ]] || ((SECONDS >= end)); then
      echo "grid: nothing delays packets here: $(<"$hosts_dir/wire.$wire")" >&2
      return 77
    fi
    sleep 0.01
  done
  table=$(way_table "$1" "$2")
  on_internet ip route add default dev "$wire" table "$table" &&
    on_internet ip rule add iif "to-$1" to "$hosts_net.$(grid_number "$2")" lookup "$table" priority "$table" &&
    on_internet ip rule add iif "to-$1" to "10.$hosts_number.$(grid_number "$2").0/24" lookup "$table" priority "$table"
}

way_fast() {
  while on_internet ip rule delete priority "$(way_table "$1" "$2")" 2>/dev/null; do :; done
  on_internet ip link delete "$1-$2" 2>/dev/null
  return 0
}

way_table() {
  echo $((GRID_TABLES + $(grid_number "$1") * 256 + $(grid_number "$2")))
}

# --- without firewalls ------------------------------------------------------------

# grid_open: from now on all hosts reach each other at the addresses that they have in their sites, over the same ways.
# What goes to gateways goes as before. What was cut is open there.
grid_open() {
  local site number gate net
  while read -r site number _; do
    [[ $site != front ]] || continue
    gate=cw$hosts_number-$site-gate net=10.$hosts_number.$number
    on_internet ip route add "$net.0/24" via "$hosts_net.$number" dev "to-$site" &&
      ip -n "$gate" route add "10.$hosts_number.0.0/16" via "$hosts_net.$GRID_GATE" dev wan &&
      ip netns exec "$gate" nft insert rule ip site forward ip saddr "10.$hosts_number.0.0/16" ip daddr \
        "10.$hosts_number.0.0/16" accept &&
      ip netns exec "$gate" nft insert rule ip site leave ip daddr "10.$hosts_number.0.0/16" accept || return
    grid_each_node "$site" ip route add "10.$hosts_number.0.0/16" via "$net.$GRID_GATE" || return
  done <"$hosts_dir/sites"
}

# grid_each_node SITE CMD...: in the network of each
grid_each_node() {
  local i
  for ((i = 1; i <= GRID_NODES; i++)); do
    ip netns exec "cw$hosts_number-$1$i" "${@:2}" || return
  done
}

# --- as a command -----------------------------------------------------------------

grid_command() {
  local what=${1-}
  shift
  hosts_use "${HOSTS_NUMBER:-$GRID_COMMAND_SET}"
  grid_use
  case $what in
  up)
    (($#)) || set -- a b c
    hosts_keep grid_up "$@" && grid_list
    ;;
  down | list | exec | cut | join | slow | fast | open | crossings) "grid_$what" "$@" ;;
  ssh) "$hosts_ssh" "$@" ;;
  kill | start) "host_$what" "$@" ;;
  *) hosts_usage "${BASH_SOURCE[0]}" ;;
  esac
}

if [[ ${BASH_SOURCE[0]} = "$0" ]]; then
  set -u
  grid_command "$@"
fi

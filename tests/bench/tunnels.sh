# shellcheck shell=bash
# Tunnels through SSH beside OpenSSH's own, to a host that is a network namespace of this machine (tests/hosts.sh), at
# once and over a way that takes time (delay.c): a section of bench.sh, which sources this after lib.sh and tests/hosts.sh.
#
# Environment: TUNNEL_ROUNDS (default RUNS), TUNNEL_MB (sent at once, 512), TUNNEL_SLOW_MB (sent over 50 ms, 256)

# shellcheck disable=SC2154 # bench.sh sets RUNS, causeway, programs and dir; tests/hosts.sh the names that begin with hosts_
# shellcheck disable=SC2016,SC2317 # the dollars in single quotes are perl's; functions are called by their names

TUNNEL_ROUNDS=${TUNNEL_ROUNDS:-$RUNS}
TUNNEL_MB=${TUNNEL_MB:-512}
TUNNEL_SLOW_MB=${TUNNEL_SLOW_MB:-256}
TUNNEL_PORT=7001
TUNNEL_WAY_PORT=27022
TUNNEL_DELAY_MS=25 # of each direction

# One connection after the other, each answered by a byte once all of it has come.
tunnel_sink() {
  HOSTS_NUMBER=$hosts_number tests/hosts.sh exec 1 perl -MIO::Socket::INET -e '
    $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:'"$TUNNEL_PORT"'", Listen => 1, ReuseAddr => 1) or die;
    while ($c = $s->accept) { 1 while sysread $c, $_, 1 << 20; syswrite $c, "k"; close $c }' &
}

tunnel_ours() {
  HOME=$dir/home "$causeway" tunnel "ssh:root@$1:$2/127.0.0.1:$TUNNEL_PORT"
}

# Its ciphers as it chooses them.
tunnel_ssh() {
  ssh -F none -i "$dir/home/.ssh/id_ed25519" -o UserKnownHostsFile="$dir/home/.ssh/known_hosts" -o BatchMode=yes \
    -p "$2" -W "127.0.0.1:$TUNNEL_PORT" "root@$1"
}

# Of bytes that cannot be packed: ssh does not try.
tunnel_send() {
  [[ $(head -c "$(($1 << 20))" "$dir/tunnel.bytes" | "tunnel_$2" "${@:3}" 2>"$dir/stats") = k ]]
}

# tunnel_once RUNNER KEY MB HOST PORT: appends "KEY MB-A-SECOND"
tunnel_once() {
  if timed tunnel_send "$3" "$1" "$4" "$5"; then
    awk -v key="$2" -v mb="$3" -v s="$took" 'BEGIN { print key, mb * 1.048576 / s }' >>"$dir/tunnel.$1"
  else
    echo "$2 -" >>"$dir/tunnel.$1"
    uncounted "a tunnel, $1"
  fi
}

tunnel_keys() {
  mkdir -p "$dir/home/.ssh"
  cp "$hosts_dir/key" "$dir/home/.ssh/id_ed25519"
  awk -v ip="$hosts_net.1" -v way="[127.0.0.1]:$TUNNEL_WAY_PORT" '{ print ip, $2, $3; print way, $2, $3 }' \
    "$hosts_dir/known_hosts" >"$dir/home/.ssh/known_hosts"
}

tunnels() {
  local sink way key
  title "Bytes through SSH to a gateway: causeway tunnel beside ssh -W, $TUNNEL_ROUNDS rounds"
  bench_hosts 1 "tunnels" || return
  tunnel_keys
  head -c "$(((TUNNEL_MB > TUNNEL_SLOW_MB ? TUNNEL_MB : TUNNEL_SLOW_MB) << 20))" /dev/urandom >"$dir/tunnel.bytes"
  tunnel_sink
  sink=$!
  "$programs/delay" "$TUNNEL_WAY_PORT" "$hosts_net.1" 22 "$TUNNEL_DELAY_MS" >"$dir/out" &
  way=$!
  sleep 1
  rm -f "$dir"/tunnel.{ours,ssh}
  take_turns "$TUNNEL_ROUNDS" "ours ssh" tunnel_once now "$TUNNEL_MB" "$hosts_net.1" 22
  take_turns "$TUNNEL_ROUNDS" "ours ssh" tunnel_once slow "$TUNNEL_SLOW_MB" 127.0.0.1 "$TUNNEL_WAY_PORT"
  kill "$way" "$sink"
  hosts_down
  ratios "$dir/tunnel.ours" "$dir/tunnel.ssh" >"$dir/tunnel.ratio"
  for key in ours ssh ratio; do
    awk -v key="$key" '{ print key "." $1, $2 }' "$dir/tunnel.$key"
  done >"$dir/hosts"
  echo "MB/s, with the opening of the session. Goal: at least 1.0 times at once, 3.0 times at 50 ms of round trip."
  table "round trip" "causeway tunnel" "ssh -W" "ratio"
  row "$dir/hosts" "a tunnel at once" "0" "=spread ours.now 1" "=spread ssh.now 1" "=spread ratio.now 2"
  row "$dir/hosts" "a tunnel at 50 ms" "$((2 * TUNNEL_DELAY_MS)) ms" "=spread ours.slow 1" "=spread ssh.slow 1" \
    "=spread ratio.slow 2"
}

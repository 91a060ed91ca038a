# shellcheck shell=bash
# Collectives that know sites beside MPICH's own: sections of bench.sh, which sources this after lib.sh. How often they
# cross between relays is counted, not timed; sites_time times them over a path that takes time (delay.c).
#
# Environment: SITES_COUNT (calls of each, 10), SITES_BYTES (of a part, "8 131072"), SITES_DELAY_MS (of each direction, 25)

# shellcheck disable=SC2154 # bench.sh sets causeway, programs and dir
# shellcheck disable=SC2317 # functions are called by their names

SITES_COUNT=${SITES_COUNT:-10}
SITES_BYTES=${SITES_BYTES:-8 131072}
SITES_RANKS=12
SITES_MAPS=('0*4,1*4,2*4' '0,1,2,0,1,2,0,1,2,0,1,2') # blocks, in turn
SITES_PORT=7110
SITES_DELAY_MS=${SITES_DELAY_MS:-25}
SITES_COLLECTIVES="barrier bcast reduce allreduce gather scatter allgather alltoall reduce_scatter scan"

# sites_job MODE MAP COLLECTIVE BYTES COUNT: prints the messages and bytes that all relays have forwarded in it
sites_job() {
  "$causeway" run --no-log --relays 3 --relay-map "$2" --collectives "$1" --stats -n $SITES_RANKS \
    "$programs/collective_crossings" "${@:3}" 2>"$dir/stats" >/dev/null </dev/null || return
  awk '/^ relay:/ { for (i = 1; i < NF; i++) if ($i == "relays") { messages += $(i + 1); bytes += $(i + 3) } }
    END { print messages + 0, bytes + 0 }' "$dir/stats"
}

# sites_count MODE MAP COLLECTIVE BYTES: those of one call; what comes before the first cancels out
sites_count() {
  local few many
  if ! few=$(sites_job "$@" 0) || ! many=$(sites_job "$@" "$SITES_COUNT"); then
    uncounted "$3 of $4 bytes, $1"
    echo "- -"
    return
  fi
  echo "$few $many" | awk -v n="$SITES_COUNT" '{ printf "%.0f %.0f\n", ($3 - $1) / n, ($4 - $2) / n }'
}

# sites_row BYTES COLLECTIVE: its counts in both placements, before and after
sites_row() {
  local map row="$2 | $1"
  for map in "${SITES_MAPS[@]}"; do
    row+=$({ sites_count flat "$map" "$2" "$1" && sites_count sites "$map" "$2" "$1"; } | paste -sd ' ' |
      awk '{ printf " | %s | %s | %s | %s", $1, $3, $2, $4 }')
  done
  echo "| $row |"
}

# sites_rows ROW: each collective of each size, by that function
sites_rows() {
  local bytes collective
  for bytes in $SITES_BYTES; do
    for collective in $SITES_COLLECTIVES; do
      [[ $collective = barrier && $bytes != "${SITES_BYTES%% *}" ]] || "$1" "$bytes" "$collective"
    done
  done
}

sites_crossings() {
  title "Crossings between 3 relays, $SITES_RANKS ranks: of one call, MPICH's own (flat) beside sites"
  echo "Messages, and bytes of payload. Blocks: ranks 0 to 3 at the first relay, and so on; in turn: ranks 0, 3, 6, 9."
  echo "Bytes: of the part of a rank, or of what is broadcast or reduced. Those of a barrier are 0 or a few in any case."
  echo
  table collective bytes "blocks: flat" sites "flat bytes" "sites bytes" "in turn: flat" sites "flat bytes" "sites bytes"
  sites_rows sites_row
}

# --- over a path that takes time ---

# Each relay listens on an address of its own. Its name leads there for the dispatcher and the ranks, and for the other
# relays to delay.c: so what goes between a rank and its relay takes no time, and what goes between relays does.
sites_relays() {
  local i
  sites_pids=()
  rm -f "$dir"/near "$dir"/far "$dir"/relays
  for i in 0 1 2; do
    echo "127.0.1.$((i + 1)) relay$i" >>"$dir/near"
    echo "127.0.0.1 relay$i" >>"$dir/far"
    "$programs/delay" $((SITES_PORT + i)) "127.0.1.$((i + 1))" $((SITES_PORT + i)) "$SITES_DELAY_MS" >/dev/null &
    sites_pids+=($!)
  done
  for i in 0 1 2; do
    sites_names far "$causeway" relay --listen "tcp:127.0.1.$((i + 1)):$((SITES_PORT + i))" --key-file "$dir/key" \
      2>>"$dir/relays" &
    sites_pids+=($!)
    sites_listens "$dir/relays" "127.0.1.$((i + 1))" || return
  done
}

# sites_listens FILE ADDRESS: waits until the relay says so
sites_listens() {
  local tries=100
  until grep -qs "listening on tcp:$2:" "$1"; do
    ((tries--)) || return
    sleep 0.1
  done
}

# sites_names FILE COMMAND...: in place of a shell of its own, with this file as /etc/hosts, which needs root
# shellcheck disable=SC2016 # of the inner shell
sites_names() {
  exec unshare -m sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' sh "$dir/$1" "${@:2}"
}

# sites_timed MODE MAP COLLECTIVE BYTES: prints ms
sites_timed() {
  local it
  it=$(sites_names near timeout -k 5 120 "$causeway" run --relay "tcp:relay0:$SITES_PORT" \
    --relay "tcp:relay1:$((SITES_PORT + 1))" --relay "tcp:relay2:$((SITES_PORT + 2))" --key-file "$dir/key" \
    --relay-map "$2" --no-log --collectives "$1" -n $SITES_RANKS "$programs/collective_crossings" "$3" "$4" \
    "$SITES_COUNT" timed 2>"$dir/stats" </dev/null) || uncounted "$3 of $4 bytes, $1, over a path that takes time"
  awk '{ printf "%.1f\n", $2 / 1e3 }' <<<"${it:-x nan}"
}

sites_relays_end() {
  kill "${sites_pids[@]}" 2>/dev/null
  wait "${sites_pids[@]}" 2>/dev/null
}

# sites_time_row BYTES COLLECTIVE
sites_time_row() {
  local map flat sites row="$2 | $1"
  sites_relays || missing "collectives over a path that takes time: $(tail -n 1 "$dir/relays")"
  for map in "${SITES_MAPS[@]}"; do
    flat=$(sites_timed flat "$map" "$2" "$1")
    sites=$(sites_timed sites "$map" "$2" "$1")
    row+=" | $flat | $sites | $(ratio "$flat" "$sites")"
  done
  sites_relays_end
  echo "| $row |"
}

sites_time() {
  title "The same jobs, $SITES_DELAY_MS ms one way between relays: ms a call, mean of $SITES_COUNT"
  table collective bytes "blocks: flat" sites "flat / sites" "in turn: flat" sites "flat / sites"
  sites_rows sites_time_row
}

# shellcheck shell=bash
# Collectives that know sites beside MPICH's own: sections of bench.sh, which sources this after lib.sh and tests/hosts.sh.
# How often they cross between relays is counted, not timed; sites_time times them between hosts, which are network
# namespaces, over ways that take time.
#
# Environment: SITES_COUNT (calls of each, 10), SITES_BYTES (of a part, "8 131072"), SITES_DELAY (of each host's link, in
#   each direction, 12ms), SITES_RATE (of these links, 200mbit)

# shellcheck disable=SC2154 # bench.sh sets causeway, programs and dir; tests/hosts.sh the names that begin with hosts_
# shellcheck disable=SC2317 # functions are called by their names

SITES_COUNT=${SITES_COUNT:-10}
SITES_BYTES=${SITES_BYTES:-8 131072}
SITES_DELAY=${SITES_DELAY:-12ms}
SITES_RATE=${SITES_RATE:-200mbit}
SITES_RANKS=12
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
  few=$(sites_job "$@" 0) && many=$(sites_job "$@" "$SITES_COUNT") || {
    uncounted "$3 of $4 bytes, $1"
    echo "- -"
    return
  }
  echo "$few $many" | awk -v n="$SITES_COUNT" '{ printf "%.0f %.0f\n", ($3 - $1) / n, ($4 - $2) / n }'
}

# sites_row BYTES COLLECTIVE: its counts in both placements, before and after
sites_row() {
  local map row="$2 | $1"
  for map in 0*4,1*4,2*4 0,1,2,0,1,2,0,1,2,0,1,2; do
    row+=$({ sites_count flat "$map" "$2" "$1" && sites_count sites "$map" "$2" "$1"; } | paste -sd ' ' |
      awk '{ printf " | %s | %s | %s | %s", $1, $3, $2, $4 }')
  done
  echo "| $row |"
}

sites_crossings() {
  local bytes collective
  title "Crossings between 3 relays, $SITES_RANKS ranks: of one call, MPICH's own (flat) beside sites"
  echo "Messages, and bytes of payload. Blocks: ranks 0 to 3 at the first relay, and so on; in turn: ranks 0, 3, 6, 9."
  echo "Bytes: of the part of a rank, or of what is broadcast or reduced. Those of a barrier are 0 or a few in any case."
  echo
  table collective bytes "blocks: flat" sites "flat bytes" "sites bytes" "in turn: flat" sites "flat bytes" "sites bytes"
  for bytes in $SITES_BYTES; do
    for collective in $SITES_COLLECTIVES; do
      [[ $collective = barrier && $bytes != "${SITES_BYTES%% *}" ]] || sites_row "$bytes" "$collective"
    done
  done
}

# sites_timed MODE MAP-BY COLLECTIVE BYTES: appends "COLLECTIVE US" to the samples of the mode
sites_timed() {
  timeout -k 5 120 "$causeway" run --host "$(hosts_list | awk '{ printf "%s%s:4", (NR > 1 ? "," : ""), $1 }')" \
    --map-by "$2" --launcher-args "-F $hosts_config" --wdir /tmp --no-log --collectives "$1" -n $SITES_RANKS \
    "$programs/collective_crossings" "$3" "$4" "$SITES_COUNT" 2>"$dir/stats" </dev/null >>"$dir/sites.$1" ||
    uncounted "$3 of $4 bytes, $1, between hosts"
}

sites_time() {
  local by bytes collective host mode
  title "The same between 3 hosts of 4 ranks, whose links have $SITES_RATE and delay each packet by $SITES_DELAY: ms a call"
  bench_hosts 3 "collectives between hosts" || return
  for host in 1 2 3; do
    host_slow "$host" "$SITES_RATE" "$SITES_DELAY" || {
      missing "collectives between hosts: no slow links here"
      return
    }
  done
  table l:ranks collective bytes "flat ms" "sites ms" "flat / sites"
  for by in slot node; do
    for bytes in $SITES_BYTES; do
      for collective in $SITES_COLLECTIVES; do
        rm -f "$dir"/sites.*
        for mode in flat sites flat sites flat sites; do
          sites_timed "$mode" "$by" "$collective" "$bytes"
        done
        awk -v f="$(median "$collective" "$dir/sites.flat")" -v s="$(median "$collective" "$dir/sites.sites")" \
          -v what="$([[ $by = slot ]] && echo blocks || echo in turn) | $collective | $bytes" \
          'BEGIN { printf "| %s | %.1f | %.1f | %.1f |\n", what, f / 1e3, s / 1e3, f / s }'
      done
    done
  done
  hosts_down
}

# shellcheck shell=bash
# What the samples say: medians, tables, figures and verdicts. netpipe.sh sources this.

# shellcheck disable=SC2154 # set by netpipe.sh, options.sh and measure.sh

medians_head=engine,log,clients,relays,bytes,runs,overall_mbps,sum_mbps,fairness,latency_us
OVERALL=7 # columns of medians.csv
FAIRNESS=9
LATENCY=10
colours=("#1f5fa0" "#c0392b" "#2e8b57" "#8e44ad" "#d98c1f" "#16a0a0" "#7f4f2a" "#d6559a")

write_medians() {
  medians=$results/medians.csv
  {
    echo "$medians_head"
    awk -F, '
      NR == 1 { next }
      { key = $1 "," $2 "," $3 "," $4 "," $6; n = ++count[key]
        for (i = 7; i <= 10; i++) value[key, i, n] = $i + 0 }
      # the lower one of the middle, as everywhere in the benchmarks
      function middle(key, column, n,   i, j, held, sorted) {
        for (i = 1; i <= n; i++) {
          held = value[key, column, i]
          for (j = i - 1; j > 0 && sorted[j] > held; j--) sorted[j + 1] = sorted[j]
          sorted[j + 1] = held
        }
        return sorted[int((n + 1) / 2)]
      }
      END { for (key in count) {
              n = count[key]; line = key "," n
              for (i = 7; i <= 10; i++) line = line "," sprintf("%.6g", middle(key, i, n))
              print line } }' "$samples" | sort -t, -k3,3n -k4,4n -k1,1 -k2,2r -k5,5n
  } >"$medians"
}

# A median, or nothing: value ENGINE LOG CLIENTS RELAYS BYTES COLUMN
value() {
  awk -F, -v key="$1,$2,$3,$4,$5" -v column="$6" '$1 "," $2 "," $3 "," $4 "," $5 == key { print $column }' \
    "$medians"
}

# 1, 64, 1K, 64K, 1M
size_name() {
  local bytes=$1 unit=
  for unit in '' K M; do
    ((bytes % 1024 || bytes == 0)) && break
    [ "$unit" = M ] || bytes=$((bytes / 1024))
  done
  echo "$bytes$unit"
}

# --- tables ---------------------------------------------------------------------------------------

series_name() {
  case $1 in
    stock) echo "stock MPICH" ;;
    tcp) echo "raw TCP" ;;
    *) [ "$2" = on ] && echo "$1, log" || echo "$1" ;;
  esac
}

# One row for each size, one column for each series: size_table CLIENTS COLUMN FORMAT
size_table() {
  local clients=$1 column=$2 engine log row=() size figure
  local -a series
  mapfile -t series < <(rows_of "$clients" | awk '$4 == 1 { print $1, $2 }')
  printf '| bytes |'
  for row in "${series[@]}"; do
    read -r engine log <<<"$row"
    printf ' %s |' "$(series_name "$engine" "$log")"
  done
  printf '\n|---:|%s\n' "$(printf -- '---:|%.0s' "${series[@]}")"
  for size in "${sizes[@]}"; do
    printf '| %d |' "$size"
    for row in "${series[@]}"; do
      read -r engine log <<<"$row"
      figure=$(value "$engine" "$log" "$clients" 1 "$size" "$column")
      # shellcheck disable=SC2059
      [ -n "$figure" ] && printf " $3 |" "$figure" || printf ' not measured |'
    done
    echo
  done
}

tables() {
  local clients
  for clients in "${counts[@]}"; do
    title "$clients clients: overall bandwidth, Mb/s (the slowest pair's times the number of pairs)"
    size_table "$clients" "$OVERALL" %.4g
    title "$clients clients: one way, microseconds (mean of all pairs)"
    size_table "$clients" "$LATENCY" %.2f
    ((clients > 2)) || continue
    title "$clients clients: fairness (the slowest pair's bandwidth by the fastest one's)"
    size_table "$clients" "$FAIRNESS" %.2f
  done
}

# --- figures --------------------------------------------------------------------------------------

# A series for gnuplot, from lines on standard input: its name and style are noted, if it has any line.
# add_series ENGINE LOG, appending to $dir/plot; sets names, styles, dashes
add_series() {
  local engine=$1 log=$2 i colour="#888888" lines
  lines=$(cat)
  [ -n "$lines" ] || return
  [ "$engine" = tcp ] && colour="#222222"
  for ((i = 0; i < ${#engines[@]}; i++)); do
    [ "${engines[i]}" = "$engine" ] && colour=${colours[i % ${#colours[@]}]}
  done
  names+=" \"$(series_name "$engine" "$log")\""
  styles+=" $colour"
  dashes+=" $([ "$log" = on ] && echo 2 || echo 1)"
  printf '%s\n\n\n' "$lines" >>"$dir/plot"
}

# tics LIST: for gnuplot, "1K" 1024, ...
tics() {
  local one list=
  for one in "$@"; do
    list+="\"$(size_name "$one")\" $one, "
  done
  echo "(${list%, })"
}

# draw FILE TITLE XLABEL TICS PANELS PANEL-TITLES: with what add_series noted. All panels but the last show
# bandwidth, the last one latency.
draw() {
  if [ -z "$names" ]; then
    echo "netpipe: nothing for figure-$1: not measured" >&2
    return
  fi
  gnuplot -e "data='$dir/plot'; base='$results/figure-$1'; main_title='$2'; x_title='$3'; panels=$5" \
    -e "panel_titles='$6'; names='$names'; styles='$styles'; dashes='$dashes'; set xtics $4" \
    netpipe/figures.gnuplot 2>"$dir/stats" || missing "figure-$1: gnuplot: $(tail -n 1 "$dir/stats")"
}

# [Relay] figures 4, 5 and 6
size_figure() {
  local clients=$1 names='' styles='' dashes='' engine log
  : >"$dir/plot"
  while read -r engine log; do
    awk -F, -v key="$engine,$log,$clients,1" '$1 "," $2 "," $3 "," $4 == key { print $5, $7, $10 }' "$medians" |
      { cat >"$dir/series"; }
    add_series "$engine" "$log" <"$dir/series"
  done < <(rows_of "$clients" | awk '$4 == 1 { print $1, $2 }')
  draw "$clients-clients" "$clients clients, one relay" "message size, bytes" "$(tics "${sizes[@]}")" 2 \
    '"bandwidth of all pairs" "one way, mean of all pairs"'
}

# The sizes whose bandwidth is shown against clients and relays
shown_sizes() {
  local found
  found=$(printf '%s\n' "${sizes[@]}" | grep -xE '1024|65536|1048576' | paste -sd ' ')
  echo "${found:-${sizes[-1]}}"
}

# A line of a series: x, bandwidths, latency of the smallest size; nothing when none is there.
# spot X ENGINE LOG CLIENTS RELAYS
spot() {
  local x=$1 size line=() any=0
  shift
  for size in $(shown_sizes); do
    line+=("$(value "$@" "$size" "$OVERALL")")
  done
  line+=("$(value "$@" "${sizes[0]}" "$LATENCY")")
  printf '%s' "${line[@]}" | grep -q . && any=1
  ((any)) && echo "$x" "${line[@]/#%/}" | awk -v n=$((${#line[@]} + 1)) 'NF == n'
}

panel_titles() {
  local size
  for size in $(shown_sizes); do
    printf '"bandwidth, %sB" ' "$(size_name "$size")"
  done
  printf '"one way, %sB"' "$(size_name "${sizes[0]}")"
}

# [Relay] figures 7 and 8
clients_figure() {
  local log=$1 names='' styles='' dashes='' engine clients
  : >"$dir/plot"
  for engine in "${engines[@]}" stock; do
    for clients in "${counts[@]}"; do
      spot "$clients" "$engine" "$log" "$clients" 1
    done >"$dir/series"
    add_series "$engine" "$log" <"$dir/series"
  done
  draw "log-$log" "All engines, log $log, one relay" "clients" "$(tics "${counts[@]}")" \
    "$(($(shown_sizes | wc -w) + 1))" "$(panel_titles)"
}

# [Relay] figure 9
relays_figure() {
  local names='' styles='' dashes='' engine count
  : >"$dir/plot"
  for engine in "${engines[@]}"; do
    for count in 1 "${relays[@]}"; do
      spot "$count" "$engine" "${logs[-1]}" "$most" "$count"
    done >"$dir/series"
    add_series "$engine" "${logs[-1]}" <"$dir/series"
  done
  draw relays "$most clients, log ${logs[-1]}, several relays" "relays" "$(tics 1 "${relays[@]}")" \
    "$(($(shown_sizes | wc -w) + 1))" "$(panel_titles)"
}

figures() {
  local it
  for it in "${shown[@]}"; do
    size_figure "$it"
  done
  for it in "${logs[@]}"; do
    clients_figure "$it"
  done
  ((several_relays)) && relays_figure
}

# --- verdicts -------------------------------------------------------------------------------------

# verdict TEXT A B [BOUND GOAL]: A by B, and what it should be
verdict() {
  local found="not measured" goal=
  [ -n "$2" ] && [ -n "$3" ] && found=$(ratio "$2" "$3")
  [ -n "${4:-}" ] && goal=" (goal: $4 $5)"
  echo "- $1: $found$goal"
}

has_size() {
  [[ " ${sizes[*]} " = *" $1 "* ]]
}

# The engine with the most, or the least (sort -g or -gr) of a column: best SORT LOG CLIENTS BYTES COLUMN
best() {
  local engine figure
  for engine in "${engines[@]}"; do
    figure=$(value "$engine" "$2" "$3" 1 "$4" "$5")
    [ -n "$figure" ] && echo "$figure $engine"
  done | sort "$1" | tail -n 1 | cut -d ' ' -f 2
}

engine_verdicts() {
  local size log engine first
  for size in 65536 1048576; do
    has_size "$size" || continue
    for log in "${logs[@]}"; do
      first=$(best -g "$log" "$most" "$size" "$OVERALL")
      for engine in "${engines[@]}"; do
        verdict "$most clients, $(size_name "$size")B, log $log: bandwidth of $engine by the best engine's (${first:-none})" \
          "$(value "$engine" "$log" "$most" 1 "$size" "$OVERALL")" \
          "$(value "${first:-none}" "$log" "$most" 1 "$size" "$OVERALL")" "at least" 0.7
        ((most > 2)) || continue
        verdict "$most clients, $(size_name "$size")B, log $log: fairness of $engine" \
          "$(value "$engine" "$log" "$most" 1 "$size" "$FAIRNESS")" 1 "at least" 0.6
      done
    done
  done
}

stock_verdicts() {
  local first
  [ "${counts[0]}" = 2 ] && [ "${logs[-1]}" = off ] || return
  if has_size 1; then
    first=$(best -gr off 2 1 "$LATENCY")
    verdict "2 clients, 1B, log off: one way of the best engine (${first:-none}) by stock's" \
      "$(value "${first:-none}" off 2 1 1 "$LATENCY")" "$(value stock off 2 1 1 "$LATENCY")" "at most" 1.2
  fi
  if has_size 1048576; then
    first=$(best -g off 2 1048576 "$OVERALL")
    verdict "2 clients, 1MB, log off: bandwidth of the best engine (${first:-none}) by stock's" \
      "$(value "${first:-none}" off 2 1 1048576 "$OVERALL")" "$(value stock off 2 1 1048576 "$OVERALL")" \
      "at least" 1.3
  fi
}

log_verdicts() {
  local engine clients size
  ((${#logs[@]} == 2)) || return
  for engine in "${engines[@]}"; do
    for clients in "${shown[@]}"; do
      has_size 1 && verdict "$engine, $clients clients, 1B: one way with the log by that without" \
        "$(value "$engine" on "$clients" 1 1 "$LATENCY")" "$(value "$engine" off "$clients" 1 1 "$LATENCY")" \
        "at most" 1.10
      for size in 65536 1048576; do
        has_size "$size" || continue
        verdict "$engine, $clients clients, $(size_name "$size")B: bandwidth with the log by that without" \
          "$(value "$engine" on "$clients" 1 "$size" "$OVERALL")" \
          "$(value "$engine" off "$clients" 1 "$size" "$OVERALL")" "at least" 0.90
      done
    done
  done
}

relay_verdicts() {
  local engine size count log=${logs[-1]}
  ((several_relays)) || { echo "- several relays: not measured; causeway run knows no --relays" && return; }
  for engine in "${engines[@]}"; do
    for count in "${relays[@]}"; do
      for size in $(shown_sizes); do
        verdict "$engine, $most clients, $(size_name "$size")B, log $log: bandwidth of $count relays by that of 1" \
          "$(value "$engine" "$log" "$most" "$count" "$size" "$OVERALL")" \
          "$(value "$engine" "$log" "$most" 1 "$size" "$OVERALL")"
      done
    done
  done
}

verdicts() {
  title "Verdicts"
  engine_verdicts
  stock_verdicts
  log_verdicts
  relay_verdicts
}

# --- the whole ------------------------------------------------------------------------------------

# Engines that gave nothing; stock MPICH may well not end, and is not asked for.
note_missing() {
  local row engine log clients count
  plan | cut -d ' ' -f 2- | sort -u >"$dir/planned"
  while read -r engine log clients count; do
    row=$(value "$engine" "$log" "$clients" "$count" "${sizes[0]}" "$OVERALL")
    [ -n "$row" ] && continue
    echo "- not measured: $(describe "$engine" "$log" "$clients" "$count")" >>"$dir/uncounted"
    [ "$engine" = stock ] || touch "$dir/missing"
  done <"$dir/planned"
}

introduction() {
  echo "# Comparison of relay engines"
  echo
  echo "Made by \`make netpipe\` on $(nproc) cores of $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo),"
  echo "Linux $(uname -r); medians of $repetitions interleaved runs. 2 clients: Debian's NPmpich2, and NPtcp for raw"
  echo "TCP; more: all pairs at once, rank i with rank N - 1 - i. Stock is the same MPICH over TCP; it spins, so"
  echo "with more ranks than cores it may not end in $stock_limit s. A size takes about $seconds s and moves at most"
  echo "$((volume >> 20)) MiB in a run, with the log and without."
  ((interrupted)) && printf '\n**Interrupted: not all runs were made.**\n'
}

report() {
  write_medians
  note_missing
  figures
  {
    introduction
    tables
    verdicts
    if [ -e "$dir/uncounted" ]; then
      title "What does not count, and why"
      sort -u "$dir/uncounted"
    fi
  } >"$results/comparison.md" || return
  sed -n '/^## Verdicts/,$p' "$results/comparison.md"
  echo "netpipe: samples, medians, tables and figures are in $results" >&2
}

# shellcheck shell=bash
# What the samples say: medians, tables, figures and verdicts. netpipe.sh sources this.

# shellcheck disable=SC2154 # set by netpipe.sh, options.sh and measure.sh

medians_head=engine,log,clients,relays,bytes,runs,overall_mbps,sum_mbps,fairness,latency_us
OVERALL=7 # columns of medians.csv, and of samples.csv
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

declare -A median_of=()
read_medians() {
  local engine log clients relays bytes overall fairness latency key
  while IFS=, read -r engine log clients relays bytes _ overall _ fairness latency; do
    key=$engine,$log,$clients,$relays,$bytes
    median_of[$key,$OVERALL]=$overall
    median_of[$key,$FAIRNESS]=$fairness
    median_of[$key,$LATENCY]=$latency
  done <"$medians"
}

# A median, or nothing: value ENGINE LOG CLIENTS RELAYS BYTES COLUMN
value() {
  echo "${median_of[$1,$2,$3,$4,$5,$6]-}"
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

# A figure as a cell: some three digits, and no exponent
cell() {
  local whole digits=3
  if [ -z "$1" ]; then
    printf ' not measured |'
    return
  fi
  printf -v whole %.0f "$1"
  if ((whole >= 100)); then
    digits=0
  elif ((whole >= 10)); then
    digits=1
  fi
  printf " %.${digits}f |" "$1"
}

# One row for each size, one column for each series: size_table CLIENTS COLUMN
size_table() {
  local clients=$1 column=$2 engine log row size
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
      cell "$(value "$engine" "$log" "$clients" 1 "$size" "$column")"
    done
    echo
  done
}

tables() {
  local clients
  for clients in "${counts[@]}"; do
    title "$clients clients: overall bandwidth, Mb/s (the slowest pair's times the number of pairs)"
    size_table "$clients" "$OVERALL"
    title "$clients clients: one way, microseconds (mean of all pairs)"
    size_table "$clients" "$LATENCY"
    ((clients > 2)) || continue
    title "$clients clients: fairness (the slowest pair's bandwidth by the fastest one's)"
    size_table "$clients" "$FAIRNESS"
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

# For each panel whether it has a value: 1 or 0
measured_panels() {
  awk -v panels="$1" '{ for (i = 1; i <= panels; i++) if (NF > i && $(i + 1) != "?") any[i] = 1 }
    END { for (i = 1; i <= panels; i++) printf "%d ", any[i] }' "$dir/plot"
}

# draw FILE TITLE XLABEL TICS PANELS PANEL-TITLES: with what add_series noted. All panels but the last show
# bandwidth, the last one latency.
draw() {
  if [ -z "$names" ]; then
    echo "netpipe: nothing for figure-$1: not measured" >&2
    return
  fi
  gnuplot -e "data='$dir/plot'; base='$results/figure-$1'; main_title='$2'; x_title='$3'; panels=$5" \
    -e "panel_titles='$6'; measured='$(measured_panels "$5")'; names='$names'; styles='$styles'; dashes='$dashes'; set xtics $4" \
    netpipe/figures.gnuplot 2>"$dir/stats" || missing "figure-$1: gnuplot: $(grep . "$dir/stats" | tail -n 1)"
}

# [Relay] figures 4, 5 and 6
size_figure() {
  local clients=$1 names='' styles='' dashes='' engine log
  : >"$dir/plot"
  while read -r engine log; do
    awk -F, -v key="$engine,$log,$clients,1" '$1 "," $2 "," $3 "," $4 == key { print $5, $7, $10 }' "$medians" >"$dir/series"
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

# A line of a series: x, bandwidths, latency of the smallest size, with ? for what is not there; nothing when
# nothing is there. spot X ENGINE LOG CLIENTS RELAYS
spot() {
  local x=$1 size figure line=''
  shift
  for size in $(shown_sizes); do
    figure=$(value "$@" "$size" "$OVERALL")
    line+=" ${figure:-?}"
  done
  figure=$(value "$@" "${sizes[0]}" "$LATENCY")
  line+=" ${figure:-?}"
  [ -z "${line//[ ?]/}" ] || echo "$x$line"
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

# A by B
share() {
  if [ -n "$1" ] && [ -n "$2" ]; then
    ratio "$1" "$2"
  else
    printf 'not measured'
  fi
}

# verdict ENGINES TEXT GOAL COMMAND...: for each one of the array ENGINES what COMMAND, given the engine last,
# prints
verdict() {
  local -n asked=$1
  local text=$2 goal=$3 engine list='' any=0 found
  shift 3
  for engine in "${asked[@]}"; do
    found=$("$@" "$engine")
    list+="$engine $found, "
    [[ $found = *measured* ]] || any=1
  done
  ((any)) || list="not measured"
  echo "- $text: ${list%, }${goal:+ (goal: $goal)}"
}

has_size() {
  [[ " ${sizes[*]} " = *" $1 "* ]]
}

# The one of the array ENGINES with the highest (-g) or lowest (-gr) of a column:
# best ENGINES SORT LOG CLIENTS BYTES COLUMN
best() {
  local -n asked=$1
  local engine figure
  for engine in "${asked[@]}"; do
    figure=$(value "$engine" "$3" "$4" 1 "$5" "$6")
    [ -n "$figure" ] && echo "$figure $engine"
  done | sort "$2" | tail -n 1 | cut -d ' ' -f 2
}

by_best() {
  local log=$1 size=$2 first=$3 engine=$4
  share "$(value "$engine" "$log" "$most" 1 "$size" "$OVERALL")" \
    "$(value "$first" "$log" "$most" 1 "$size" "$OVERALL")"
}

fairness() {
  local log=$1 size=$2 engine=$3
  share "$(value "$engine" "$log" "$most" 1 "$size" "$FAIRNESS")" 1
}

# The engines over sockets among themselves, and the best of them beside rings: bandwidth_verdicts LOG SIZE
bandwidth_verdicts() {
  local log=$1 size=$2 where first
  where="$most clients, $(size_name "$size")B, log $log"
  ((${#over_sockets[@]})) || return
  first=$(best over_sockets -g "$log" "$most" "$size" "$OVERALL")
  verdict over_sockets "$where, bandwidth by the best engine's" "at least 0.7" by_best "$log" "$size" "${first:-none}"
  [[ " ${engines[*]} " = *" $RINGS "* ]] || return
  echo "- $where, bandwidth of the best engine by that of $RINGS: ${first:+$first }$(
    by_best "$log" "$size" "$RINGS" "${first:-none}")"
}

engine_verdicts() {
  local size log
  for size in 65536 1048576; do
    has_size "$size" || continue
    for log in "${logs[@]}"; do
      bandwidth_verdicts "$log" "$size"
      ((most == 2)) || verdict engines "$most clients, $(size_name "$size")B, log $log, fairness" "at least 0.6" \
        fairness "$log" "$size"
    done
  done
}

# by_stock SORT SIZE COLUMN TEXT GOAL
by_stock() {
  local first
  has_size "$2" || return
  first=$(best engines "$1" off 2 "$2" "$3")
  echo "- 2 clients, $(size_name "$2")B, log off, $4 of the best of all by stock's: ${first:+$first }$(
    share "$(value "${first:-none}" off 2 1 "$2" "$3")" "$(value stock off 2 1 "$2" "$3")") (goal: $5)"
}

stock_verdicts() {
  [ "${counts[0]}" = 2 ] && [ "${logs[-1]}" = off ] || return
  by_stock -gr 1 "$LATENCY" "one way" "at most 1.2"
  by_stock -g 1048576 "$OVERALL" bandwidth "at least 1.3"
}

# The runs with and without the log that follow each other find the machine in the same state more often than
# others: the median of their ratios, with its spread.
log_cost() {
  local clients=$1 size=$2 column=$3 engine=$4
  awk -F, -v what="$engine,$clients,1,$size" -v column="$column" '
    $1 "," $3 "," $4 "," $6 == what { if ($2 == "on") on[$5] = $column; else off[$5] = $column }
    END { for (i in on) if (i in off) print "ratio", on[i] / off[i] }' "$samples" >"$dir/ratios"
  if [ -s "$dir/ratios" ]; then
    spread ratio "$dir/ratios" 2
  else
    printf 'not measured'
  fi
}

log_verdicts() {
  local clients size
  ((${#logs[@]} == 2)) || return
  for clients in "${shown[@]}"; do
    has_size 1 && verdict engines "$clients clients, 1B, one way with the log by that without" "at most 1.10" \
      log_cost "$clients" 1 "$LATENCY"
    for size in 65536 1048576; do
      has_size "$size" || continue
      verdict engines "$clients clients, $(size_name "$size")B, bandwidth with the log by that without" "at least 0.90" \
        log_cost "$clients" "$size" "$OVERALL"
    done
  done
}

relay_gain() {
  local count=$1 size=$2 engine=$3
  share "$(value "$engine" "${logs[-1]}" "$most" "$count" "$size" "$OVERALL")" \
    "$(value "$engine" "${logs[-1]}" "$most" 1 "$size" "$OVERALL")"
}

relay_verdicts() {
  local size count
  ((several_relays)) || { echo "- several relays: not measured; causeway run knows no --relays" && return; }
  for count in "${relays[@]}"; do
    for size in $(shown_sizes); do
      verdict engines "$most clients, $(size_name "$size")B, log ${logs[-1]}, bandwidth of $count relays by that of 1" '' \
        relay_gain "$count" "$size"
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
  echo "TCP; more: all pairs at once, rank i with rank N - 1 - i, bound to the cores in turn. Stock is the same"
  echo "MPICH over TCP; it spins, so with more ranks than cores it may not end in $stock_limit s. A size takes about"
  echo "$seconds s and moves at most $((volume >> 20)) MiB in a run; with more than 16 clients it takes longer and moves"
  echo "more in proportion. Figures with the log by those without are of the same repetition: the median of these"
  echo "ratios, the lowest and the highest."
  echo
  echo "rings: engine poll with memory shared with each rank; the engines: over sockets."
  ((interrupted)) && printf '\n**Interrupted: not all runs were made.**\n'
}

report() {
  write_medians
  read_medians
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

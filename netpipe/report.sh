# shellcheck shell=bash
# Writes medians, tables and figures of the samples: netpipe.sh sources this. Medians and tables are report.awk's.

# shellcheck disable=SC2154 # set by netpipe.sh, options.sh and measure.sh

medians_head=engine,log,clients,relays,bytes,runs,overall_mbps,sum_mbps,fairness,latency_us

evaluate() {
  plan | cut -d ' ' -f 2- | awk '!seen[$0]++' | sort -s -k3,3n -k4,4n >"$dir/planned"
  awk -f tests/bench/statistics.awk -f netpipe/report.awk -v out="$dir" -v sizes="${sizes[*]}" "$dir/planned" \
    "$samples" || return
  {
    echo "$medians_head"
    [ ! -e "$dir/medians" ] || sort -t, -k3,3n -k4,4n -k1,1 -k2,2r -k5,5n "$dir/medians"
  } >"$results/medians.csv"
}

# A panel for each CONDITION on the medians, in awk, over their column X, with a line for each series; the first ones show
# bandwidth, the last one latency: figure NAME X "X TITLE" CONDITION...
figure() {
  local name=$1 x=$2 x_title=$3 condition column=7 title engine log
  shift 3
  for condition; do
    (($# > 1)) || column=10
    shift
    awk -F, "{ log_ = \$2; clients = \$3; relays = \$4; bytes = \$5 } NR > 1 && ($condition)" "$results/medians.csv" |
      sort -t, -k"$x,${x}n" >"$dir/panel.$#"
    [ -s "$dir/panel.$#" ] || continue
    title=$(sed 's/_\|==\|"//g; s/ &&/,/g' <<<"$condition")
    echo "set title '$title'; set xlabel '$x_title'; set ylabel '$([ $column = 7 ] && echo Mb/s || echo microseconds)'"
    echo -n "plot "
    cut -d, -f 1,2 "$dir/panel.$#" | sort -u | while IFS=, read -r engine log; do
      echo -n "'< grep \"^$engine,$log,\" $dir/panel.$#' using $x:$column with linespoints title '$engine, log $log', "
    done
    echo "NaN notitle"
  done >"$dir/panels"
  if ! [ -s "$dir/panels" ]; then
    echo "netpipe: nothing for figure-$name: not measured" >&2
  elif ! gnuplot -e "set output '$results/figure-$name.svg'" netpipe/figures.gnuplot "$dir/panels" 2>"$dir/stats" </dev/null; then
    missing "figure-$name: gnuplot: $(grep . "$dir/stats" | tail -n 1)"
  fi
}

# [Relay] figures 4 to 9
draw_all() {
  local one least="bytes == ${sizes[0]}" largest="bytes == ${sizes[-1]}" relays="clients == $most && log_ == \"${logs[-1]}\""
  for one in "${shown[@]}"; do
    figure "$one-clients" 5 bytes "clients == $one && relays == 1" "clients == $one && relays == 1"
  done
  for one in "${logs[@]}"; do
    figure "log-$one" 3 clients "log_ == \"$one\" && relays == 1 && $largest" "log_ == \"$one\" && relays == 1 && $least"
  done
  ((!several_relays)) || figure relays 4 relays "$relays && $largest" "$relays && $least"
}

introduction() {
  echo "# Comparison of relay engines"
  echo
  echo "Made by \`make netpipe\` on $(nproc) cores of $(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo),"
  echo "Linux $(uname -r); medians of $repetitions interleaved runs. 2 clients: Debian's NPmpich2, and NPtcp for raw"
  echo "TCP; more: all pairs at once, rank i with rank N - 1 - i, bound to the cores in turn. Stock is the same"
  echo "MPICH over TCP; it spins, so with more ranks than cores it may not end in $stock_limit s. A size takes about"
  echo "$seconds s and moves at most $((volume >> 20)) MiB in a run; with more than 16 clients it takes longer and moves"
  echo "more in proportion."
  echo
  echo "rings: engine poll with memory shared with each rank; the engines: over sockets."
  ((interrupted)) && printf '\n**Interrupted: not all runs were made.**\n'
}

report() {
  evaluate || return
  draw_all
  {
    introduction
    cat "$dir/tables"
    if [ -e "$dir/uncounted" ]; then
      title "What does not count, and why"
      sort -u "$dir/uncounted"
    fi
  } >"$results/comparison.md" || return
  cat "$dir/tables"
  echo "netpipe: samples, medians, tables and figures are in $results" >&2
}

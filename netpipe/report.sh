# shellcheck shell=bash
# Writes medians, tables, figures and verdicts of the samples: netpipe.sh sources this. What they say is worked out by
# report.awk.

# shellcheck disable=SC2154 # set by netpipe.sh, options.sh and measure.sh

medians_head=engine,log,clients,relays,bytes,runs,overall_mbps,sum_mbps,fairness,latency_us

evaluate() {
  plan | cut -d ' ' -f 2- | sort -u >"$dir/planned"
  awk -f tests/bench/statistics.awk -f netpipe/report.awk -v out="$dir" -v engines="${engines[*]}" \
    -v logs="${logs[*]}" -v sizes="${sizes[*]}" -v counts="${counts[*]}" -v relays="${relays[*]}" \
    -v shown="${shown[*]}" -v several_relays="$several_relays" -v rings="$RINGS" "$dir/planned" "$samples" || return
  {
    echo "$medians_head"
    [ ! -e "$dir/medians" ] || sort -t, -k3,3n -k4,4n -k1,1 -k2,2r -k5,5n "$dir/medians"
  } >"$results/medians.csv"
}

# A figure for each line of plans: all panels but the last show bandwidth, the last one latency.
draw_all() {
  local figure main_title x_title tics panels panel_titles measured names styles dashes
  while IFS=$'\t' read -r figure main_title x_title tics panels panel_titles measured names styles dashes; do
    if [ -z "$names" ]; then
      echo "netpipe: nothing for figure-$figure: not measured" >&2
      continue
    fi
    gnuplot -e "data='$dir/plot.$figure'; base='$results/figure-$figure'; main_title='$main_title'; x_title='$x_title'" \
      -e "panels=$panels; panel_titles='$panel_titles'; measured='$measured'; names='$names'; styles='$styles'" \
      -e "dashes='$dashes'; set xtics $tics" netpipe/figures.gnuplot 2>"$dir/stats" </dev/null ||
      missing "figure-$figure: gnuplot: $(grep . "$dir/stats" | tail -n 1)"
  done <"$dir/plans"
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
  sed -n '/^## Verdicts/,$p' "$results/comparison.md"
  echo "netpipe: samples, medians, tables and figures are in $results" >&2
}

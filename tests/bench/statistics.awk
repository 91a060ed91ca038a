# What samples say: the statistics of the benchmarks and of the comparison of engines (netpipe/).
#
#   awk -f statistics.awk -v key=KEY -v print_as=KIND [-v digits=N] FILE
#
# A line of FILE is "KEY NUMBER", or "KEY -" for a run that ended badly. KIND: median, lowest, highest; fixed, the
# median with so many digits; spread, which is
# "MEDIAN (LOWEST to HIGHEST)"; quartiles, "MEDIAN (LOWER to UPPER)"; count. Without a sample it prints nothing, and
# ends with code 1. The median of an even number of samples is the lower one of the two in the middle.
#
# Another program that comes after it (awk -f statistics.awk -f ...) sets no print_as and uses the functions.

function stats_add(name, number) {
  stats_value[name, ++stats_count[name]] = number
  stats_sorted[name] = 0
}

# By insertion: there are some dozens of samples.
function stats_sort(name,   i, j, held) {
  if (stats_sorted[name]) return
  for (i = 2; i <= stats_count[name]; i++) {
    held = stats_value[name, i]
    for (j = i - 1; j > 0 && stats_value[name, j] > held; j--) stats_value[name, j + 1] = stats_value[name, j]
    stats_value[name, j + 1] = held
  }
  stats_sorted[name] = 1
}

# The sample so far in the sorted ones: 0 the lowest, 0.5 the median, 1 the highest; "" when there is none
function stats_at(name, part) {
  if (!stats_count[name]) return ""
  stats_sort(name)
  return stats_value[name, int((stats_count[name] - 1) * part) + 1]
}

function stats_range(name, low, high, digits) {
  return sprintf("%.*f (%.*f to %.*f)", digits, stats_at(name, 0.5), digits, stats_at(name, low),
    digits, stats_at(name, high))
}

print_as != "" && $1 == key && $2 != "-" { stats_add(key, $2) }

END {
  if (print_as != "") {
    if (print_as == "count") print stats_count[key] + 0
    if (!stats_count[key]) exit 1
    if (print_as == "median") print stats_at(key, 0.5)
    if (print_as == "lowest") print stats_at(key, 0)
    if (print_as == "highest") print stats_at(key, 1)
    if (print_as == "fixed") printf "%.*f", digits, stats_at(key, 0.5)
    if (print_as == "spread") printf "%s", stats_range(key, 0, 1, digits)
    if (print_as == "quartiles") printf "%s", stats_range(key, 0.25, 0.75, digits)
  }
}

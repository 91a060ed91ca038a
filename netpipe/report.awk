# What the samples of a comparison say; report.sh calls this with tests/bench/statistics.awk before it, and two
# files: the runs that were planned, lines "ENGINE LOG CLIENTS RELAYS", then samples.csv.
#
# Variables: sizes (a list with spaces between), out, a directory, into which it writes
#   medians    the lines of medians.csv, not sorted
#   tables     in markdown
#   uncounted  a line for each planned run without a sample; "missing" is made when one of them is no stock MPICH

BEGIN {
  FS = "[ ,]"
  size_count = split(sizes, size_list, " ")
  OVERALL = 7; LATENCY = 10 # the columns of the samples that are figures
  split("overall bandwidth, Mb/s (the slowest pair's times the number of pairs)|bandwidth of all pairs, Mb/s|" \
    "fairness (the slowest pair's bandwidth by the fastest one's)|one way, microseconds (mean of all pairs)", titles, "|")
}

FILENAME != file { file = FILENAME; ++files }
files == 1 {
  runs[++run_count] = $1 "," $2 "," $3 "," $4
  group = $3 "," $4
  if (!(group in series_count)) groups[++group_count] = group
  series[group, ++series_count[group]] = $1 "," $2
  next
}
FNR == 1 { next }
{
  key = $1 "," $2 "," $3 "," $4 "," $6
  keys[key] = 1
  for (i = OVERALL; i <= LATENCY; i++) stats_add(key "," i, $i)
}

function write_medians(   key, i, line) {
  for (key in keys) {
    line = key "," stats_count[key "," OVERALL]
    for (i = OVERALL; i <= LATENCY; i++) line = line "," sprintf("%.6g", stats_at(key "," i, 0.5))
    print line >(out "/medians")
  }
}

# A figure as a cell: some three digits, and no exponent
function cell(figure,   whole) {
  if (figure == "") return " not measured |"
  whole = sprintf("%.0f", figure) + 0
  return sprintf(" %.*f |", whole >= 100 ? 0 : whole >= 10 ? 1 : 3, figure)
}

function name_of(key,   part) {
  split(key, part, ",")
  return (part[1] == "stock" ? "stock MPICH" : part[1] == "tcp" ? "raw TCP" : part[1]) (part[2] == "on" ? ", log" : "")
}

# A row for each size, a column for each series
function write_table(group, column,   part, i, j, n, line) {
  split(group, part, ",")
  n = series_count[group]
  line = "\n## " part[1] " clients" (part[2] == 1 ? "" : ", " part[2] " relays") ": " titles[column - OVERALL + 1] "\n\n| bytes |"
  for (i = 1; i <= n; i++) line = line " " name_of(series[group, i]) " |"
  line = line "\n|---:|"
  for (i = 1; i <= n; i++) line = line "---:|"
  for (j = 1; j <= size_count; j++) {
    line = line "\n| " size_list[j] " |"
    for (i = 1; i <= n; i++) line = line cell(stats_at(series[group, i] "," group "," size_list[j] "," column, 0.5))
  }
  print line >(out "/tables")
}

# Stock MPICH may well not end, and is not asked for.
function note_missing(   i, part) {
  for (i = 1; i <= run_count; i++) {
    if (stats_count[runs[i] "," size_list[1] "," OVERALL]) continue
    split(runs[i], part, ",")
    print "- not measured: " part[1] ", log " part[2] ", " part[3] " clients" \
      (part[4] == 1 ? "" : ", " part[4] " relays") >>(out "/uncounted")
    if (part[1] != "stock") printf "" >(out "/missing")
  }
}

END {
  write_medians()
  note_missing()
  for (i = 1; i <= group_count; i++)
    for (column = OVERALL; column <= LATENCY; column++)
      if (column == OVERALL || column == LATENCY || groups[i] !~ /^2,/) write_table(groups[i], column)
}

# What the samples of a comparison say; report.sh calls this with tests/bench/statistics.awk before it, and two
# files: the runs that were planned, lines "ENGINE LOG CLIENTS RELAYS", then samples.csv.
#
# Variables: engines, logs, sizes, counts, relays, shown (lists with spaces between), several_relays, rings (the name
# of the engine poll with shared memory), head (of medians.csv). It writes, into the directory out:
#   medians    the lines of medians.csv, not sorted
#   tables     and verdicts, in markdown
#   plans      for each figure a line for draw of report.sh, its fields separated by tabs; its data is in plot.NAME
#   uncounted  a line for each planned run without a sample; "missing" is made when one of them is no stock MPICH

BEGIN {
  FS = "[ ,]"
  engine_count = split(engines, engine_list, " ")
  log_count = split(logs, log_list, " ")
  size_count = split(sizes, size_list, " ")
  count_count = split(counts, count_list, " ")
  relay_count = several_relays ? split(relays, relay_list, " ") : 0
  shown_count = split(shown, shown_list, " ")
  most = count_list[count_count]
  colour_count = split("#1f5fa0 #c0392b #2e8b57 #8e44ad #d98c1f #16a0a0 #7f4f2a #d6559a", colours, " ")
  OVERALL = 7; FAIRNESS = 9; LATENCY = 10 # columns of the samples
  wanted_count = split("1024 65536 1048576", wanted, " ")
  for (i = 1; i <= wanted_count; i++)
    if (has_size(wanted[i])) plot_sizes[++plot_size_count] = wanted[i]
  if (!plot_size_count) plot_sizes[++plot_size_count] = size_list[size_count]
}

FILENAME != file { file = FILENAME; ++files }
files == 1 { planned[++planned_count] = $0; next }
FNR == 1 { next }
{
  key = $1 "," $2 "," $3 "," $4
  if (!((key, $6) in seen)) {
    seen[key, $6] = 1
    bytes_of[key] = bytes_of[key] " " $6
  }
  for (i = OVERALL; i <= LATENCY; i++) {
    stats_add(key "," $6 "," i, $i)
    sample[key, $6, i, $5] = $i
  }
  if ($5 > repetitions) repetitions = $5
}

# --- figures of a run -------------------------------------------------------------------------------

# A median to six digits, or "": value ENGINE LOG CLIENTS RELAYS BYTES COLUMN
function value(engine, log_, clients, relays_, bytes, column,   name) {
  name = engine "," log_ "," clients "," relays_ "," bytes "," column
  return stats_count[name] ? sprintf("%.6g", stats_at(name, 0.5)) : ""
}

function share(a, b) {
  if (a == "" || b == "") return "not measured"
  return b + 0 > 0 ? sprintf("%.2f", a / b) : "?"
}

function has_size(bytes) {
  return index(" " sizes " ", " " bytes " ") > 0
}

# 1, 64, 1K, 64K, 1M
function size_name(bytes) {
  if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 "M"
  return bytes >= 1024 && bytes % 1024 == 0 ? bytes / 1024 "K" : bytes
}

function title(text) {
  return "\n## " text "\n\n"
}

function series_name(engine, log_) {
  if (engine == "stock") return "stock MPICH"
  if (engine == "tcp") return "raw TCP"
  return log_ == "on" ? engine ", log" : engine
}

# Fills the arrays of a figure's or table's series with so many clients at one relay; returns their number
function series_of(clients,   n, i, j) {
  for (i = 1; i <= engine_count; i++)
    for (j = 1; j <= log_count; j++) {
      series_engine[++n] = engine_list[i]
      series_log[n] = log_list[j]
    }
  series_engine[++n] = "stock"
  series_log[n] = "off"
  if (clients == 2) {
    series_engine[++n] = "tcp"
    series_log[n] = "off"
  }
  return n
}

function write_medians(   key, n, i, all, column, line) {
  for (key in bytes_of) {
    n = split(bytes_of[key], all, " ")
    for (i = 1; i <= n; i++) {
      line = key "," all[i] "," stats_count[key "," all[i] "," OVERALL]
      for (column = OVERALL; column <= LATENCY; column++)
        line = line "," sprintf("%.6g", stats_at(key "," all[i] "," column, 0.5))
      print line >(out "/medians")
    }
  }
}

# --- tables -----------------------------------------------------------------------------------------

# A figure as a cell: some three digits, and no exponent
function cell(figure,   whole) {
  if (figure == "") return " not measured |"
  whole = sprintf("%.0f", figure) + 0
  return sprintf(" %.*f |", whole >= 100 ? 0 : whole >= 10 ? 1 : 3, figure)
}

# A row for each size, a column for each series
function table(clients, column,   n, i, j, text, line) {
  n = series_of(clients)
  text = "| bytes |"
  line = "|---:|"
  for (i = 1; i <= n; i++) {
    text = text " " series_name(series_engine[i], series_log[i]) " |"
    line = line "---:|"
  }
  text = text "\n" line "\n"
  for (j = 1; j <= size_count; j++) {
    text = text "| " size_list[j] " |"
    for (i = 1; i <= n; i++)
      text = text cell(value(series_engine[i], series_log[i], clients, 1, size_list[j], column))
    text = text "\n"
  }
  return text
}

function tables(   i, clients, text) {
  for (i = 1; i <= count_count; i++) {
    clients = count_list[i]
    text = text title(clients " clients: overall bandwidth, Mb/s (the slowest pair's times the number of pairs)") \
      table(clients, OVERALL) title(clients " clients: one way, microseconds (mean of all pairs)") \
      table(clients, LATENCY)
    if (clients > 2)
      text = text title(clients " clients: fairness (the slowest pair's bandwidth by the fastest one's)") \
        table(clients, FAIRNESS)
  }
  return text
}

# --- figures ----------------------------------------------------------------------------------------

function begin_figure(name) {
  figure = name
  plot = out "/plot." name
  printf "" >plot
  names = styles = dashes = measured = ""
  split("", has_panel)
}

# A series of lines "X VALUE..." for gnuplot, if it has any
function add_series(engine, log_, lines,   i, n, all, part, colour) {
  if (lines == "") return
  colour = engine == "tcp" ? "#222222" : "#888888"
  for (i = 1; i <= engine_count; i++)
    if (engine_list[i] == engine) colour = colours[(i - 1) % colour_count + 1]
  names = names " \"" series_name(engine, log_) "\""
  styles = styles " " colour
  dashes = dashes " " (log_ == "on" ? 2 : 1)
  print lines "\n" >plot
  print "" >plot
  n = split(lines, all, "\n")
  while (n) {
    for (i = split(all[n--], part, " "); i > 1; i--)
      if (part[i] != "?") has_panel[i - 1] = 1
  }
}

function tics(count, list,   i, text) {
  for (i = 1; i <= count; i++) text = text (i > 1 ? ", " : "") "\"" size_name(list[i]) "\" " list[i]
  return "(" text ")"
}

function end_figure(main_title, x_title, x_tics, panels, panel_titles,   i) {
  close(plot)
  for (i = 1; i <= panels; i++) measured = measured (has_panel[i] ? 1 : 0) " "
  print figure "\t" main_title "\t" x_title "\t" x_tics "\t" panels "\t" panel_titles "\t" measured "\t" names "\t" \
    styles "\t" dashes >(out "/plans")
}

# Lines "BYTES BANDWIDTH LATENCY" of all that was measured, perturbed sizes too
function size_lines(key,   n, i, j, held, all, text) {
  n = split(bytes_of[key], all, " ")
  for (i = 2; i <= n; i++) {
    held = all[i]
    for (j = i - 1; j > 0 && all[j] + 0 > held + 0; j--) all[j + 1] = all[j]
    all[j + 1] = held
  }
  for (i = 1; i <= n; i++)
    text = text (i > 1 ? "\n" : "") all[i] " " sprintf("%.6g %.6g", stats_at(key "," all[i] "," OVERALL, 0.5),
      stats_at(key "," all[i] "," LATENCY, 0.5))
  return text
}

# [Relay] figures 4, 5 and 6
function size_figure(clients,   n, i) {
  begin_figure(clients "-clients")
  n = series_of(clients)
  for (i = 1; i <= n; i++)
    add_series(series_engine[i], series_log[i], size_lines(series_engine[i] "," series_log[i] "," clients ",1"))
  end_figure(clients " clients, one relay", "message size, bytes", tics(size_count, size_list), 2,
    "\"bandwidth of all pairs\" \"one way, mean of all pairs\"")
}

# "X BANDWIDTH... LATENCY" with ? for what is not there, or "" when nothing is: bandwidths of the sizes that are
# shown, latency of the smallest size
function spot(x, engine, log_, clients, relays_,   i, found, text, any) {
  for (i = 1; i <= plot_size_count + 1; i++) {
    found = i <= plot_size_count ? value(engine, log_, clients, relays_, plot_sizes[i], OVERALL) : \
      value(engine, log_, clients, relays_, size_list[1], LATENCY)
    text = text " " (found == "" ? "?" : found)
    if (found != "") any = 1
  }
  return any ? x text : ""
}

function panel_titles(   i, text) {
  for (i = 1; i <= plot_size_count; i++) text = text "\"bandwidth, " size_name(plot_sizes[i]) "B\" "
  return text "\"one way, " size_name(size_list[1]) "B\""
}

function joined(lines, line) {
  return lines (lines != "" && line != "" ? "\n" : "") line
}

# [Relay] figures 7 and 8
function clients_figure(log_,   i, j, lines, engine) {
  begin_figure("log-" log_)
  for (i = 1; i <= engine_count + 1; i++) {
    engine = i <= engine_count ? engine_list[i] : "stock"
    lines = ""
    for (j = 1; j <= count_count; j++) lines = joined(lines, spot(count_list[j], engine, log_, count_list[j], 1))
    add_series(engine, log_, lines)
  }
  end_figure("All engines, log " log_ ", one relay", "clients", tics(count_count, count_list), plot_size_count + 1,
    panel_titles())
}

# [Relay] figure 9
function relays_figure(   i, j, lines, log_, x) {
  begin_figure("relays")
  log_ = log_list[log_count]
  x[1] = 1
  for (j = 1; j <= relay_count; j++) x[j + 1] = relay_list[j]
  for (i = 1; i <= engine_count; i++) {
    lines = ""
    for (j = 1; j <= relay_count + 1; j++) lines = joined(lines, spot(x[j], engine_list[i], log_, most, x[j]))
    add_series(engine_list[i], log_, lines)
  }
  end_figure(most " clients, log " log_ ", several relays", "relays", tics(relay_count + 1, x), plot_size_count + 1,
    panel_titles())
}

# --- verdicts ---------------------------------------------------------------------------------------

# "- TEXT: ENGINE FIGURE, ... (goal: GOAL)", of what was added by judge
function verdict(text, goal,   line) {
  line = "- " text ": " (any_judged ? judged : "not measured") (goal == "" ? "" : " (goal: " goal ")") "\n"
  judged = ""
  any_judged = 0
  return line
}

function judge(engine, found) {
  judged = judged (judged == "" ? "" : ", ") engine " " found
  if (found !~ /measured/) any_judged = 1
}

# The engine with the highest (sign 1) or lowest (-1) median: best SIGN WITH-RINGS LOG CLIENTS BYTES COLUMN
function best(sign, with_rings, log_, clients, bytes, column,   i, found, first, most_) {
  for (i = 1; i <= engine_count; i++) {
    if (engine_list[i] == rings && !with_rings) continue
    found = value(engine_list[i], log_, clients, 1, bytes, column)
    if (found != "" && (first == "" || sign * found > sign * most_)) {
      first = engine_list[i]
      most_ = found
    }
  }
  return first
}

# The engines over sockets among themselves, and the best of them beside rings
function bandwidth_verdicts(log_, bytes,   i, where, first, top, text, sockets) {
  where = most " clients, " size_name(bytes) "B, log " log_
  for (i = 1; i <= engine_count; i++) sockets += engine_list[i] != rings
  if (!sockets) return ""
  first = best(1, 0, log_, most, bytes, OVERALL)
  top = value(first, log_, most, 1, bytes, OVERALL)
  for (i = 1; i <= engine_count; i++)
    if (engine_list[i] != rings) judge(engine_list[i], share(value(engine_list[i], log_, most, 1, bytes, OVERALL), top))
  text = verdict(where ", bandwidth by the best engine's", "at least 0.7")
  if (sockets == engine_count) return text
  return text "- " where ", bandwidth of the best engine by that of " rings ": " (first == "" ? "" : first " ") \
    share(top, value(rings, log_, most, 1, bytes, OVERALL)) "\n"
}

function engine_verdicts(   i, j, k, text, bytes) {
  for (k = 2; k <= wanted_count; k++) {
    bytes = wanted[k]
    if (!has_size(bytes)) continue
    for (j = 1; j <= log_count; j++) {
      text = text bandwidth_verdicts(log_list[j], bytes)
      if (most == 2) continue
      for (i = 1; i <= engine_count; i++)
        judge(engine_list[i], share(value(engine_list[i], log_list[j], most, 1, bytes, FAIRNESS), 1))
      text = text verdict(most " clients, " size_name(bytes) "B, log " log_list[j] ", fairness", "at least 0.6")
    }
  }
  return text
}

function by_stock(sign, bytes, column, text, goal,   first) {
  if (!has_size(bytes)) return ""
  first = best(sign, 1, "off", 2, bytes, column)
  return "- 2 clients, " size_name(bytes) "B, log off, " text " of the best of all by stock's: " \
    (first == "" ? "" : first " ") share(value(first, "off", 2, 1, bytes, column), value("stock", "off", 2, 1, bytes, column)) \
    " (goal: " goal ")\n"
}

# Runs with and without the log of the same repetition find the machine in the same state more often than others: the
# median of their ratios, with its spread.
function log_cost(engine, clients, bytes, column,   i, name, on, off) {
  name = "cost " engine " " clients " " bytes " " column
  for (i = 1; i <= repetitions; i++) {
    on = sample[engine "," "on," clients ",1", bytes, column, i]
    off = sample[engine "," "off," clients ",1", bytes, column, i]
    if (on != "" && off != "") stats_add(name, on / off)
  }
  return stats_count[name] ? stats_range(name, 0, 1, 2) : "not measured"
}

function log_verdict(clients, bytes, column, text, goal,   i) {
  if (!has_size(bytes)) return ""
  for (i = 1; i <= engine_count; i++) judge(engine_list[i], log_cost(engine_list[i], clients, bytes, column))
  return verdict(clients " clients, " size_name(bytes) "B, " text " with the log by that without", goal)
}

function log_verdicts(   i, text) {
  if (log_count != 2) return ""
  for (i = 1; i <= shown_count; i++)
    text = text log_verdict(shown_list[i], 1, LATENCY, "one way", "at most 1.10") \
      log_verdict(shown_list[i], 65536, OVERALL, "bandwidth", "at least 0.90") \
      log_verdict(shown_list[i], 1048576, OVERALL, "bandwidth", "at least 0.90")
  return text
}

function relay_verdicts(   i, j, k, text, log_) {
  if (!several_relays) return "- several relays: not measured; causeway run knows no --relays\n"
  log_ = log_list[log_count]
  for (j = 1; j <= relay_count; j++)
    for (k = 1; k <= plot_size_count; k++) {
      for (i = 1; i <= engine_count; i++)
        judge(engine_list[i], share(value(engine_list[i], log_, most, relay_list[j], plot_sizes[k], OVERALL),
          value(engine_list[i], log_, most, 1, plot_sizes[k], OVERALL)))
      text = text verdict(most " clients, " size_name(plot_sizes[k]) "B, log " log_ ", bandwidth of " relay_list[j] \
        " relays by that of 1", "")
    }
  return text
}

function verdicts(   text) {
  text = title("Verdicts") engine_verdicts()
  if (count_list[1] == 2 && log_list[log_count] == "off")
    text = text by_stock(-1, 1, LATENCY, "one way", "at most 1.2") \
      by_stock(1, 1048576, OVERALL, "bandwidth", "at least 1.3")
  return text log_verdicts() relay_verdicts()
}

# Runs that gave nothing; stock MPICH may well not end, and is not asked for.
function note_missing(   i, part) {
  for (i = 1; i <= planned_count; i++) {
    split(planned[i], part, " ")
    if (value(part[1], part[2], part[3], part[4], size_list[1], OVERALL) != "") continue
    print "- not measured: " part[1] ", log " part[2] ", " part[3] " clients" \
      (part[4] == 1 ? "" : ", " part[4] " relays") >>(out "/uncounted")
    if (part[1] != "stock") printf "" >(out "/missing")
  }
}

END {
  write_medians()
  note_missing()
  for (i = 1; i <= shown_count; i++) size_figure(shown_list[i])
  for (i = 1; i <= log_count; i++) clients_figure(log_list[i])
  if (several_relays) relays_figure()
  printf "%s%s", tables(), verdicts() >(out "/tables")
}

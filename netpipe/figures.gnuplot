# Panels side by side over one data file, after [Relay] figures 4 to 9: all but the last show bandwidth, the
# last one latency. report.sh sets the variables and the tics, and writes the data.
#
#   data          a block for each series, of lines: x, then one value for each panel
#   base          writes base.svg and base.png
#   names, styles, dashes             of the series: words, those with spaces in quotes
#   panels, panel_titles, measured    likewise; measured is 0 for a panel without any value
#   main_title, x_title

rows = (panels + 1) / 2
series = words(names)
key_lines = (series + 5) / 6
bottom = (0.9 + 0.35 * key_lines) / (rows == 1 ? 6.0 : 9.5)

set datafile missing "?"
set logscale x 2
set logscale y 10
set format y "%.10g"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd"
set border linecolor rgb "#444444"
set offsets graph 0.03, graph 0.03, 0, 0
set xlabel x_title

style(i) = word(styles, i + 1)

panel = "set title word(panel_titles, p); \
  set ylabel (p == panels ? 'microseconds' : 'Mb/s'); \
  if (p == 1) { set key at screen 0.5, screen 0.01 center bottom vertical maxrows key_lines } else { unset key }; \
  if (!int(word(measured, p))) { \
    set title word(panel_titles, p).': not measured'; plot [1:2] [1:10] NaN notitle; continue }; \
  plot for [i = 0:series - 1] data index i using 1:(column(p + 1)) with linespoints \
    linewidth 1.5 pointsize 0.6 pointtype 5 + i linecolor rgb style(i) dashtype int(word(dashes, i + 1)) \
    title word(names, i + 1)"

draw = "set multiplot layout rows, 2 title main_title margins 0.08, 0.98, bottom, 0.88 spacing 0.1, 0.13; \
  do for [p = 1:panels] { @panel }; unset multiplot"

set terminal svg size 1100, (rows == 1 ? 520 : 900) font "sans-serif,13" background rgb "white"
set output base.".svg"
@draw

set terminal pngcairo size 1375, (rows == 1 ? 650 : 1125) font "sans,12" background rgb "white"
set output base.".png"
@draw

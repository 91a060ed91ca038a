# The run time of the solver by the number of kills, after [MPICH-V] figure 12.
#
#   gnuplot -e "data='FILE'; base='PATH'" kills.gnuplot    writes PATH.svg and PATH.png
#
# A line of FILE: kills, then median, lowest and highest run time in seconds.

stats data using 2 every ::0::0 name "without" nooutput
stats data using 4 name "all" nooutput
stats data using 1 name "kills" nooutput

set title "Solver on 4 ranks, ranks killed during the run"
set xlabel "kills in one run"
set ylabel "run time, seconds"
set y2label "times the run time without kills"
set xrange [-0.5:kills_max + 0.5]
set xtics 1 nomirror
set yrange [0:all_max * 1.1]
set ytics nomirror
set y2range [0:all_max * 1.1 / without_max]
set y2tics
set format y2 "%.1f"
set grid ytics linetype 1 linecolor rgb "#cccccc"
set key top left
set border linecolor rgb "#444444"

plot_all = "plot without_max with lines dashtype 2 linecolor rgb '#888888' title 'without kills', ".\
           "data using 1:2:3:4 with yerrorbars pointtype 0 linecolor rgb '#99bbdd' title 'lowest to highest', ".\
           "data using 1:2 with linespoints pointtype 7 linewidth 2 linecolor rgb '#1f5fa0' title 'median'"

set terminal svg size 800,500 font "sans-serif,14" background rgb "white"
set output base.".svg"
@plot_all

set terminal pngcairo size 1000,625 font "sans,13" background rgb "white"
set output base.".png"
@plot_all

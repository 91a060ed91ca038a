# The run time of the solver by the number of sites, engine and log, after [Relay] figure 12.
#
#   gnuplot -e "data='FILE'; base='PATH'; engines='NAME...'" grid.gnuplot    writes PATH.svg and PATH.png
#
# A line of FILE: engine (or "stock"), "off" or "on" of its log ("-" of stock), sites, seconds.

set title "Solver over 1 to 4 sites"
set xlabel "sites"
set ylabel "seconds"
set xrange [0.7:4.3]
set xtics 1 nomirror
set yrange [0:*]
set ytics nomirror
set grid ytics linetype 1 linecolor rgb "#cccccc"
set key top left
set border linecolor rgb "#444444"

of(name, log) = sprintf("< awk '$1 == \"%s\" && $2 == \"%s\" { print $3, $4 }' %s", name, log, data)
plot_all = "plot of('stock', '-') with linespoints pointtype 5 linewidth 2 linecolor rgb '#888888' title 'stock, no firewalls', ".\
           "for [i = 1:words(engines)] of(word(engines, i), 'off') with linespoints pointtype 6 linecolor i ".\
           "title word(engines, i), ".\
           "for [i = 1:words(engines)] of(word(engines, i), 'on') with linespoints pointtype 7 dashtype 2 linecolor i ".\
           "title word(engines, i).', with log'"

set terminal svg size 800,500 font "sans-serif,14" background rgb "white"
set output base.".svg"
@plot_all

set terminal pngcairo size 1000,625 font "sans,13" background rgb "white"
set output base.".png"
@plot_all

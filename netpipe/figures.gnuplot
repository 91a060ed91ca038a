# Panels side by side, after [Relay] figures 4 to 9: report.sh gives what comes after this.
set terminal svg size 1100, 520 font "sans-serif,13" background rgb "white"
set datafile separator ","
set logscale x 2
set logscale y 10
set format y "%.10g"
set grid
set key below
set multiplot layout 1, 2

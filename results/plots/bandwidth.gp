# Throughput against bandwidth, a line a strategy: marks with intervals are measured, dashed lines predicted. A vertical stroke is where two strategies are
# equally fast, solid where measured and dashed where predicted; its band is the interval. The data file: a block a series, its title, then bit/s,
# throughput, low, high; then a block a stroke, its title, then bit/s and 0 or 1. The head sets series, styles, dashed, crossovers, guess, unit and the axes.
load 'style.gp'
d = name.'.dat'
set xlabel 'line rate of a host'
set label 12 unit at screen across_x(14), graph 0.5 center rotate by 90 textcolor rgb '#222222'
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set errorbars small
set style line 31 linecolor rgb '#222222' linewidth 1.5 dashtype 1
set style line 32 linecolor rgb '#222222' linewidth 1.5 dashtype 2
plot for [i=1:series] d index i-1 using 1:2:3:4 with yerrorbars linestyle styles[i] dashtype 1 pointsize 0 notitle, \
     for [i=1:series] d index i-1 using 1:(dashed[i] ? NaN : $2) with linespoints linestyle 20+styles[i] title (dashed[i] ? '' : columnheader(1)), \
     for [i=1:series] d index i-1 using 1:(dashed[i] ? $2 : NaN) with lines linestyle 10+styles[i] title (dashed[i] ? columnheader(1) : ''), \
     for [k=1:crossovers] d index series+k-1 using 1:($2 > 0 ? high_y : low_y) with lines linestyle (guess[k] ? 32 : 31) title columnheader(1)

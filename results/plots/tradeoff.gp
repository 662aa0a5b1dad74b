# Memory against throughput, a mark a configuration with its label beside it. The data file: a block a series, its title, then peak bytes, tokens/s, low,
# high; then the labels: bytes, tokens/s, place (0 right, 1 left, 2 above, 3 below), text. The head sets series, mark and the axes.
load 'style.gp'
d = name.'.dat'
set xlabel 'peak memory of the fullest rank'
set label 12 'tokens / s per rank' at screen across_x(14), graph 0.5 center rotate by 90 textcolor rgb '#222222'
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set errorbars small
plot for [i=1:series] d index i-1 using 1:2:3:4 with yerrorbars linestyle i dashtype 1 pointsize 1.2 title columnheader(1), \
     d index series using ($3 == 0 ? $1 : NaN):2:4 with labels left offset 1, 0 textcolor rgb '#222222' notitle, \
     d index series using ($3 == 1 ? $1 : NaN):2:4 with labels right offset -1, 0 textcolor rgb '#222222' notitle, \
     d index series using ($3 == 2 ? $1 : NaN):2:4 with labels center offset 0, 0.8 textcolor rgb '#222222' notitle, \
     d index series using ($3 == 3 ? $1 : NaN):2:4 with labels center offset 0, -0.9 textcolor rgb '#222222' notitle

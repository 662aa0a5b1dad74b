# Bus bandwidth against the size of a message, a line a collective, with intervals; the line rate as a stroke where it is known. busbw.dat: a
# block a series, its title, then bytes, byte/s, low, high. The head sets series, styles, dashed, line_rate, rate_text and the axes.
load 'style.gp'
d = name.'.dat'
set xlabel 'size of the message (bytes of all ranks together)'
set label 12 'busbw' at screen across_x(14), graph 0.5 center rotate by 90 textcolor rgb '#222222'
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set errorbars small
if (line_rate > 0) {
    set arrow 1 from graph 0, first line_rate to graph 1, first line_rate nohead linecolor rgb '#222222' linewidth 2 dashtype 2 front
    set label 1 rate_text at graph 0, first line_rate offset 0.6, 0.7 left textcolor rgb '#222222' front
}
plot for [i=1:series] d index i-1 using 1:2:3:4 with yerrorbars linestyle styles[i] dashtype 1 pointsize 0 notitle, \
     for [i=1:series] d index i-1 using 1:(dashed[i] ? NaN : $2) with linespoints linestyle styles[i] title (dashed[i] ? '' : columnheader(1)), \
     for [i=1:series] d index i-1 using 1:(dashed[i] ? $2 : NaN) with lines linestyle 10+styles[i] title (dashed[i] ? columnheader(1) : '')

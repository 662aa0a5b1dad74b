# Implementations side by side: a row a workload, a mark with its interval an implementation. The data file: rows and names; then a block an
# implementation, its title, then row, value, low, high. The head sets series, rows, unit and the axis.
load 'style.gp'
d = name.'.dat'
set xlabel unit
set yrange [rows+0.6:0.4]
set ytics scale 0
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set errorbars small
shift(s) = (s-(series+1)/2.0)*0.7/series  # within the row
plot d index 0 using (low_x):1:ytic(2) with points pointtype 0 notitle, \
     for [s=1:series] d index s using 2:($1+shift(s)):3:4 with xerrorbars linestyle s dashtype 1 title columnheader(1)

# Figure over bound, by tensor and check: the worst of all cases. Right of the line fails.
# ratio.dat, tab-separated blocks: block 0 has the row and name of each tensor, each further one the points of a check
# under its title: ratio, row. Ratios outside [low, high] are drawn at the edge.
load 'style.gp'
set logscale x
set xrange [low:high]
set format x '%g'
set yrange [rows+0.6:0.4]
set ytics scale 0
set xlabel "figure / bound (no unit)\n"
set object 1 rectangle from 1, graph 0 to high, graph 1 fillcolor rgb '#fbe9df' fillstyle solid noborder behind
set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb '#D55E00' linewidth 2 dashtype 2 front
set label 1 'bound' at 1, graph 1 center offset 0, 0.6 textcolor rgb '#a04000' front
plot 'ratio.dat' index 0 using (low):1:ytic(2) with points pointtype 0 linecolor rgb '#ffffff' notitle, \
     for [i=1:series] '' index i using 1:2 with points linestyle i title columnheader(1)

# Figure over bound against the number of ranks: the worst of the cases of each implementation and strategy.
# ranks.dat, tab-separated blocks, one a series under its title: ranks, ratio. Ratios outside [low, high] are drawn at the edge.
load 'style.gp'
set logscale x 2
set logscale y
set xrange [first/1.15:last*1.15]
set yrange [low:high]
set format y '%g'
set xlabel "ranks (processes)\n"
set ylabel 'worst figure / bound (no unit)'
set xtics ()
do for [n in ranks] { set xtics add (n int(n)) }
set object 1 rectangle from graph 0, first 1 to graph 1, first high fillcolor rgb '#fbe9df' fillstyle solid noborder behind
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb '#D55E00' linewidth 2 dashtype 2 front
set label 1 'bound' at graph 1, first 1 offset -0.5, 0.6 right textcolor rgb '#a04000' front
plot for [i=0:series-1] 'ranks.dat' index i using 1:2 with linespoints linestyle i+1 title columnheader(1)

# Figure over bound against the number of ranks, a panel for each implementation: the worst of the calibrated cases of each
# strategy. Numbers of ranks stand at equal distances. ranks.dat is as ratio.dat: its rows are the numbers of ranks.
load 'style.gp'
d = 'ranks.dat'
set xrange [0.5:rows+0.5]
set logscale y
set yrange [low:high]
set format y '%g'
set xlabel 'ranks (processes)'
set xtics scale 0
set object 1 rectangle from graph 0, first 1 to graph 1, first high fillcolor rgb '#fbe9df' fillstyle solid noborder behind
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb '#D55E00' linewidth 2 dashtype 2 front
set label 1 'bound' at graph 1, first 1 offset -0.5, 0.6 right textcolor rgb '#a04000' front
shift(s) = (s-(series+1)/2.0)*0.6/series  # beside each other, where they are equal
set multiplot
do for [p=0:panels-1] {
    x = left+(p%across)*(wide+gap)
    y = top+(p/across)*pitch
    set lmargin at screen across_x(x)
    set rmargin at screen across_x(x+wide)
    set tmargin at screen down_y(y)
    set bmargin at screen down_y(y+tall)
    if (p%across) { set format y ''; unset ylabel } else { set format y '%g'; set ylabel 'worst figure / bound (no unit)' }
    plot d index 0 using 1:(low):xtic(2) with points pointtype 0 linecolor rgb '#ffffff' notitle, \
         d index 1 every ::p::p using (0.5):(high):2 with labels left offset 0, 0.7 textcolor rgb '#222222' notitle, \
         for [i=1:series] d index 1+i using 1:2 with points linestyle i title columnheader(1), \
         for [i=1:series] d index 2+series+p using ($1+shift(i)):($3==i ? $2 : NaN) with linespoints linestyle i linewidth 0.7 notitle
    unset key
    unset label 10
    unset label 11
}
unset multiplot

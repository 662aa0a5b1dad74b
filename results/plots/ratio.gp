# Figure over bound, by tensor and check, a panel for each implementation: large the worst of all cases, small their median.
# Right of the line fails. ratio.dat, tab-separated blocks: rows, names and a blank for panels that stand right of the names; panels and names; the title of each series;
# then a block a panel: row, worst, series, median. What is beyond `high` is drawn there.
load 'style.gp'
d = 'ratio.dat'
set logscale x
set xrange [low:high]
set format x '%g'
set yrange [rows+0.6:0.4]
set ytics scale 0
set xlabel 'figure / bound (no unit)'
set object 1 rectangle from 1, graph 0 to high, graph 1 fillcolor rgb '#fbe9df' fillstyle solid noborder behind
set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb '#D55E00' linewidth 2 dashtype 2 front
set label 1 'bound' at 1, graph 1 center offset 0, 0.6 textcolor rgb '#a04000' front
shift(s) = (s-(series+1)/2.0)*0.55/series  # within the row
set multiplot
do for [p=0:panels-1] {
    x = left+(p%across)*(wide+gap)
    y = top+(p/across)*pitch
    set lmargin at screen across_x(x)
    set rmargin at screen across_x(x+wide)
    set tmargin at screen down_y(y)
    set bmargin at screen down_y(y+tall)
    plot d index 0 using (low):1:ytic(p%across ? 3 : 2) with points pointtype 0 linecolor rgb '#ffffff' notitle, \
         d index 1 every ::p::p using (low):(0.4):2 with labels left offset 0, 0.7 textcolor rgb '#222222' notitle, \
         for [i=1:series] d index 1+i using 1:2 with points linestyle i title columnheader(1), \
         for [i=1:series] d index 2+series+p using ($3==i ? $2 : NaN):($1+shift(i)) with points linestyle i notitle, \
         for [i=1:series] d index 2+series+p using ($3==i ? $4 : NaN):($1+shift(i)) with points linestyle i pointsize 0.35 notitle
    unset key
    unset label 10
    unset label 11
}
unset multiplot

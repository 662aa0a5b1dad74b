# Bytes per parameter of the fullest rank against ranks, a panel for each implementation: large after the last update, small the peak in
# training, dashed the theory's a + b / N. memory.dat, tab-separated blocks: panels and names; the title of each series; then two a panel: ranks,
# bytes at rest, series, bytes at the peak; and the curves: ranks, bytes, series.
load 'style.gp'
d = 'memory.dat'
set xrange [low-0.4:high+0.4]
set yrange [0:ceiling]
set xtics 1 format '%g'
set xlabel 'ranks (processes), N'
set multiplot
do for [p=0:panels-1] {
    x = left+(p%across)*(wide+gap)
    y = top+(p/across)*pitch
    set lmargin at screen across_x(x)
    set rmargin at screen across_x(x+wide)
    set tmargin at screen down_y(y)
    set bmargin at screen down_y(y+tall)
    if (p%across) { unset ylabel } else { set ylabel 'bytes per parameter and rank' }
    plot d index 0 every ::p::p using (low-0.4):(ceiling):2 with labels left offset 0, 0.7 textcolor rgb '#222222' notitle, \
         for [i=1:series] d index i using 1:2 with points linestyle i pointsize 1.1 title columnheader(1), \
         for [i=1:series] d index 2+series+2*p using ($3==i ? $1 : NaN):2 with lines linestyle i dashtype 2 linewidth 1.2 notitle, \
         for [i=1:series] d index 1+series+2*p using ($3==i ? $1 : NaN):2 with points linestyle i pointsize 1.1 notitle, \
         for [i=1:series] d index 1+series+2*p using ($3==i ? $1+0.12 : NaN):4 with points linestyle i pointsize 0.45 notitle
    unset key
    unset label 10
    unset label 11
}
unset multiplot

# One run against another: the ratio of each row with its interval. Shape, place and word say which is better, so that no colour is needed. The data file:
# rows and names; then better, worse and undecided rows: row, ratio, low, high, words. The head sets rows, threshold (0: none), unit, words (pixels of
# the column of words) and the axis.
load 'style.gp'
d = name.'.dat'
set xlabel unit
set yrange [rows+0.6:0.4]
set ytics scale 0
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide-words)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set errorbars small
set arrow 1 from 1, graph 0 to 1, graph 1 nohead linecolor rgb '#222222' linewidth 1.5 front
if (threshold > 0) {
    set object 1 rectangle from threshold, graph 0 to graph 1, graph 1 fillcolor rgb '#fbe9df' fillstyle solid noborder behind
    set arrow 2 from threshold, graph 0 to threshold, graph 1 nohead linecolor rgb '#D55E00' linewidth 2 dashtype 2 front
    set label 2 'threshold' at threshold, graph 1 center offset 0, 0.6 textcolor rgb '#a04000' front
}
array titles[3] = ['better: the interval lies below 1', 'worse: the interval lies above 1', 'no difference shown, equal, or too few to tell']
array look[3] = [9, 5, 6]
array ink[3] = ['#0072B2', '#D55E00', '#444444']
plot d index 0 using (low_x):1:ytic(2) with points pointtype 0 notitle, \
     for [k=1:3] d index k using 2:1:3:4 with xerrorbars linecolor rgb ink[k] pointtype look[k] pointsize 1.1 linewidth 1.6 title titles[k], \
     for [k=1:3] d index k using (high_x):1:5 with labels left offset 1.5, 0 textcolor rgb '#222222' notitle

# The crossover map: the fastest strategy over bandwidth and model size. Areas differ in lightness and hatching too, and hold their name. The data file: a block
# a strategy, its title, then rectangles: bits, parameters, left, right, low, high; the rectangles where the second is as fast; names and places; measured
# points: bit/s, parameters, what was fastest; then a block a curve, its title first. The head sets names, used, close, marks, curves and the axes.
load 'style.gp'
d = name.'.dat'
unset grid
set xlabel 'line rate of a host'
set label 12 'parameters of the model' at screen across_x(14), graph 0.5 center rotate by 90 textcolor rgb '#222222'
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
array fills[8] = ['#d6ebf7', '#f7e8a0', '#8fcdb8', '#e8a266', '#c9a3c4', '#f4f4f4', '#9fb4c8', '#d0d0d0']
array inks[8] = ['#6aa5c8', '#c0a020', '#2d7a60', '#a35410', '#7d4a75', '#999999', '#48617a', '#707070']
array hatch[8] = [4, 1, 5, 2, 6, 7, 4, 5]
set style textbox opaque noborder fillcolor rgb '#ffffff' margins 0.6, 0.3
plot for [k=1:names] d index k-1 using 1:2:3:4:5:($6*1.01) with boxxyerror fillcolor rgb fills[k] fillstyle solid 1 noborder notitle, \
     for [k=1:names] d index k-1 using 1:2:3:4:5:6 with boxxyerror fillcolor rgb inks[k] fillstyle transparent pattern hatch[k] noborder title (used[k] ? columnheader(1) : ''), \
     d index names using 1:2:3:4:5:6 with boxxyerror fillcolor rgb '#ffffff' fillstyle transparent solid 0.6 noborder notitle, \
     for [k=1:curves] d index names+2+k using 1:2 with lines linecolor rgb '#000000' linewidth 2.5 dashtype dashes[k] title columnheader(1), \
     d index names+1 using 1:2:3 with labels boxed font ',14' textcolor rgb '#111111' notitle, \
     d index names+2 using 1:2 with points pointtype 7 pointsize 1.5 linecolor rgb '#ffffff' notitle, \
     d index names+2 using 1:2 with points pointtype 7 pointsize 0.9 linecolor rgb '#000000' title (marks ? 'measured; the name is what was fastest' : ''), \
     d index names+2 using 1:2:3 with labels boxed left offset 1, 0 textcolor rgb '#111111' notitle, \
     NaN with boxes fillcolor rgb '#ffffff' fillstyle solid 1 border linecolor rgb '#888888' title (close ? 'lighter: the second is as fast within what is trusted' : '')

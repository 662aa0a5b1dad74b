# The worst verdict of each implementation (column) over the cases with a capability (row), with counts.
# matrix.dat, tab-separated blocks: 0 rows and names, 1 columns and names, then PASS, FAIL, waived, SKIP, BROKEN: column, row, text.
# A word stands in every cell, so that no colour is needed.
load 'style.gp'
unset grid
set border 0
set xrange [0.5:columns+0.5]
set yrange [rows+0.5:0.5]
set ytics scale 0
set xtics scale 0 rotate by 40 right
set key horizontal maxrows 1 maxcols 5 samplen 1
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
d = 'matrix.dat'
plot d index 0 using (-9):1:ytic(2) with points pointtype 0 notitle, \
     d index 1 using 1:(-9):xtic(2) with points pointtype 0 notitle, \
     d index 2 using 1:2:($1-.48):($1+.48):($2-.44):($2+.44) with boxxyerror fillcolor rgb '#bfe3f5' fillstyle solid 1 noborder title 'PASS', \
     d index 3 using 1:2:($1-.48):($1+.48):($2-.44):($2+.44) with boxxyerror fillcolor rgb '#B84C00' fillstyle solid 1 noborder title 'FAIL', \
     d index 4 using 1:2:($1-.48):($1+.48):($2-.44):($2+.44) with boxxyerror fillcolor rgb '#ffe2c7' fillstyle solid 1 border linecolor rgb '#B84C00' title 'waived', \
     d index 5 using 1:2:($1-.48):($1+.48):($2-.44):($2+.44) with boxxyerror fillcolor rgb '#bbbbbb' fillstyle pattern 4 border linecolor rgb '#888888' title 'SKIP', \
     d index 6 using 1:2:($1-.48):($1+.48):($2-.44):($2+.44) with boxxyerror fillcolor rgb '#222222' fillstyle solid 1 noborder title 'BROKEN', \
     d index 2 using 1:2:3 with labels textcolor rgb '#10394d' notitle, \
     d index 3 using 1:2:3 with labels textcolor rgb '#ffffff' notitle, \
     d index 4 using 1:2:3 with labels textcolor rgb '#6b2f00' notitle, \
     d index 5 using 1:2:3 with labels textcolor rgb '#222222' notitle, \
     d index 6 using 1:2:3 with labels textcolor rgb '#ffffff' notitle

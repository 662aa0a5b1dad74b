# Bytes per parameter that a rank sends in a step, stacked by what moved them, with the theory's stroke; a row of a name alone is an
# implementation. traffic.dat, tab-separated blocks: rows and names; for each part its title, then from, to, row; strokes of the theory, and of
# gloo's way: bytes, row.
# Parts differ in lightness and hatching too, so that a print in grey can be read.
load 'style.gp'
d = 'traffic.dat'
parts = |used|
array fills[8] = ['#0072B2', '#D55E00', '#F0E442', '#E69F00', '#777777', '#56B4E9', '#0072B2', '#999999']
array hatch[8] = [0, 0, 0, 0, 0, 4, 5, 2]
set xrange [0:ceiling]
set yrange [rows+0.6:0.4]
set ytics scale 0
set grid noytics xtics
set xlabel 'bytes per parameter that a rank sends in a step'
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
box = 0.36
plot d index 0 using (-9):1:ytic(2) with points pointtype 0 notitle, \
     for [k=1:5] d index k using (0):3:1:2:($3-box):($3+box) every ::1 with boxxyerror fillcolor rgb fills[k] fillstyle solid 1 border linecolor rgb '#ffffff' notitle, \
     for [k=6:8] d index k using (0):3:1:2:($3-box):($3+box) every ::1 with boxxyerror fillcolor rgb fills[k] fillstyle pattern hatch[k] border linecolor rgb '#444444' notitle, \
     d index 1+parts using 1:($2+0.46):(0):(-0.92) with vectors nohead linecolor rgb '#000000' linewidth 3 title 'theory: every collective at its minimum', \
     d index 2+parts using 1:($2+0.46):(0):(-0.92) with vectors nohead linecolor rgb '#000000' linewidth 2 dashtype '.' title (gloo ? 'theory: as gloo does its collectives' : ''), \
     for [k=1:5] d index k every ::0::1 using (-9):(-9) with boxes fillcolor rgb fills[k] fillstyle solid 1 border linecolor rgb '#ffffff' title (used[k] ? columnheader(1) : ''), \
     for [k=6:8] d index k every ::0::1 using (-9):(-9) with boxes fillcolor rgb fills[k] fillstyle pattern hatch[k] border linecolor rgb '#444444' title (used[k] ? columnheader(1) : '')

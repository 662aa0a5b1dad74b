# The kernels of the table against what this machine can do. Left: GFLOP/s over flop per byte, a number a kernel, below the roofs
# min(peak, bandwidth x intensity) of copies in the cache and from memory. Right: which number is which, and how much of the
# cache's roof it reaches. roofline.dat, tab-separated: number, name, flop/byte, GFLOP/s, percent. kernels/bench/bench_roofline.c
# writes it and what stands in front of this script: peak, cache, memory, rows.
load 'style.gp'
d = 'roofline.dat'
min(a, b) = a < b ? a : b
set multiplot
set lmargin at screen across_x(left)
set rmargin at screen across_x(left+wide)
set tmargin at screen down_y(top)
set bmargin at screen down_y(top+tall)
set logscale xy
set xrange [0.05:200]
set yrange [*:2*peak]
set xlabel 'intensity (flop / byte, as declared)'
set ylabel 'measured rate (GFLOP/s)'
set samples 1000
plot min(peak, cache*x) with lines linestyle 1 linewidth 2 dashtype 1 title sprintf('roof: BLAS %.0f GFLOP/s, copies in the cache %.1f GB/s', peak, cache), \
     min(peak, memory*x) with lines linestyle 2 linewidth 2 dashtype 2 title sprintf('roof: the same, copies from memory %.1f GB/s', memory), \
     d using 3:4 with points pointtype 7 pointsize 0.6 linecolor rgb '#222222' notitle, \
     d using 3:4:1 with labels offset 0.9, 0.5 font ',10' textcolor rgb '#222222' notitle
unset key
unset label 10
unset label 11
unset logscale
set lmargin at screen across_x(left+wide+gap)
set rmargin at screen across_x(width-30)
set xrange [0:*]
set yrange [rows+0.6:0.4]
set xtics 50
set ylabel
set ytics scale 0
set xlabel 'percent of its roof in the cache'
set boxwidth 0.7
set style fill solid 1 noborder
set arrow 1 from 100, graph 0 to 100, graph 1 nohead linecolor rgb '#444444' linewidth 1.5 dashtype 2 front
plot d using ($5/2):1:($5/2):(0.35):ytic(sprintf('%s  %d', strcol(2), int(column(1)))) with boxxyerror fillcolor rgb colors[1] notitle, \
     d using 5:1:(sprintf('%.0f', $5)) with labels left offset 0.4, 0 font ',10' textcolor rgb '#222222' notitle
unset multiplot

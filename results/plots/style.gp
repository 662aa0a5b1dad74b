# The style that every figure shares. The script that loads it has set name, heading, note and the layout in pixels: width,
# height, left, top, wide, tall, keytop; and lines, of the note. `gnuplot -d -e "format='png'" NAME.gp` draws PNG,
# format='pdf' PDF, without -e SVG.
#
# Colours: the palette of Okabe and Ito, "Color Universal Design" (2008), told apart by readers with
# any colour vision; each series has its own point shape too, so that a print in grey stays readable.
# Text from data is never markup: noenhanced.
if (!exists("format")) format = 'svg'
set encoding utf8
if (format eq 'png') {
    set terminal pngcairo noenhanced size 2*width,2*height font 'sans-serif,11' fontscale 2 linewidth 2 pointscale 2 background '#ffffff'
} else { if (format eq 'pdf') {
    set terminal pdfcairo noenhanced size width/96.0,height/96.0 font 'sans-serif,8.5' fontscale 1 linewidth 1 background '#ffffff'
} else {
    set terminal svg noenhanced size width,height font 'sans-serif,13' background '#ffffff'
} }
set output name.'.'.format
set datafile separator tab
across_x(px) = px*1.0/width       # screen coordinates of pixels from the left
down_y(px) = 1 - px*1.0/height    # and from the top
set border 3 linecolor rgb '#444444'
set tics nomirror out textcolor rgb '#222222'
set grid linecolor rgb '#dddddd' linewidth 1 dashtype 1

array colors[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#777777']
array shapes[8] = [7, 5, 9, 11, 13, 4, 6, 8]
do for [i=1:8] { set style line i linecolor rgb colors[i] pointtype shapes[i] pointsize 0.9 linewidth 1.6 dashtype i }
# 11 to 18: what is predicted, in the colour of the measured series and dashes of its own. 21 to 28: what is measured beside it, with marks and no dashes.
array dashes[8] = ['_ ', '. ', '_. ', '_.. ', '__. ', '_ . . ', '__ . . ', '_ _ . ']
do for [i=1:8] { set style line 10+i linecolor rgb colors[i] pointtype shapes[i] pointsize 0 linewidth 1.8 dashtype dashes[i]
              set style line 20+i linecolor rgb colors[i] pointtype shapes[i] pointsize 0.9 linewidth 1.2 dashtype 1 }
set key at screen across_x(left), screen down_y(keytop) left top Left reverse vertical maxcols 1 samplen 2 spacing 1.1
set label 10 heading at screen across_x(12), screen down_y(22) left textcolor rgb '#222222' font ',15'
set label 11 note at screen across_x(12), screen down_y(height-20*lines) left textcolor rgb '#444444'

#!/bin/sh
# Draws the roofline of the kernels: sh roofline.sh FOLDER, which has what bench_roofline wrote. SVG and PNG by gnuplot, where there is one.
set -eu
cp results/plots/style.gp "$1/style.gp"
cat "$1/roofline.head" results/plots/roofline.gp >"$1/roofline.gp"
if ! command -v gnuplot >/dev/null; then
    echo "roofline: gnuplot is not installed: no picture; the data are in $1/roofline.dat"
    exit 0
fi
cd "$1"
gnuplot -d roofline.gp
gnuplot -d -e "format='png'" roofline.gp
echo "roofline: $1/roofline.svg, $1/roofline.png"

# One step of each rank, a panel for each implementation: phases above, communication below. timeline.dat, tab-separated blocks: panels
# and names; then ten a panel, one a part (forward, backward, update, observation, waits, gathers, reductions, other calls, sent, received):
# from ms, to ms, lower and upper edge in rows.
load 'style.gp'
d = 'timeline.dat'
array names[10] = ['forward', 'backward', 'clip, update, zero', 'observation by the harness', 'the thread that trains waits', 'all-gather', 'reduce-scatter, all-reduce, all-to-all', 'other calls', 'sockets: sent', 'sockets: received']
array fills[10] = ['#cfe8f7', '#8fc1de', '#d8e8c8', '#eeeeee', '#AA3377', '#0072B2', '#D55E00', '#777777', '#009E73', '#E69F00']
unset ytics
set border 1
set xlabel 'milliseconds from the begin of the step'
set style fill solid 1 noborder
y = top
set multiplot
do for [p=1:panels] {
    set xrange [0:span[p]]
    set yrange [ranks[p]-0.5:-0.5]
    set lmargin at screen across_x(left)
    set rmargin at screen across_x(left+wide)
    set tmargin at screen down_y(y)
    set bmargin at screen down_y(y+lane*ranks[p])
    do for [r=0:ranks[p]-1] { set label 100+r sprintf('rank %d', r) at graph 0, first r right offset -1, 0 textcolor rgb '#222222' }
    plot d index 0 every ::p-1::p-1 using (0):(-0.5):2 with labels left offset 0, 0.7 textcolor rgb '#222222' notitle, \
         for [k=1:10] d index 10*(p-1)+k using 1:3:1:2:3:4 with boxxyerror fillcolor rgb fills[k] title (p==1 && used[k] ? names[k] : '')
    do for [r=0:ranks[p]-1] { unset label 100+r }
    unset key
    unset label 10
    unset label 11
    y = y+lane*ranks[p]+pitch
}
unset multiplot

#!/bin/sh
# What fsdpmark net itself costs: sh net.sh BUILD   (SECONDS_ALL=90 RANKS=2 SIZES=8..4M ALLOWED=0)
#
# On shared memory, by message size: the measured time of a call over that of a bare loop, which has nothing in it but the call. Batches of both take turns
# within each start, and the starts have different orders (harness/net/worker/batch.c), so the ratio holds on a noisy machine. Ratios with intervals of 95 %.
# Judged: all-gather and reduce-scatter of every size within 5 %. A size beyond is measured three times more, by starts of their own, and the median of these counts,
# not the first: that one was picked for being far off. They take 20 seconds or more each: of few samples the largest sizes scatter by 10 %. Its interval is from the lowest end of the three to the highest. Exit status 1: more than ALLOWED are beyond.
#
# The OSU micro-benchmarks, where PATH has them, stand beside: the slowest rank's mean time of a call behind a barrier of its own. osu_allgather counts the bytes of
# one rank, osu_reduce_scatter those of all.
set -eu
build=$1 ranks=${RANKS:-2} seconds=${SECONDS_ALL:-90} allowed=${ALLOWED:-0} repeats=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Lines "NAME BYTES MICROSECONDS RATIO LOW HIGH". A size without a ratio is no size within 5 %.
measure() { # sizes, seconds, file
    timeout 300 "$build/fsdpmark" net -f shm -n "$ranks" -m sweep --bare --sizes "$1" --time "$2" --store "$work/net.db" --csv "$work/net.csv" >"$work/log" 2>&1 ||
        { tail -n 3 "$work/log"; exit 1; }
    ! grep 'points were not measured' "$work/log" || exit 1
    awk -F, '{ gsub(/["\r]/, "") }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["name"] ~ /^(all-gather|reduce-scatter)$/ { ratio = $at["over_bare"]
            print $at["name"], $at["size"], 1e6 * $at["seconds"], ratio == "" ? 0 : ratio, ratio == "" ? 0 : $at["over_bare_low"], ratio == "" ? 0 : $at["over_bare_high"] }' \
        "$work/net.csv" >"$3"
    [ -s "$3" ] || { echo "net.sh: found no all-gather and no reduce-scatter in what fsdpmark net measured" >&2; exit 1; }
}
beyond() { awk '$4 < 0.95 || $4 > 1.05' "$1"; }

# Lines "NAME BYTES MICROSECONDS", the bytes as fsdpmark net counts them.
osu() { # program, name, how many of its bytes make one of ours
    if ! command -v "$1" >/dev/null; then
        echo "    OSU: $1 is not on PATH, so its column is left out"
        return
    fi
    # shellcheck disable=SC2086 # options are words
    if ! OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun -n "$ranks" $options "$1" -f -m "4:$largest" >"$work/osu.log" 2>&1; then
        echo "    OSU: $1 failed, so its column is left out: $(tail -n 1 "$work/osu.log")"
        return
    fi
    awk -v name="$2" -v times="$3" '$1 ~ /^[0-9]+$/ && NF >= 4 { print name, times * $1, $4 }' "$work/osu.log" >>"$work/osu"
}

measure "${SIZES:-8..4M}" "$seconds" "$work/first"
missed=$(beyond "$work/first" | awk '{ print $2 }' | sort -nu | paste -sd, -)
count=0
: >"$work/again"
while [ -n "$missed" ] && [ $count -lt $repeats ]; do
    count=$((count + 1))
    share=$(awk -v all="$seconds" -v n="$(awk '{ print $2 }' "$work/first" | sort -u | wc -l)" -v m="$(echo "$missed" | tr , '\n' | wc -l)" 'BEGIN { s = all * m / n; print s < 20 ? 20 : s }')
    measure "$missed" "$share" "$work/one"
    cat "$work/one" >>"$work/again"
done
: >"$work/osu"
largest=$(awk '$2 > most { most = $2 } END { print most }' "$work/first")
options=$("$build/fsdpmark" fabric shm 2>/dev/null | sed -n 's/^mpirun, on host 0: //p')
osu osu_allgather all-gather "$ranks"
osu osu_reduce_scatter reduce-scatter 1

awk -v allowed="$allowed" -v first="$work/first" -v again="$work/again" -v osu="$work/osu" '
    FILENAME == osu { seen[$1, $2] = $3; next }
    FILENAME == again {
        n = ++tries[$1, $2]; ratio[$1, $2, n] = $4
        if (n == 1 || $5 < low[$1, $2]) low[$1, $2] = $5
        if (n == 1 || $6 > high[$1, $2]) high[$1, $2] = $6
        next
    }
    {
        r = $4; l = $5; h = $6; told = ""; n = tries[$1, $2]
        if ((r < 0.95 || r > 1.05) && n > 0) {
            for (i = 1; i <= n; i++) v[i] = ratio[$1, $2, i]
            for (i = 2; i <= n; i++) for (k = i; k > 1 && v[k] < v[k - 1]; k--) { x = v[k]; v[k] = v[k - 1]; v[k - 1] = x }
            told = sprintf(", median of %d repeats; at first %.3f", n, r)
            r = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2; l = low[$1, $2]; h = high[$1, $2]
        }
        bad = r < 0.95 || r > 1.05
        printf "    %-15s %8d bytes  %9.2f us, over a bare loop %.3f (%.3f to %.3f)%s%s%s\n", $1, $2, $3, r, l, h, told,
            ($1, $2) in seen ? sprintf(", OSU %.2f us", seen[$1, $2]) : "", bad ? ": beyond 5 %" : ""
        all++; far += bad
    }
    END { printf "  %d within 5 %% of the bare loop, %d beyond (allowed: %d)\n", all - far, far, allowed; exit far > allowed }' "$work/osu" "$work/again" "$work/first"

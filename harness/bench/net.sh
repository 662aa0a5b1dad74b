#!/bin/sh
# What fsdpmark net itself costs: sh net.sh BUILD   (SECONDS_ALL=90 RANKS=2 SIZES=8..4M)
#
# On shared memory, by message size: the measured time of a call over that of a bare loop, which has nothing in it but the call. Batches of both take turns
# within each start, and the starts have different orders (harness/net/worker/batch.c), so the ratio holds on a noisy machine. Ratios with intervals of 95 %.
set -eu
build=$1
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT INT TERM
timeout 300 "$build/fsdpmark" net -f shm -n "${RANKS:-2}" -m sweep --bare --sizes "${SIZES:-8..4M}" --time "${SECONDS_ALL:-90}" --store "$store/net.db" 2>/dev/null >"$store/table" ||
    { tail -n 3 "$store/table"; exit 1; }
awk '/over a bare loop/ && /(all-gather|reduce-scatter);/ {
        for (i = 1; i <= NF; i++) if ($i == "loop") { ratio = $(i + 1); low = substr($(i + 2), 2); high = $(i + 4); sub(/\).*/, "", high) }
        name = $0; sub(/;.*/, "", name); sub(/.* /, "", name)
        printf "    %-15s %8d bytes  %9.2f us, over a bare loop %.3f (%.3f to %.3f)\n", name, $1, $5, ratio, low, high
        n++; close_enough += ratio <= 1.05 && ratio >= 0.95 }
     END { printf "  %d of %d sizes within 5 %% of the bare loop\n", close_enough, n; exit n == 0 }' "$store/table"

#!/bin/sh
# Runs the fuzz targets one after the other: sh run.sh BUILD SECONDS TARGET...
#
# Each starts from the seeds (seeds.sh) and keeps its corpus in BUILD/fuzz/corpus. A finding is kept as BUILD/fuzz/crash-*;
# the exit status is then 1.
set -u
build=$1 seconds=$2
shift 2
seeds=$build/fuzz/seeds
sh harness/protocol/fuzz/seeds.sh "$seeds" || exit 2
found=0
for target in "$@"; do
    name=${target##*/fuzz_}
    corpus=$build/fuzz/corpus/$name log=$build/fuzz/$name.log
    mkdir -p "$corpus"
    "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=20000 -print_final_stats=1 \
        -artifact_prefix="$build/fuzz/" "$corpus" "$seeds/$name" >"$log" 2>&1
    status=$?
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ $status -eq 0 ]; then
        echo "$name: clean, ${executed:-0} inputs in $seconds s"
    else
        echo "$name: exit status $status; $log ends:"
        tail -n 30 "$log" | sed 's/^/    | /'
        found=1
    fi
done
exit $found

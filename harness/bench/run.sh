#!/bin/sh
# Benchmarks: sh run.sh BUILD BENCH-PROGRAM...   (ROUNDS=5 STEPS=10)
#
# 1. The kernels, one thread, by its processor time, and their roofline. 2. The harness: its own cost per case with the null implementation, cases per
# worker start, truths computed in a first and a second run. 3. net.sh, probes.sh. 4. The reference's training step against PyTorch
# fully_shard: same model, 2 ranks, one thread each, float32. The two take turns round by round; a round gives the
# ratio of their median step times (of rank 0), the result is the median of the rounds' ratios with
# their smallest and largest: for 5 rounds an interval of 93 % for the median (Hoefler and Belli, SC 2015: order statistics).
set -eu
build=$1
shift
rounds=${ROUNDS:-5} steps=${STEPS:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export FSDPMARK_CACHE="$work/cache"
python=$build/venv/bin/python
package=suite/implementations/python

echo "kernels"
# The roofline is drawn too: BUILD/bench/roofline/roofline.svg, .png.
for b in "$@"; do
    case $b in
    */bench_roofline) mkdir -p "$build/bench/roofline" && "$b" f32 "$build/bench/roofline" && sh harness/bench/roofline.sh "$build/bench/roofline" ;;
    *) "$b" ;;
    esac
done

echo "harness"
for run in first second; do
    "$build/fsdpmark" check -i reference -p smoke --store "$work/r.db" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "  reference, smoke, $run run: $(tail -n 1 "$work/log")"
done
# Status 1 is right here: the null implementation trains nothing, so its cases FAIL.
"$build/fsdpmark" check -i null -p smoke --no-gate --store "$work/n.db" >"$work/log" 2>&1 || [ $? -eq 1 ] || { cat "$work/log"; exit 1; }
echo "  null, smoke: $(tail -n 1 "$work/log")"

echo "fsdpmark net over a bare loop around the call (shared memory, 2 ranks)"
status=0
sh harness/bench/net.sh "$build" || status=$? # told at the end, behind what else there is to see

"$build/fsdpmark" expand -i reference --case harness/bench/models.yaml -o "$work/cases"
echo "communication that is not hidden, and what the probes cost (2 ranks, one thread each)"
ROUNDS=$rounds STEPS=$steps sh harness/bench/probes.sh "$build" "$work"/cases/bench-*.json

echo "the reference's step against PyTorch fully_shard (2 ranks, one thread each, float32, AdamW)"
if [ ! -x "$python" ]; then
    echo "  skipped: no $python; make implementations makes it"
    exit $status
fi

# Median of the "seconds" of rank 0, first step left out as warm-up.
median() {
    grep -v '"rank": *1' "$1" | sed -n 's/.*"seconds": *\([0-9.e-]*\).*/\1/p' | sed 1d | sort -g |
        awk '{ v[NR] = $1 } END { if (NR == 0) exit 1; print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
reference() { mpirun -n 2 --bind-to none "$build/fsdp-reference" --bench "$1" >"$2"; }
torch() {
    port=$(awk 'BEGIN { srand(); print int(20000 + 12000 * rand()) }') # below those that the system gives to others
    model=$("$python" -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["model"]))' "$1")
    rows=$("$python" -c 'import json, sys; c = json.load(open(sys.argv[1])); print(c["global_rows"] // c["world_size"])' "$1")
    for rank in 1 0; do
        env PYTHONPATH=$package RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
            timeout 300 "$python" -m fsdpmark_adapter.bench --implementation pytorch-fsdp2 --model "$model" --batch "$rows" \
            --steps "$steps" >"$2.$rank" 2>"$2.$rank.err" &
    done
    wait
    cat "$2.0" "$2.1" >"$2"
    [ -s "$2.0" ] || { cat "$2.0.err"; exit 1; }
}
for case in "$work"/cases/bench-*.json; do
    name=$(basename "$case" .json)
    tokens=$(sed -n 's/.*"context": *\([0-9]*\).*/\1/p' "$case")
    : >"$work/ratios"
    round=1
    while [ $round -le "$rounds" ]; do
        reference "$case" "$work/a"
        torch "$case" "$work/b"
        a=$(median "$work/a") b=$(median "$work/b")
        awk -v a="$a" -v b="$b" -v r=$round -v n="$rounds" 'BEGIN { printf "    round %d of %d: reference %.2f ms, PyTorch %.2f ms, ratio %.2f\n", r, n, 1e3 * a, 1e3 * b, b / a }'
        awk -v a="$a" -v b="$b" 'BEGIN { print b / a, a, b }' >>"$work/ratios"
        round=$((round + 1))
    done
    sort -g "$work/ratios" | awk -v name="$name" -v context="$tokens" '{ v[NR] = $1 } END {
        m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
        printf "  %-28s tokens per second, reference over PyTorch: %.2f (%.2f to %.2f, %d rounds)\n", name, m, v[1], v[NR], NR }'
done
exit $status

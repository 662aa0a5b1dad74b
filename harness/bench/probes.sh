#!/bin/sh
# What of communication is exposed, and what the probes cost: sh probes.sh BUILD CASE.json...   (ROUNDS=7 STEPS=20)
#
# Exposed: the reference's own turns (reference/worker/overlap.h), and PyTorch fully_shard against the same on PyTorch's fake process group.
# Cost: with all probes that were built loaded, of each four steps two are recorded and two are not (reference/worker/bench.c); each four
# give the ratio of their sums, of rank 0, and the result is the median of the ratios of all rounds. So both kinds share a start, its memory and
# its moment. What is left when nothing is recorded, a wrapper's look whether to record, is in the second figure: starts with all probes
# loaded against starts with none, in turn; a round gives the ratio of the medians. Starts differ among themselves by more than that.
# Every result comes with the nonparametric interval of order statistics, and its coverage (Hoefler and Belli, SC 2015).
set -eu
build=$(cd "$1" && pwd)
shift
rounds=${ROUNDS:-7} steps=${STEPS:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
python=$build/venv/bin/python
libraries=$build/libfsdpmark-probe.so words=
for probe in heap socket mpi nccl cuda wait; do
    [ -f "$build/libfsdpmark-probe-$probe.so" ] || continue
    libraries=$libraries:$build/libfsdpmark-probe-$probe.so words=$words${words:+,}$probe
done

# Median of the "seconds" or "processor_seconds" of a file's lines, the first three left out as warm-up.
median() {
    sed -n 's/.*"'"$2"'": *\([0-9.e-]*\).*/\1/p' "$1" | sed 1,3d | sort -g |
        awk '{ v[NR] = $1 } END { if (NR == 0) exit 1; print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
# Median, interval of at least 95 % where there are six or more, else the extremes, and what the interval covers. Above 1000 values the binomial
# distribution's normal limit.
interval() { # what the values are, one a line
    sort -g | awk -v what="$1" '{ v[NR] = $1 } END {
        n = NR; term = 0.5 ^ n; below = 0; d = 0
        while (n <= 1000 && below + term <= 0.025 && d < int(n / 2)) { below += term; term *= (n - d) / (d + 1); d++ }
        if (n > 1000) { d = int(n / 2 - 0.98 * sqrt(n)); below = 0.025 }
        if (d == 0) { d = 1; below = 0.5 ^ n }
        m = n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        printf "%.4f (%.4f to %.4f, %d %s, interval of %.0f %%)\n", m, v[d], v[n + 1 - d], n, what, 100 * (1 - 2 * below) }'
}
# Of each four steps, the recorded by the unrecorded, the first four left out as warm-up.
fours() { # file "seconds"|"processor_seconds"
    sed -n 's/.*"'"$2"'": *\([0-9.e-]*\).*"recorded": *\([a-z]*\).*/\1 \2/p' "$1" | sed 1,4d |
        awk '$2 == "true" { r += $1; a++ } $2 == "false" { u += $1; b++ } NR % 4 == 0 { if (a == 2 && b == 2) print r / u; r = u = a = b = 0 }'
}
# A rank's environment with or without probes, which are preloaded into it alone.
with() { # probes|none rank command...
    what=$1 rank=$2
    shift 2
    if [ "$what" = probes ]; then set -- env LD_PRELOAD="$libraries" FSDPMARK_PROBES="$words" FSDPMARK_JOB="$work/job" RANK="$rank" "$@"; fi
    rm -f "$work/job/probes.rank$rank"
    mkdir -p "$work/job"
    "$@"
}
reference() { # probes|none|free case file
    cat >"$work/rank.sh" <<'END'
[ "$WHAT" = probes ] && export FSDPMARK_PROBES="$WORDS" FSDPMARK_JOB="$JOB" RANK=$OMPI_COMM_WORLD_RANK LD_PRELOAD="$LIBRARIES"
exec "$@"
END
    rm -rf "$work/job" && mkdir -p "$work/job"
    WHAT=$1 WORDS=$words JOB=$work/job LIBRARIES=$libraries timeout 300 mpirun -n 2 --bind-to none sh "$work/rank.sh" "$build/fsdp-reference" --bench "$2" $((steps + 3)) >"$3"
}
torch() { # probes|none|free case file
    port=$(awk 'BEGIN { srand(); print int(20000 + 12000 * rand()) }') # below those that the system gives to others
    model=$("$python" -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["model"]))' "$2")
    rows=$("$python" -c 'import json, sys; c = json.load(open(sys.argv[1])); print(c["global_rows"] // c["world_size"])' "$2")
    for rank in 1 0; do
        with "$1" $rank env PYTHONPATH=suite/implementations/python RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
            MASTER_PORT="$port" timeout 300 "$python" -m fsdpmark_adapter.bench --implementation pytorch-fsdp2 --model "$model" --batch "$rows" \
            --steps $((steps + 3)) $([ "$1" = free ] && echo --free) >"$3.$rank" 2>"$3.err" &
    done
    wait
    [ -s "$3.0" ] || { cat "$3.err"; exit 1; }
    cp "$3.0" "$3"
}
seen() { # that the probes wrote records at all, or the cost is that of nothing
    for rank in 0 1; do
        [ -s "$work/job/probes.rank$rank" ] || { echo "  no records of rank $rank: the probes were not loaded"; exit 1; }
    done
}
recorded() { # reference|torch case: what recording costs, and that it was done at all
    : >"$work/fours" && : >"$work/fours.processor"
    few=$steps
    $1 probes "$2" "$work/probes"
    steps=$(median "$work/probes" seconds | awk -v few="$few" '{ n = int(20 / $1); print (n < few ? few : n > 10000 ? 10000 : n) }') # twenty seconds
    for round in $(seq "$rounds"); do
        $1 probes "$2" "$work/probes"
        seen
        fours "$work/probes" seconds >>"$work/fours"
        fours "$work/probes" processor_seconds >>"$work/fours.processor"
    done
    steps=$few
    printf '    step recorded by probes (%s) over step unrecorded: ' "$words"
    interval "fours of steps" <"$work/fours"
    printf '      by processor time: '
    interval "fours of steps" <"$work/fours.processor"
}
cost() { # by starts, from the pairs
    printf '    start with probes over start without: '
    awk '{ print $1 / $2 }' "$work/pairs" | interval rounds
    printf '      by processor time: '
    awk '{ print $3 / $4 }' "$work/pairs" | interval rounds
}
turns() { # reference|torch a b case: median seconds of a and of b, then processor seconds, a line a round
    for round in $(seq "$rounds"); do
        order="$2 $3"
        [ $((round % 2)) -eq 0 ] && order="$3 $2"
        for what in $order; do
            $1 "$what" "$4" "$work/$what"
            [ "$what" = probes ] && seen
        done
        echo "$(median "$work/$2" seconds) $(median "$work/$3" seconds) $(median "$work/$2" processor_seconds) $(median "$work/$3" processor_seconds)"
    done
}

for case in "$@"; do
    name=$(basename "$case" .json)
    echo "  $name, reference: exposed communication"
    timeout 600 mpirun -n 2 --bind-to none "$build/fsdp-reference" --overlap "$case" $((4 * steps)) | tail -n 1 |
        sed 's/[][{}",:]/ /g' | awk '{ printf "    step %.3f ms; exposed %.3f ms (%.3f to %.3f), share %.3f (%.3f to %.3f); over the step in series %.3f (%.3f to %.3f); %d steps, intervals of 95 %%\n",
            1e3 * $4, 1e3 * $8, 1e3 * $9, 1e3 * $10, $12, $13, $14, $16, $17, $18, $2 }'
    recorded reference "$case"
    turns reference probes none "$case" >"$work/pairs"
    cost
    [ -x "$python" ] || { echo "  $name, PyTorch: skipped: no $python; make implementations makes it"; continue; }
    echo "  $name, PyTorch fully_shard over gloo"
    turns torch none free "$case" >"$work/pairs"
    printf '    exposed communication, share of the step: ' && awk '{ print ($1 - $2) / $1 }' "$work/pairs" | interval rounds
    recorded torch "$case"
    turns torch probes none "$case" >"$work/pairs"
    cost
done

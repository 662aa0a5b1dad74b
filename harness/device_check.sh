#!/bin/sh
# What a machine with one NVIDIA GPU shows of this project, within four minutes, without network and without root:
#
#   sh harness/device_check.sh [--emulated] [--no-build] [BUILD] [OUT.json]      (build, BUILD/device_check.json)
#
# Parts, in this order: what the machine has; build (make CUDA=1 for its own architecture); the kernels' tests on the device; profile smoke through
# cuda + mpi at 1, 2 and 4 ranks and through cuda + nccl at one; rates of the kernels against the card's own copy and matrix product; one training step
# against PyTorch's, eager and compiled, where a PyTorch with CUDA is found (PYTHON=..., BUILD/venv, python3). Each has its own deadline; one that fails, or
# has no time left, is written as that, and the rest goes on. OUT.json says what came of each. Exit status 1 if a part failed, 2 for a bad argument.
#
# --no-build: what is in BUILD is taken, and its tests are those that are there. --emulated: over the emulation of kernels/cuda/tests, small sizes, to see that the
# script runs; each line of the file then says "emulated": true, and nothing in it is a GPU's.
set -u
emulated=0 building=1
while :; do
    case ${1:-} in
    --emulated) emulated=1 ;;
    --no-build) building=0 ;;
    -*) echo "device_check.sh: found '$1', expected --emulated, --no-build, BUILD, OUT.json" >&2; exit 2 ;;
    *) break ;;
    esac
    shift
done
for word in "$@"; do # options come first
    case $word in -*) echo "device_check.sh: found '$word' behind BUILD, expected --emulated and --no-build before it, then BUILD, OUT.json" >&2; exit 2 ;; esac
done
[ $# -le 2 ] || { echo "device_check.sh: found $# words, expected BUILD and OUT.json" >&2; exit 2; }
build=${1:-build}
out=${2:-$build/device_check.json}
limit=${SECONDS_ALL:-235}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
start=$(date +%s)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 CMOCKA_MESSAGE_OUTPUT=TAP
export FSDPMARK_BUILD="$build" FSDPMARK_CACHE="$work/cache"
failed=0
: >"$work/needs" >"$work/parts" >"$work/smoke" >"$work/rates" >"$work/steps"
mkdir -p "$build"

text() { tr '\t\n' '  ' | tr -cd '\040-\176' | cut -c1-300 | sed 's/\\/\\\\/g; s/"/\\"/g'; } # of a JSON string; cut before quotes are escaped, and in ASCII, so that neither is cut in two
left() { echo $((limit - $(date +%s) + start)); }
label() { [ $emulated -eq 0 ] || printf ', "emulated": true'; }
lines() { sed '$!s/$/,/; s/^/    /' "$1"; }

part() { # name, status, seconds, detail
    printf '{"part": "%s", "status": "%s", "seconds": %d, "detail": "%s"%s}\n' "$1" "$2" "$3" "$(printf '%s' "$4" | text)" "$(label)" >>"$work/parts"
    printf '  %-26s %-10s %3d s  %s\n' "$1" "$2" "$3" "$4"
    case $2 in failed | "timed out") failed=1 ;; esac
}

# Runs a command within its deadline and what is left of all; its output is in $work/log. What it says at its end becomes the detail.
timed() { # name, seconds, command...
    name=$1 seconds=$2
    shift 2
    : >"$work/log"
    [ "$seconds" -le "$(left)" ] || seconds=$(left)
    if [ "$seconds" -le 2 ]; then part "$name" "left out" 0 "no time was left"; status=none; return 1; fi
    began=$(date +%s)
    timeout -k 5 "$seconds" "$@" >"$work/log" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    detail=$(grep -v '^ *$' "$work/log" | tail -n 1)
    case $status in
    0) part "$name" passed $took "$detail" ;;
    3) part "$name" skipped $took "$detail" ;;
    124 | 137) part "$name" "timed out" $took "after $seconds s: $detail" ;;
    *) part "$name" failed $took "exit status $status: $detail" ;;
    esac
    [ $status -eq 0 ]
}

need() { # name, what was found (empty: nothing), what it is for
    printf '{"name": "%s", "has": %s, "found": "%s"%s}\n' "$1" "$([ -n "$2" ] && echo true || echo false)" "$(printf '%s' "$2" | text)" "$(label)" >>"$work/needs"
    [ -n "$2" ] || printf '  lacks %s: %s\n' "$1" "$3"
}
module() { need "$1" "$(pkg-config --modversion "$1" 2>/dev/null)" "make cannot build without it (Debian: $2)"; }

# ---- the machine ----
echo "device check$([ $emulated -eq 0 ] || echo ', EMULATED: nothing here is of a GPU')"
need gcc "$(gcc --version 2>/dev/null | head -n 1)" "make needs it"
need make "$(make --version 2>/dev/null | head -n 1)" "nothing can be built"
need mpirun "$(mpirun --version 2>/dev/null | head -n 1)" "no case of several ranks can run"
for m in openblas:libopenblas-dev yaml-0.1:libyaml-dev jansson:libjansson-dev sqlite3:libsqlite3-dev libxxhash:libxxhash-dev ompi-c:libopenmpi-dev cmocka:libcmocka-dev; do
    module "${m%%:*}" "${m#*:}"
done
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
need nvcc "${nvcc:+$("$nvcc" --version 2>/dev/null | sed -n 's/.*release //p')}" "CUDA sources cannot be compiled"
gpu=$(nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1)
[ $emulated -eq 1 ] || need GPU "$gpu" "there is nothing to check on: --emulated runs this script without one"
arch=$(printf '%s' "$gpu" | cut -d, -f2 | tr -d ' .')

# ---- build ----
programs=$build manifest=reference-cuda tests=$build/tests/device small=
[ $emulated -eq 0 ] || { programs=$build/emulated manifest=kernels/cuda/tests/emulated.yaml tests=$build/tests/emulated small=--small; }
if [ $building -eq 0 ]; then
    part build "left out" 0 "--no-build: what is in $build is taken"
elif [ $emulated -eq 1 ]; then
    timed build 100 make -j"$(nproc)" BUILD="$build" CUDA=0 all emulated
else
    timed build 110 make -j"$(nproc)" BUILD="$build" CUDA=1 CUDA_ARCHS="${arch:-90}" all device-tests
fi

# ---- tests of the kernels ----
found=0
for t in "$tests"/test_*; do
    case $t in *.d | *'*') continue ;; esac
    found=1
    timed "$(basename "$t")" 40 "$t"
    ok=$(grep -c '^ok' "$work/log")
    [ "$ok" -gt 0 ] || [ $status = none ] || part "$(basename "$t")" failed 0 "it ran no test"
done
[ $found -eq 1 ] || part "kernel tests" failed 0 "none in $tests"

# ---- smoke ----
smoke() { # name, variant, cases
    timed "$1" 60 "$build/fsdpmark" check -i "$manifest:$2" -p smoke -k "$3" --store "$work/results.db"
    [ $status != none ] || return
    line=$(sed -n 's/^\([0-9]* PASS, .*\) (cases; .*/\1/p' "$work/log" | tail -n 1)
    printf '{"smoke": "%s", "result": "%s"%s}\n' "$1" "${line:-no case was judged}" "$(label)" >>"$work/smoke"
    case $2,$line in "nccl,0 PASS, 0 FAIL, "*", 0 BROKEN") part "$1: cases" skipped 0 "all were: the toolkit alone has no NCCL (docs/cuda.md)" ;; *,"0 PASS"* | *,) part "$1: cases" failed 0 "no case passed" ;; *) printf '  %-26s %s\n' "" "$line" ;; esac
}
smoke "smoke, cuda + mpi" mpi '*.n1,*.n1.*,*.n2,*.n2.*,*.n4,*.n4.*'
smoke "smoke, cuda + nccl, N = 1" nccl '*.n1,*.n1.*'

# ---- rates ----
seconds=30
[ "$seconds" -le $(($(left) - 45)) ] || seconds=$(($(left) - 45))
if [ "$seconds" -gt 3 ]; then
    timed rates $((seconds + 10)) "$programs/bench-cuda" $small "$seconds"
    grep '^{' "$work/log" >"$work/rates"
    # The claim: kernels that only move memory reach 85 % of a copy.
    [ $emulated -eq 1 ] || awk -F'"' '/"kernel"/ { match($0, /"of_copy": [0-9.e+-]*/); v = substr($0, RSTART + 11, RLENGTH - 11) + 0; printf "    %-24s %-5s %5.0f %% of a copy\n", $4, $8, 100 * v }' "$work/rates"
else
    part rates "left out" 0 "no time was left"
fi

# ---- one training step ----
model=$([ $emulated -eq 1 ] && echo small || echo large)
"$build/fsdpmark" expand -i reference --case harness/bench/device_models.yaml -k "device-$model*" -o "$work/cases" >"$work/expand" 2>&1 || cat "$work/expand"
case=$(ls "$work"/cases/device-"$model"*.json 2>/dev/null | head -n 1)
peak=$(sed -n 's/.*"peak": "matmul", "type": "bf16", "gflop_per_s": \([0-9.e+]*\).*/\1/p' "$work/rates")
# Products alone, a causal half of attention's, backward twice the forward (docs/metrics.md, flop rate): flop of a token.
number() { tr -d '\n' <"${case:-/dev/null}" | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"; }
flop=$(awk -v d="$(number dim)" -v L="$(number layers)" -v F="$(number ffn)" -v V="$(number vocab)" -v T="$(number context)" \
    'BEGIN { print 3 * (2 * L * (4 * d * d + 2 * d * F) + 2 * V * d + 2 * L * T * d) }')
one() { # who, tokens per second
    awk -v who="$1" -v t="$2" -v flop="$flop" -v peak="${peak:-0}" -v label="$(label)" 'BEGIN {
        printf "{\"step\": \"%s\", \"tokens_per_second\": %.6g, \"tflop_per_second\": %.4g, \"mfu_of_measured_matmul\": %s%s}\n", who, t, 1e-12 * t * flop, (peak > 0 ? sprintf("%.4g", 1e-9 * t * flop / peak) : "null"), label }' >>"$work/steps"
}
median() { sed -n 's/.*"tokens_per_second": *\([0-9.e+]*\).*/\1/p' "$work/log" | sed 1,2d | sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
if timed "step, reference" 40 env FSDPMARK_DEVICE=cuda FSDPMARK_COLLECTIVES=mpi "$programs/fsdp-reference-cuda" --bench "${case:-none}" "$([ $emulated -eq 1 ] && echo 5 || echo 30)"; then
    one reference "$(median)"
fi
for python in "${PYTHON:-}" "$build/venv/bin/python" python3; do
    [ -z "$python" ] || ! "$python" -c 'import torch' 2>/dev/null || break
done
for mode in eager compiled; do
    if [ $emulated$mode = 1compiled ]; then part "step, PyTorch compiled" "left out" 0 "compiled for a CPU it says nothing"; continue; fi
    if ! command -v "$python" >/dev/null; then part "step, PyTorch $mode" skipped 0 "no $python"; continue; fi
    if timed "step, PyTorch $mode" $([ $mode = eager ] && echo 30 || echo 60) env PYTHONPATH=suite/implementations/python "$python" harness/bench/torch_step.py "${case:-none}" 6 $mode $([ $emulated -eq 1 ] && echo cpu || echo cuda); then
        one "PyTorch $mode$([ $emulated -eq 0 ] || echo ' on the CPU')" "$(sed -n 's/.*"tokens_per_second": *\([0-9.e+]*\).*/\1/p' "$work/log")"
    fi
done

# ---- what was claimed ----
# Rows of less than 20 flop a byte are bound by memory on any such card; they shall reach 85 % of a copy.
awk -v label="$(label)" 'function number(key) { return match($0, "\"" key "\": [0-9.e+-]*") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0 }
    function word(key) { match($0, "\"" key "\": \"[^\"]*"); return substr($0, RSTART + length(key) + 5, RLENGTH - length(key) - 5) }
    /"kernel"/ && !/"failed"/ && number("gflop_per_s") < 20 * number("gb_per_s") { of++; if (number("of_copy") >= 0.85) met++; else missed = missed (missed ? ", " : "") sprintf("%s %s %.2f", word("kernel"), word("type"), number("of_copy")) }
    END { printf "{\"claim\": \"memory-bound kernels reach 85 %% of a copy\", \"met\": %d, \"of\": %d, \"missed\": \"%s\"%s}\n", met, of, missed, label }' "$work/rates" >"$work/claims"
awk -v label="$(label)" 'function number(key) { return match($0, "\"" key "\": [0-9.e+-]*") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0 : 0 }
    /"reference"/ { own = number("tokens_per_second") } /"PyTorch/ { match($0, /PyTorch [a-z]*/); who[substr($0, RSTART, RLENGTH)] = number("tokens_per_second") }
    END { for (w in who) if (own > 0 && who[w] > 0) printf "{\"claim\": \"tokens per second, reference over %s\", \"ratio\": %.4g%s}\n", w, own / who[w], label }' "$work/steps" >>"$work/claims"
[ $emulated -eq 1 ] || sed 's/^/    /' "$work/claims"

# ---- the file ----
{
    printf '{\n  "emulated": %s,\n  "gpu": "%s",\n  "date": "%s",\n  "seconds": %d,\n' "$([ $emulated -eq 1 ] && echo true || echo false)" "$([ $emulated -eq 1 ] && echo 'none: EMULATION' || printf '%s' "$gpu" | text)" \
        "$(date -u +%Y-%m-%dT%H:%M:%SZ)" $(($(date +%s) - start))
    for list in needs parts smoke rates steps claims; do
        printf '  "%s": [\n' $list
        [ ! -s "$work/$list" ] || lines "$work/$list"
        printf '  ]%s\n' "$([ $list = claims ] || echo ,)"
    done
    printf '}\n'
} >"$out"
echo "$(grep -c '"status": "passed"' "$work/parts") parts passed, $(grep -c '"status": "\(failed\|timed out\)"' "$work/parts") failed, $(grep -c '"status": "\(skipped\|left out\)"' "$work/parts") left out; $(($(date +%s) - start)) s; $out"
[ $failed -eq 0 ]

#!/bin/sh
# Runs the tests and counts them: sh run.sh unit|san|all BUILD TEST-PROGRAM...
#
# unit: the C unit tests. san: the same programs, built with sanitizers, plus one run of the harness
# on the reference and the installed library. all: unit, san (built by make SAN=1), what others get (manual pages, the
# installed library, docs/adding.md followed word by word), the Python package's tests, selftest, and the smoke
# profile on the reference, on an emulation of a GPU and on PyTorch. The last line is "N passed, N failed, N skipped"; exit 1 on
# any failure. A stage that cannot run here is counted as skipped, with its reason.
set -u
mode=$1 build=$2
shift 2
passed=0 failed=0 skipped=0
logs=$build/test-logs
mkdir -p "$logs"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
export CMOCKA_MESSAGE_OUTPUT=TAP
export FSDPMARK_BUILD="$build"
# Open MPI and its helpers keep memory until exit; the suppressions name their libraries only.
export LSAN_OPTIONS="suppressions=$PWD/harness/tests/lsan.supp:print_suppressions=0"
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0"
export UBSAN_OPTIONS=print_stacktrace=1

count() { # passed failed skipped
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# One cmocka program: its TAP lines are counted; a program that dies, or that ran no test, failed.
program() {
    name=${1#"$build"/tests/}
    log=$logs/$(echo "$name" | tr / -).log
    start=$(date +%s)
    timeout 600 "$1" >"$log" 2>&1
    status=$?
    # cmocka says "not ok" of a test that it skipped.
    skip=$(grep -ci '^\(not \)\?ok.*# *skip' "$log")
    ok=$(grep '^ok' "$log" | grep -vci '# *skip'); bad=$(grep '^not ok' "$log" | grep -vci '# *skip')
    if [ $status -ne 0 ] && [ "$bad" -eq 0 ] || [ $((ok + bad + skip)) -eq 0 ]; then bad=$((bad + 1)); fi
    count "$ok" "$bad" "$skip"
    printf '  %-44s %4d passed %3d failed %3d skipped  %3d s\n' "$name" "$ok" "$bad" "$skip" $(($(date +%s) - start))
    if [ "$bad" -gt 0 ]; then
        echo "    exit status $status; $log ends:"
        grep -v '^ok' "$log" | tail -n 25 | sed 's/^/    | /'
    fi
}

# One command that must end with a given status.
stage() { # name expected-status seconds command...
    name=$1 expected=$2 limit=$3
    shift 3
    log=$logs/$(echo "$name" | tr ' /' '--').log
    start=$(date +%s)
    timeout "$limit" "$@" >"$log" 2>&1
    status=$?
    if [ $status -eq "$expected" ]; then count 1 0 0; word=passed; else count 0 1 0; word=FAILED; fi
    printf '  %-44s %s (exit status %d) %d s\n' "$name" "$word" $status $(($(date +%s) - start))
    if [ $word = FAILED ]; then tail -n 40 "$log" | sed 's/^/    | /'; else tail -n 1 "$log" | sed 's/^/    | /'; fi
}

skip() { # name reason
    count 0 0 1
    printf '  %-44s skipped: %s\n' "$1" "$2"
}

JUDGED="pytorch-ddp pytorch-zero1 pytorch-fsdp1 pytorch-fsdp2 pytorch-fsdp2-tp pytorch-fsdp2-pp deepspeed-zero1 deepspeed-zero2 deepspeed-zero3 jax-fsdp"

# Installs what an implementation needs. Without a package index that is a skip, with CI set a failure.
installed() { # implementation
    log=$logs/install-$1.log
    $MAKE --no-print-directory "implementation-$1" >"$log" 2>&1 && return 0
    reason="make implementation-$1 failed; $log ends: $(tail -n 1 "$log")"
    if [ -n "${CI:-}" ]; then count 0 1 0; echo "  $1: FAILED: $reason"; else skip "$1" "$reason"; fi
    return 1
}

case $mode in
unit | san) heading="unit tests ($build)" ;;
all) heading="unit tests" ;;
*) echo "run.sh: found mode '$mode', expected unit, san or all" >&2; exit 2 ;;
esac
echo "$heading"
for t in "$@"; do program "$t"; done

stage "manual pages say what there is" 0 60 sh harness/tests/manual.sh names "$build"

if [ "$mode" = san ]; then
    stage "the installed library, sanitized" 0 300 sh harness/tests/installed.sh "$build"
    stage "reference, profile tiny, sanitized" 0 900 "$build/fsdpmark" check -i reference -p tiny --store "$build/test.db"
fi

if [ "$mode" = all ]; then
    echo "sanitizers"
    $MAKE --no-print-directory -j"$(nproc)" SAN=1 BUILD="$build/san" test >"$logs/san.log" 2>&1
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/san.log" | tail -n 1)
    if [ -n "$line" ]; then
        # shellcheck disable=SC2046
        count $(echo "$line" | sed 's/[^0-9]\{1,\}/ /g')
        echo "  $line (log: $logs/san.log)"
        case $line in *" 0 failed"*) ;; *) grep -A 30 -E '[1-9][0-9]* failed|FAILED' "$logs/san.log" | head -n 120 | sed 's/^/    | /' ;; esac
    else
        count 0 1 0
        echo "  the sanitized build did not finish; $logs/san.log ends:"
        tail -n 40 "$logs/san.log" | sed 's/^/    | /'
    fi

    echo "for others"
    if command -v mandoc >/dev/null || command -v man >/dev/null; then
        stage "manual pages, lint" 0 60 sh harness/tests/manual.sh lint
    else
        skip "manual pages, lint" "found neither mandoc nor man; make setup installs mandoc"
    fi
    stage "the installed library" 0 300 sh harness/tests/installed.sh "$build"
    stage "docs/adding.md, word by word" 0 600 sh harness/tests/adding.sh "$build"

    echo "the product"
    stage "reference, profile smoke" 0 900 "$build/fsdpmark" check -i reference -p smoke --store "$build/test.db"
    stage "reference, profile core" 0 1800 "$build/fsdpmark" check -i reference -p core --store "$build/test.db"
    stage "reference, profile traffic" 0 1800 "$build/fsdpmark" check -i reference -p traffic --store "$build/test.db"
    stage "reference, profile memory" 0 1800 "$build/fsdpmark" check -i reference -p memory --store "$build/test.db"
    stage "selftest, faults in the reference" 0 900 "$build/fsdpmark" selftest --in reference --store "$build/test.db"
    echo "EMULATION of a GPU: nothing here is a GPU's result (docs/cuda.md)"
    for v in mpi mpi-2 mpi-latest nccl nccl-2 nccl-latest nccl-first; do
        stage "EMULATED cuda, $v, profile smoke" 0 300 "$build/fsdpmark" check -i "kernels/cuda/tests/emulated.yaml:$v" -p smoke --store "$build/test.db"
    done
    stage "EMULATED cuda, seeded faults" 0 300 sh kernels/cuda/tests/faults.sh "$build"
    stage "EMULATED device check" 0 400 sh harness/device_check.sh --emulated --no-build "$build"
    # Those whose smoke fits; the rest: make implementations && build/fsdpmark check --all-implementations -p smoke
    for i in $JUDGED; do
        if installed "$i"; then
            stage "$i, profile smoke" 0 900 "$build/fsdpmark" check -i "$i" -p smoke --store "$build/test.db"
        fi
    done
    if [ -x "$build/venv/bin/python" ]; then
        stage "python package" 0 900 env PYTHONPATH=suite/implementations/python "$build/venv/bin/python" -m unittest discover -s suite/implementations/python/tests
        program "$build/tests/harness/probes/test_gloo" # among the unit tests it finds no PyTorch on a new machine
        for i in pytorch deepspeed jax; do
            stage "selftest, faults in $i" 0 900 "$build/fsdpmark" selftest --in $i --store "$build/test.db"
        done
    fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

#!/bin/sh
# EMULATION, no GPU: faults that only a device can have must be found: sh faults.sh BUILD
#
# Each variant of emulated_faulty.yaml carries one, under the seed that stands there. It is detected if the check that is named here says FAIL in one of
# the cases below; the same cases, under the same seed, must PASS in that build without a fault and in the build that has none.
set -u
build=$1
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cases='exact-mlp.full*.n2*,gpt-clip.full*.n2.l2'
wrong=0

check() { # manifest
    "$build/fsdpmark" check -i "$here/$1" -p smoke -k "$cases" --no-gate -v --store "$work/faults.db" >"$work/log" 2>&1
}

clean() { # manifest, what it is
    if check "$1"; then
        printf '  %-28s PASS\n' "$2"
    else
        printf '  %-28s FALSE ALARM (exit status %d)\n' "$2" $?
        grep -A 1 '^  \(FAIL\|BROKEN\)' "$work/log" | head -n 20
        wrong=$((wrong + 1))
    fi
}

detect() { # variant, the check that must find it
    check "emulated_faulty.yaml:$1"
    status=$?
    found=$(grep -c "^  FAIL    $2:\|^  FAIL    $2 \|^  FAIL    $2\$" "$work/log")
    if [ $status -eq 1 ] && [ "$found" -gt 0 ]; then
        printf '  %-28s detected by %s in %d cases\n' "$1" "$2" "$found"
    else
        printf '  %-28s MISSED by %s (exit status %d)\n' "$1" "$2" $status
        tail -n 5 "$work/log"
        wrong=$((wrong + 1))
    fi
}

clean emulated.yaml:nccl "correct build"
clean emulated_faulty.yaml "faulty build without a fault"
detect gather step-bitwise
detect follow step-bitwise
detect stream step-bitwise
detect barrier loss-per-step
echo "$wrong wrong of 2 correct builds and 4 seeded faults"
[ $wrong -eq 0 ]

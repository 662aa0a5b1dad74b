#!/bin/sh
# Makes the virtual environment of the Python implementations: install.sh BUILD -> BUILD/venv
#
# The lock file is chosen by the machine (with or without an NVIDIA GPU) and its checksum, with the
# interpreter's version, is the stamp: a second call does nothing, an interrupted call goes on where
# pip left off, a changed lock installs again. PYTHON=... names another interpreter.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-build}
venv=$build/venv

say() { printf '  VENV    %s\n' "$*"; }
die() { printf 'implementations: %s\n' "$*" >&2; exit 2; }

has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }

find_python() {
    for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 /usr/bin/python3; do
        "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || continue
        "$candidate" -c 'import venv, ensurepip' 2>/dev/null || continue
        command -v "$candidate"
        return 0
    done
    return 1
}

python=$(find_python) || die "found no Python 3.11 to 3.14 with its venv module, expected one: apt-get install python3-venv (or set PYTHON)"
if has_gpu; then lock=$here/python/pytorch-gpu.lock deps=''; else lock=$here/python/pytorch-cpu.lock deps=--no-deps; fi
stamp="$(sha256sum <"$lock" | cut -c1-16) $("$python" -V)"

if [ "$(cat "$venv/stamp" 2>/dev/null)" = "$stamp" ] && "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    say "$venv is up to date ($(basename "$lock"))"
    exit 0
fi

if [ ! -x "$venv/bin/pip" ] || [ "$("$venv/bin/python" -V 2>/dev/null)" != "$("$python" -V)" ]; then
    say "$venv with $("$python" -V)"
    mkdir -p "$build" && rm -rf "$venv" && "$python" -m venv "$venv" || die "$venv: could not be made by $python -m venv"
fi

total=$(grep -c '^[a-z]' "$lock")
count=0
for package in $(grep '^[a-z]' "$lock"); do
    count=$((count + 1))
    say "[$count/$total] $package"
    # shellcheck disable=SC2086 # $deps is one option or none
    "$venv/bin/pip" install --quiet --disable-pip-version-check $deps "$package" >"$venv/pip.log" 2>&1 || {
        tail -3 "$venv/pip.log" >&2
        die "$package could not be installed, expected a reachable package index (offline? set PIP_INDEX_URL or PIP_FIND_LINKS; log: $venv/pip.log)"
    }
done

say 'import torch, safetensors'
"$venv/bin/python" -c 'import torch, safetensors, torch.distributed.fsdp; assert torch.distributed.is_available()' 2>"$venv/import.log" || {
    tail -3 "$venv/import.log" >&2
    die "torch was installed but does not load (log: $venv/import.log)"
}
printf '%s\n' "$stamp" >"$venv/stamp"
say "done: $(du -sh "$venv" | cut -f1)"

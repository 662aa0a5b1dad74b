#!/bin/sh
# Installs what Python implementations need into virtual environments: install.sh BUILD [NAME...]
#
# NAME is a folder beside this file; without one, all of them. Environment `torch` is BUILD/venv and starts with
# python/pytorch-{cpu,gpu}.lock, chosen by the machine; any other, ENV, is BUILD/venv-ENV and starts empty. A folder's
# requirements.lock is laid on top, pinned and without dependencies; its comments may say
#   # environment: ENV     which one (torch unless said)
#   # options: ...         further options of pip for this file
# The checksum of what was installed is a stamp beside it: a second call does nothing, an interrupted one goes on where pip
# left off, a changed file installs again. PYTHON=... names another interpreter.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${1:-build}
[ $# -gt 0 ] && shift

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

is_python() { grep -q '\${python' "$here/$1/implementation.yaml" 2>/dev/null; }

# A comment's value in a lock file: told KEY FILE
told() { [ -f "$2" ] && sed -n "s/^# *$1: *//p" "$2" | head -1; }

environment_of() {
    environment=$(told environment "$here/$1/requirements.lock")
    printf '%s\n' "${environment:-torch}"
}

folder_of() { if [ "$1" = torch ]; then echo "$build/venv"; else echo "$build/venv-$1"; fi; }

# install_lock VENV LOCK STAMP OPTIONS: pip, one package at a time
install_lock() {
    venv=$1 lock=$2 stamp=$3 options=$4
    mark="$(sha256sum <"$lock" | cut -c1-16) $options"
    if [ "$(cat "$venv/$stamp" 2>/dev/null)" = "$mark" ]; then return 0; fi
    total=$(grep -c '^[a-zA-Z]' "$lock")
    count=0
    for package in $(grep '^[a-zA-Z]' "$lock"); do
        count=$((count + 1))
        say "$(basename "$venv") [$count/$total] $package"
        # shellcheck disable=SC2086 # options are words
        "$venv/bin/pip" install --quiet --disable-pip-version-check $options "$package" >"$venv/pip.log" 2>&1 || {
            tail -3 "$venv/pip.log" >&2
            die "$package could not be installed, expected a reachable package index (offline? set PIP_INDEX_URL or PIP_FIND_LINKS; log: $venv/pip.log)"
        }
    done
    printf '%s\n' "$mark" >"$venv/$stamp"
}

prepare() { # ENVIRONMENT
    venv=$(folder_of "$1")
    if [ ! -x "$venv/bin/pip" ] || [ "$("$venv/bin/python" -V 2>/dev/null)" != "$("$python" -V)" ]; then
        say "$venv with $("$python" -V)"
        mkdir -p "$build" && rm -rf "$venv" && "$python" -m venv "$venv" || die "$venv: could not be made by $python -m venv"
    fi
    [ "$1" = torch ] || return 0
    if has_gpu; then lock=$here/python/pytorch-gpu.lock deps=''; else lock=$here/python/pytorch-cpu.lock deps=--no-deps; fi
    install_lock "$venv" "$lock" stamp "$deps"
    [ -f "$venv/loads" ] || "$venv/bin/python" -c 'import torch, safetensors, torch.distributed.fsdp; assert torch.distributed.is_available()' 2>"$venv/import.log" || {
        tail -3 "$venv/import.log" >&2
        die "torch was installed but does not load (log: $venv/import.log)"
    }
    : >"$venv/loads"
}

if [ $# -eq 0 ]; then
    for manifest in "$here"/*/implementation.yaml; do
        name=$(basename "$(dirname "$manifest")")
        if is_python "$name"; then set -- "$@" "$name"; fi
    done
fi

python=''
prepared=' '
for name; do
    [ -f "$here/$name/implementation.yaml" ] || die "found no implementation '$name', expected a folder of $here"
    if ! is_python "$name"; then say "$name needs nothing but make"; continue; fi
    [ -n "$python" ] || python=$(find_python) || die "found no Python 3.11 to 3.14 with its venv module, expected one: apt-get install python3-venv (or set PYTHON)"
    environment=$(environment_of "$name")
    case $prepared in *" $environment "*) ;; *) prepare "$environment"; prepared="$prepared$environment " ;; esac
    venv=$(folder_of "$environment") extra=$here/$name/requirements.lock
    if [ -f "$extra" ]; then
        # files of the same content are one installation
        install_lock "$venv" "$extra" "stamp.$(sha256sum <"$extra" | cut -c1-16)" "--no-deps $(told options "$extra")"
    fi
    say "$name is ready in $venv"
done

#!/bin/sh
# Installs the Debian packages that fsdpmark needs, and those that are named as arguments, of which this machine lacks some.
# Nothing is asked where nothing is missing. Uses sudo where the caller is not root.
set -eu
wanted="gcc g++ make pkg-config git libopenblas-dev libyaml-dev libjansson-dev libsqlite3-dev libxxhash-dev
openmpi-bin libopenmpi-dev libcmocka-dev libpapi-dev libhwloc-dev gnuplot-nox mandoc python3 python3-venv $*"
missing=
for p in $wanted; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || { echo "setup: missing:$missing; expected apt-get (Debian 12) to install them" >&2; exit 2; }
as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: missing:$missing; expected root or sudo to install them" >&2; exit 2; }
    as_root=sudo
fi
echo "setup: installing$missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null

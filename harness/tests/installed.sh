#!/bin/sh
# The installed library as its user sees it: sh installed.sh BUILD, in the checkout.
#
# Installs below a DESTDIR and into a prefix, looks at what lies there, compiles the example of fsdpmark(3) from an empty folder as
# C and as C++, against the shared and the static library, and runs it on a job; runs the installed programs; takes all away again.
set -eu
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
fail() { echo "installed.sh: $*" >&2; exit 1; }
unset MAKEFLAGS MFLAGS MAKELEVEL FSDPMARK_SUITE FSDPMARK_STORE FSDPMARK_BUILD LD_LIBRARY_PATH RANK WORLD_SIZE LOCAL_RANK 2>/dev/null || :
prefix=$work/prefix
# What was built with sanitizers is installed and linked with them.
flags='' san=0
if nm -D "$build/libfsdpmark.so" | grep -q __asan_init; then flags=-fsanitize=address,undefined san=1; fi

make --no-print-directory BUILD="$build" SAN=$san install PREFIX=/usr DESTDIR="$work/dest"
[ -f "$work/dest/usr/include/fsdpmark.h" ] || fail "found no usr/include/fsdpmark.h below DESTDIR, expected it"
grep -q rpath "$work/dest/usr/lib/pkgconfig/fsdpmark.pc" && fail "found a run path for /usr, expected none"
grep -rqF "$work" "$work/dest/usr/lib/pkgconfig" && fail "found DESTDIR in fsdpmark.pc, expected PREFIX alone"
make --no-print-directory BUILD="$build" SAN=$san uninstall PREFIX=/usr DESTDIR="$work/dest"
left=$(find "$work/dest" ! -type d)
[ -z "$left" ] || fail "found $left after make uninstall, expected nothing"

make --no-print-directory BUILD="$build" SAN=$san install PREFIX="$prefix"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
headers=$(cd "$prefix/include" && find . -type f)
[ "$headers" = ./fsdpmark.h ] || fail "found headers $headers, expected fsdpmark.h alone"
objdump -p "$prefix/lib/libfsdpmark.so" | grep -q "SONAME  *libfsdpmark.so.0" || fail "found no soname libfsdpmark.so.0, expected it"

# Exactly the functions of the header are visible, in both libraries.
sed -n 's/^FSDPMARK_API.*[ *]\(fsdpmark_[a-z_]*\)(.*/\1/p' "$prefix/include/fsdpmark.h" | sort >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 30 ] || fail "found $(wc -l <"$work/declared") functions in fsdpmark.h, expected at least 30"
nm -D --defined-only "$prefix/lib/libfsdpmark.so" | awk '{print $3}' | grep -v '^__\|^_init$\|^_fini$' | sort >"$work/shared"
nm -g --defined-only "$prefix/lib/libfsdpmark.a" | awk 'NF == 3 {print $3}' | grep -v '^__' | sort >"$work/static"
diff "$work/declared" "$work/shared" || fail "the shared library shows other names than fsdpmark.h"
diff "$work/declared" "$work/static" || fail "the static library shows other names than fsdpmark.h"

# Each has a page.
while read -r name; do
    [ -f "$prefix/share/man/man3/$name.3" ] || fail "found no page $name(3), expected one"
done <"$work/declared"

# The example of fsdpmark(3), in a folder that holds nothing else.
mkdir "$work/user"
cd "$work/user"
sed -n '/^\.Bd -literal/,/^\.Ed/p' "$prefix/share/man/man3/fsdpmark.3" | grep -v '^\.' | sed 's/\\en/\\n/' >example.c
grep -q fsdpmark_open example.c || fail "found no example in fsdpmark(3), expected one"
cp example.c example.cc
strict="-Wall -Wextra -Werror -pedantic"
# shellcheck disable=SC2046,SC2086
{
    cc -std=c11 $strict $flags example.c $(pkg-config --cflags --libs fsdpmark) -o shared-c
    cc -std=c99 $strict $flags example.c $(pkg-config --cflags --libs fsdpmark) -o shared-c99
    c++ -std=c++11 $strict $flags example.cc $(pkg-config --cflags --libs fsdpmark) -o shared-c++
    cc -std=c11 $strict $flags example.c $(pkg-config --cflags fsdpmark) "$prefix/lib/libfsdpmark.a" $(pkg-config --static --libs-only-l fsdpmark | sed 's/-lfsdpmark//') -o static-c
}
ldd static-c | grep -q libfsdpmark && fail "static-c needs libfsdpmark.so, expected the archive inside"
ldd shared-c | grep -q "$prefix/lib/libfsdpmark.so.0" || fail "shared-c does not find libfsdpmark.so.0 below the prefix"

# A job of one case, as the harness lays it out; the programs find their rank under the names of three launchers.
FSDPMARK_BUILD=$prefix/bin "$prefix/bin/fsdpmark" expand -k exact-mlp.full.flat.n2 -o "$work/cases" >"$work/expand.log" || fail "$(cat "$work/expand.log")"
tensor='{"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}  '
for program in shared-c shared-c99 shared-c++ static-c; do
    job=$work/job.$program
    mkdir -p "$job/exact-mlp.full.flat.n2/out"
    cp "$work/cases/exact-mlp.full.flat.n2.json" "$job/exact-mlp.full.flat.n2/case.json"
    for file in init data; do
        { printf "\\$(printf %o ${#tensor})\\0\\0\\0\\0\\0\\0\\0"; printf %s "$tensor"; } >"$job/exact-mlp.full.flat.n2/$file.safetensors"
    done
    echo '{"protocol": 1, "world_size": 2, "cases": ["exact-mlp.full.flat.n2"]}' >"$job/job.json"
    case $program in
    shared-c) set -- RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 SLURM_PROCID=0 ;;
    static-c) set -- SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 ;;
    *) set -- OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 SLURM_PROCID=0 ;;
    esac
    env FSDPMARK_JOB="$job" "$@" "./$program" || fail "$program ended with status $?"
    grep -q '"event":"unsupported","reason":"model mlp"' "$job/exact-mlp.full.flat.n2/out/rank1.jsonl" || fail "$program answered: $(cat "$job"/*/out/*)"
done
status=0
env -i FSDPMARK_JOB="$job" ./shared-c 2>message || status=$?
[ $status -eq 2 ] && grep -q "environment: found no RANK, expected" message || fail "without a rank found status $status and $(cat message)"

# A preloaded probe gets the phases, however the library was linked.
if [ $san -eq 0 ]; then # the sanitizers' runtime wants to be first itself
    cat >probe.c <<'END'
#include <stdio.h>
void fsdpmark_mark(const char *phase, int step) { printf("%s %d\n", phase, step); }
END
    cat >phase.c <<'END'
#include <fsdpmark.h>
int main(void) { fsdpmark *f = fsdpmark_open("a", "1"); fsdpmark_phase(f, "step", 3); return fsdpmark_close(f) != 2; }
END
    cc -shared -fPIC probe.c -o probe.so
    # shellcheck disable=SC2046
    cc phase.c $(pkg-config --cflags --libs fsdpmark) -o phase-shared
    # shellcheck disable=SC2046
    cc -no-pie phase.c $(pkg-config --cflags fsdpmark) "$prefix/lib/libfsdpmark.a" $(pkg-config --static --libs-only-l fsdpmark | sed 's/-lfsdpmark//') -o phase-static
    for program in phase-shared phase-static; do
        "./$program" || fail "$program without a probe ended with status $?"
        told=$(LD_PRELOAD=$PWD/probe.so "./$program") || fail "$program with a probe ended with status $?"
        [ "$told" = "step 3" ] || fail "$program told the probe '$told', expected 'step 3'"
    done
fi

# The installed program, without the checkout.
status=0
HOME=$work "$prefix/bin/fsdpmark" check -i null -k gate.exact-mlp -k exact-mlp.none.n1 --store "$work/results.db" >"$work/check.log" 2>&1 || status=$?
[ $status -eq 1 ] && grep -q "parameters-moved" "$work/check.log" || fail "check -i null ended with $status: $(tail -n 5 "$work/check.log")"
cd - >/dev/null
make --no-print-directory BUILD="$build" SAN=$san uninstall PREFIX="$prefix"
left=$(find "$prefix" ! -type d)
[ -z "$left" ] || fail "found $left after make uninstall, expected nothing"
echo "installed.sh: $(wc -l <"$work/declared") functions, in C and C++, shared and static"

#!/bin/sh
# The manual pages say what there is: sh manual.sh names BUILD, or sh manual.sh lint.
#
# names: fsdpmark(3) has the prototype of every function of fsdpmark.h, and no other, and tells of each in its text; fsdpmark(1) has
# a section for every command of the program, with every option that its help has, and no other.
# lint: mandoc, or else man, finds nothing to warn of.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
status=0
same() { # what, by the source, by the page
    diff "$2" "$3" >"$work/diff" && return
    echo "manual.sh: $1: the source (<) and the page (>) differ:" >&2
    cat "$work/diff" >&2
    status=1
}

functions() {
    # "TYPE NAME(ARGUMENTS)", one a line, without blanks beside stars
    tidy() { sed 's/ *\* */*/g; s/  */ /g' | sort; }
    awk '/^FSDPMARK_API/ { inside = 1; line = "" } inside { line = line " " $0 }
         inside && /;$/ { sub(/^ FSDPMARK_API /, "", line); sub(/ FSDPMARK_FORMAT\([0-9, ]*\)/, "", line); sub(/;$/, "", line); print line; inside = 0 }' \
        harness/library/fsdpmark.h | tidy >"$work/source"
    awk '/^\.Sh DESCRIPTION/ { exit }
         /^\.Ft / { type = substr($0, 5) }
         /^\.Fn / { line = substr($0, 5); name = line; sub(/ .*/, "", name); line = substr(line, length(name) + 2)
                    gsub(/" "/, ", ", line); gsub(/"/, "", line); print type " " name "(" line ")" }' docs/man/fsdpmark.3 | tidy >"$work/page"
    [ "$(wc -l <"$work/source")" -ge 30 ] || { echo "manual.sh: found $(wc -l <"$work/source") functions in fsdpmark.h, expected at least 30" >&2; exit 1; }
    same "prototypes of fsdpmark(3)" "$work/source" "$work/page"
    sed 's/.*\(fsdpmark_[a-z_]*\)(.*/\1/' "$work/source" | grep -vx 'fsdpmark_version\|fsdpmark_rank\|fsdpmark_size\|fsdpmark_local_rank' | sort -u >"$work/source.told"
    awk '/^\.Sh DESCRIPTION/ { inside = 1 } inside && /^\.Fn / { print $2 }' docs/man/fsdpmark.3 | sort -u >"$work/told"
    # those left out say all with their names
    for name in $(cat "$work/source.told"); do
        grep -qx "$name" "$work/told" || { echo "manual.sh: fsdpmark(3) tells nothing of $name" >&2; status=1; }
    done
}

commands() {
    program=$1/fsdpmark
    "$program" --help | awk '/^  [a-z]/ { print $1 }' | sort >"$work/source"
    [ "$(wc -l <"$work/source")" -ge 8 ] || { echo "manual.sh: found $(wc -l <"$work/source") commands in fsdpmark --help, expected at least 8" >&2; exit 1; }
    awk '/^\.Ss / { print $2 }' docs/man/fsdpmark.1 | sort >"$work/page"
    same "commands of fsdpmark(1)" "$work/source" "$work/page"
    while read -r command; do
        "$program" help "$command" | sed -n 's/^  \(-[a-zA-Z], \)\{0,1\} *--\([a-z-]*\).*/\1--\2/p' | grep -v -- --help | sort >"$work/options"
        awk -v command="$command" '/^\.S[sh] / { inside = $1 == ".Ss" && $2 == command }
            inside && /^\.It Fl / { line = "-" $3; for (i = 4; i <= NF && ($i == "," || $i ~ /^-/); i++) line = line ($i == "," ? ", " : "-" $i); print line }' \
            docs/man/fsdpmark.1 | sort >"$work/told"
        same "options of $command in fsdpmark(1)" "$work/options" "$work/told"
    done <"$work/source"
}

lint() {
    for page in docs/man/*.[13]; do
        if command -v mandoc >/dev/null; then
            mandoc -T lint -W warning "$page" || status=1
        else
            man --warnings -E UTF-8 -l -T utf8 -Z "$page" >/dev/null 2>"$work/warnings"
            [ ! -s "$work/warnings" ] || { cat "$work/warnings" >&2; status=1; }
        fi
    done
}

case $1 in
names) functions; commands "$2" ;;
lint) lint ;;
*) echo "manual.sh: found mode '$1', expected names or lint" >&2; exit 2 ;;
esac
[ $status -ne 0 ] || echo "manual.sh: nothing to say"
exit $status

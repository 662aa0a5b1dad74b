#!/bin/sh
# Does what docs/adding.md says, word by word: sh adding.sh BUILD, in the checkout.
#
# Of the section "An implementation, in ten minutes" it takes, in order: each block after a line "File `NAME`:" as the content of that
# file, each block marked sh as commands of one shell, and the block marked text after them as lines that they must print, in
# this order, `...` standing for any text. HOME is a fresh folder, so that whatever the section leaves out is missed. Each
# command must succeed. The last line tells how long the walk took.
set -eu
build=$(cd "$1" && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT TERM

# The section as a script: files and expectations become here-documents, commands stay as they are.
awk '
/^## / { inside = /^## An implementation, in ten minutes$/; next }
!inside { next }
/^```/ && open == "" {
    open = substr($0, 4)
    if (file != "") { print "walk_file\ncat > \047" file "\047 <<\047END OF FILE\047"; open = "file"; files++ }
    else if (open == "sh") { print "walk_start " ++commands; print "{" }
    else if (open == "text") { print "walk_expect <<\047END OF FILE\047"; expected++ }
    else open = "none"
    file = ""
    next
}
/^```$/ {
    if (open == "sh") print "} >\"$walk_output\" 2>&1\nwalk_end"
    else if (open != "none") print "END OF FILE"
    open = ""
    next
}
open != "" { if (open != "none") print; next }
/^File `[^`]+`:$/ { file = $0; sub(/^File `/, "", file); sub(/`:$/, "", file) }
END {
    if (files < 4 || commands < 5 || expected < 4) { print "walk_vacuous " files + 0 " " commands + 0 " " expected + 0 }
}' docs/adding.md >"$home/walk"

cat >"$home/script" <<'EOF_SCRIPT'
set -eu
walk_block=start walk_output=$HOME/output
: >"$walk_output"
walk_stop() { # what happened
    trap - EXIT
    echo "adding.sh: block $walk_block: $1; it printed:"
    sed 's/^/    | /' "$walk_output"
    exit 1
}
trap 'walk_stop "a command failed"' EXIT
walk_start() {
    walk_block=$1 walk_output=$HOME/output.$1 walk_began=$(date +%s)
    : >"$walk_output"
}
walk_file() {
    case $PWD in "$HOME"/*) ;; *) walk_stop "found a file to write in $PWD, expected a folder below HOME" ;; esac
}
walk_end() { echo "block $walk_block: $(($(date +%s) - walk_began)) s"; }
walk_vacuous() {
    walk_block=end
    walk_stop "found $1 files, $2 blocks of commands and $3 of output in docs/adding.md, expected at least 4, 5 and 4"
}
# Each line of standard input must be a line of the output, after the line that matched before.
walk_expect() {
    awk '
    function pattern(line,   out, at) {
        while ((at = index(line, "...")) > 0) {
            out = out plain(substr(line, 1, at - 1)) ".*"
            line = substr(line, at + 3)
        }
        return "^" out plain(line) "$"
    }
    function plain(text) { gsub(/[][\\.*^$+?(){}|\/]/, "\\\\&", text); return text }
    NR == FNR { if ($0 != "") wanted[++count] = $0; next }
    next_one < count && $0 ~ pattern(wanted[next_one + 1]) { next_one++ }
    END { if (next_one < count) { print wanted[next_one + 1]; exit 1 } }
    BEGIN { next_one = 0 }' - "$walk_output" >"$walk_output.missing" || walk_stop "expected the line '$(cat "$walk_output.missing")'"
}
EOF_SCRIPT
cat "$home/walk" >>"$home/script"
echo 'trap - EXIT' >>"$home/script"

began=$(date +%s)
unset MAKEFLAGS MFLAGS MAKELEVEL FSDPMARK_SUITE FSDPMARK_STORE FSDPMARK_PYTHON FSDPMARK_BUILD PKG_CONFIG_PATH LD_LIBRARY_PATH XDG_DATA_HOME 2>/dev/null || :
BUILD=$build HOME=$home sh "$home/script"
echo "docs/adding.md: two implementations added in $(($(date +%s) - began)) s"

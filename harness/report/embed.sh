#!/bin/sh
# Makes C strings of text files: sh embed.sh FILE... > header. ratio.gp becomes ratio_gp.
for file in "$@"; do
    name=$(basename "$file" | tr .- __)
    echo "static const char $name[] ="
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$file"
    echo '    ;'
done

#!/bin/sh
# Writes a small seed corpus for the fuzz targets: sh seeds.sh FOLDER (gets FOLDER/case, safetensors, answer).
#
# Seeds are the suite's own files and short samples of each format.
set -eu
to=$1
mkdir -p "$to/case" "$to/safetensors" "$to/answer"
cp suite/cases/*.yaml suite/profiles/*.yaml harness/cases/tests/data/cases/*.yaml "$to/case/" 2>/dev/null || true
sed -n 's/^    "\(.*\)\\n"[;]*$/\1/p' harness/protocol/tests/sample.h | sed 's/\\"/"/g' >"$to/case/sample.json"

hello='{"event":"hello","case":"c","rank":1,"world_size":2,"implementation":"i","version":"1","configured":{"a":"b"}}'
{
    echo "$hello"
    echo '{"event":"shards","of":"parameter","parts":{"w":[[0,4],[8,2]]},"padding":1,"padding_max":0}'
    echo '{"event":"micro","step":0,"micro":0,"loss":"nan","tokens":4,"seconds":0.5}'
    echo '{"event":"clip","step":0,"norm":1.5}'
    echo '{"event":"step","step":0,"skipped":false,"loss_scale":1,"seconds":0.1}'
    echo '{"event":"observed","label":"s0","file":"s0.safetensors"}'
    echo '{"event":"memory","phase":"step","PARAM":12}'
    echo '{"event":"traffic","all_gather":{"count":2,"bytes":64}}'
    echo '{"event":"done"}'
} >"$to/answer/whole"
printf '%s\n{"event":"unsupported","reason":"r"}\n' "$hello" >"$to/answer/unsupported"
printf '%s\n{"event":"error","message":"m"}\n{"ev' "$hello" >"$to/answer/error"

# safetensors NAME HEADER ZEROS: one file whose header is shorter than 256 bytes.
safetensors() {
    {
        printf "\\$(printf %03o ${#2})\\0\\0\\0\\0\\0\\0\\0%s" "$2"
        head -c "$3" /dev/zero
    } >"$to/safetensors/$1"
}
safetensors empty '{}' 0
safetensors two '{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}}' 10
safetensors meta '{"__metadata__":{"k":"v"},"e":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]}}' 0

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzzer of the ONNX reader from the models that tests read, for some seconds.
# usage: run.sh FUZZ_ONNX [SECONDS [CORPUS]]    the corpus is kept where it is named
set -eu
here=$(cd "$(dirname "$0")" && pwd)
fuzzer=$1
seconds=${2:-60}
shared=${SQUALL_SHARED:-$here/../../../shared}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
corpus=${3:-$work/corpus}
mkdir -p "$work/seeds" "$corpus"
n=0
for model in $(find "$shared/onnx-tests" "$here" -name '*.onnx' -size -8k 2>/dev/null); do
    n=$((n + 1))
    cp "$model" "$work/seeds/$n"
done
echo "$n seeds"
"$fuzzer" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=4096 \
    -dict="$here/onnx.dict" -artifact_prefix="${ARTIFACTS:-$work/}" "$corpus" "$work/seeds"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tunes a few kernels with squall and times them beside oneDNN and OpenBLAS, in one run on one core:
#
#     tests/bench/run.sh [-b BUILD] [-o SESSIONS] [-e EXPLORE] [-r REFINE] [-j] [-t]
#
#   -b BUILD     meson's build folder, made if it is not there (build-bench)
#   -o SESSIONS  folder of the session files (BUILD/sessions)
#   -e, -r       trials of exploration and of refinement for each kernel (400, 200)
#   -j           JSON instead of the tables
#   -t           tune, do not time
#
# A session that is there already is resumed if it was interrupted, else taken as it is. Remove the
# folder to start over.
#
# Needs, besides what squall needs (Debian's names): libdnnl-dev (oneDNN 2.6), libopenblas-dev.
# SQUALL in the environment names another squall to tune with.
#
# Wants a quiet machine: all that is timed takes turns within milliseconds, so a busy neighbour
# slows everything, but not by the same share. Look at the spreads in the listing.
set -eu

build=build-bench sessions= explore=400 refine=200 json= tune_only=
while getopts b:o:e:r:jth option; do
    case $option in
    b) build=$OPTARG ;;
    o) sessions=$OPTARG ;;
    e) explore=$OPTARG ;;
    r) refine=$OPTARG ;;
    j) json=--json ;;
    t) tune_only=yes ;;
    h) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) echo "run.sh -h explains the options" >&2; exit 2 ;;
    esac
done
source=$(cd "$(dirname "$0")/../.." && pwd)
sessions=${sessions:-$build/sessions}

say() { echo "run.sh: $*" >&2; }

if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" "$source" -Dbench=true >&2 || {
        say "the build was not set up; are libdnnl-dev and libopenblas-dev installed?"
        exit 1
    }
fi
squall=${SQUALL:-}
if [ -z "$squall" ]; then
    meson compile -C "$build" squall >&2
    for squall in "$build/squall" "$build/ui/squall"; do
        [ -x "$squall" ] && break
    done
fi
meson compile -C "$build" bench_kernels >&2

# A session of its own for each kernel, so that one can be tuned again without the others. One that
# is finished is resumed, too: that ends at once.
tune() {
    file=$sessions/$1.squall log=$sessions/$1.log
    if [ -f "$file" ]; then
        say "$2: going on with $file"
        set -- resume "$file" --batch
    else
        say "$2: $explore + $refine trials, into $file"
        set -- tune "$2" --batch --explore "$explore" --refine "$refine" --session "$file"
    fi
    "$squall" "$@" >>"$log" 2>&1 || {
        tail -n 5 "$log" >&2
        say "tuning ended early; the rest is in $log, and the same command goes on with it"
        exit 1
    }
}

mkdir -p "$sessions"
tune matmul 'matmul:1024x1024x1024'
tune matmul-const 'matmul:1024x1024x1024,const'
tune conv-64x56x56-3x3 'conv2d:C=64,H=56,W=56,K=64,R=3,S=3,pad=1'
tune conv-256x14x14-3x3 'conv2d:C=256,H=14,W=14,K=256,R=3,S=3,pad=1'
tune conv-256x14x14-1x1 'conv2d:C=256,H=14,W=14,K=1024,R=1,S=1,pad=0'
[ -z "$tune_only" ] || exit 0

# bench_kernels loads OpenBLAS under an environment of its own making; oneDNN reads these.
unset DNNL_MAX_CPU_ISA ONEDNN_MAX_CPU_ISA DNNL_VERBOSE ONEDNN_VERBOSE || true
exec "$build/tests/bench/bench_kernels" $json "$sessions"/*.squall

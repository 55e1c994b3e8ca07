#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Layer by layer: tunes every distinct layer of known networks with squall and times it beside oneDNN
# and OpenBLAS:
#
#     tests/bench/layers.sh [OPTION]...
#
#   -b BUILD     meson's build folder, made if it is not there (build-bench)
#   -o FOLDER    of the sessions and results (BUILD/layers)
#   -l LIST      the layers (tests/bench/layers.txt, which explains itself)
#   -k TEXT      only layers whose network or workload has TEXT in it
#   -t THREADS   numbers of threads, one run each ("1 2")
#   -e, -r N     trials of exploration and of refinement of a layer (64, 64)
#   -n ROUNDS    samples of everyone in a layer (31)
#   -m MS        length of a sample (10)
#   -T           tune, do not time
#   -p           only print what earlier runs have measured
#   -j           JSON instead of tables
#   -f           although the machine is busy
#
# Sessions, FOLDER/sessions, are kept: one that is there is resumed if it was interrupted, else taken
# as it is. So are results, FOLDER/results; a run replaces those of the layers it measures. Remove the
# folder to start over. The first run takes about an hour on two cores, later ones half of that.
#
# Everyone's output is compared with a reference before it is timed. Then all take turns, a few
# milliseconds each, on the same cores: oneDNN with the layout it likes best, with channel blocks as
# squall's, and with Winograd's algorithm where it has that; weights packed beforehand wherever they
# are constant; OpenBLAS for products of matrices, with the kernels it chooses and with those for
# Haswell. Ratios are medians over the rounds of the times in the same round.
#
# With several threads the time of a round trip between two cores is told: where a host moves virtual
# cores, figures of different round trips cannot be compared (tests/bench/round_trip.c).
#
# Needs, besides what squall needs (Debian's names): libdnnl-dev (oneDNN 2.6), libopenblas-dev.
# SQUALL in the environment names another squall to tune with.
set -eu

source=$(cd "$(dirname "$0")/../.." && pwd)
build=build-bench folder='' list=$source/tests/bench/layers.txt text='' threads='1 2'
explore=64 refine=64 rounds=31 slice=10 tune_only='' print_only='' json='' force=''
while getopts b:o:l:k:t:e:r:n:m:Tpjfh option; do
    case $option in
    b) build=$OPTARG ;;
    o) folder=$OPTARG ;;
    l) list=$OPTARG ;;
    k) text=$OPTARG ;;
    t) threads=$OPTARG ;;
    e) explore=$OPTARG ;;
    r) refine=$OPTARG ;;
    n) rounds=$OPTARG ;;
    m) slice=$OPTARG ;;
    T) tune_only=yes ;;
    p) print_only=yes ;;
    j) json=--json ;;
    f) force=yes ;;
    h) sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) echo "layers.sh -h explains the options" >&2; exit 2 ;;
    esac
done
# shellcheck source=machine.sh
. "$source/tests/bench/machine.sh"

folder=${folder:-$build/layers}
sessions=$folder/sessions results=$folder/results

workloads() {
    awk -v text="$text" '!/^#/ && NF == 3 && (text == "" || index($1 " " $3, text)) &&
        !seen[$3]++ { print $3 }' "$list"
}
file_name() { echo "$1" | tr ':,=' '-_.'; }

report() {
    # shellcheck disable=SC2086
    python3 "$source/tests/bench/layers.py" $json --only "$text" --threads "$threads" \
        "$list" "$results"
}
if [ -n "$print_only" ]; then
    report
    exit
fi

machine_need_quiet "$force"
if ! build_find "$build" -Dbench=true || ! meson compile -C "$build" bench_kernels >&2; then
    say "the build failed; are libdnnl-dev and libopenblas-dev installed?"
    exit 1
fi
mkdir -p "$sessions" "$results"
machine_print >&2

failed=0
for t in $threads; do
    for w in $(workloads); do
        name=$(file_name "$w").t$t
        tune_session "$w" "$sessions/$name.squall" "$sessions/$name.log" "$explore" "$refine" "$t" ||
            failed=$((failed + 1))
    done
done
[ -z "$tune_only" ] || exit $((failed > 0))

# A process a layer: memory goes with it, a crash takes no other layer along, and what is measured is
# kept when the script is interrupted.
measure() {
    name=$(file_name "$1").t$2
    rm -f "$results/$name.json" # a failure leaves no figures of before
    machine_wait_quiet "$force"
    begun="\"started\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\", \"busy_percent\": $busy"
    rc=0
    "$build/tests/bench/bench_kernels" --json --threads "$2" --rounds "$rounds" --slice "$slice" \
        --layer "$1" "$sessions/$name.squall" >"$results/new.json" || rc=$?
    [ -s "$results/new.json" ] || return 1
    {
        echo "{$begun, \"load\": \"$(load_average)\", \"squall\": \"$("$squall" --version)\","
        echo "\"bench\":"
        cat "$results/new.json"
        echo "}"
    } >"$results/new.wrapped"
    mv "$results/new.wrapped" "$results/$name.json"
    rm "$results/new.json"
    return "$rc"
}

# bench_kernels loads OpenBLAS under an environment of its own making; oneDNN reads these.
unset DNNL_MAX_CPU_ISA ONEDNN_MAX_CPU_ISA DNNL_VERBOSE ONEDNN_VERBOSE || true
for t in $threads; do
    for w in $(workloads); do
        measure "$w" "$t" || {
            say "$w, threads $t: not measured, or wrong"
            failed=$((failed + 1))
        }
    done
done
[ -n "$json" ] || machine_print
report
[ "$failed" = 0 ] || say "$failed times something failed, see above"
exit $((failed > 0))

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Whole networks: tunes and compiles the ONNX models of a folder with squall and times them beside
# ONNX Runtime:
#
#     tests/bench/models.sh [OPTION]... [FOLDER]      (../shared/models beside this repository)
#
#   -b BUILD     meson's build folder, made if it is not there (build/gcc, which bootstrap makes)
#   -o OUT       of the sessions, results and the virtual environment (BUILD/models)
#   -k TEXT      only models with TEXT in their names
#   -t THREADS   numbers of threads, one run each ("1 2")
#   -e, -r N     trials of exploration and of refinement of a task (64, 64)
#   -n ROUNDS    samples of each side (21)
#   -m MS        length of a sample, a run of the network at least (50)
#   -w           squall's side is the weighted sum of the kernels' times as they were measured while
#                tuning: no run of the network, and not at the same time as the other side
#   -s           no check of outputs with weights of many values
#   -T           tune, do not time
#   -p           only print what earlier runs have measured
#   -j           JSON instead of the table
#   -f           although the machine is busy
#
# Sessions, OUT/sessions, are kept: one that is there is resumed if it was interrupted, else taken as
# it is. So are results, OUT/results, one file for each model and number of threads. Remove OUT to
# start over. The first run takes about half an hour for the six models of that folder on two cores.
#
# ONNX Runtime is installed with pip, with numpy, into a virtual environment, OUT/python; nothing else
# is. It runs with all its graph optimisations; its threads spin between operators, as squall's do.
#
# Before anything is timed, both sides compute the network with the same input, and their outputs are
# compared; where FOLDER/seeded/NAME.logits.f32 is there (INDEX.md there says what it is), squall's
# outputs with the weights of that rule are compared with it, too: a network whose weights are all
# equal accepts almost any permutation of them. What is wrong is not timed.
#
# Then both take turns, in processes of their own on the same cores. With several threads the time of
# a round trip between two cores is told: where a host moves virtual cores, figures of different round
# trips cannot be compared (tests/bench/round_trip.c).
#
# Needs, besides what squall needs (Debian's names): python3-venv. SQUALL in the environment names
# another squall to tune and compile with.
# shellcheck disable=SC2317 # each_model calls functions by their names
set -eu

source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/gcc out='' text='' threads='1 2' explore=64 refine=64 rounds=21 slice=50
sum='' seeded=yes tune_only='' print_only='' json='' force=''
while getopts b:o:k:t:e:r:n:m:wsTpjfh option; do
    case $option in
    b) build=$OPTARG ;;
    o) out=$OPTARG ;;
    k) text=$OPTARG ;;
    t) threads=$OPTARG ;;
    e) explore=$OPTARG ;;
    r) refine=$OPTARG ;;
    n) rounds=$OPTARG ;;
    m) slice=$OPTARG ;;
    w) sum=--sum ;;
    s) seeded='' ;;
    T) tune_only=yes ;;
    p) print_only=yes ;;
    j) json=--json ;;
    f) force=yes ;;
    h) sed -n '4,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) echo "models.sh -h explains the options" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
folder=${1:-$source/../shared/models}
# shellcheck source=machine.sh
. "$source/tests/bench/machine.sh"

out=${out:-$build/models}
sessions=$out/sessions results=$out/results python=$out/python/bin/python
models_py=$source/tests/bench/models.py

report() {
    # shellcheck disable=SC2086
    python3 "$models_py" report $json --threads "$threads" --only "$text" "$results"
}
if [ -n "$print_only" ]; then
    report
    exit
fi

machine_need_quiet "$force"
build_find "$build" || {
    say "the build failed"
    exit 1
}
mkdir -p "$sessions" "$results" "$out/compiled"

if [ -z "$tune_only" ] && ! "$python" -c 'import numpy, onnxruntime' 2>/dev/null; then
    say "installing ONNX Runtime and numpy into $out/python"
    if ! python3 -m venv "$out/python" ||
        ! "$python" -m pip install --quiet --disable-pip-version-check onnxruntime numpy >&2; then
        say "that failed; is python3-venv installed, and a network there?"
        exit 1
    fi
fi
machine_print >&2

# A line for each model; their names may have blanks, but no line breaks.
models() {
    for m in "$folder"/*.onnx; do
        case ${m##*/} in
        '*.onnx' | LICENSE.onnx) ;;
        *"$text"*) echo "$m" ;;
        esac
    done
}
[ -n "$(models)" ] || {
    say "no model in $folder, or none with \"$text\" in its name"
    exit 1
}
name_of() { basename "$1" .onnx; }

# With weights of many values, against what was computed elsewhere; 0 where there is nothing.
check_seeded() {
    short=$(name_of "$1")
    short=${short#light_}
    logits=--logits expected=$folder/seeded/$short.logits.f32
    [ -f "$expected" ] || logits='' expected=$folder/seeded/$short.out.f32
    [ -f "$expected" ] && [ -n "$seeded" ] || return 0
    # shellcheck disable=SC2086
    "$squall" bench "$2" --seed-weights $logits --expect "$expected" --no-check --runs 10 >&2
}

measure() {
    model=$1 t=$2 name=$(name_of "$1").t$2
    session=$sessions/$name.squall what=$out/compiled/$name
    if [ -n "$sum" ]; then
        what=$out/$name.show.json name=$name.sum
    fi
    rm -f "$results/$name.json" # a failure leaves no figures of before
    if [ -n "$sum" ]; then
        "$squall" show "$session" --json >"$what" || return 1
    else
        check_seeded "$model" "$session" || return 1
        "$squall" compile "$session" -o "$what" >&2 || return 1
    fi
    machine_wait_quiet "$force"
    begun="\"started\": \"$(date -u +%Y-%m-%dT%H:%M:%SZ)\", \"busy_percent\": $busy"
    rc=0
    # shellcheck disable=SC2086
    "$python" "$models_py" measure $sum --threads "$t" --rounds "$rounds" --slice "$slice" \
        --round-trip "$trip" --scratch "$out" "$model" "$what" >"$results/new.json" || rc=$?
    rm -rf "$what"
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

# each_model COMMAND: COMMAND MODEL THREADS for all; counts failures in $failed.
failed=0
each_model() {
    for t in $threads; do
        while IFS= read -r model; do
            "$1" "$model" "$t" </dev/null || {
                say "$model, threads $t: $1 failed"
                failed=$((failed + 1))
            }
        done <<LIST
$(models)
LIST
    done
}
tune() {
    name=$(name_of "$1").t$2
    tune_session "$1" "$sessions/$name.squall" "$sessions/$name.log" "$explore" "$refine" "$2"
}

each_model tune
[ -z "$tune_only" ] || exit $((failed > 0))
trip=$out/round_trip.so
"${CC:-cc}" -O2 -shared -fPIC -pthread -o "$trip" "$source/tests/bench/round_trip.c"
each_model measure
[ -n "$json" ] || machine_print
report
[ "$failed" = 0 ] || say "$failed times something failed, see above"
exit $((failed > 0))

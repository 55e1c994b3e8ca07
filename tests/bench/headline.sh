#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What refinement is worth: explores the tasks of networks with many trials alone, and with few trials
# and Droplet Search after them, and compares the kernels:
#
#     tests/bench/headline.sh [OPTION]... [MODEL]...
#
#   -b BUILD    meson's build folder, made if it is not there (build/gcc, which bootstrap makes)
#   -o FOLDER   of the sessions (BUILD/headline)
#   -a ARMS     EXPLORE+REFINE trials a task, the first is what others are compared with
#               ("1000+0 25+50 50+50 100+50 300+50")
#   -s SEEDS    ("0 1 2")
#   -k GLOB     only tasks with such a name
#   -p          only print what earlier runs have found
#   -j          JSON instead of tables
#   -f          although the machine is busy
#
# MODELs are ONNX files; without any: AlexNet, Inception-v1, ResNet-50 and SqueezeNet of
# ../shared/models beside this repository. For each seed and model the arms run one after the other.
# Sessions are kept, and taken as they are when they are there: remove the folder to start over.
#
# When an arm has ended, the best kernels of it and of the first arm and the untuned default are
# measured once more by turns, in one run (tests/bench/arms.c): arms are compared by that.
# SQUALL in the environment names another squall.
set -eu

source=$(cd "$(dirname "$0")/../.." && pwd)
build=build/gcc folder='' arms='1000+0 25+50 50+50 100+50 300+50' seeds='0 1 2' glob='*'
print_only='' json='' force=''
while getopts b:o:a:s:k:pjfh option; do
    case $option in
    b) build=$OPTARG ;;
    o) folder=$OPTARG ;;
    a) arms=$OPTARG ;;
    s) seeds=$OPTARG ;;
    k) glob=$OPTARG ;;
    p) print_only=yes ;;
    j) json=--json ;;
    f) force=yes ;;
    h) sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
    *) echo "headline.sh -h explains the options" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
# shellcheck source=machine.sh
. "$source/tests/bench/machine.sh"

folder=${folder:-$build/headline}
if [ $# = 0 ]; then
    for name in bvlc_alexnet inception_v1 resnet50 squeezenet; do
        set -- "$@" "$source/../shared/models/light_$name.onnx"
    done
fi

report() {
    # shellcheck disable=SC2086
    python3 "$source/tests/bench/headline.py" $json --arms "$arms" "$folder"
}
if [ -n "$print_only" ]; then
    report
    exit
fi

machine_need_quiet "$force"
if ! build_find "$build" || ! meson compile -C "$build" bench_arms >&2; then
    say "the build failed"
    exit 1
fi
mkdir -p "$folder"
[ -n "$json" ] || machine_print

# Of $model with $arm and $seed, into the session.
tune_arm() {
    [ ! -f "$1.done" ] || return 0
    rm -f "$1" "$1-wal" "$1-shm" "$1.to."*
    say "$name, $arm trials a task, seed $seed"
    "$squall" tune "$model" --explore "${arm%+*}" --refine "${arm#*+}" --seed "$seed" \
        --task "$glob" --session "$1" --batch >"$1.log" 2>&1 && touch "$1.done" && return
    say "it failed: $(tail -n 1 "$1.log")"
    return 1
}

# What the session found beside what the first arm's has found.
compare_arm() {
    first=$folder/$name.${arms%% *}.s$seed.squall
    pair=$1.to.${arms%% *}
    [ "$first" != "$1" ] && [ -f "$first.done" ] && [ ! -f "$pair" ] || return 0
    "$build/tests/bench_arms" "$model" "$first" "$1" >"$1.part" && mv "$1.part" "$pair" && return
    say "$name, $arm, seed $seed: the kernels could not be measured"
    return 1
}

failed=0
for seed in $seeds; do
    for model; do
        name=$(basename "$model" .onnx)
        for arm in $arms; do
            session=$folder/$name.$arm.s$seed.squall
            if ! tune_arm "$session" || ! compare_arm "$session"; then
                failed=$((failed + 1))
            fi
        done
    done
done
report
exit $((failed > 0))

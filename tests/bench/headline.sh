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
# MODELs are what squall tune takes; without any: AlexNet, ResNet-50, SqueezeNet and VGG-19 of
# ../shared/models beside this repository. For each seed and model the arms run one after the other.
# Sessions are kept, and taken as they are when they are there: remove the folder to start over.
#
# Arms are compared by their speedups: each session measures the untuned default once more,
# interleaved with the best it found, so that a machine that has become slower meanwhile divides out.
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
    for name in bvlc_alexnet resnet50 squeezenet vgg19; do
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
build_find "$build" || {
    say "the build failed"
    exit 1
}
mkdir -p "$folder"
[ -n "$json" ] || machine_print

failed=0
for seed in $seeds; do
    for model; do
        name=$(basename "$model" .onnx)
        for arm in $arms; do
            session=$folder/$name.$arm.s$seed.squall
            [ ! -f "$session.done" ] || continue
            rm -f "$session" "$session-wal" "$session-shm"
            say "$name, $arm trials a task, seed $seed"
            if "$squall" tune "$model" --explore "${arm%+*}" --refine "${arm#*+}" --seed "$seed" \
                --task "$glob" --session "$session" --batch >"$session.log" 2>&1; then
                touch "$session.done"
            else
                say "it failed: $(tail -n 1 "$session.log")"
                failed=$((failed + 1))
            fi
        done
    done
done
report
exit $((failed > 0))

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How the constants of engine/search/strategy_forest.c were chosen:
#
#     tests/bench/forest_constants.sh [RUNS] [FOLDER of the recordings] [WORK FOLDER]
#
# Builds the program with each combination of the constants below and scores `forest` on the six complete
# spaces. Prints the scores, and for each space the combination that is best on the other five with its
# score on the one left out. What is in the work folder already is not run again. With 50 runs about
# twenty minutes on one core.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
runs=${1:-50}
recorded=${2:-$root/../shared/recorded}
work=${3:-$root/build/forest_constants}
mkdir -p "$work/source"
(cd "$root" && git ls-files -z | tar --null -T - -cf -) | tar -C "$work/source" -xf -
[ -d "$work/build" ] || meson setup "$work/build" "$work/source" --buildtype=release >"$work/setup.log"
forest=$work/source/engine/search/strategy_forest.c

for design in 8 12 16; do
    for draws in 30 100; do
        for explore in 0 0.15 0.3 0.5; do
            out=$work/$design-$draws-$explore.json
            [ -s "$out" ] && continue
            sed -i "s/^\(static const int DESIGN = \).*/\1$design;/
                s/^\(static const int DRAWS = \).*/\1$draws;/
                s/^\(static const double EXPLORE = \).*/\1$explore;/" "$forest"
            ninja -C "$work/build" -j1 ui/squall >"$work/build.log"
            "$root/tests/bench/strategies.sh" "$work/build/ui/squall" "$recorded" --strategies forest \
                --runs "$runs" --seed 11 --json --jobs 1 >"$out.part"
            mv "$out.part" "$out"
        done
    done
done

python3 - "$work" <<'PYTHON'
import glob, json, os, sys
score = {}
for f in sorted(glob.glob(sys.argv[1] + "/*-*-*.json")):
    spaces = json.load(open(f))["strategies"]["forest"]["spaces"]
    name = "design %2s draws %3s explore %4s" % tuple(os.path.basename(f)[:-5].split("-"))
    score[name] = {os.path.basename(s).split(".")[0]: x for s, x in spaces.items()}
mean = lambda x, without=None: sum(v for s, v in x.items() if s != without) / (len(x) - bool(without))
for name in sorted(score, key=lambda n: -mean(score[n])):
    print(name, " mean %.3f  least %.3f " % (mean(score[name]), min(score[name].values())),
          " ".join("%.2f" % x for x in score[name].values()))
left = {}
for s in next(iter(score.values())):
    best = max(score, key=lambda n: mean(score[n], s))
    left[s] = score[best][s]
    print("without %-24s best is %s, which scores %.3f there" % (s, best, left[s]))
print("mean of those left out %.3f" % mean(left))
PYTHON

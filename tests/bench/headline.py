#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of headline.sh, from its sessions and what bench_arms says of their kernels.

    headline.py [--json] --arms "1000+0 50+50" FOLDER

Arms are compared on the tasks, models and seeds that all of them have, by the kernels' times of one
run. Seconds are the session's active time until its last trial ended.

A curve is the speedup over the default of the best so far. It is the final one times how much slower
the best so far was than the last, by the search's own measurements: the least of a thousand noisy
ones is a few percent too low, and so are the curve's earlier points.
"""
import argparse
import json
import math
import os
import re
import sqlite3
import sys

TRIALS = [1, 10, 25, 50, 75, 100, 150, 200, 350, 500, 1000]
SHARES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]  # of the first arm's seconds


def mean(values):
    """Geometric mean."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def read_session(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    trials = dict(db.execute("SELECT task, count(*) FROM trials GROUP BY task"))
    seconds = db.execute("SELECT max(ended) FROM trials").fetchone()[0]
    curve = {}  # of each task: (trials, seconds, best so far)
    for name, n, time, best in db.execute(
            "SELECT task, trials, time, best_ns FROM progress ORDER BY trial"):
        if best:
            curve.setdefault(name, []).append((n, time, best))
    db.close()
    return {"trials": trials, "seconds": seconds, "curve": curve}


def read_pair(path):
    """Of each task: nanoseconds of the default, of the first arm's kernel and of this arm's."""
    with open(path, encoding="utf-8") as f:
        return {name: tuple(map(float, ns)) for name, *ns in (line.split("\t") for line in f)}


def read_runs(folder, arms):
    """Of each (model, seed) that has been run with all arms: a session an arm, with "ns" of its
    tasks: (default, first arm's, its own)."""
    found = {}
    for name in sorted(os.listdir(folder)):
        m = re.fullmatch(r"(.+)\.(\d+\+\d+)\.s(\d+)\.squall\.done", name)
        path = os.path.join(folder, name[:-len(".done")])
        pair = f"{path}.to.{arms[0]}"
        if m and m[2] in arms and (m[2] == arms[0] or os.path.exists(pair)):
            session = read_session(path)
            if m[2] != arms[0]:
                session["ns"] = read_pair(pair)
            found.setdefault((m[1], int(m[3])), {})[m[2]] = session
    runs = {k: v for k, v in found.items() if all(arm in v for arm in arms)}
    for run in runs.values():
        others = [run[arm]["ns"] for arm in arms[1:]]
        tasks = set.intersection(*map(set, others))
        for arm in arms[1:]:
            run[arm]["ns"] = {task: run[arm]["ns"][task] for task in tasks}
        run[arms[0]]["ns"] = {
            task: (1, *[1 / mean(o[task][0] / o[task][1] for o in others)] * 2) for task in tasks}
    return runs


def curve_at(session, at, points):
    """Geometric mean over tasks of the speedups at each point; `at` is 0 for trials, 1 for seconds.
    A task that has no trial yet has its default."""
    out = []
    for point in points:
        speedups = []
        for task, steps in session["curve"].items():
            if task in session["ns"]:
                default, _, own = session["ns"][task]
                upto = [s[2] for s in steps if s[at] <= point]
                speedups.append(default / own * steps[-1][2] / upto[-1] if upto else 1)
        out.append(mean(speedups))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arms", required=True)
    parser.add_argument("folder")
    a = parser.parse_args()
    arms = a.arms.split()
    if len(arms) < 2:
        parser.error("arms are compared with the first: name two or more")
    runs = {k: v for k, v in read_runs(a.folder, arms).items() if v[arms[0]]["ns"]}
    if not runs:
        print("headline.py: no model and seed has been run with all arms", file=sys.stderr)
        return 1

    rows = []
    for arm in arms:
        speedup, relative, trials, seconds, base_seconds, by_seed = [], [], 0, 0, 0, {}
        for (model, seed), sessions in runs.items():
            base, one = sessions[arms[0]], sessions[arm]
            seconds += one["seconds"]
            base_seconds += base["seconds"]
            for task, (default, first, own) in one["ns"].items():
                speedup.append(default / own)
                relative.append(first / own)
                by_seed.setdefault(seed, []).append(first / own)
                trials += one["trials"].get(task, 0)
        rows.append({"arm": arm, "tasks": len(speedup), "speedup": mean(speedup),
                     "relative": mean(relative),
                     "by_seed": {s: mean(v) for s, v in sorted(by_seed.items())},
                     "slower_by_2_percent": sum(r < 0.98 for r in relative) / len(relative),
                     "faster_by_2_percent": sum(r > 1.02 for r in relative) / len(relative),
                     "trials": trials, "seconds": seconds, "time": seconds / base_seconds})
    curves = {arm: [mean(c) for c in zip(*(curve_at(run[arm], 0, TRIALS) for run in runs.values()))]
              for arm in arms}
    times = {arm: [mean(c) for c in zip(*(
        curve_at(run[arm], 1, [share * run[arms[0]]["seconds"] for share in SHARES])
        for run in runs.values()))] for arm in arms}
    if a.json:
        json.dump({"arms": rows, "curve": {"trials": TRIALS, "speedup": curves},
                   "curve_of_time": {"share": SHARES, "speedup": times},
                   "runs": [{"model": m, "seed": s} for m, s in sorted(runs)]}, sys.stdout, indent=1)
        print()
        return 0
    print("models and seeds: " + ", ".join(f"{m} {s}" for m, s in sorted(runs)))
    print(f"\n{'trials a task':14s}{'tasks':>6s}{'speedup':>9s}{'to ' + arms[0]:>10s}"
          f"{'slower':>8s}{'faster':>8s}{'trials':>9s}{'seconds':>9s}{'of time':>9s}  by seed")
    for r in rows:
        print(f"{r['arm']:14s}{r['tasks']:6d}{r['speedup']:9.3f}{r['relative']:10.3f}"
              f"{r['slower_by_2_percent']:8.0%}{r['faster_by_2_percent']:8.0%}{r['trials']:9d}"
              f"{r['seconds']:9.1f}{r['time']:9.1%}  "
              + " ".join(f"{v:.3f}" for v in r["by_seed"].values()))
    print("\nSpeedups over the untuned default, geometric means; slower, faster: by 2 % or more.")
    for title, points, curve in (
            ("Speedup after so many trials of a task:", [str(n) for n in TRIALS], curves),
            (f"Speedup after so much of the time of {arms[0]}:", [f"{x:.0%}" for x in SHARES], times)):
        print(f"\n{title}\n{'':14s}" + "".join(f"{p:>7s}" for p in points))
        for arm in arms:
            print(f"{arm:14s}" + "".join(f"{v:7.3f}" for v in curve[arm]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

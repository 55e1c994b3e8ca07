#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of headline.sh, from its sessions.

    headline.py [--json] --arms "1000+0 50+50" FOLDER

An arm's speedup of a task is the untuned default's time over the best kernel's, both from the final,
interleaved measurement. Arms are compared on the tasks, models and seeds that all of them have.
Seconds are the session's active time until its last trial ended.
"""
import argparse
import json
import math
import os
import re
import sqlite3
import sys


def mean(values):
    """Geometric mean."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def read_session(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    tasks = {}
    for name, weight, default, explored, refined in db.execute(
            "SELECT name, weight, default_ns, explored_ns, refined_ns FROM tasks"):
        best = min((t for t in (explored, refined) if t), default=None)
        if default and best:
            tasks[name] = {"speedup": default / best, "best_ns": best, "weight": weight}
    for name, trials in db.execute("SELECT task, count(*) FROM trials GROUP BY task"):
        if name in tasks:
            tasks[name]["trials"] = trials
    seconds = db.execute("SELECT max(ended) FROM trials").fetchone()[0]
    # Best so far of each task after n of its trials.
    curve = {}
    for name, n, best in db.execute("SELECT task, trials, best_ns FROM progress ORDER BY trial"):
        if best:
            curve.setdefault(name, []).append((n, best))
    db.close()
    return {"tasks": tasks, "seconds": seconds, "curve": curve}


def curve_at(session, points):
    """Geometric mean of the speedups over tasks after n trials of each, for each n: the final one, times
    how much slower the best after n trials was than the last, by the search's own measurements."""
    out = []
    for n in points:
        speedups = []
        for task, steps in session["curve"].items():
            upto = [best for k, best in steps if k <= n]
            if task in session["tasks"] and upto:
                speedups.append(session["tasks"][task]["speedup"] * steps[-1][1] / upto[-1])
        out.append(mean(speedups))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--arms", required=True)
    parser.add_argument("folder")
    a = parser.parse_args()
    arms = a.arms.split()
    found = {}
    for name in sorted(os.listdir(a.folder)):
        m = re.fullmatch(r"(.+)\.(\d+\+\d+)\.s(\d+)\.squall\.done", name)
        if m and m[2] in arms:
            session = read_session(os.path.join(a.folder, name[:-len(".done")]))
            found.setdefault((m[1], int(m[3])), {})[m[2]] = session
    runs = {k: v for k, v in found.items() if all(arm in v for arm in arms)}
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
            for task in one["tasks"].keys() & base["tasks"].keys():
                t = one["tasks"][task]
                ratio = t["speedup"] / base["tasks"][task]["speedup"]
                speedup.append(t["speedup"])
                relative.append(ratio)
                by_seed.setdefault(seed, []).append(ratio)
                trials += t.get("trials", 0)
        rows.append({"arm": arm, "tasks": len(speedup), "speedup": mean(speedup),
                     "relative": mean(relative),
                     "by_seed": {s: mean(v) for s, v in sorted(by_seed.items())},
                     "slower_by_2_percent": sum(r < 0.98 for r in relative) / len(relative),
                     "faster_by_2_percent": sum(r > 1.02 for r in relative) / len(relative),
                     "trials": trials, "seconds": seconds, "time": seconds / base_seconds})
    points = [1, 10, 25, 50, 75, 100, 150, 200, 350, 500, 1000]
    curves = {arm: [mean(c) for c in zip(*(curve_at(s[arm], points) for s in runs.values()))]
              for arm in arms}
    if a.json:
        json.dump({"arms": rows, "curve": {"trials": points, "speedup": curves},
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
    print("\nSpeedup after so many trials of a task:")
    print(f"{'trials':14s}" + "".join(f"{n:>7d}" for n in points))
    for arm in arms:
        print(f"{arm:14s}" + "".join(f"{v:7.3f}" for v in curves[arm]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

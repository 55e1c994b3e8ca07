#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`squall compare` as its user meets it: the table, JSON, threads, and what is refused.

usage: compare.py SQUALL
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest

SQUALL = sys.argv[1]


def run(*args):
    return subprocess.run([SQUALL, "compare", *args], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)


def bowl():
    """A Kernel Tuner cachefile of 512 configurations: a bowl with a hole, and a failing corner."""
    knobs = {"x": [2**i for i in range(8)], "y": list(range(1, 9)), "z": list(range(8))}
    cache = {}
    for i, x in enumerate(knobs["x"]):
        for j, y in enumerate(knobs["y"]):
            for k, z in enumerate(knobs["z"]):
                time = 1 + .1 * ((i - 5)**2 + (j - 2)**2 + (k - 6)**2) + .01 * ((7 * i + 3 * j + k) % 5)
                entry = {"x": x, "y": y, "z": z, "time": time, "times": [time],
                         "compile_time": 900. + 10 * i, "verification_time": 0, "benchmark_time": 30. * time,
                         "strategy_time": 0, "framework_time": 1.}
                if i == 7 and j > 4:
                    entry["time"] = "RuntimeFailedConfig"
                cache["%d,%d,%d" % (x, y, z)] = entry
    return {"device_name": "none", "kernel_name": "bowl", "problem_size": 1, "objective": "time",
            "tune_params_keys": list(knobs), "tune_params": knobs, "cache": cache}


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.bowl = cls.path("bowl.json")
        with open(cls.bowl, "w") as f:
            json.dump(bowl(), f)
        cls.other = cls.path("sub", "bowl.json.gz")
        os.mkdir(cls.path("sub"))
        with gzip.open(cls.other, "wt") as f:
            changed = bowl()
            for n, e in enumerate(changed["cache"].values()):
                if e["time"] != "RuntimeFailedConfig":
                    e["time"] += n % 7
            json.dump(changed, f)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder.name, *names)

    def json(self, *args):
        r = run(*args, "--json")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return json.loads(r.stdout)

    def refused(self, code, text, *args):
        r = run(*args)
        self.assertEqual((r.returncode, r.stdout), (code, ""), args)
        self.assertIn(text, r.stderr)
        self.assertTrue(r.stderr.startswith("squall"), r.stderr)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)

    def test_json_has_scores_by_strategy_and_file(self):
        got = self.json(self.bowl, self.other, "--strategies", "auto,random", "--runs", "20")
        self.assertEqual(list(got["strategies"]), ["auto", "random"])
        for s in got["strategies"].values():
            self.assertEqual(set(s["spaces"]), {self.bowl, self.other})
            self.assertAlmostEqual(s["score"], sum(s["spaces"].values()) / 2, places=12)
            self.assertEqual(s["runs"], 20)
        self.assertGreater(got["strategies"]["auto"]["spaces"][self.bowl], .5)
        self.assertLess(abs(got["strategies"]["random"]["score"]), .4)
        self.assertEqual(got["spaces"][self.bowl]["configurations"], 512)
        self.assertEqual(got["spaces"][self.bowl]["valid"], 512 - 24)

    def test_neither_threads_nor_company_change_a_result(self):
        args = ["--strategies", "portfolio,swarm", "--runs", "9", "--seed", "3"]
        one = self.json(self.bowl, *args, "--jobs", "1")
        self.assertEqual(one, self.json(self.bowl, *args, "--jobs", "5"))
        both = self.json(self.bowl, self.other, *args)
        for name, s in one["strategies"].items():
            self.assertEqual(s["spaces"][self.bowl], both["strategies"][name]["spaces"][self.bowl])
        alone = self.json(self.bowl, "--strategies", "swarm", *args[2:])
        self.assertEqual(alone["strategies"]["swarm"], one["strategies"]["swarm"])
        changed = self.json(self.bowl, *args[:4], "--seed", "4")
        self.assertNotEqual(one["strategies"], changed["strategies"])

    def test_a_strategy_is_no_better_than_itself(self):
        got = self.json(self.bowl, "--strategies", "tabu,forest", "--baseline", "tabu", "--runs", "10")
        self.assertEqual(got["strategies"]["tabu"]["score"], 0)
        self.assertEqual(got["baseline"], "tabu")
        alone = self.json(self.bowl, "--strategies", "forest", "--baseline", "tabu", "--runs", "10")
        self.assertEqual(alone["strategies"]["forest"], got["strategies"]["forest"])

    def test_tables_and_curves_for_people(self):
        r = run(self.bowl, "--runs", "3", "--ascii")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for name in ("forest", "portfolio", "genetic", "random", "mean", "bowl.json", "P(t)"):
            self.assertIn(name, r.stdout)
        self.assertTrue(r.stdout.isascii())
        self.assertLessEqual(max(map(len, r.stdout.splitlines())), 120)

    def test_what_cannot_be_is_refused_with_one_sentence(self):
        self.refused(2, "wants a recorded space")
        self.refused(2, "there is no strategy \"nobody\"", self.bowl, "--strategies", "nobody")
        self.refused(2, "there is no strategy \"\"", self.bowl, "--strategies", "random,")
        self.refused(2, "named twice", self.bowl, "--strategies", "random,random")
        self.refused(2, "there is no strategy \"x\"", self.bowl, "--baseline", "x")
        for bad in ("0", "-1", "1e3", "x", "", "99999999999999999999"):
            self.refused(2, "--runs wants", self.bowl, "--runs=" + bad)
        self.refused(2, "--seed wants", self.bowl, "--seed", "-1")
        self.refused(2, "--jobs wants", self.bowl, "--jobs", "0")
        self.refused(2, "--runs wants a value", self.bowl, "--runs")
        self.refused(2, "there is no option --fast", self.bowl, "--fast")
        self.refused(1, "named twice", self.bowl, self.bowl)
        self.refused(1, "nowhere.json", self.path("nowhere.json"))
        self.refused(1, "sub", self.path("sub"))
        empty = self.path("empty.json")
        open(empty, "w").close()
        self.refused(1, "empty.json", empty)
        failed = bowl()
        for e in failed["cache"].values():
            e["time"] = "CompilationFailedConfig"
        with open(self.path("failed.json"), "w") as f:
            json.dump(failed, f)
        self.refused(1, "failed.json", self.path("failed.json"))

    def test_a_recording_without_costs_counts_evaluations(self):
        bare = bowl()
        for e in bare["cache"].values():
            for k in list(e):
                if k.endswith("_time"):
                    del e[k]
        del e["times"]
        path = self.path("bare.json")
        with open(path, "w") as f:
            json.dump(bare, f)
        got = self.json(path, "--strategies", "random", "--runs", "3")["spaces"][path]
        if not got["has_cost"]:
            self.assertEqual(got["budget_s"], got["evaluations"])

    def test_one_configuration_is_a_space_too(self):
        one = bowl()
        key = next(iter(one["cache"]))
        one["cache"] = {key: one["cache"][key]}
        path = self.path("one.json")
        with open(path, "w") as f:
            json.dump(one, f)
        got = self.json(path, "--runs", "2")
        for s in got["strategies"].values():
            self.assertEqual(s["score"], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

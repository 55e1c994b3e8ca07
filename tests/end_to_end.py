#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program as its user runs it: commands, exit codes, kill -9, resume, hostile input.

usage: end_to_end.py SQUALL
"""
import json
import os
import pty
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

SQUALL = os.path.abspath(sys.argv[1])
TIMEOUT = 300


def run(*args, **kw):
    return subprocess.run([SQUALL, *args], capture_output=True, text=True, timeout=TIMEOUT,
                          stdin=subprocess.DEVNULL, **kw)


def query(session, sql):
    with sqlite3.connect(session) as db:
        return db.execute(sql).fetchall()


class EndToEnd(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.session = os.path.join(self.folder.name, "s.squall")

    def tune(self, *args):
        return run("tune", *args, "--batch", "--session", self.session)

    def test_a_network_is_tuned_and_shown(self):
        r = self.tune("tinynet", "--explore", "6", "--refine", "6")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("all, by weight", r.stdout)
        self.assertNotIn("could not learn", r.stdout)
        shown = run("show", self.session, "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        board = json.loads(shown.stdout)
        self.assertEqual(set(board) & {"session", "tasks", "model", "trials", "trials_per_s"},
                         {"session", "tasks", "model", "trials", "trials_per_s"})
        for task in board["tasks"]:
            for key in ("name", "workload", "weight", "default_ns", "explored_ns", "refined_ns",
                        "gflops", "trials"):
                self.assertIn(key, task)
            self.assertIn(sum(task["trials"].values()), range(1, 13), task)
            self.assertEqual(task["trials"]["wrong_result"], 0)
            self.assertGreater(task["default_ns"], 0)
        total = sum(t["weight"] * t["refined_ns"] for t in board["tasks"])
        self.assertAlmostEqual(board["model"]["refined_ns"], total, delta=total * 1e-9)
        columns = [c[1] for c in query(self.session, "pragma table_info(trials)")]
        self.assertEqual(columns[:13],
                         ["id", "task", "strategy", "phase", "sketch", "knobs", "status", "reason",
                          "median_ns", "samples", "parent", "started", "ended"])
        self.assertEqual(query(self.session, "select count(*) from trials")[0][0],
                         board["trials"])
        again = run("replay", self.session, "--batch")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout, r.stdout)

    def kill_and_resume(self, args, after):
        """Runs the command, kills it after so many trials, resumes, and so on, then to the end."""
        for trials in after:  # not seconds: the machine's speed does not matter
            p = subprocess.Popen([SQUALL, *args], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
            for line in p.stdout:
                trials -= " trial " in line
                if not trials:
                    break
            p.send_signal(signal.SIGKILL)
            p.stdout.close()
            p.wait(TIMEOUT)
            args = ["resume", self.session, "--batch"]
        stored = query(self.session, "select id, code from trials")
        r = run(*args)
        self.assertEqual(r.returncode, 0, r.stderr)
        rows = query(self.session, "select id, code from trials order by id")
        self.assertEqual([i for i, _ in rows], list(range(1, len(rows) + 1)))
        self.assertLessEqual(set(stored), set(rows))

    def test_killed_twice_and_resumed_has_every_trial_once(self):
        rng = random.Random(5)
        args = ["tune", "tinynet", "--explore", "24", "--refine", "16", "--seed", "3", "--batch",
                "--session", self.session]
        self.kill_and_resume(args, [rng.randrange(20, 120) for kill in range(2)])
        state = json.loads(run("show", self.session, "--json").stdout)["session"]
        self.assertEqual((state["state"], state["resumed"]), ("finished", 2))

    def test_what_was_learned_from_an_earlier_session_outlives_it(self):
        earlier = os.path.join(self.folder.name, "earlier.squall")
        r = run("tune", "matmul:64x64x64,const", "--explore", "40", "--refine", "0", "--batch",
                "--session", earlier)
        self.assertEqual(r.returncode, 0, r.stderr)
        if "cost model" not in r.stdout:
            self.skipTest("built without the cost model")
        args = ["tune", "matmul:64x96x64,const", "--explore", "60", "--refine", "20", "--batch",
                "--learn-from", earlier, "--session", self.session]
        p = subprocess.Popen([SQUALL, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, text=True)
        trials, begun = 0, False
        for line in p.stdout:
            trials += " trial " in line
            begun |= "begins with 40 trials of earlier sessions" in line
            if trials == 30:
                break
        p.send_signal(signal.SIGKILL)
        p.stdout.close()
        p.wait(TIMEOUT)
        self.assertTrue(begun)
        os.remove(earlier)
        r = run("resume", self.session, "--batch")
        self.assertEqual(r.returncode, 0, r.stderr)
        ids = [i for i, in query(self.session, "select id from trials order by id")]
        self.assertEqual(ids, list(range(1, len(ids) + 1)))
        self.assertGreater(len(ids), 70)
        for bad in (earlier, __file__):
            r = run("tune", "matmul:64x96x64", "--learn-from", bad, "--session",
                    self.session + "2", "--batch")
            self.assertEqual(r.returncode, 1)
            self.assertIn("cannot learn from", r.stderr)
            self.assertFalse(os.path.exists(self.session + "2"))
        r = run("tune", "matmul:64x96x64", "--learn-from", self.session, "--cost-model", "none")
        self.assertEqual(r.returncode, 2)

    def test_what_is_left_of_what_was_learned_does_not_matter(self):
        r = self.tune("matmul:64x64x64,const", "--explore", "96", "--refine", "0", "--trials", "90")
        self.assertEqual(r.returncode, 0, r.stderr)
        if "cost model" not in r.stdout:
            self.skipTest("built without the cost model")
        nr = query(self.session, "select count(*) from trees")[0][0]
        self.assertGreater(nr, 2)
        said = "cost model: learns again"
        for trials, damage, notes in (
                (92, None, 0),
                (94, "update trees set body = substr(body, 1, length(body) / 2)", 1),
                (96, "update trees set body = 'trees'", 1),
                (98, "update trees set body = randomblob(length(body)), trials = -1", 1),
                (100, "drop table trees", 1),
                (102, None, 0)):
            if damage:
                with sqlite3.connect(self.session) as db:
                    db.execute(damage)
            before = query(self.session, "select id, code, sample_ns from trials order by id")
            r = run("resume", self.session, "--batch", "--explore", "120", "--trials", str(trials))
            self.assertEqual(r.returncode, 0, r.stderr)
            after = query(self.session, "select id, code, sample_ns from trials order by id")
            self.assertEqual(len(after), trials)
            self.assertEqual(after[:len(before)], before)
            lines = [line for line in r.stdout.splitlines() if said in line]
            self.assertEqual(len(lines), notes, (damage, lines))
            self.assertGreaterEqual(query(self.session, "select count(*) from trees")[0][0], nr)

    def shuffled_network(self):
        """Group convolutions of 3 channels a group work plain, the depthwise one between on blocks."""
        path = os.path.join(self.folder.name, "net.lua")
        with open(path, "w") as f:
            f.write("""
                local net = network { name = "shuffled", input = {1, 3, 14, 14} }
                local function unit(x)
                  local y = x:conv{k = 12, groups = 4}:relu()
                  y = y:reshape{1, 4, 3, 14, 14}:transpose{1, 3, 2, 4, 5}:reshape{1, 12, 14, 14}
                  y = y:depthwise{kernel = 3, pad = 1}:conv{k = 24, groups = 4}
                  return (x + y):relu()
                end
                local x = unit(unit(net.input:conv{k = 24, kernel = 3, pad = 1}))
                return net:output(x:global_avgpool():flatten():dense{n = 7})""")
        return path

    def test_layouts_are_kept_with_a_session(self):
        net = self.shuffled_network()
        for how in ("blocked", "plain", "auto"):
            with self.subTest(layout=how):
                self.session = os.path.join(self.folder.name, how + ".squall")
                self.kill_and_resume(["tune", net, "--layout", how, "--explore", "4", "--refine", "2",
                                      "--batch", "--session", self.session], (12, 20))
                kept = query(self.session, "select value from meta where key = 'option.layout'")
                conversions = query(
                    self.session, "select sum(weight) from tasks where name like '%pack_%'")[0][0]
                if how != "auto":  # what it finds is a matter of measured times
                    self.assertEqual(kept, [("plain",)] if how == "plain" else [])
                    self.assertEqual(conversions, None if how == "plain" else 5)
                lib = os.path.join(self.folder.name, how)
                r = run("compile", self.session, "-o", lib, "--json")
                self.assertEqual(r.returncode, 0, r.stderr)
                calls = query(self.session, "select sum(weight) from tasks")[0][0]
                self.assertEqual(json.loads(r.stdout)["calls"], calls)
                r = run("bench", lib, "--runs", "2")
                self.assertEqual(r.returncode, 0, r.stderr)

    def test_a_damaged_layout_gets_a_sentence(self):
        net = self.shuffled_network()
        r = self.tune(net, "--layout", "plain", "--explore", "1", "--refine", "0", "--trials", "1")
        self.assertEqual(r.returncode, 0, r.stderr)
        for text in ("", "0", "0 1:99999999999999", "sideways", "1 12:1", "0 17:" + "0," * 100000):
            with sqlite3.connect(self.session) as db:
                db.execute("update meta set value = ? where key = 'option.layout'", (text,))
            for args in (["resume", self.session, "--batch", "--trials", "2"],
                         ["compile", self.session, "-o", os.path.join(self.folder.name, "lib")]):
                if not text:
                    continue  # by the rule
                r = run(*args)
                self.assertEqual(r.returncode, 1, (text, args, r.stdout, r.stderr))
                self.assertTrue(r.stderr.startswith("squall: "), r.stderr)
                self.assertEqual(r.stderr.count("\n"), 1, r.stderr)

    def test_interrupted_before_the_session_begins(self):
        net = self.shuffled_network()
        p = subprocess.Popen([SQUALL, "tune", net, "--batch", "--session", self.session],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("layouts: measuring", p.stderr.readline())
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=TIMEOUT)
        self.assertEqual((p.returncode, out), (130, ""), err)
        self.assertFalse(os.path.exists(self.session))

    def test_interrupted_is_resumable(self):
        p = subprocess.Popen([SQUALL, "tune", "tinynet", "--batch", "--session", self.session],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in p.stdout:
            if " trial " in line:
                break
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=TIMEOUT)
        self.assertEqual(p.returncode, 130, err)
        self.assertIn("squall resume", err)
        trials = query(self.session, "select max(id) from trials")[0][0]
        r = run("resume", self.session, "--batch", "--trials", str(trials + 60))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("ended   finished", r.stdout)
        self.assertNotIn("ended   interrupted", r.stdout)  # of the first run
        self.assertEqual(query(self.session, "select max(id) from trials")[0][0], trials + 60)
        both = run("replay", self.session, "--batch").stdout
        self.assertIn("ended   interrupted", both)
        self.assertIn("ended   finished", both)

    def phases(self):
        """The number of trials of each task in each phase."""
        return {(task, phase): n for task, phase, n in query(
            self.session, "select task, phase, count(*) from trials group by 1, 2")}

    def test_a_finished_session_is_refined_further(self):
        r = self.tune("tinynet", "--explore", "8", "--refine", "8", "--seed", "3")
        self.assertEqual(r.returncode, 0, r.stderr)
        before = query(self.session, "select id, code, sample_ns from trials order by id")
        first = self.phases()
        r = run("resume", self.session, "--refine", "16", "--batch")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("16 trials of each task", r.stdout)
        after = query(self.session, "select id, code, sample_ns from trials order by id")
        self.assertEqual(after[:len(before)], before)
        last = self.phases()
        grown = 0
        for (task, phase), n in last.items():
            old = first.get((task, phase), 0)
            if phase == "refine" and old == 8:
                grown += n == 16
                self.assertLessEqual(n, 16)  # or it converged
            else:
                self.assertEqual(n, old)
        self.assertGreater(grown, 0)
        for task in {task for task, _ in last}:
            results = query(self.session, "select count(*) from events e join task t on t.id = e.task"
                            f" where e.kind = 'result' and t.name = '{task}'")[0][0]
            # what was explored to its end has nothing to refine
            renewed = last.get((task, "refine"), 0) > first.get((task, "refine"), 0)
            self.assertEqual(results, 1 + renewed, task)
        shown = json.loads(run("show", self.session, "--json").stdout)
        self.assertEqual(shown["session"]["state"], "finished")
        # Once more with the same budget: nothing to do.
        r = run("resume", self.session, "--refine", "16", "--batch")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(self.phases(), last)
        self.assertEqual(query(self.session, "select count(*) from events where kind = 'command'"),
                         [(1,)])

    def test_killed_while_it_explores_further(self):
        r = self.tune("tinynet", "--explore", "8", "--refine", "4", "--seed", "4")
        self.assertEqual(r.returncode, 0, r.stderr)
        first = self.phases()
        args = ["resume", self.session, "--explore", "20", "--batch"]
        self.kill_and_resume(args, (30, 45))
        for (task, phase), n in self.phases().items():
            if phase != "refine":
                continue
            explored = sum(m for (t, p), m in self.phases().items() if t == task and p != "refine")
            self.assertLessEqual(explored, 20)
            # none at first where all neighbours were predicted to be slow
            self.assertLessEqual(n, 4 + first.get((task, phase), 0))
        self.assertIn(20, [sum(m for (t, p), m in self.phases().items()
                               if t == task and p != "refine") for task, _ in self.phases()])

    def test_a_session_that_does_not_explore_cannot_explore_further(self):
        r = self.tune("matmul:32x32x32", "--strategy", "droplet", "--refine", "4")
        self.assertEqual(r.returncode, 0, r.stderr)
        r = run("resume", self.session, "--explore", "8", "--batch")
        self.assertEqual(r.returncode, 2)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertIn("does not explore", r.stderr)
        r = run("resume", self.session, "--refine", "8", "--batch")
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_an_ended_output_ends_the_search(self):
        p = subprocess.Popen([SQUALL, "tune", "tinynet", "--batch", "--session", self.session],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        p.stdout.readline()
        p.stdout.close()
        self.assertEqual(p.wait(TIMEOUT), 130, p.stderr.read())
        p.stderr.close()

    def test_a_closed_terminal_closes_the_session(self):
        """A terminal hangs up twice, by the kernel and by the shell."""
        pid, fd = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(SQUALL, [SQUALL, "tune", "tinynet", "--session", self.session])
        seen = b""
        while b"refining" not in seen and b"exploring" not in seen:
            seen = seen[-64:] + os.read(fd, 4096)
        os.kill(pid, signal.SIGHUP)
        os.close(fd)
        os.kill(pid, signal.SIGHUP)
        status = os.waitpid(pid, 0)[1]
        self.assertTrue(os.WIFEXITED(status), status)
        state = json.loads(run("show", self.session, "--json").stdout)["session"]
        self.assertEqual((state["state"], state["why"]), ("interrupted", "stopped"))

    def test_nohup_is_respected(self):
        p = subprocess.Popen([SQUALL, "tune", "tinynet", "--batch", "--explore", "4", "--refine",
                              "0", "--session", self.session], stdout=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        p.stdout.readline()
        p.send_signal(signal.SIGHUP)
        out, _ = p.communicate(timeout=TIMEOUT)
        self.assertEqual(p.returncode, 0)
        self.assertIn("ended   finished", out)

    def test_no_child_outlives_a_killed_search(self):
        p = subprocess.Popen([SQUALL, "tune", "matmul:64x64x64", "--explore", "100000", "--batch",
                              "--session", self.session], stdout=subprocess.PIPE, text=True)
        for line in p.stdout:
            if " trial " in line:
                break
        children = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True,
                                  text=True).stdout.split()
        self.assertTrue(children)
        p.send_signal(signal.SIGKILL)
        p.stdout.close()
        p.wait(TIMEOUT)
        deadline = time.monotonic() + TIMEOUT
        while any(os.path.exists(f"/proc/{c}") for c in children):
            self.assertLess(time.monotonic(), deadline, "a runner goes on without its squall")
            time.sleep(0.02)

    def test_wrong_input_gets_a_sentence_and_a_code(self):
        def file(name, data):
            path = os.path.join(self.folder.name, name)
            with open(path, "wb") as f:
                f.write(data)
            return path

        text = file("notes.txt", b"hello")
        cases = [
            (2, ["nonsense"]),
            (2, ["tune", "--explore", "many"]),
            (2, ["tune", "--explore"]),
            (2, ["tune", "--frobnicate"]),
            (2, ["tune", "--strategy", "wishing"]),
            (2, ["tune", "--target", "abacus"]),
            (2, ["tune", "--target", "llvm:cpu=z80"]),
            (2, ["tune", "--threads", "0"]),
            (2, ["tune", "--layout", "diagonal"]),
            (2, ["tune", "matmul:0x1x1"]),
            (2, ["tune", "matmul:1x2"]),
            (1, ["tune", "matmul:99999999x99999999x99999999"]),
            (1, ["tune", "missing.onnx"]),
            (1, ["tune", "missing"]),
            (1, ["tune", text]),
            (1, ["tune", file("empty.onnx", b"")]),
            (1, ["tune", file("short.onnx", b"\x08\x03\x12\x05onnx")]),
            (1, ["tune", file("bad.lua", b"return network {")]),
            (1, ["tune", self.folder.name]),
            (1, ["tune", "tinynet", "--task", "no such task"]),
            (1, ["tune", "tinynet", "--session", "/nowhere/s.squall"]),
            (2, ["resume"]),
            (1, ["resume", "missing.squall", "--explore", "100"]),
            (2, ["resume", "missing.squall", "--refine", "some"]),
            (1, ["resume", text]),
            (1, ["resume", "missing.squall"]),
            (2, ["replay"]),
            (1, ["replay", text]),
            (2, ["show"]),
            (1, ["show", text]),
            (1, ["show", "missing.squall"]),
            (2, ["show", text, "everything", "else"]),
        ]
        env = dict(os.environ, XDG_DATA_HOME=self.folder.name, HOME=self.folder.name)
        for code, args in cases:
            with self.subTest(args=args):
                r = run(*args, env=env)
                self.assertEqual(r.returncode, code, r.stderr)
                self.assertTrue(r.stderr.startswith("squall"), r.stderr)
                self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
                self.assertEqual(r.stdout, "")

    def test_a_session_that_exists_is_not_overwritten(self):
        with open(self.session, "w") as f:
            f.write("precious")
        r = self.tune("matmul:8x8x8")
        self.assertEqual(r.returncode, 1)
        with open(self.session) as f:
            self.assertEqual(f.read(), "precious")

    def test_a_changed_input_is_not_resumed(self):
        net = os.path.join(self.folder.name, "net.lua")
        text = 'local n = network { name = "n", input = {%d, 64} } return n:output(n:dense(n.input, {n = 64}))'
        with open(net, "w") as f:
            f.write(text % 2)
        self.assertEqual(self.tune(net, "--explore", "2", "--refine", "0").returncode, 0)
        with open(net, "w") as f:
            f.write(text % 3)
        r = run("resume", self.session, "--batch")
        self.assertEqual(r.returncode, 1)
        self.assertIn("net.lua", r.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

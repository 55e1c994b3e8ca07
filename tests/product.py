#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled models as their user meets them: compile, link, run, bench, and what is refused.

usage: product.py SQUALL SOURCE-ROOT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SQUALL, SOURCE = sys.argv[1:3]
MODELS = os.path.join(SOURCE, "..", "shared", "models")
TIMEOUT = 300


def run(*args, **kw):
    return subprocess.run([SQUALL, *args], capture_output=True, text=True, timeout=TIMEOUT,
                          stdin=subprocess.DEVNULL, **kw)


def call(*args):
    r = subprocess.run(args, capture_output=True, text=True, timeout=TIMEOUT)
    assert r.returncode == 0, (args, r.stdout, r.stderr)
    return r.stdout


def field(number, value):
    """A field of a protocol buffer: a number, or what has a length."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


def relu_of_free_size():
    """An ONNX file: y = Relu(x), x of 1 x n."""
    def info(name):
        shape = field(1, field(1, 1)) + field(1, field(2, "n"))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
    node = field(1, "x") + field(2, "y") + field(4, "Relu")
    graph = field(1, node) + field(2, "g") + field(11, info("x")) + field(12, info("y"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


class Product(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.session = os.path.join(cls.shared.name, "tiny.squall")
        r = run("tune", "tinynet", "--explore", "2", "--refine", "2", "--batch", "--session",
                cls.session)
        assert r.returncode == 0, r.stderr

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.lib = os.path.join(self.folder.name, "lib")

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def tune(self, *args):
        session = self.path("s.squall")
        r = run("tune", *args, "--batch", "--session", session)
        self.assertEqual(r.returncode, 0, r.stderr)
        return session

    def compile(self, session, *args):
        r = run("compile", session, "-o", self.lib, *args)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def bench(self, *args, **kw):
        r = run("bench", "--runs", "5", "--json", *args, **kw)
        self.assertEqual(r.returncode, 0, r.stderr)
        return json.loads(r.stdout)

    def cc(self, out, source, *args):
        call("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", self.lib, "-o",
             self.path(out), os.path.join(SOURCE, "tests", source), *args)
        return call(self.path(out))

    def test_a_program_is_linked_with_a_network(self):
        text = self.compile(self.session)
        # how many depends on the lanes of this machine: narrow blocks need fewer conversions
        self.assertRegex(text, r"\b(1\d) calls of \1 kernels")
        self.assertEqual(sorted(os.listdir(self.lib)),
                         ["libtinynet.so", "tinynet.c", "tinynet.h", "tinynet.json", "tinynet.o"])
        shared = os.path.join(self.lib, "libtinynet.so")
        needed = call("ldd", shared)
        for foreign in ("LLVM", "squall", "sqlite", "lua", "gomp"):
            self.assertNotIn(foreign, needed)
        visible = [s.split()[-1] for s in call("nm", "-D", "--defined-only", shared).splitlines()]
        self.assertEqual(sorted(visible), ["tinynet_create", "tinynet_free", "tinynet_input",
                                           "tinynet_output", "tinynet_run", "tinynet_threads"])
        by_object = self.cc("static", "example_run.c", os.path.join(self.lib, "tinynet.o"), "-lm")
        by_library = self.cc("shared", "example_run.c", shared, "-Wl,-rpath," + self.lib)
        self.assertEqual(by_object, by_library)
        lines = by_object.splitlines()
        self.assertEqual(len(lines), 1 + 10)
        self.assertAlmostEqual(sum(map(float, lines[1:])), 1, places=4)
        self.assertEqual(self.cc("edges", "product_edges.c", os.path.join(self.lib, "tinynet.o"),
                                 "-lm", "-lpthread"), "ok\n")

    def test_bench_compares_with_the_interpreter(self):
        self.compile(self.session)
        env = dict(os.environ, TMPDIR=self.path())
        for args in ([self.lib], [self.session]):
            b = self.bench(*args, env=env)
            self.assertEqual((b["name"], b["threads"], b["runs"]), ("tinynet", 1, 5))
            self.assertGreater(b["min_ns"], 0)
            self.assertLessEqual(b["min_ns"], b["median_ns"])
            self.assertLess(b["error"], 1e-5)
            self.assertIsNone(b["expected_error"])
        text = run("bench", self.lib).stdout
        for word in ("latency", "median of", "error", "weights"):
            self.assertIn(word, text)
        self.assertEqual(os.listdir(self.path()), ["lib"])

    def test_a_wrong_output_fails(self):
        self.compile(self.session)
        with open(self.path("zeros"), "wb") as f:
            f.write(bytes(40))
        r = run("bench", self.lib, "--runs", "2", "--expect", self.path("zeros"))
        self.assertEqual(r.returncode, 1)
        self.assertIn("are not the expected ones", r.stderr)
        r = run("bench", self.lib, "--input", self.path("zeros"))
        self.assertEqual(r.returncode, 1)
        self.assertIn("does not hold the 3072 float32 numbers", r.stderr)

    def test_several_threads_need_the_openmp_runtime_alone(self):
        session = self.tune("tinynet", "--threads", "2", "--explore", "1", "--refine", "0")
        self.compile(session)
        needed = call("ldd", os.path.join(self.lib, "libtinynet.so"))
        self.assertIn("gomp", needed)
        self.assertNotIn("LLVM", needed)
        for threads in ("2", "1"):
            b = self.bench(self.lib, "--threads", threads)
            self.assertEqual(b["threads"], int(threads))
            self.assertLess(b["error"], 1e-5)
        r = run("bench", self.lib, "--threads", "3")
        self.assertEqual(r.returncode, 1)
        self.assertIn("tune with --threads 3", r.stderr)

    def test_a_kernel_alone_is_a_model(self):
        for name in ("conv2d:C=20,H=9,K=24,bias,add,relu", "matmul:33x20x17", "softmax:4x100",
                     "dense:1x10x64,sigmoid"):
            session = self.tune(name, "--explore", "2", "--refine", "0")
            self.compile(session, "--name", "k")
            self.assertLess(self.bench(self.lib)["error"], 1e-5, name)
            os.unlink(session)

    def test_one_of_several_inputs(self):
        session = self.tune("tinynet", "matmul:16x16x16", "--explore", "1", "--refine", "0")
        r = run("compile", session, "-o", self.lib)
        self.assertEqual(r.returncode, 1)
        self.assertIn("several models", r.stderr)
        self.compile(session, "matmul:16x16x16")
        self.assertTrue(os.path.exists(os.path.join(self.lib, "matmul_16x16x16.h")))

    def test_outputs_that_are_inputs_views_and_parts(self):
        net = self.path("odd.lua")
        with open(net, "w") as f:
            f.write("""
                local n = network { name = "int", inputs = {{1, 20, 8, 8}, {1, 12, 8, 8}} }
                local a, b = n.inputs[1], n.inputs[2]
                local x = n:relu(a)
                local y = n:conv(b, {k = 20, kernel = 3, pad = 1})
                local c = n:concat(x, y, b)
                return n:output(x, a, n:reshape(x, {1, -1}), y, c, n:weight{4, 4},
                                n:reshape(b, {12, 64}), n:conv(c, {k = 16}), x)
                """)
        session = self.tune(net, "--explore", "1", "--refine", "0")
        self.compile(session)
        self.assertLess(self.bench(self.lib)["error"], 1e-5)
        with open(os.path.join(self.lib, "intmodel.h")) as f:
            header = f.read()
        for k, shape in ((1, "1, 20, 8, 8"), (2, "1, 1280"), (4, "1, 52, 8, 8"), (5, "4, 4")):
            self.assertRegex(header, rf"out\[{k}\]  \S*  \[{shape}\]\n")

    def test_a_size_that_the_file_leaves_free_is_that_of_the_session(self):
        model = self.path("free.onnx")
        with open(model, "wb") as f:
            f.write(relu_of_free_size())
        session = self.tune(model, "--shape", "n=77", "--explore", "1", "--refine", "0")
        self.compile(session)
        self.assertEqual(self.bench(self.lib)["error"], 0)
        with open(os.path.join(self.lib, "free.h")) as f:
            self.assertIn("[1, 77]", f.read())

    def test_weights_of_their_own_file(self):
        self.compile(self.session, "--weights", "file")
        self.assertLess(self.bench(self.lib)["error"], 1e-5)
        moved = self.path("moved")
        os.rename(self.lib, moved)
        self.assertLess(self.bench(moved)["error"], 1e-5)
        weights = os.path.join(moved, "tinynet.weights")
        with open(weights, "r+b") as f:
            f.seek(20)
            f.write(b"another build")
        r = run("bench", moved)
        self.assertEqual(r.returncode, 1)
        self.assertIn("not of this build", r.stderr)
        os.unlink(weights)
        r = run("bench", moved)
        self.assertEqual(r.returncode, 1)
        self.assertIn("No such file", r.stderr)

    def test_another_target_is_refused(self):
        session = self.tune("matmul:16x16x16", "--target", "llvm:cpu=x86-64-v3", "--explore", "1",
                            "--refine", "0")
        r = run("compile", session, "-o", self.lib, "--target", "llvm:cpu=x86-64-v2")
        self.assertEqual(r.returncode, 1)
        self.assertIn("was tuned for llvm:cpu=x86-64-v3, not for llvm:cpu=x86-64-v2", r.stderr)
        self.assertFalse(os.path.exists(self.lib))
        self.compile(session)
        self.compile(session, "--target", "llvm:cpu=x86-64-v3")

    def test_an_interrupted_session_is_compiled_with_what_it_has(self):
        session = self.tune("tinynet", "--trials", "4")
        text = self.compile(session)
        self.assertRegex(text, r"1[0-5] default")
        self.assertLess(self.bench(self.lib)["error"], 1e-5)

    def test_without_a_compiler_nothing_is_left(self):
        r = run("compile", self.session, "-o", self.lib, env=dict(os.environ, PATH="/nonexistent"))
        self.assertEqual(r.returncode, 1)
        self.assertIn("cannot run \"cc\"", r.stderr)
        self.assertEqual(os.listdir(self.lib), [])

    def test_a_changed_model_is_noticed(self):
        net = self.path("net.lua")
        text = ('local n = network { name = "n", input = {%d, 64} } '
                'return n:output(n:dense(n.input, {n = 64}))')
        with open(net, "w") as f:
            f.write(text % 2)
        session = self.tune(net, "--explore", "1", "--refine", "0")
        self.compile(session)
        with open(net, "w") as f:
            f.write(text % 3)
        for r in (run("compile", session, "-o", self.lib), run("bench", self.lib)):
            self.assertEqual(r.returncode, 1)
            self.assertIn("changed", r.stderr)

    def test_wrong_usage_gets_a_sentence_and_a_code(self):
        text = self.path("notes.txt")
        with open(text, "w") as f:
            f.write("hello")
        empty = self.path("empty")
        os.mkdir(empty)
        cases = [
            (2, ["compile"]),
            (2, ["compile", self.session]),
            (2, ["compile", "-o", self.lib]),
            (2, ["compile", self.session, "-o"]),
            (2, ["compile", self.session, "a", "b", "-o", self.lib]),
            (2, ["compile", self.session, "-o", self.lib, "--weights", "nowhere"]),
            (2, ["compile", self.session, "-o", self.lib, "--frobnicate"]),
            (2, ["compile", self.session, "-o", self.lib, "--target", "abacus"]),
            (2, ["compile", self.session, "-o", self.lib, "--target", "llvm:cpu=z80"]),
            (1, ["compile", self.session, "resnet18", "-o", self.lib]),
            (1, ["compile", text, "-o", self.lib]),
            (1, ["compile", "missing.squall", "-o", self.lib]),
            (1, ["compile", self.session, "-o", "/nowhere/lib"]),
            (1, ["compile", self.session, "-o", text]),
            (2, ["bench"]),
            (2, ["bench", self.lib, "a", "b"]),
            (2, ["bench", self.session, "--runs", "0"]),
            (2, ["bench", self.session, "--threads", "many"]),
            (2, ["bench", self.session, "--frobnicate"]),
            (1, ["bench", "missing"]),
            (1, ["bench", text]),
            (1, ["bench", empty]),
        ]
        for code, args in cases:
            with self.subTest(args=args):
                r = run(*args)
                self.assertEqual(r.returncode, code, r.stderr)
                self.assertTrue(r.stderr.startswith("squall"), r.stderr)
                self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
                self.assertEqual(r.stdout, "")
        for command in ("compile", "bench"):
            r = run(command, "--help")
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            self.assertIn("--json", r.stdout)

    @unittest.skipUnless(os.path.isdir(MODELS), "needs the networks of shared/models")
    def test_squeezenet_gives_what_another_runtime_gave(self):
        session = self.tune(os.path.join(MODELS, "light_squeezenet.onnx"), "--explore", "1",
                            "--refine", "0")
        for kind, args in (("logits", ["--logits"]), ("prob", ["--weights", "file"])):
            self.compile(session, "--seed-weights", *args)
            b = self.bench(self.lib, "--expect",
                           os.path.join(MODELS, "seeded", f"squeezenet.{kind}.f32"))
            self.assertLess(b["error"], 1e-5)
            self.assertLess(b["expected_error"], 1e-5)
            shutil.rmtree(self.lib)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`squall check`: test folders through compiled kernels; data beside the model; sizes left free.

usage: check.py SQUALL
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

SQUALL = os.path.abspath(sys.argv[1])
SHARED = os.environ.get("SQUALL_SHARED") or os.path.join(os.path.dirname(__file__), "../../shared")

FLOAT, INT64, STRING = 1, 7, 8


# ---- protobuf, as much as a model takes ----

def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(dims, data, type=FLOAT, name=""):
    out = b"".join(field(1, d) for d in dims) + field(2, type)
    if isinstance(data, dict):  # beside the model
        for item in data.items():
            out += field(13, field(1, item[0]) + field(2, str(item[1])))
        out += field(14, 1)
    else:
        out += field(9, struct.pack("<%d%s" % (len(data), "f" if type == FLOAT else "q"), *data))
    return out + (field(8, name) if name else b"")


def value(name, dims, type=FLOAT):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, type) + field(2, shape)))


def node(op, inputs, output):
    return b"".join(field(1, i) for i in inputs) + field(2, output) + field(4, op)


def model(nodes, inputs, output, initializers=()):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g")
    graph += b"".join(field(5, t) for t in initializers)
    graph += b"".join(field(11, i) for i in inputs) + field(12, output)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


RELU = model([node("Relu", ["x"], "y")], [value("x", [3])], value("y", [3]))
ADD_W = [node("Add", ["x", "w"], "y")]


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(data)

    def case(self, name, bytes, inputs, outputs, set=0):
        self.write(name + "/model.onnx", bytes)
        for i, t in enumerate(inputs):
            self.write("%s/test_data_set_%d/input_%d.pb" % (name, set, i), t)
        for i, t in enumerate(outputs):
            self.write("%s/test_data_set_%d/output_%d.pb" % (name, set, i), t)

    def relu(self, name, want=(0, 2, 0), **kw):
        self.case(name, RELU, [tensor([3], [-1, 2, -3])], [tensor([3], want)], **kw)

    def run_squall(self, *args, **kw):
        return subprocess.run([SQUALL, *args], capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, cwd=self.folder, **kw)

    def check(self, *args, code=0, **kw):
        r = self.run_squall("check", *(args or (self.folder,)), **kw)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return r.stdout + r.stderr

    def json(self, *args, code=0):
        return json.loads(self.check(*(args or (self.folder,)), "--json", code=code))

    def test_cases_are_found_at_any_depth_and_counted(self):
        self.relu("a/b/right")
        self.relu("a/wrong", want=(0, 2, 1))
        self.case("other", model([node("Frob", ["x"], "y")], [value("x", [3])], value("y", [3])),
                  [tensor([3], [1, 2, 3])], [tensor([3], [1, 2, 3])])
        out = self.json(code=1)
        self.assertEqual((out["passed"], out["failed"], out["unsupported"]), (1, 1, 1))
        self.assertEqual(out["operators"]["Relu"], {"passed": 1, "failed": 1, "unsupported": 0})
        self.assertEqual([c["name"] for c in out["cases"]], ["a/b/right", "a/wrong", "other"])
        self.assertEqual(out["cases"][1]["status"], "failed")
        self.assertIn("element 2 of output 0 is 0, expected 1", out["cases"][1]["reason"])
        self.assertEqual(out["cases"][2]["operator"], "Frob")
        self.assertIn("is not supported", out["cases"][2]["reason"])
        table = self.check(code=1)
        self.assertIn("1 passed, 1 failed, 1 unsupported", table)
        self.assertRegex(table, r"(?m)^Relu +1 +1")
        self.assertIn("a/wrong: element 2", table)

    def test_every_set_of_data_counts(self):
        self.relu("two")
        self.relu("two", want=(1, 2, 0), set=1)
        self.assertIn("0 passed, 1 failed", self.check(code=1))

    def test_the_interpreter_says_the_same(self):
        self.relu("right")
        self.relu("wrong", want=(0, 2, 1))
        self.assertIn("1 passed, 1 failed", self.check(self.folder, "--interpret", code=1))

    def test_a_case_that_dies_is_a_failed_one(self):
        n = 1 << 11
        self.case("a_heavy", model([node("MatMul", ["x", "x"], "y")], [value("x", [n, n])],
                                   value("y", [n, n])),
                  [tensor([n, n], [0] * (n * n))], [tensor([n, n], [0] * (n * n))])
        self.relu("b_light")
        out = self.check(self.folder, "--interpret", code=1,
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 2)))
        self.assertIn("1 passed, 1 failed", out)
        self.assertRegex(out, "a_heavy: crashed")

    def test_wrong_usage_has_its_sentence(self):
        self.assertIn("wants a folder", self.run_squall("check").stderr)
        self.assertEqual(self.run_squall("check").returncode, 2)
        for args in (["--frob"], ["--samples", "x"], ["--shape", "x"], ["--shape", "=3"],
                     ["--seed"], ["--target", "frob"]):
            self.relu("one")
            r = self.run_squall("check", self.folder, *args)
            self.assertEqual(r.returncode, 2, args)
            self.assertTrue(r.stderr.startswith("squall"), r.stderr)
        self.assertIn("no ONNX test cases", self.check(os.path.dirname(SQUALL) or ".", code=1))
        self.assertIn("cannot read folder", self.check(self.path("nowhere"), code=1))
        self.assertIn("LayerNormalization", self.check("--help"))

    # ---- data beside the model ----

    def beside(self, data, w=None):
        """A model that adds w, which lies beside it as `data` says."""
        self.case("m", model(ADD_W, [value("x", [3])], value("y", [3]),
                             [tensor([3], data, name="w")]),
                  [tensor([3], [1, 2, 3])], [tensor([3], w or [11, 22, 33])])

    def test_data_beside_the_model_is_read(self):
        self.write("m/data/w.bin", b"????" + struct.pack("<3f", 10, 20, 30))
        self.beside({"location": "data/w.bin", "offset": 4, "length": 12})
        self.check()
        self.beside({"location": "data/w.bin", "offset": 4})
        self.check()

    def test_paths_that_leave_the_folder_are_refused(self):
        self.write("w.bin", struct.pack("<3f", 10, 20, 30))
        os.makedirs(self.path("m"))
        os.symlink("../w.bin", self.path("m/link"))
        os.symlink("..", self.path("m/up"))
        for location in ("../w.bin", self.path("w.bin"), "link", "up/w.bin", "data/../../w.bin", "..",
                         "", "..\\w.bin"):
            self.beside({"location": location})
            out = self.check(code=1)
            self.assertRegex(out, "outside of the model's folder|no path below", location)

    def test_sizes_that_lie_are_refused(self):
        self.write("m/w.bin", struct.pack("<3f", 10, 20, 30))
        for data in ({"location": "w.bin", "offset": 4}, {"location": "w.bin", "length": 1 << 62},
                     {"location": "w.bin", "offset": -4}, {"location": "w.bin", "offset": 1 << 63},
                     {"location": "w.bin", "offset": "4x"}, {"offset": 0}, {"location": "none"}):
            self.beside(data)
            self.assertIn("tensor \"w\"", self.check(code=1))
        os.mkfifo(self.path("m/pipe"))
        self.beside({"location": "pipe"})
        self.assertIn("no regular file", self.check(code=1))
        huge = [tensor([1 << 15, 1 << 15], {"location": "w.bin"}, name="w")]
        self.case("m", model(ADD_W, [value("x", [3])], value("y", [3]), huge),
                  [tensor([3], [1, 2, 3])], [tensor([3], [0, 0, 0])])
        self.assertIn("bytes from 0 on in a file of 12", self.check(code=1))

    def test_one_piece_of_data_is_not_read_for_ever(self):
        self.write("m/w.bin", b"\0" * (1 << 20))
        many = [tensor([1 << 18], {"location": "w.bin"}, name="w%d" % i) for i in range(50)]
        self.case("m", model([node("Add", ["x", "w0"], "y")], [value("x", [1])], value("y", [1]),
                             many),
                  [tensor([1], [1])], [tensor([1 << 18], [0] * (1 << 18))])
        self.assertIn("again and again", self.check(code=1))

    # ---- sizes left free ----

    def test_free_sizes_come_from_the_data_or_by_name(self):
        free = model([node("Relu", ["x"], "y")], [value("x", ["batch", "length"])],
                     value("y", ["batch", "length"]))
        self.case("free", free, [tensor([2, 3], [-1, 2, -3, 4, 5, 6])],
                  [tensor([2, 3], [0, 2, 0, 4, 5, 6])])
        self.check()
        tune = ["tune", "free/model.onnx", "--batch", "--explore", "1", "--refine", "0", "--session"]
        r = self.run_squall(*tune, "none.squall")
        self.assertEqual(r.returncode, 1)
        self.assertIn("--shape length=128", r.stderr)
        for name, shape, want in (("a", "length=5", "1x5"), ("b", "x=2x7", "2x7")):
            session = self.path(name + ".squall")
            r = self.run_squall(*tune, session, "--shape", shape)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn(want, r.stdout)
            r = self.run_squall("resume", session, "--batch", "--trials", "2")
            self.assertEqual(r.returncode, 0, r.stderr)
        for shape in ("lenght=5", "x=2", "x=2x3x4"):
            r = self.run_squall(*tune, "none.squall", "--shape", shape)
            self.assertNotEqual(r.returncode, 0, shape)
            self.assertIn(shape.split("=")[0], r.stderr)

    def test_a_size_that_is_fixed_stays(self):
        self.write("fixed.onnx", RELU)
        r = self.run_squall("tune", "fixed.onnx", "--shape", "x=4", "--batch")
        self.assertEqual(r.returncode, 1)
        self.assertIn("is fixed to 3", r.stderr)

    def test_the_suite_has_no_failure(self):
        suite = os.path.join(SHARED, "onnx-tests")
        if not os.path.isdir(suite):
            self.skipTest("%s is not there" % suite)
        out = self.json(suite)
        self.assertEqual(out["failed"], 0)
        self.assertGreaterEqual(out["passed"], 203)
        for c in out["cases"]:
            self.assertTrue(c["reason"] or c["status"] == "passed", c["name"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks: squall's compiled library beside ONNX Runtime. models.sh calls this.

  models.py measure [OPTION]... MODEL.onnx SOURCE   one model, as JSON
  models.py report [OPTION]... FOLDER                the table of such files

SOURCE is the folder that `squall compile -o` made, or, with --sum, what `squall show --json` prints.

Each side runs in a process of its own, with a runtime of threads of its own, and makes slices of runs
when it is asked to. The two take turns, each first in every other round, so that a change of the
clock or a busy neighbour meets both. `measure` needs numpy and onnxruntime, `report` nothing.
"""
import argparse
import ctypes
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time

# Threads of one side may spin for some milliseconds after a run, on the cores of the other.
SETTLE_S = 0.03
# Of the largest element: far above rounding, far below what a wrong kernel does.
TOLERANCE = 1e-3
# Cores whose round trip changes by more while a model is measured were moved.
MOVED = 1.5


# ---- the sides: processes that answer "run N" and "output FILE" ----

def random_input(shape, number):
    import numpy
    return numpy.random.default_rng(number).uniform(-1, 1, shape).astype(numpy.float32)


class OnnxRuntime:
    def __init__(self, path, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.version = "ONNX Runtime " + onnxruntime.__version__
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        # bound arrays spare a copy in each run
        self.binding = self.session.io_binding()
        self.kept = []
        for i, value in enumerate(self.session.get_inputs()):
            if value.type != "tensor(float)" or not all(isinstance(d, int) for d in value.shape):
                raise SystemExit(f"input {value.name} is {value.type} {value.shape}; "
                                 "only float32 of fixed size is compared")
            self.kept.append(onnxruntime.OrtValue.ortvalue_from_numpy(random_input(value.shape, i)))
            self.binding.bind_ortvalue_input(value.name, self.kept[-1])
        for value in self.session.get_outputs():
            self.binding.bind_output(value.name, "cpu")
        self.run()
        for value, made in zip(self.session.get_outputs(), self.binding.get_outputs()):
            self.kept.append(made)
            self.binding.bind_ortvalue_output(value.name, made)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class Library:
    """By its C interface, as its header says it."""

    class Tensor(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("rank", ctypes.c_int),
                    ("dim", ctypes.c_longlong * 24), ("elements", ctypes.c_longlong)]

    def __init__(self, folder, threads):
        shared = glob.glob(os.path.join(folder, "lib*.so"))
        if len(shared) != 1:
            raise SystemExit(f"{folder} has {len(shared)} libraries instead of one")
        self.name = os.path.basename(shared[0])[3:-3]
        with open(os.path.join(folder, self.name + ".h"), encoding="utf-8") as f:
            header = f.read()
        count = {kind: int(re.search(rf"_{kind} = (\d+)", header).group(1))
                 for kind in ("INPUTS", "OUTPUTS")}
        self.version = re.search(r"compiled by (squall \S+)", header).group(1)
        self.lib = ctypes.CDLL(os.path.abspath(shared[0]))
        self.create(threads)
        self.input = [self.array(t, random_input(list(t.dim)[:t.rank], i))
                      for i, t in enumerate(self.tensors("input", count["INPUTS"]))]
        self.output = [self.array(t) for t in self.tensors("output", count["OUTPUTS"])]
        self.run_function = self.function("run", None, *[ctypes.c_void_p] * 3)
        self.arguments = [self.model] + [
            (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
            for arrays in (self.input, self.output)]

    def function(self, name, result, *arguments):
        f = getattr(self.lib, f"{self.name}_{name}")
        f.restype, f.argtypes = result, arguments
        return f

    def create(self, threads):
        why = ctypes.create_string_buffer(300)
        self.model = self.function("create", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
                                   ctypes.c_size_t)(None, why, len(why))
        if not self.model:
            raise SystemExit(f"{self.name}: {why.value.decode()}")
        taken = self.function("threads", ctypes.c_int, ctypes.c_void_p,
                              ctypes.c_int)(self.model, threads)
        if taken != threads:
            raise SystemExit(f"{self.name} was tuned for {taken} threads, not for {threads}")

    def tensors(self, kind, count):
        return (self.Tensor * count).in_dll(self.lib, f"{self.name}_{kind}")

    @staticmethod
    def array(tensor, values=None):
        """On a cache line of its own, as the kernels like it."""
        import numpy
        room = numpy.zeros(tensor.elements + 16, numpy.float32)
        first = -room.ctypes.data % 64 // 4
        made = room[first:first + tensor.elements].reshape(list(tensor.dim)[:tensor.rank])
        if values is not None:
            made[...] = values
        return made

    def run(self):
        self.run_function(*self.arguments)

    def outputs(self):
        return self.output


def serve(kind, source, threads):
    import numpy
    side = {"ort": OnnxRuntime, "squall": Library}[kind](source, threads)
    print(side.version, flush=True)
    for line in sys.stdin:
        order, argument = line.split(maxsplit=1)
        if order == "run":
            side.run()
            start = time.perf_counter_ns()
            for _ in range(int(argument)):
                side.run()
            print((time.perf_counter_ns() - start) / int(argument), flush=True)
        else:
            side.run()
            numpy.savez(argument.strip(), *side.outputs())
            print("saved", flush=True)


class Side:
    """One of those processes, as seen from the one that measures."""

    def __init__(self, kind, source, threads, cores):
        environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS=str(threads))
        if kind == "squall" and threads > 1:
            # as kernels are tuned: threads stay awake from kernel to kernel, not for ever
            environment.update(OMP_DYNAMIC="false", OMP_PROC_BIND="true", GOMP_SPINCOUNT="100000")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "serve", kind, source, str(threads)], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.kind, self.samples = kind, []
        self.version = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"models.py: {self.kind} ended early, see above")
        return line.strip()

    def ask(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.answer()

    def slice_ns(self, runs):
        return float(self.ask(f"run {runs}"))

    def calibrate(self, slice_ns):
        self.runs = max(1, round(slice_ns / self.slice_ns(2)))

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


# ---- measuring ----

def largest_error(scratch, sides):
    """Between the outputs of both, in parts of the largest element."""
    import numpy
    files = []
    for side in sides:
        files.append(os.path.join(scratch, side.kind + ".npz"))
        side.ask("output " + files[-1])
    ours, theirs = (numpy.load(f) for f in files)
    worst = 0.0
    for a, b in zip((ours[k] for k in ours.files), (theirs[k] for k in theirs.files)):
        if a.size != b.size:
            raise SystemExit(f"models.py: outputs of {a.shape} and of {b.shape}")
        scale = float(numpy.abs(b).max()) or 1.0
        error = float(numpy.abs(a.ravel() - b.ravel()).max()) / scale
        worst = max(worst, error if math.isfinite(error) else math.inf)
    for f in files:
        os.unlink(f)
    return worst


def trip_function(path, cores):
    if not path or len(cores) < 2:
        return None
    f = ctypes.CDLL(os.path.abspath(path)).round_trip_ns
    f.restype, f.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_int]
    return lambda: f(cores[0], cores[1])


def take_rounds(sides, args, trip):
    trips = []
    for side in sides:
        side.calibrate(args.slice * 1e6)
    for r in range(args.rounds):
        if trip:
            time.sleep(SETTLE_S)
            trips.append(trip())
        for side in sides if r % 2 else reversed(sides):
            if args.threads > 1:
                time.sleep(SETTLE_S)
            side.samples.append(side.slice_ns(side.runs))
    return trips


def describe(samples):
    low, middle, high = statistics.quantiles(samples, n=4) if len(samples) > 1 else samples * 3
    return {"median_ns": middle, "spread": (high - low) / middle, "sample_ns": samples}


def sum_of_kernels(path):
    """The model's line of `squall show --json`: no run of the network, but its kernels one by one."""
    with open(path, encoding="utf-8") as f:
        model = json.load(f)["model"]
    ns = model["refined_ns"] or model["explored_ns"] or model["default_ns"]
    return {"median_ns": ns, "spread": 0, "sample_ns": []}


def measure(args):
    # the first core has the interrupts of many machines
    cores = sorted(os.sched_getaffinity(0))[-args.threads:]
    if len(cores) < args.threads:
        raise SystemExit(f"models.py: {args.threads} threads want as many cores")
    trip = trip_function(args.round_trip, cores)
    ort = Side("ort", args.model, args.threads, cores)
    sides = [ort] if args.sum else [Side("squall", args.source, args.threads, cores), ort]
    error = None if args.sum else largest_error(args.scratch, sides)
    wrong = error is not None and error > TOLERANCE
    trips = [] if wrong else take_rounds(sides, args, trip)
    for side in sides:
        side.stop()
    found = {"model": os.path.basename(args.model), "threads": args.threads, "cores": cores,
             "rounds": args.rounds, "how": "sum of kernels" if args.sum else "library",
             "error": error, "wrong": wrong, "round_trip_ns": trips,
             "versions": [s.version for s in sides], "ort": None, "squall": None, "ratio": None}
    if not wrong:
        found["ort"] = describe(ort.samples)
        found["squall"] = sum_of_kernels(args.source) if args.sum else describe(sides[0].samples)
        # both were timed in each round, so rounds are compared
        found["ratio"] = statistics.median(
            theirs / ours for theirs, ours in
            zip(ort.samples, found["squall"]["sample_ns"] or
                [found["squall"]["median_ns"]] * args.rounds))
    json.dump(found, sys.stdout, indent=1)
    print()
    if wrong:
        raise SystemExit(f"models.py: {found['model']}: the outputs differ by {error:.2g} of the "
                         "largest, so it is not timed")


# ---- the report ----

def read_results(folder, threads, only):
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.t*.json"))):
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        if result["bench"]["threads"] in threads and only in result["bench"]["model"]:
            found.append(result)
    return sorted(found, key=lambda r: (r["bench"]["threads"], r["bench"]["how"]))


def row_text(result):
    b = result["bench"]
    name = f"{b['model']:<32} {b['threads']:>7}"
    if b["wrong"]:
        return f"{name}  WRONG: outputs differ by {b['error']:.2g} of the largest; not timed"
    notes = [f"error {b['error']:.1e}" if b["error"] is not None else "SUM OF KERNELS, no network run"]
    spread = max(b["ort"]["spread"], b["squall"]["spread"])
    if spread > 0.05:
        notes.append(f"noisy {spread * 50:.0f}%")
    if result["busy_percent"] > 10:
        notes.append(f"BUSY {result['busy_percent']}%")
    if b["round_trip_ns"]:
        low, high = min(b["round_trip_ns"]), max(b["round_trip_ns"])
        notes.append(f"{'MOVED, ' if high > MOVED * low else ''}trip {low / 1e3:.2f}-"
                     f"{high / 1e3:.2f} us")
    return (f"{name} {b['squall']['median_ns'] / 1e6:>10.3f} {b['ort']['median_ns'] / 1e6:>13.3f} "
            f"{b['ratio']:>8.3f}  {', '.join(notes)}")


def geometric_means(results):
    """A library's runs and sums of kernels are not mixed."""
    ratios = {}
    for r in results:
        if r["bench"]["ratio"]:
            ratios.setdefault((r["bench"]["threads"], r["bench"]["how"]), []).append(
                r["bench"]["ratio"])
    return [{"threads": threads, "how": how, "models": len(v),
             "geomean_ratio": math.exp(sum(map(math.log, v)) / len(v))}
            for (threads, how), v in ratios.items()]


def report(args):
    results = read_results(args.folder, [int(t) for t in args.threads.split()], args.only)
    if not results:
        raise SystemExit("models.py: nothing is measured yet; models.sh does")
    means = geometric_means(results)
    if args.json:
        json.dump({"models": results, "means": means}, sys.stdout, indent=1)
        print()
        return
    print("; ".join(sorted({v for r in results for v in r["bench"]["versions"]})))
    started = sorted(r["started"] for r in results)
    print(f"measured from {started[0]} to {started[-1]}; medians of "
          f"{'/'.join(str(n) for n in sorted({r['bench']['rounds'] for r in results}))} rounds\n")
    print(f"{'model':<32} {'threads':>7} {'squall, ms':>10} {'ONNX Rt., ms':>13} {'ratio':>8}")
    for result in results:
        print(row_text(result))
    for m in means:
        name = f"geometric mean of {m['models']}"
        print(f"{name:<32} {m['threads']:>7} {'':>10} {'':>13} {m['geomean_ratio']:>8.3f}  "
              f"{m['how']}")
    print("Above 1 squall is faster.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    m = commands.add_parser("measure")
    m.add_argument("--threads", type=int, default=1)
    m.add_argument("--rounds", type=int, default=21)
    m.add_argument("--slice", type=float, default=50, help="milliseconds")
    m.add_argument("--sum", action="store_true")
    m.add_argument("--round-trip", help="round_trip.c as a shared library")
    m.add_argument("--scratch", default=".", help="folder for outputs")
    m.add_argument("model")
    m.add_argument("source")
    m.set_defaults(call=measure)
    r = commands.add_parser("report")
    r.add_argument("--json", action="store_true")
    r.add_argument("--threads", default="1 2")
    r.add_argument("--only", default="", help="models with it in their names")
    r.add_argument("folder")
    r.set_defaults(call=report)
    s = commands.add_parser("serve")
    s.add_argument("kind", choices=("ort", "squall"))
    s.add_argument("source")
    s.add_argument("threads", type=int)
    s.set_defaults(call=lambda a: serve(a.kind, a.source, a.threads))
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()

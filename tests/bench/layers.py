#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of what layers.sh measured: python3 layers.py [--json] [--only TEXT] LIST RESULTS

RESULTS has a file for each layer and number of threads, as bench_kernels --json prints it, with a
few words around it. Standard library only.
"""
import argparse
import json
import math
import os
import statistics
import sys

# Cores whose round trip changes by more while a layer is measured were moved.
MOVED = 1.5


def read_list(path, only):
    """[(network, times, workload)] in the order of the file."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if line.startswith("#") or len(words) != 3:
                continue
            if only in f"{words[0]} {words[2]}":
                rows.append((words[0], int(words[1]), words[2]))
    return rows


def read_results(folder, threads):
    """{(workload, threads): {"file": the whole file, "layer": its only layer}}"""
    found = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".json") or name == "new.json":
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            result = json.load(f)
        bench = result["bench"]
        if bench["threads"] in threads:
            for layer in bench["layers"]:
                found[layer["workload"], bench["threads"]] = {"file": result, "layer": layer}
    return found


def family(entrant):
    name = entrant["name"]
    if entrant["role"] != "peer":
        return entrant["role"]
    if name.startswith("openblas"):
        return "openblas"
    return "winograd" if name.endswith("winograd") else "onednn"


def best(entrants):
    return min(entrants, key=lambda e: e["median_ns"], default=None)


def ratio(peer, ours):
    """How many times faster ours is: both were timed in each round, so rounds are compared."""
    if not peer or not ours:
        return None
    return statistics.median(p / o for p, o in zip(peer["sample_ns"], ours["sample_ns"]))


def digest(network, times, result):
    """The row of one layer."""
    layer = result["layer"]
    by = {}
    for entrant in layer["entrants"]:
        by.setdefault(family(entrant), []).append(entrant)
    first = {kind: best(by.get(kind, [])) for kind in
             ("squall", "onednn", "winograd", "openblas", "peak", "memory")}
    peers = [first[kind] for kind in ("onednn", "winograd", "openblas") if first[kind]]
    trips = layer["round_trip_ns"]
    row = {
        "network": network, "times": times, "workload": layer["workload"], "kind": layer["kind"],
        "flops": layer["flops"], "started": result["file"]["started"],
        "busy_percent": result["file"]["busy_percent"],
        "round_trip_ns": [min(trips), max(trips)] if trips else None,
        "best_peer": best(peers)["name"] if peers else None,
        "to_best_peer": ratio(best(peers), first["squall"]),
        "to_onednn_direct": ratio(first["onednn"], first["squall"]),
        "to_openblas": ratio(first["openblas"], first["squall"]),
        "spread": max((e["spread"] for e in peers + [first["squall"]] if e), default=0),
    }
    if first["memory"] and first["squall"]:
        row["gb_per_s"] = layer["bytes"] / first["squall"]["median_ns"]
        row["of_memory"] = row["gb_per_s"] / first["memory"]["gflops"]
    for kind, entrant in first.items():
        row[kind] = entrant and {key: entrant[key] for key in
                                 ("name", "detail", "median_ns", "gflops", "error")}
    return row


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def total_ms(rows, choose):
    """Of all the network's layers, those that are measured with squall and a peer."""
    return sum(choose(r) * r["times"] for r in rows if r["to_best_peer"]) / 1e6


def summary(network, threads, rows, listed):
    def peer_ns(row):
        return min(row[k]["median_ns"] for k in ("onednn", "winograd", "openblas") if row[k])
    squall_ms = total_ms(rows, lambda r: r["squall"]["median_ns"])
    peer_ms = total_ms(rows, peer_ns)
    return {
        "network": network, "threads": threads, "layers": listed,
        "measured": sum(r["to_best_peer"] is not None for r in rows),
        "geomean_to_best_peer": geometric_mean(r["to_best_peer"] for r in rows),
        "geomean_to_onednn_direct": geometric_mean(r["to_onednn_direct"] for r in rows),
        "geomean_to_openblas": geometric_mean(r["to_openblas"] for r in rows),
        "squall_ms": squall_ms, "best_peers_ms": peer_ms,
        "total_ratio": peer_ms / squall_ms if squall_ms else None,
    }


def number(value, form):
    return format(value, form) if value else "-"


def note(row):
    notes = []
    if row["best_peer"]:
        notes.append(row["best_peer"])
    if row.get("of_memory"):
        notes.append(f"{row['gb_per_s']:.0f} GB/s, {row['of_memory']:.2f} of memory's")
    if row["spread"] > 0.05:
        notes.append(f"noisy {row['spread'] * 50:.0f}%")
    if row["busy_percent"] > 10:
        notes.append(f"BUSY {row['busy_percent']}%")
    if row["round_trip_ns"]:
        low, high = row["round_trip_ns"]
        moved = "MOVED, " if high > MOVED * low else ""
        notes.append(f"{moved}trip {low / 1e3:.2f}-{high / 1e3:.2f} us")
    return ", ".join(notes)


def print_network(one, rows):
    print(f"\n{one['network']}, {one['threads']} thread{'s' if one['threads'] > 1 else ''}")
    print(f"{'layer':<42} {'x':>3} {'squall':>9}  {'squall':>7} {'oneDNN':>7} {'Winogr.':>7} "
          f"{'OpenBLAS':>8}  {'of peak':>7} {'to best':>7}  best peer")
    print(f"{'':<42} {'':>3} {'us':>9}  {'GFLOP/s':>7}")
    for r in rows:
        speed = {k: r[k]["gflops"] if r[k] else None for k in
                 ("squall", "onednn", "winograd", "openblas", "peak")}
        part = speed["squall"] / speed["peak"] if speed["squall"] and speed["peak"] else None
        print(f"{r['workload']:<42} {r['times']:>3} "
              f"{number(r['squall'] and r['squall']['median_ns'] / 1e3, '.1f'):>9}  "
              f"{number(speed['squall'], '.1f'):>7} {number(speed['onednn'], '.1f'):>7} "
              f"{number(speed['winograd'], '.1f'):>7} {number(speed['openblas'], '.1f'):>8}  "
              f"{number(part, '.0%'):>7} {number(r['to_best_peer'], '.3f'):>7}  {note(r)}")


def print_summary(networks):
    print(f"\n{'geometric means of the layers':<30} {'threads':>7} {'layers':>9} {'to best':>8} "
          f"{'to oneDNN':>10} {'to OpenBLAS':>11}   {'all layers of the network, ms':>30}")
    print(f"{'':<30} {'':>7} {'':>9} {'peer':>8} {'direct':>10} {'':>11}   "
          f"{'squall':>9} {'best peers':>11} {'ratio':>8}")
    for n in networks:
        print(f"{n['network']:<30} {n['threads']:>7} {n['measured']:>4} of {n['layers']:>2} "
              f"{number(n['geomean_to_best_peer'], '.3f'):>8} "
              f"{number(n['geomean_to_onednn_direct'], '.3f'):>10} "
              f"{number(n['geomean_to_openblas'], '.3f'):>11}   {n['squall_ms']:>9.3f} "
              f"{n['best_peers_ms']:>11.3f} {number(n['total_ratio'], '.3f'):>8}")
    print("Above 1 squall is faster. \"Direct\" is without Winograd's algorithm.")


def print_head(results):
    heads = sorted({(r["file"]["bench"]["hardware"], r["file"]["bench"]["target"],
                     r["file"]["bench"]["onednn"], r["file"]["bench"]["rounds"],
                     r["file"]["bench"]["slice_ms"]) for r in results.values()})
    for hardware, target, onednn, rounds, slice_ms in heads:
        print(f"{hardware}, {target}; oneDNN {onednn}; {rounds} rounds of {slice_ms:g} ms")
    blas = sorted({r["file"]["bench"]["openblas"] for r in results.values()} - {"-"})
    print("OpenBLAS " + "; ".join(blas) if blas else "no OpenBLAS")
    started = sorted(r["file"]["started"] for r in results.values())
    print(f"measured from {started[0]} to {started[-1]}")
    if len(heads) > 1:
        print("THESE ARE OF SEVERAL MACHINES OR SETTINGS: not to be compared")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="layers whose network or workload has it")
    parser.add_argument("--threads", default="1 2", help="numbers of threads (%(default)s)")
    parser.add_argument("list")
    parser.add_argument("results")
    args = parser.parse_args()
    threads = [int(t) for t in args.threads.split()]
    listed = read_list(args.list, args.only)
    results = read_results(args.results, threads)
    results = {key: r for key, r in results.items() if any(key[0] == row[2] for row in listed)}
    if not results:
        sys.exit("layers.py: nothing is measured yet of these layers; layers.sh does")
    networks, rows = [], []
    if not args.json:
        print_head(results)
    for t in threads:
        for network in dict.fromkeys(row[0] for row in listed):
            here = [row for row in listed if row[0] == network]
            digests = [digest(network, times, results[workload, t])
                       for _, times, workload in here if (workload, t) in results]
            if not digests:
                continue
            networks.append(summary(network, t, digests, len(here)))
            rows += [dict(d, threads=t) for d in digests]
            if not args.json:
                print_network(networks[-1], digests)
    if args.json:
        runs = {r["file"]["started"]: {k: v for k, v in r["file"]["bench"].items() if k != "layers"}
                for r in results.values()}
        json.dump({"networks": networks, "layers": rows, "runs": runs}, sys.stdout, indent=1)
        print()
    else:
        print_summary(networks)


if __name__ == "__main__":
    main()

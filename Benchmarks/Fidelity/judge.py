#!/usr/bin/env python3
"""Compares transfers over the model with transfers between real kernels, cell by cell.

  judge.py [--live] TRUTH_FOLDER RUN.jsonl...

--live compares only what a proxy can show: times from connect() to the end, transfers up to 100 KiB, outages of 3 and 10 s,
and the links of the run.

A cell is one kind of transfer over one link, such as 3g-loss5/down_102400, with dozens to hundreds of times on each side. A
deterministic cell passes if its median is within 5 % or 1 ms. A random cell (losses, or the phase of an outage) passes if
its median is within 10 %, or within the sampling noise of the truth, and its distribution does not differ significantly:
the largest gap between the two cumulative distributions, after tolerated shifts of up to 3 % and 1 ms, is below the 1 %
critical value of the Kolmogorov-Smirnov test. A cell without samples in the run fails. Needs only Python.
"""
import bisect
import glob
import json
import math
import os
import random
import statistics
import sys

RELATIVE, ABSOLUTE = 0.03, 1.0
SAMPLES_MAX = 1500


def cells_of(lines):
    """Returns the samples of each cell, in ms, from the lines of `slowlane model`."""
    cells = {}
    for line in lines:
        trial = json.loads(line)
        if not trial.get("ok"):
            continue
        kind = trial["k"]
        name = kind + ("_%d" % trial["n"] if "n" in trial and kind != "conn" else "")

        def add(key, value):
            cells.setdefault(key, []).append(value)

        if kind != "oconn" and "connect" in trial:
            add("connect", trial["connect"])
        if kind in ("ttfb", "down", "up", "pp"):
            add(name, trial["done"])
        if kind in ("ttfb", "down", "up"):
            add(name + ".total", trial["total"])
        for value in trial.get("ex", []):
            add(name + ".ex", value)
        if kind.startswith("o"):
            for part in ("resume", "caught", "after"):
                if part in trial:
                    add("%s.%s" % (name, part), trial[part])
    return cells


def thinned(values):
    if len(values) <= SAMPLES_MAX:
        return values
    return [values[i * len(values) // SAMPLES_MAX] for i in range(SAMPLES_MAX)]


def gap(left, right):
    """Returns the largest gap between the two distributions, after shifts within the tolerance."""
    left, right = sorted(left), sorted(right)

    def side(a, b):
        return max((i + 1) / len(a) - bisect.bisect_right(b, x * (1 + RELATIVE) + ABSOLUTE) / len(b)
                   for i, x in enumerate(a))

    return max(0.0, side(left, right), side(right, left))


def sampling_noise(truth, n, m, rng):
    """Returns the 97.5th percentile of the difference between medians of n and m draws from the truth."""
    ratios = []
    for _ in range(200):
        x = statistics.median(rng.choices(truth, k=n))
        y = statistics.median(rng.choices(truth, k=m))
        ratios.append(abs(y / max(x, 1e-9) - 1))
    return sorted(ratios)[int(0.975 * len(ratios))]


def judge(truth, run, is_random, rng):
    truth, run = thinned(truth), thinned(run)
    median, ours = statistics.median(truth), statistics.median(run)
    ratio = ours / max(median, 1e-9)
    critical = 1.628 * math.sqrt((len(truth) + len(run)) / (len(truth) * len(run)))
    distance = gap(truth, run)
    limit = 0.05
    is_close = abs(ratio - 1) <= limit or abs(ours - median) <= ABSOLUTE
    if is_random:
        if not abs(ratio - 1) <= 0.10:
            limit = max(0.10, sampling_noise(truth, len(truth), len(run), rng))
        else:
            limit = 0.10
        is_close = abs(ratio - 1) <= limit or abs(ours - median) <= ABSOLUTE
        is_close = is_close and distance < critical
    return median, ours, ratio, distance, critical, is_close


def is_live(name):
    """Returns whether a live run contains this cell."""
    kind, _, part = name.partition(".")
    if kind.startswith("o"):
        return kind.split("_")[-1] in ("3", "10") and not kind.startswith("oconn")
    return part == "total" and not kind.endswith("_1048576")


def main():
    arguments = sys.argv[1:]
    live = arguments[0] == "--live"
    folder, runs = arguments[live], arguments[live + 1:]
    ours = {}
    for path in runs:
        with open(path) as f:
            for line in f:
                ours.setdefault(json.loads(line)["p"], []).append(line)
    rng = random.Random(1)
    groups = {"without outage": [0, 0], "outage": [0, 0]}
    print("%-34s %5s %5s %10s %10s %7s %6s %6s" % ("cell", "n", "n.run", "kernel", "model", "ratio", "gap", "crit"))
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as f:
            truth = json.load(f)
        cells = cells_of(ours.get(truth["profile"], []))
        if live and not cells:
            continue
        for name in sorted(truth["cells"]):
            if live and not is_live(name):
                continue
            is_outage = name.startswith("o")
            group = groups["outage" if is_outage else "without outage"]
            group[1] += 1
            label = truth["profile"] + "/" + name
            if not cells.get(name):
                print("%-34s absent from the run: FAIL" % label)
                continue
            sample = truth["cells"][name]
            row = judge(sample, cells[name], truth["lossy"] or is_outage, rng)
            group[0] += row[-1]
            print("%-34s %5d %5d %10.1f %10.1f %7.3f %6.3f %6.3f %s" % (
                (label, len(sample), len(cells[name])) + row[:-1] + ("ok" if row[-1] else "FAIL",)))
    print()
    for name, (passed, of) in groups.items():
        print("%-16s %d of %d cells pass (%.1f %%)" % (name, passed, of, 100 * passed / max(of, 1)))
    bars = {"without outage": 0.95, "outage": 0.85}
    if live:
        passed, of = (sum(column) for column in zip(*groups.values()))
        print("%-16s %d of %d cells pass (%.1f %%)" % ("together", passed, of, 100 * passed / max(of, 1)))
        sys.exit(of == 0 or passed < 0.9 * of)
    sys.exit(any(passed < bars[name] * of for name, (passed, of) in groups.items()))


if __name__ == "__main__":
    main()

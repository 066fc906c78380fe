#!/usr/bin/env python3
"""Plots the time of 100 KB downloads over 3G with 5 % loss: real kernels, the model, and delay and rate alone.

    plot.py OUT.png [PATH_TO_SLOWLANE]        (needs matplotlib)
"""
import json
import os
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plot  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))
CELL = "down_102400"


def main():
    binary = sys.argv[2] if len(sys.argv) > 2 else os.path.join(FOLDER, "..", "..", ".build", "release", "slowlane")
    with open(os.path.join(FOLDER, "truth", "3g-loss5.json")) as f:
        kernel = json.load(f)["cells"][CELL]
    arguments = ["model", "--netem-down", "delay 100ms loss 5% rate 780kbit limit 50", "--netem-up",
             "delay 100ms loss 5% rate 330kbit limit 50", "--plan", "down:102400", "--trials", "1000"]
    lines = subprocess.run([binary] + arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    model = [json.loads(line)["done"] for line in lines]
    # A proxy that only delays and throttles: the request, the delay back, the bytes at the rate.
    simple = 100 + 100 * 8 / 330 + 100 + 102400 * 8 / 780

    figure, axes = plot.subplots(figsize=(7.5, 4))
    for values, label, style in ((kernel, "two Linux kernels (%d)" % len(kernel), dict(color="black", lw=2.2)),
                                 (model, "Slowlane's model (%d)" % len(model), dict(color="tab:blue", lw=1.6))):
        values = sorted(values)
        axes.step([v / 1000 for v in values], [(i + 1) / len(values) for i in range(len(values))], where="post",
                  label=label, **style)
    axes.step([0, simple / 1000, 100], [0, 1, 1], where="post", color="tab:red", ls="--", label="delay and rate only")
    axes.set_xlim(1, 5)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("seconds from the request to the last byte")
    axes.set_ylabel("share of completed downloads")
    axes.set_title("100 KB over 3G with 5 % loss")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()

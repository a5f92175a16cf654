"""The pictures of the concept pages, in docs/pages/images: what an epsilon allows, and strict
releases of the RAND visits against the data; and of the summary of benchmarks, from stored numbers.

`python docs/strict_picture.py [benchmarks]` draws all of them anew, or those of benchmarks;
releases are sampled exactly and without a seed, so that bars move a little.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from statsmodels.datasets import randhie

import pyhybrid as ph

MOST = 12
IMAGES = Path(__file__).parent / "pages" / "images"
STORED = Path(__file__).parent.parent / "benchmarks"
COMMANDS = {
    "local": "one column, local", "strict": "one column, strict", "whole 4": "whole table",
    "reference 4": "whole table, reference", "utility": "utility", "risk": "risk",
    "report": "report",
}  # fmt: skip
TASKS = {
    "release": "release of 4,406 counts, 9 columns", "sequence": "three columns of them",
    "mixture": "mixture fitted to 4,469 incomes", "beta": "release of 700 shares",
    "masking": "masking of 700 records", "utility": "utility of 20,190 records",
    "validate": "validate --quick", "audit": "audit",
}  # fmt: skip


def main() -> None:
    """All pictures, or those of benchmarks."""
    if sys.argv[1:] != ["benchmarks"]:
        allowed()
        strict_releases()
    gauntlet()
    peers()
    run_times()


def gauntlet() -> None:
    """How commands ended on real tables."""
    rows = pd.read_csv(STORED / "results" / "gauntlet.csv")
    ended = pd.crosstab(rows["cell"], rows["outcome"]).loc[list(COMMANDS)]
    figure, axes = _bars()
    left = np.zeros(len(ended))
    for outcome, color, label in (
        ("ok", "#0072b2", "ended well"), ("told", "#8fc3e6", "named what to type, which worked"),
        ("failed", "#d55e00", "did not end well"),
    ):  # fmt: skip
        axes.barh(list(COMMANDS.values()), ended[outcome], left=left, color=color, label=label)
        left += ended[outcome].to_numpy()
    axes.set(xlabel="real tables")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    _save(figure, "gauntlet")


def peers() -> None:
    """Overlap of programs with an epsilon, all columns protected."""
    rows = pd.read_csv(STORED / "peers" / "results.csv")
    rows = rows[(rows["form"] == "all columns") & rows["asked"].notna()]
    figure = Figure(figsize=(8, 3), layout="constrained")
    names = {"rand": "RAND visits", "ce": "CE incomes"}
    for axes, (data, name) in zip(figure.subplots(1, 2, sharey=True), names.items(), strict=True):
        for program, own in rows[rows["data"] == data].groupby("program"):
            if program.startswith("pyhybrid") and program != "pyhybrid-table":
                continue
            ours = program == "pyhybrid-table"
            label = "pyhybrid" if ours else program
            style = {"lw": 3, "color": "#0072b2"} if ours else {"lw": 1.2, "ls": "--"}
            axes.plot(own["asked"], own["overlap"], marker="o", ms=4, label=label, **style)
        axes.set(title=name, xlabel="epsilon", ylim=(-0.1, 1), xticks=[1, 2, 4, 8])
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set(ylabel="overlap of intervals")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", frameon=False)
    _save(figure, "programs")


def run_times() -> None:
    """CPU seconds of everyday tasks."""
    rows = pd.read_csv(STORED / "results" / "everyday.csv").set_index("task").loc[list(TASKS)]
    figure, axes = _bars()
    drawn = axes.barh(list(TASKS.values()), rows["cpu_seconds"], color="#0072b2")
    axes.bar_label(drawn, fmt="%.0f", padding=3)
    axes.set(xlabel="CPU seconds")
    _save(figure, "run_times")


def _bars() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


def allowed() -> None:
    """How sure a guess can become after a release, by epsilon, from three guesses before."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    epsilon = np.linspace(0, 6, 200)
    for before in (0.5, 0.1, 0.01):
        odds = before / (1 - before) * np.exp(epsilon)
        axes.plot(epsilon, odds / (1 + odds), label=f"{before:.0%} before the release")
    axes.set(xlabel="epsilon", ylabel="at most, after the release", xlim=(0, 6), ylim=(0, 1))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, "allowed")


def strict_releases() -> None:
    """Releases at strict epsilon 1 and 4, of rows that are not the reference's."""
    visits = randhie.load_pandas().data[["mdvis"]].astype(int)
    order = np.random.default_rng(1).permutation(len(visits))
    reference, rest = visits.iloc[order[:2000]], visits.iloc[order[2000:]].reset_index(drop=True)
    model = ph.NegativeBinomial("mdvis ~ 1")
    shown = {"data": rest["mdvis"]}
    for epsilon in (1, 4):
        calibration = ph.calibrate(
            model, reference, epsilon=epsilon, seed=1, holds_no_released_record=True
        )
        release = ph.Censored(calibration=calibration).release(rest)
        assert release.charge.kind == "strict"
        shown[f"strict, epsilon {epsilon}"] = release.synthetic[0]["mdvis"]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(shown)
    for place, (name, values) in enumerate(shown.items()):
        share = np.bincount(np.minimum(values, MOST), minlength=MOST + 1) / len(values)
        axes.bar(np.arange(MOST + 1) + (place - 1) * width, share, width, label=name)
    axes.set_xticks(range(MOST + 1), [*map(str, range(MOST)), f"{MOST}+"])
    axes.set(xlabel="outpatient visits in a year", ylabel="share of records")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, "strict")


if __name__ == "__main__":
    main()

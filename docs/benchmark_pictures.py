"""The pictures of the summary of benchmarks, in docs/pages/images, from stored numbers.

`python docs/benchmark_pictures.py` draws all of them anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "pages" / "images"
STORED = Path(__file__).parent.parent / "benchmarks"
COMMANDS = {
    "local": "one column, local", "strict": "one column, strict", "whole 4": "whole table",
    "reference 4": "whole table, reference", "utility": "utility", "risk": "risk",
    "report": "report",
}  # fmt: skip


def main() -> None:
    """All pictures."""
    gauntlet()
    peers()


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


def _bars() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()

"""The pictures of the concept pages, in docs/pages/images: what an epsilon allows, also of persons
with several rows, what stays as it is, strict releases of the RAND visits against the data, and
bounds before and after re-weighting.

`python docs/concept_pictures.py` draws them anew. Releases are sampled exactly and without a seed,
so that bars move a little.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from statsmodels.datasets import randhie

import pyhybrid as ph
from pyhybrid.fitting.session import open_session
from pyhybrid.reports.figures import plot_bound_against_weight

MOST = 12
IMAGES = Path(__file__).parent / "pages" / "images"


def main() -> None:
    """All pictures."""
    allowed()
    several_rows()
    unchanged()
    strict_releases()
    reweighting()


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


def several_rows() -> None:
    """How sure a guess of 50 % can become about a person with several rows, at epsilon 1 a row."""
    figure = Figure(figsize=(8, 2.6), layout="constrained")
    axes = figure.subplots()
    rows = np.arange(1, 6)
    bars = axes.bar(rows - 0.2, 1 / (1 + np.exp(-rows)), 0.4, label="epsilon 1 for each row")
    axes.bar_label(bars, fmt=lambda value: f"{value:.0%}")
    person = np.full(rows.size, 1 / (1 + np.exp(-1.0)))
    bars = axes.bar(rows + 0.2, person, 0.4, label="epsilon 1 for each person (--unit)")
    axes.bar_label(bars, fmt=lambda value: f"{value:.0%}")
    axes.axhline(0.5, color="0.5", linestyle="--", linewidth=1)
    axes.set(xlabel="rows of the person", ylabel="certainty, at most", ylim=(0, 1.1))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, "several_rows")


def unchanged() -> None:
    """Three invented records before and after a release that replaces one of their columns."""
    figure = Figure(figsize=(8, 1.7), layout="constrained")
    kept = [["97", "north"], ["41", "south"], ["35", "south"]]
    incomes = {"data": ["31,200", "58,900", "47,000"], "release": ["36,400", "52,100", "61,700"]}
    for axes, (title, values) in zip(figure.subplots(1, 2), incomes.items(), strict=True):
        axes.set_title(title)
        axes.axis("off")
        cells = [[*known, income] for known, income in zip(kept, values, strict=True)]
        table = axes.table(cells, colLabels=["age", "region", "income"], loc="center")
        table.scale(1, 1.4)
        for row in range(1, 4):
            table[row, 2].set_facecolor("#cfe5f5" if title == "release" else "white")
    _save(figure, "unchanged")


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


def reweighting() -> None:
    """Bounds against weights before and after one step of equation 2.1, on 1,000 RAND visits."""
    visits = randhie.load_pandas().data[["mdvis"]].sample(1000, random_state=1)
    plan = ph.mechanisms.Reweighting.published(k=0.95)
    mechanism = ph.LipschitzWeighted(ph.NegativeBinomial("mdvis ~ 1"), reweighting=plan)
    path = mechanism.fit(open_session(mechanism.bind(visits), seed=1))
    before, after = ((fit.alpha, fit.bounds.by_record, fit.bounds.overall)
                     for fit in (path.start, path.fit))  # fmt: skip
    alpha, by_record, overall = after
    figure = plot_bound_against_weight(alpha, by_record, overall=overall, before=before)
    _save(figure, "reweighting")


def _save(figure: Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()

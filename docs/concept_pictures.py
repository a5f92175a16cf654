"""The pictures of the concept pages, in docs/pages/images: what an epsilon allows, and strict
releases of the RAND visits against the data.

`python docs/concept_pictures.py` draws both anew. Releases are sampled exactly and without a seed,
so that bars move a little.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from statsmodels.datasets import randhie

import pyhybrid as ph

MOST = 12
IMAGES = Path(__file__).parent / "pages" / "images"


def main() -> None:
    """Both pictures."""
    allowed()
    strict_releases()


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


def _save(figure: Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()

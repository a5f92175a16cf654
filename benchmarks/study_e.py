"""Study E [S22 sec. 5]: log family income by a finite mixture, bounds over six pairs (c, g).

The February CE file is of another year than the paper's: shape and order must agree, not the
digits. Unweighted, LW at each pair, and the exponential mechanism (one weight for all records) at
the bound of LW (0.7, 0).

`python -m benchmarks.study_e [RECORDS [COMPONENTS [PICTURE]]]`: on a random part of the records,
with fewer components, by default 1000 and 3; 0 and 5 are the whole study, an hour or more. With a
third argument a picture of the data against synthetic data is written there.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import numpy as np

import pyhybrid as ph
from benchmarks.measure import line
from benchmarks.mixture import MODEL, SETTINGS, incomes
from pyhybrid.curve_points import scalar_fit
from pyhybrid.fitting import FitSession, PosteriorFit, open_session
from pyhybrid.plots import figure_png, plot_distributions

PUBLISHED = {
    (0.7, 0.0): 10.10, (0.6, 0.0): 8.16, (0.6, -0.1): 7.30,
    (0.5, 0.0): 6.09, (0.5, -0.1): 5.71, (0.5, -0.3): 2.25,
}  # fmt: skip
PUBLISHED_UNWEIGHTED, PUBLISHED_SCALAR = 78.7, 10.2


def run(n: int = 1000, n_components: int = 3, picture: str | None = None) -> None:
    """Print bounds beside the published ones, and whether their order is the same."""
    table = incomes()
    if table is None:
        return
    if n:
        table = table.sample(n, random_state=1).reset_index(drop=True)
    model = dataclasses.replace(MODEL, n_components=n_components)
    print(f"Study E: {len(table)} records of the February CE file, K = {n_components}, log income")
    started = time.perf_counter()
    session = open_session(
        model.bind(table), seed=1, engine="embedded", settings=SETTINGS, on_not_converged="warn"
    )
    unweighted = session.unweighted()
    _row("Unweighted", unweighted, PUBLISHED_UNWEIGHTED)
    fits = {pair: _weighted(session, model, pair) for pair in PUBLISHED}
    for pair, fit in fits.items():
        _row(f"LW, c = {pair[0]:g}, g = {pair[1]:g}", fit, PUBLISHED[pair])
    scalar, refits = scalar_fit(session, fits[0.7, 0.0], unweighted.bounds.overall)
    _row(f"scalar, bound of LW (0.7, 0), {refits} refits", scalar, PUBLISHED_SCALAR)
    ours = [fit.bounds.overall for fit in fits.values()]
    ratio = unweighted.bounds.overall / ours[0]
    print(f"  same order as published: {ours == sorted(ours, reverse=True)}; "
          f"unweighted {ratio:.1f} times LW (0.7, 0), published 7.8")  # fmt: skip
    line(f"{session.n_fits} fits", time.perf_counter() - started)
    if picture:
        _picture(session, {"LW (0.7, 0)": fits[0.7, 0.0], "scalar": scalar}, picture)


def _weighted(
    session: FitSession, model: ph.MixtureRegression, pair: tuple[float, float]
) -> PosteriorFit:
    mechanism = ph.LipschitzWeighted(model, scale=pair[0], shift=pair[1])
    return mechanism.fit(session).fit


def _row(label: str, fit: PosteriorFit, published: float) -> None:
    found, mean = fit.diagnostics, fit.alpha.mean()
    print(f"  {label:<42} bound {fit.bounds.overall:>6.2f}, published {published:>5.2f}; "
          f"mean weight {mean:.2f}; R-hat {found.max_rhat:.3f}, {found.n_divergent} divergent, "
          f"{fit.draws.provenance.seconds:.0f} s", flush=True)  # fmt: skip


def _picture(session: FitSession, fits: dict[str, PosteriorFit], picture: str) -> None:
    """Log10 income of the data against three synthetic sets of each fit."""
    bound, rng = session.bound, np.random.default_rng(1)
    column = bound.synthesized[0]
    sets = {
        name: [
            np.log10(bound.replicate(fit.draws, int(s), rng)[column].to_numpy(dtype=float))
            for s in rng.choice(fit.draws.n_draws, 3, replace=False)
        ]
        for name, fit in fits.items()
    }
    figure = plot_distributions(
        np.log10(bound.outcome), sets, discrete=False, label="log10 family income, US dollars"
    )
    Path(picture).write_bytes(figure_png(figure))


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:3]), *sys.argv[3:4])

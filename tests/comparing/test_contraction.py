"""Local to global: conjugate answers, and a table whose rate and shares are known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.studies.comparing.contraction import Contraction
from tests.refusals import refuses

N, YES, REPLICATES, DRAWS = 400, 100, 20, 500
DATA = pd.DataFrame({"y": np.repeat(["yes", "no"], (YES, N - YES))})
MODEL = ph.Bernoulli("y ~ 1")


def _run(mechanism: Any, **options: Any) -> Contraction:
    settings = SamplerSettings(chains=2, warmup=200, draws=DRAWS // 2)
    how = {"seed": 1, "engine": "embedded", "settings": settings, **options}
    return ph.contraction(mechanism, DATA, sizes=(100, 400), replicates=REPLICATES, **how)


def _conjugate(n: int, replicates: int = 4000) -> float:
    """Mean bound of unweighted posteriors Beta(y, n - y), from drawn databases, directly."""
    rng = np.random.default_rng(7)
    y = rng.binomial(n, rng.beta(YES, N - YES, replicates))
    p = rng.beta(y[:, None], n - y[:, None], (replicates, DRAWS))
    return float(np.maximum(-np.log(p), -np.log1p(-p)).max(axis=1).mean())


@pytest.mark.samples
def test_bounds_of_a_conjugate_model_are_those_of_direct_sampling() -> None:
    """The control: databases of the other size are farther away than 5 errors."""
    steps: list[tuple[str, int, int]] = []
    progress = lambda *step: steps.append(step)  # noqa: E731
    found = _run(ph.Unweighted(MODEL, accounting="lipschitz"), progress=progress)
    table = found.table.set_index("n")
    error = table["sd"] / REPLICATES**0.5
    for n, other in ((100, 400), (400, 100)):
        assert abs(table["mean"][n] - _conjugate(n)) < 5 * error[n]
        assert abs(table["mean"][n] - _conjugate(other)) > 5 * error[n]
    assert (table[["reduced / sqrt n", "removed / sqrt n"]] == 0).all(axis=None)
    assert [step for step in steps if step[0] == "simulated databases"][-1][1:] == (40, 40)


@pytest.mark.samples
def test_reduced_weights_are_those_of_the_rarer_level() -> None:
    """At weight 0.5 of the rest, pseudo posteriors of 100 and 300 have 50 and 300 records."""
    mechanism = ph.LipschitzWeighted(MODEL, scale=0.5, shift=0.5, accounting="lipschitz")
    databases = _run(mechanism).databases
    np.testing.assert_allclose(databases["removed"], databases["reduced"] / 2)
    share = databases["reduced"] / databases["n"]
    assert abs(share.mean() - 1 / 7) < 5 * share.std() / len(share) ** 0.5


def test_rate_and_shares_of_a_known_table() -> None:
    """Deviations 1 / sqrt n around 3."""
    parts = [
        pd.DataFrame({
            "n": n, "lipschitz_bound": 3 + np.array([-2, -1, 0, 1, 2]) / 1.5811388 / n**0.5,
            "reduced": n // 2, "removed": n / 4, "converged": True,
        })
        for n in (100, 400, 1600)
    ]  # fmt: skip
    known = Contraction(databases=pd.concat(parts, ignore_index=True), bound=3.0, n=1600)
    assert known.rate == pytest.approx(-0.5)
    table = known.table.set_index("n")
    np.testing.assert_allclose(table["sd"], [0.1, 0.05, 0.025], rtol=1e-6)
    assert table["delta at 1"].tolist() == [0.4] * 3
    assert (table[["delta at 1.05", "delta at 1.1"]] == 0).all(axis=None)
    np.testing.assert_allclose(table["reduced / sqrt n"], [5, 10, 20])
    np.testing.assert_allclose(table["removed / sqrt n"], [2.5, 5, 10])


@pytest.mark.parametrize("sizes", [(400,), (1, 400), (100, 401), (100, 100)])
def test_sizes_that_show_no_contraction_are_refused(sizes: tuple[int, ...]) -> None:
    refuses("sizes", ph.contraction, ph.Unweighted(MODEL), DATA, sizes=sizes)

"""Joint moves for columns with missing values: exact, and groups without any value mix."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import GibbsSettings
from pyhybrid.masking.families import SLOPE_PRECISION, LevelModel, Unknown
from pyhybrid.masking.sequence import Later, SequentialModel, draw_step

KINDS = {"binary": 2, "ordered": 4, "nominal": 3}


@pytest.mark.parametrize("kind", KINDS)
def test_missing_levels_are_summed_out(kind: str) -> None:
    rng = np.random.default_rng(2)
    model = LevelModel(kind=kind, n_levels=KINDS[kind], n_columns=3)
    design = np.hstack([np.ones((30, 1)), rng.normal(size=(30, 2))])
    x = rng.integers(0, model.n_levels, 20)
    theta, weights = rng.normal(size=model.size), rng.normal(size=(10, model.n_levels))
    unknown = Unknown(design=design[20:], log_weights=weights)

    def value(at: Any) -> float:
        return model.log_density(at, design[:20], x, unknown)

    total = model.log_density(theta, design[:20], x)
    for row in range(10):
        total += np.log(
            sum(
                np.exp(
                    weights[row, level]
                    + model.log_probability(
                        design[[20 + row]] @ model.coefficients(theta),
                        model.cuts(theta),
                        np.array([level]),
                    )[0]
                )
                for level in range(model.n_levels)
            )
        )
    assert value(theta) == pytest.approx(total, rel=1e-12)
    gradient = model.gradient(theta, design[:20], x, unknown)
    for place in range(model.size):
        step = np.zeros(model.size)
        step[place] = 1e-5
        slope = (value(theta + step) - value(theta - step)) / 2e-5
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def _prior(kind: str, rng: np.random.Generator) -> tuple[LevelModel | None, Any]:
    """A later model on (1, z, x) with parameters from its prior."""
    if kind == "normal":
        variance = 0.5
        return None, np.append(rng.normal(size=3) * np.sqrt(variance / SLOPE_PRECISION), variance)
    model = LevelModel(kind=kind, n_levels=KINDS[kind], n_columns=3)
    center, sd = model._prior
    return model, center + sd * rng.standard_normal(model.size)


def _values(model: LevelModel | None, theta: Any, eta: Any, rng: np.random.Generator) -> Any:
    if model is None:
        return eta[:, 0] + np.sqrt(theta[-1]) * rng.standard_normal(len(eta))
    p = np.exp(model.log_probabilities(eta, model.cuts(theta)))
    return (rng.random((len(eta), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


Statistics = list[float]
Break = Callable[[Any, Any], Any]


def _before_and_after(kind: str, seed: int, spoil: Break) -> tuple[Statistics, Statistics]:
    """Functions of all unknowns of a simulated database, and after one step."""
    rng = np.random.default_rng([seed, 7])
    n, seen = 14, 9
    design = np.column_stack([np.ones(n), rng.normal(size=n)])
    variance = 0.02
    slopes = rng.normal(size=2) * np.sqrt(variance / SLOPE_PRECISION)
    x = design @ slopes + np.sqrt(variance) * rng.normal(size=n)
    model, theta = _prior(kind, rng)
    coefficients = theta[:-1, None] if model is None else model.coefficients(theta)
    eta = np.column_stack([design, x]) @ coefficients
    y = _values(model, theta, eta, rng)

    def told(b: Any, t: Any, hidden: Any) -> Statistics:
        c = t[:-1, None] if model is None else model.coefficients(t)
        full = np.column_stack([design, np.append(x[:seen], hidden)])
        own = full @ c
        if model is None:
            fit = -0.5 * float(((y - own[:, 0]) ** 2).sum()) / t[-1]
        else:
            fit = float(model.log_probability(own, model.cuts(t), y).sum())
        return [b[0], b[0] ** 2, b[1] ** 2, float(t[1] ** 2), float(t[1] * b[1]),
                float(hidden.mean() ** 2), fit, float(c[2, 0] * hidden.mean())]  # fmt: skip

    later = Later(model=model, theta=theta, slopes=coefficients[2], eta=eta[:seen], x=y[:seen])
    start = np.append(slopes, variance)
    step = draw_step(start, design[:seen], x[:seen], [later], rng)
    hidden = x[seen:]
    moved = spoil(later, step)
    return told(slopes, theta, hidden), told(slopes + step, moved, hidden + design[seen:] @ step)


def _worst(kind: str, spoil: Break, n: int = 3000) -> float:
    """Largest mean change in standard errors: the joint distribution must stay what it was."""
    pairs = [_before_and_after(kind, seed, spoil) for seed in range(n)]
    change = np.array([after for _, after in pairs]) - np.array([before for before, _ in pairs])
    limit = np.quantile(np.abs(change), 0.999, axis=0)  # symmetric clipping keeps heavy tails calm
    change = np.clip(change, -limit, limit)
    return float(np.abs(change.mean(axis=0) / (change.std(axis=0) / np.sqrt(n))).max())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["normal", *KINDS])
def test_the_step_keeps_the_joint_distribution(kind: str) -> None:
    assert _worst(kind, lambda later, step: later.moved(step)) < 5
    # The control: coefficients of the later column go the other way.
    assert _worst(kind, lambda later, step: later.moved(-step)) > 6


def _workers(n: int = 240) -> pd.DataFrame:
    """Pay is never seen of those who do not work."""
    rng = np.random.default_rng(4)
    works = rng.random(n) < 0.6
    pay = np.where(works, 2 + rng.normal(size=n), np.nan)
    sex = rng.random(n) < 0.4 + 0.3 * works
    age = 45 + 5 * works + 3 * np.nan_to_num(pay) + 8 * rng.normal(size=n)
    return pd.DataFrame({"age": age.round(), "sex": sex, "pay": pay, "works": works})


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:the association model has not converged")
def test_a_group_that_never_shows_a_value_mixes(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ConvergenceRule(rhat=10.0, ess_per_chain=1)
    settings = GibbsSettings(chains=2, warmup=60, draws=250, rule=rule)
    model = ph.masking.MaskedImputation(
        keys=["age", "sex"], n_synthetic=2, settings=settings, on_not_converged="warn"
    )
    together = model.fit(_workers(), seed=1).chains.diagnostics
    assert together.max_rhat < 1.1
    monkeypatch.setattr(SequentialModel, "_step", lambda *_: None)  # the control
    apart = model.fit(_workers(), seed=1).chains.diagnostics
    assert together.min_ess_bulk > 8 * apart.min_ess_bulk

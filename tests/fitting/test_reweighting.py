"""Re-weighting: never above the starting bound, no slack left, steps recorded."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.fitting.reweighting import Reweighting, reweighted_fit
from pyhybrid.fitting.session import FitSession, PosteriorFit, open_session
from tests.fits import fit_options
from tests.refusals import refuses

pytestmark = pytest.mark.samples


def mixture(n: int = 400, seed: int = 3) -> pd.DataFrame:
    """[V25] sec. 2: 0.2 NB(100, 5) + 0.8 NB(100, 20)."""
    rng = np.random.default_rng(seed)
    phi = np.where(rng.uniform(size=n) < 0.2, 5.0, 20.0)
    return pd.DataFrame({"y": rng.poisson(rng.gamma(phi, 100 / phi))})


MODEL = ph.NegativeBinomial("y ~ 1")
SHORT = fit_options(chains=4, warmup=400, draws=500)


@pytest.fixture(scope="module")
def session() -> FitSession:
    return open_session(MODEL.bind(mixture()), seed=1, **SHORT)


@pytest.fixture(scope="module")
def start(session: FitSession) -> PosteriorFit:
    return ph.LipschitzWeighted(MODEL).fit(session).fit


@pytest.mark.parametrize("mechanism", [ph.LipschitzWeighted, ph.CountWeighted])
def test_no_slack_is_left_at_the_same_bound(mechanism: Any, session: FitSession) -> None:
    path = mechanism(MODEL, reweighting=True).fit(session)
    before, after = path.start, path.fit
    assert after.bounds.overall <= before.bounds.overall
    assert after.bounds.efficiency > before.bounds.efficiency
    free = (after.alpha > 0) & (after.alpha < 1)
    near = np.abs(after.bounds.by_record[free] / after.bounds.overall - 1) <= 0.1
    assert near.mean() >= 0.9
    # Records that had no weight get none.
    assert (after.alpha[before.alpha == 0] == 0).all()
    assert after.alpha.mean() > before.alpha.mean()
    assert all(step.accepted == (step.bound <= before.bounds.overall) for step in path.steps)
    assert after.bounds.overall in {step.bound for step in path.steps if step.accepted}
    assert path.steps[0].k == 0.95


@pytest.mark.parametrize(("plan", "change", "warned", "n_steps"), [
    (Reweighting(max_refits=3), 0.01, "no weights within the bound in 3 refits", 3),
    (Reweighting.published(), 0.26, "raised the bound by more than the tolerance of 0.25", 1),
])  # fmt: skip
def test_steps_beyond_the_bound_or_tolerance_return_the_start_with_a_warning(
    plan: Reweighting, change: float, warned: str, n_steps: int, session: FitSession,
    start: PosteriorFit, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    _moved_by(change, start, monkeypatch)
    with pytest.warns(UserWarning, match=warned):
        path = reweighted_fit(session, start, plan)
    assert path.fit is start
    assert [step.accepted for step in path.steps] == [False] * n_steps


def test_a_release_never_costs_more_for_it(session: FitSession, tmp_path: Path) -> None:
    """By the bound that it levels; other accounts of a fit have errors of their own."""
    options: dict[str, Any] = {"n_synthetic": 2, "n_draws_released": 2, "refits": 0}
    papers: dict[str, Any] = {"accounting": "lipschitz"}
    plain = ph.LipschitzWeighted(MODEL, **papers).release_from(session, **options)
    final = ph.LipschitzWeighted(MODEL, reweighting=True, **papers).release_from(session, **options)
    assert final.charge.epsilon <= plain.charge.epsilon
    final.save(tmp_path / "out", report=False)
    run = json.loads((tmp_path / "out" / "confidential" / "run.json").read_text())
    assert [s["k"] for s in run["reweighting_steps"]] == [s.k for s in final.reweighted.steps]
    public = "".join(p.read_text() for p in (tmp_path / "out" / "public").glob("*[!v]"))
    assert "reweighting_steps" not in public


@pytest.mark.parametrize("wrong", [
    {"k": 0.0}, {"k": 1.2}, {"k": np.nan}, {"tolerance": 0}, {"max_refits": 0},
    {"search": False}, {"search": 0, "recursive": False},
])  # fmt: skip
def test_bad_plans_are_refused(wrong: dict[str, float]) -> None:
    refuses("", Reweighting, **wrong)


def test_reweighting_needs_a_finite_bound(session: FitSession) -> None:
    fit = session.unweighted()
    broken = replace(fit, bounds=replace(fit.bounds, overall=np.inf))
    refuses("finite bound above 0", reweighted_fit, session, broken, Reweighting())
    refuses("reweighting must be", ph.Unweighted, MODEL, reweighting="yes")


@pytest.fixture(scope="module")
def beta_session() -> FitSession:
    values = pd.DataFrame({"y": np.random.default_rng(6).beta(0.5, 3, 2000)})
    return open_session(ph.Beta("y ~ 1").bind(values), seed=6, **SHORT)


def _moved_by(change: float, start: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refits whose bound is that of `start` and `change`; the weights they were asked for."""
    asked: list[Any] = []

    def fit(_: FitSession, alpha: Any, **options: Any) -> Any:
        asked.append(alpha)
        bounds = replace(start.bounds, overall=start.bounds.overall + change)
        return replace(start, alpha=alpha, bounds=bounds)

    monkeypatch.setattr(FitSession, "fit", fit)
    return asked


@pytest.mark.parametrize(("plan", "change"), [
    *((Reweighting.published(k=0.9), change) for change in (-1.0, 0.0, 0.24)),
    (Reweighting.published(k=0.9, tolerance=0.3), 0.26),
    (Reweighting(k=0.9, tolerance=100.0, recursive=False), -1.0),
])  # fmt: skip
def test_a_single_step_is_the_formula_at_its_k(
    plan: Reweighting, change: float, session: FitSession, start: PosteriorFit,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One refit at exactly this k, a published one also where the bound rises a little."""
    ratio = start.bounds.overall / np.where(start.alpha > 0, start.bounds.by_record, 1)
    asked = _moved_by(change, start, monkeypatch)
    path = reweighted_fit(session, start, plan)
    assert len(asked) == 1
    np.testing.assert_allclose(path.fit.alpha, np.clip(0.9 * start.alpha * ratio, 0, 1), rtol=1e-12)
    assert [(step.k, step.round, step.accepted) for step in path.steps] == [(0.9, 1, True)]


def test_a_path_is_repeated_at_its_constants(session: FitSession, beta_session: FitSession) -> None:
    """Of the search and of a published step; the control is a path that took none."""
    for model, own in ((MODEL, session), (ph.Beta("y ~ 1"), beta_session)):
        for plan in (True, Reweighting.published()):
            mechanism = ph.LipschitzWeighted(model, reweighting=plan)
            path = mechanism.fit(own)
            assert path.fit is not path.start
            assert path.constants
            again = mechanism.fit(own, like=path)
            np.testing.assert_allclose(again.fit.alpha, path.fit.alpha, rtol=1e-12)
            held = mechanism.fit(own, like=replace(path, constants=()))
            assert held.fit is held.start
            charge = mechanism.charge(own, path, mechanism.loss(own, path, 0), 1, 1)
            assert charge.epsilon_lipschitz >= 2 * path.fit.bounds.overall  # a rise is paid for


def test_what_is_charged_is_the_bound_after_a_rise(
    session: FitSession, start: PosteriorFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    _moved_by(0.2, start, monkeypatch)
    plain = ph.LipschitzWeighted(MODEL, accounting="lipschitz")
    path = reweighted_fit(session, start, Reweighting.published())
    monkeypatch.undo()
    risen, before = (
        plain.charge(session, own, plain.loss(session, own, 0), 1, 1)
        for own in (path, replace(path, fit=start))
    )
    assert risen.bound >= start.bounds.overall + 0.2
    assert risen.epsilon > before.epsilon

"""Several columns in sequence: what is read, what is drawn, what it costs, what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.randomness import Streams
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.statement import not_covered
from tests.fits import fit_options
from tests.refusals import refuses

SHORT = fit_options(chains=4, warmup=300, draws=400)
FIRST, SECOND = ph.Poisson("a ~ x"), ph.Poisson("b ~ a + x")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """b is about exp(0.3 a) and depends on x through a only."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, 400)
    a = rng.poisson(np.where(x == 1, 4.0, 2.0))
    b = rng.poisson(np.exp(0.3 * a))
    return pd.DataFrame({"b": b, "keep": rng.normal(size=400).round(2), "x": x, "a": a})


@pytest.fixture(scope="module")
def released(table: pd.DataFrame) -> ph.Release:
    steps = [ph.LipschitzWeighted(FIRST), ph.Unweighted(SECOND)]
    return ph.SequentialSynthesis(steps).release(table, n_synthetic=3, seed=5, refits=2, **SHORT)


@pytest.mark.samples
def test_all_columns_are_replaced_and_others_kept(released: Any, table: pd.DataFrame) -> None:
    for synthetic in released.synthetic:
        assert list(synthetic.columns) == list(table.columns)
        pd.testing.assert_frame_equal(synthetic[["keep", "x"]], table[["keep", "x"]])
        assert (synthetic["a"] != table["a"]).any()
        assert (synthetic["b"] != table["b"]).any()
        assert synthetic.dtypes.equals(table.dtypes)
    assert released.synthesized == ("a", "b")
    assert released.predictors == ("x",)


@pytest.mark.samples
def test_later_columns_read_the_synthetic_ones(released: ph.Release, table: pd.DataFrame) -> None:
    """Given the synthetic a, the true a tells nothing of the synthetic b: partial correlations."""
    for synthetic in released.synthetic:
        assert np.corrcoef(synthetic["a"], synthetic["b"])[0, 1] > 0.4
        residual = synthetic["b"] - np.exp(0.3 * synthetic["a"])
        scaled = residual / np.exp(0.15 * synthetic["a"])
        within = [np.corrcoef(scaled[table["x"] == x], table["a"][table["x"] == x])[0, 1]
                  for x in (0, 1)]  # fmt: skip
        assert np.abs(within).max() < 5 / np.sqrt(180)


@pytest.mark.samples
def test_epsilons_and_bounds_add(released: ph.Release) -> None:
    parts, whole = [part.charge for part in released.parts], released.charge
    assert whole == compose_charges(parts, mechanism="SequentialSynthesis")
    assert whole.epsilon == pytest.approx(sum(part.epsilon for part in parts), abs=1e-9)
    assert whole.mu == pytest.approx(np.sqrt(3) * np.hypot(*(part.mu for part in parts)))  # 3 draws
    left_open = [s for s in not_covered(whole) if s.startswith("Columns other than")]
    assert left_open == ["Columns other than a, b, if there are any, are published unchanged."]
    assert "Step 1: a by LipschitzWeighted" in released.statement
    assert f"epsilon = {parts[1].epsilon:g}" in released.statement


@pytest.mark.normal_draws
def test_the_entropy_recorded_is_that_of_the_steps(table: pd.DataFrame) -> None:
    """Without a seed, too: the owner can repeat the release."""
    sequence = ph.SequentialSynthesis([ph.Unweighted(FIRST), ph.Unweighted(SECOND)])
    release = sequence.release(table, refits=0, **SHORT)
    whole = Streams(entropy=release.confidential.entropy, seeded=False)
    for place, part in enumerate(release.parts, start=1):
        assert part.confidential.entropy == whole.child(f"step {place}").entropy


@pytest.mark.parametrize(("steps", "message"), [
    ([], "at least one mechanism"), ([FIRST], "step 1 must be a mechanism"),
    ([ph.Unweighted(FIRST), ph.ClippedScores(SECOND, epsilon=1)], "scores alone"),
    ([ph.Unweighted(SECOND), ph.Unweighted(FIRST)], "must not read 'a', which is synthesized"),
    ([ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("a ~ 1"))], "synthesized once: 'a' is not"),
    ([ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("c ~ 1"))], "step 2: outcome 'c'"),
    ([ph.Unweighted(FIRST), ph.Unweighted(SECOND, relation="replace")], "one relation"),
    ([ph.Unweighted(FIRST), ph.Censored(SECOND, epsilon=5, inner=ph.Unweighted(SECOND))],
        "step 2 must not be strict"),
])  # fmt: skip
def test_what_is_refused(steps: list[Any], message: str, table: pd.DataFrame) -> None:
    refuses(message, lambda: ph.SequentialSynthesis(steps).release(table, engine="embedded"))


@pytest.mark.samples
def test_predictors_that_a_synthetic_value_does_not_fit(table: pd.DataFrame) -> None:
    """log(a) exists for the data without zeros; a synthetic 0 has none."""
    positive = table[table["a"] > 0].reset_index(drop=True)
    steps = [ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("b ~ log(a)"))]
    few = table.assign(a=table["a"].clip(upper=1))
    coded = [ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("b ~ C(a)"))]
    for own, data, said in (
        (steps, positive, "must be finite"), (coded, few, "must have one of its levels")
    ):  # fmt: skip
        release = ph.SequentialSynthesis(own).release
        refuses(said, release, data, seed=1, n_synthetic=4, refits=0, **SHORT)


@pytest.mark.samples
def test_no_step_sees_true_values_of_later_columns(table: pd.DataFrame, monkeypatch: Any) -> None:
    seen: list[pd.DataFrame] = []
    replicate = BoundRegression.replicate

    def watched(self: Any, draws: Any, draw: int, rng: Any, given: Any = None) -> pd.DataFrame:
        seen.append(given)
        return replicate(self, draws, draw, rng, given)

    monkeypatch.setattr(BoundRegression, "replicate", watched)
    release = ph.SequentialSynthesis([ph.Unweighted(FIRST), ph.Unweighted(SECOND)]).release(
        table, n_synthetic=2, seed=1, refits=0, **SHORT
    )
    assert all("b" not in given.columns for given in seen[:2])
    for given, released in zip(seen[2:], release.synthetic, strict=True):
        pd.testing.assert_series_equal(given["a"], released["a"])
        assert not given["a"].equals(table["a"])
    for released in release.synthetic:
        assert list(released.columns) == list(table.columns)
        assert released.index.equals(table.index)


def test_a_pattern_that_is_synthesized_later_is_refused(table: pd.DataFrame) -> None:
    """Its true values would make weights of a step that the release of it does not pay for."""
    steps = [ph.CountWeighted(FIRST, pattern=("b",)), ph.Unweighted(SECOND)]
    for first in (steps[0], ph.Truncated(FIRST, cap=3, inner=steps[0])):
        release = ph.SequentialSynthesis([first, steps[1]]).release
        refuses("step 1 must not take 'b' as pattern, which is synth", release, table, **SHORT)


@pytest.mark.samples
def test_columns_that_shaped_a_release_and_are_left_out_are_named(table: pd.DataFrame) -> None:
    """A predictor reads true values: the statement says so where they are not shown."""
    steps = [ph.Unweighted(ph.Poisson("a ~ x")), ph.Unweighted(ph.Poisson("b ~ keep"))]
    release = ph.SequentialSynthesis(steps).release(table, seed=1, refits=0, **SHORT)
    assert release.predictors == ("x", "keep")
    assert "and may disclose them" not in release.statement
    hidden = release.with_decisions(Decisions.of(drop=["keep", "x"]))
    assert "True values of keep, x: the released table does not hold them" in hidden.statement

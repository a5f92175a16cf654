"""Perturbed histogram: bins, values, dtypes, charge, refusals, files, command line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.mechanisms import perturbed_histogram
from tests.refusals import refuses

P_VALUE = 1e-6
OPTIONS: dict[str, Any] = {"lower": 0, "upper": 100, "n_bins": 20, "epsilon": 1.0}
pytestmark = pytest.mark.usefixtures("opendp")


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 500
    return pd.DataFrame({
        "id": [f"{i % 5:03d}" for i in range(n)],
        "age": pd.array(rng.binomial(100, 0.3, n), dtype="Int16"),
        "income": rng.gamma(5, 5, n).clip(0, 100).astype("float32"),
        "group": pd.Categorical(rng.choice(["a", "b"], n)),
    }, index=pd.Index([f"row {i}" for i in range(n)], name="label"))  # fmt: skip


def mechanism(column: str = "age", **changes: Any) -> ph.PerturbedHistogram:
    return ph.PerturbedHistogram(column=column, **{**OPTIONS, **changes})


def cells_of(
    y: Any, low: float, high: float, n_bins: int, decimals: int | None
) -> tuple[np.ndarray, Callable[[int], pd.Series]]:
    """The cell of each number, and 4,000 numbers drawn from one."""
    own = mechanism("y", lower=low, upper=high, n_bins=n_bins, decimals=decimals)

    def drawn(cell: int) -> pd.Series:
        at = np.random.default_rng(cell).random(4000)
        return own.domain.values(np.full(4000, cell), at, name="y")

    return own.domain.places(pd.Series(y, name="y")), drawn


def test_bins_of_real_numbers_are_those_of_the_array_function() -> None:
    y = np.array([0.0, 0.1, 0.2499, 0.25, 0.5, 0.99, 1.0])
    place, drawn = cells_of(y, 0.0, 1.0, 4, None)
    counts = ph.arrays.histogram_counts(y, lower=0, upper=1, n_bins=4)
    np.testing.assert_array_equal(np.bincount(place, minlength=4), counts)
    assert stats.kstest(drawn(2), "uniform", (0.5, 0.25)).pvalue > P_VALUE


@pytest.mark.parametrize("decimals", [0, 1, 2, 4])
def test_bins_of_decimals_are_counted_in_whole_steps(decimals: int) -> None:
    """By integers: as floats, 6.6 * 10 and 0.29 * 100 fall into the bin to the left."""
    k = np.arange(-300, 701)
    for y in (k / 10**decimals, k * 10.0**-decimals):
        low, high = (round(end / 10**decimals, decimals) for end in (-300, 700))
        place, drawn = cells_of(y, low, high, 77, decimals)
        np.testing.assert_array_equal(place, (k + 300) * 77 // 1001)
        assert set(pd.concat([drawn(b) for b in range(77)])) == set(k / 10**decimals)
    hundredths = np.arange(101) / 100
    counts = ph.arrays.histogram_counts(hundredths, lower=0, upper=1, n_bins=100)
    np.testing.assert_array_equal(counts, [1] * 99 + [2])
    control = np.minimum(np.floor(hundredths * 100), 99).astype(int)
    assert (np.bincount(control, minlength=100) != counts).any()


def test_values_come_from_the_histogram_when_noise_is_small(table: pd.DataFrame) -> None:
    release = mechanism(epsilon=1e4, n_bins=101).release(table, n_synthetic=40)
    pooled = pd.concat([t["age"] for t in release.synthetic]).to_numpy(dtype=int)
    share = np.bincount(table["age"].to_numpy(dtype=int), minlength=101) / len(table)
    found = np.bincount(pooled, minlength=101)
    assert found[share == 0].sum() == 0
    seen = share > 0
    assert stats.chisquare(found[seen], share[seen] * pooled.size).pvalue > P_VALUE


def test_records_do_not_keep_their_values(table: pd.DataFrame) -> None:
    """Which value a record gets does not depend on the one it had: the order is random."""
    release = mechanism(epsilon=1e4, n_bins=101).release(table.sort_values("age"))
    drawn = release.synthetic[0]["age"].to_numpy(dtype=float)
    assert abs(stats.spearmanr(np.arange(drawn.size), drawn).statistic) < 5 / np.sqrt(drawn.size)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Noisy counts that releases asked for, in order."""
    found, real = [], perturbed_histogram.laplace_counts

    def noted(*args: Any, **options: Any) -> Any:
        found.append(real(*args, **options))
        return found[-1]

    monkeypatch.setattr(perturbed_histogram, "laplace_counts", noted)
    return found


@pytest.mark.parametrize(("relation", "times"), [("remove", 1), ("replace", 2)])
def test_laplace_scale_is_one_or_two_over_epsilon(relation: str, times: int, answers: Any) -> None:
    own = mechanism(epsilon=0.2, relation=relation)
    release = own.release(pd.DataFrame({"age": [3, 99]}), n_synthetic=4)
    assert [(answer.scale, answer.charge.relation) for answer in answers] == [(5 * times, relation)]
    assert (release.charge.relation, release.charge.epsilon) == (relation, 0.2)
    assert f"scale {times} / 0.2" in release.statement


@pytest.mark.parametrize(("changes", "message"), [
    ({"upper": "auto"}, "upper must be a finite number: found 'auto'"),
    ({"n_bins": 1}, "n_bins must be a whole number >= 2"),
    ({"lower": 100}, "lower must be below upper"), ({"column": 3}, "column must be the name"),
    ({"upper": 100.5, "decimals": 0}, "numbers of 0 decimals"),
    ({"n_bins": 102, "decimals": 0}, "n_bins must be at most the number of values"),
    ({"decimals": 16}, "decimals must be at most 15"),
])  # fmt: skip
def test_bad_settings(changes: dict[str, Any], message: str) -> None:
    refuses(message, mechanism, **changes)


@pytest.mark.parametrize(("change", "message"), [
    (lambda t: t.assign(age=t["age"].where(t.index != "row 7")), "missing: row 'row 7'"),
    (lambda t: t.assign(age=t["age"] + 90), "'age' must lie in its domain"),
    (lambda t: t.assign(age="about thirty"), "numeric"),
    (lambda t: t.assign(age=t["age"].astype(float).replace(30, np.inf)), "must lie in its domain"),
])  # fmt: skip
def test_bad_data(table: pd.DataFrame, change: Any, message: str) -> None:
    refuses(message, mechanism().release, change(table))


def test_what_is_outside_and_a_seed_are_refused_without_a_value(table: pd.DataFrame) -> None:
    table["income"] = table["income"].astype(float)
    table.loc["row 41", "income"] = 7919.25
    refuses("row 'row 41' does not", mechanism("income").release, table, hidden=["7919"])
    refuses("noise from OpenDP cannot be seeded", mechanism().release, table, seed=1)
    said = "n_draws_released must be left out: found 2"
    refuses(said, mechanism().release, table, n_synthetic=3, n_draws_released=2)


def test_formulas_name_the_column() -> None:
    assert ph.PerturbedHistogram.for_formula(" `my age` ~ 1 ", **OPTIONS).column == "my age"
    for formula in ("age ~ group", "age", "~ 1"):
        refuses("takes no predictors", ph.PerturbedHistogram.for_formula, formula, **OPTIONS)


def test_noise_for_a_person_is_scaled_by_the_rows_a_person_can_have(answers: list[Any]) -> None:
    """epsilon covers all rows of a person: each count gets noise for epsilon / rows_per_unit."""
    frame = pd.DataFrame({"v": np.arange(30) % 10, "person": np.arange(30) // 3})
    given: dict[str, Any] = {"column": "v", "lower": 0, "upper": 9, "n_bins": 5, "epsilon": 1.5}
    release = ph.PerturbedHistogram(**given, unit="person", rows_per_unit=3).release(frame)
    assert [each.charge.epsilon for each in answers] == [0.5]
    assert (release.charge.epsilon, release.charge.unit) == (1.5, "person")
    assert "scale 2 / 0.5" in release.statement
    ph.PerturbedHistogram(**given).release(frame)
    assert answers[1].charge.epsilon == 1.5, "the control: by row there is less noise"
    assert len(answers) == 2
    fewer = ph.PerturbedHistogram(**given, unit="person", rows_per_unit=2)
    refuses("at most rows_per_unit=2 rows: row .* is one more", fewer.release, frame)
    for wrong in ({"unit": "person"}, {"rows_per_unit": 3}):
        refuses("must be given together", ph.PerturbedHistogram, **given, **wrong)

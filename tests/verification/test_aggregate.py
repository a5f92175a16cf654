"""Private verification: what one record can change, error rates, refusals, the command."""

import json
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.verification import aggregate, queries
from pyhybrid.verification.queries import Coefficient, Mean, Quantile, Share, coerced, column_types
from tests.refusals import refuses

N = 2000


def _data(seed: int = 3, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame({
        "y": 5 + 0.5 * x + rng.normal(size=n), "x": x,
        "g": rng.choice(["a", "b"], n, p=[0.3, 0.7]), "home": np.arange(n) // 2,
    })  # fmt: skip


def _differences(data: pd.DataFrame, block: np.ndarray, count: int, reach: float) -> np.ndarray:
    found = np.array([Mean("y").of(data[block == place]) for place in range(count)]) - 5
    return np.clip(np.where(np.isfinite(found), found, reach), -reach, reach)


@pytest.mark.parametrize("clipped", [True, False])
def test_one_record_moves_the_mean_of_blocks_by_no_more_than_the_sensitivity(clipped: bool) -> None:
    """Every record removed or replaced by extremes; the control leaves the clipping out."""
    data, count, reach = _data(n=60), 10, 0.8
    block = np.random.default_rng(1).integers(count, size=60)
    far = reach if clipped else 1e12
    whole, moved = _differences(data, block, count, far).mean(), []
    for i in range(60):
        left = np.delete(np.arange(60), i)
        moved.append(_differences(data.iloc[left], block[left], count, far).mean() - whole)
        for value in (-1e6, 1e6):
            other = data.copy()
            other.loc[i, "y"] = value
            moved.append(_differences(other, block, count, far).mean() - whole)
    assert (np.abs(moved).max() <= 2 * reach / count + 1e-12) == clipped


def test_the_charge_covers_the_noise() -> None:
    data = _data()
    answer = ph.verify(data, data, "mean:y", tolerance=0.1, epsilon=0.5, blocks=16)
    assert answer.reach == pytest.approx(0.5)
    assert answer.sensitivity == pytest.approx(2 * answer.reach / 16, rel=1e-6)
    assert answer.cost() <= answer.charge.epsilon * (1 + 1e-12)
    assert answer.charge.kind == "strict"
    assert answer.charge.relation == "remove"
    answer.check_seal()


def _rate(offset: float, runs: int = 60) -> float:
    """How often a synthetic mean that is off by `offset` standard errors is said to hold."""
    held = []
    for seed in range(runs):
        data = _data(seed)
        error = data["y"].std() / np.sqrt(N)
        synthetic = pd.DataFrame({"y": [5 + offset * error]})
        answer = ph.verify(synthetic, data, "mean:y", tolerance=2 * error, epsilon=4, blocks=20)
        held.append(answer.within)
    return float(np.mean(held))


@pytest.mark.long
def test_error_rates() -> None:
    """At two standard errors, epsilon 4: right estimates hold, those off by eight do not."""
    assert _rate(0) > 0.75
    assert _rate(8) < 0.1


def test_the_probability_is_that_of_the_noise() -> None:
    """Against simulation: differences uniform on the reach, those that come out near a value."""
    data = _data()
    answer = ph.verify(data, data, "mean:y", tolerance=0.1, epsilon=0.4, blocks=16)
    rng = np.random.default_rng(7)
    true = rng.uniform(-answer.reach, answer.reach, 2_000_000)
    noisy = true + rng.laplace(scale=answer.scale, size=true.size)
    near = np.abs(noisy - answer.value) < 0.02 * answer.reach
    share = (np.abs(true[near]) <= answer.tolerance).mean()
    assert abs(share - answer.probability) < 5 * np.sqrt(0.25 / near.sum()) + 0.02


@pytest.mark.parametrize(("text", "query", "expected"), [
    ("mean:y", Mean("y"), lambda d: d["y"].mean()),
    ("share:g:a", Share("g", "a"), lambda d: (d["g"] == "a").mean()),
    ("quantile:y:0.9", Quantile("y", 0.9), lambda d: d["y"].quantile(0.9, "higher")),
    ("coefficient:y ~ x:x", Coefficient("y ~ x", "x"),
        lambda d: np.polyfit(d["x"], d["y"], 1)[0]),
])  # fmt: skip
def test_queries(text: str, query: Any, expected: Callable[[pd.DataFrame], float]) -> None:
    data = _data()
    assert queries.read_query(text) == query
    assert query.of(data) == pytest.approx(expected(data), rel=2e-3)
    answer = ph.verify([data, data], data, text, tolerance=1.0, epsilon=20)
    assert answer.within
    assert answer.query == query.text


def test_weights_are_those_of_the_design() -> None:
    data = _data().assign(w=np.arange(N) % 3)
    assert Mean("y", weights="w").of(data) == pytest.approx(
        np.average(data["y"], weights=data["w"])
    )
    repeated = data.loc[data.index.repeat(data["w"])]
    assert Quantile("y", 0.9, weights="w").of(data) == Quantile("y", 0.9).of(repeated)
    assert Share("g", "a", weights="w").of(data) == pytest.approx((repeated["g"] == "a").mean())


def test_all_rows_of_a_unit_are_in_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(Mean, "of", lambda _, table: seen.append(set(table["home"])) or 5.0)
    data = _data()
    answer = ph.verify(data, data, "mean:y", tolerance=1, epsilon=1, unit="home", blocks=12)
    blocks = seen[1:]  # the first is the synthetic set
    assert sum(len(homes) for homes in blocks) == len(set().union(*blocks)) == N // 2
    assert answer.charge.unit == "home"
    assert any("belong to one home" in sentence for sentence in answer.charge.not_covered)


def test_a_block_that_fails_counts_as_different() -> None:
    """A formula whose term no block has: far, not an error that would tell."""
    data, synthetic = _data(), _data(4)
    data["g"] = "a"
    found = ph.verify(
        synthetic, data, Coefficient("y ~ g", "g[T.b]"), tolerance=0.1, epsilon=50, blocks=20
    )
    assert found.value == pytest.approx(found.reach, abs=20 * found.scale)
    assert not found.within


@pytest.mark.parametrize(("changes", "message"), [
    ({"query": "mean:z"}, "needs the column 'z'"),
    ({"query": "average:y"}, "query must be mean:COLUMN"),
    ({"query": "quantile:y:1.2"}, "p of a quantile must be above 0"),
    ({"query": "quantile:y:most"}, "is no number"),
    ({"query": "quantile:y:0.999"}, "a block must hold at least"),
    ({"query": "coefficient:y ~ x:z"}, "must be estimable from every synthetic set"),
    ({"query": "coefficient:y ~ x:x:forest"}, "must be estimable"),
    ({"tolerance": 0.0}, "tolerance must be"), ({"epsilon": -1.0}, "epsilon must be"),
    ({"reach": 0.05}, "reach must be above the tolerance"), ({"blocks": 5}, "blocks must be"),
    ({"blocks": 5000}, "a block must hold at least 1 records"),
    ({"relation": "swap"}, "relation must be"), ({"unit": "nobody"}, "unit must be a column"),
    ({"data": pd.DataFrame()}, "data must have at least one row"),
])  # fmt: skip
def test_bad_input_is_one_line(changes: dict[str, Any], message: str) -> None:
    given = {"data": _data(), "query": "mean:y", "tolerance": 0.1, "epsilon": 1.0} | changes
    data = given.pop("data")
    refuses(message, ph.verify, _data(), data, given.pop("query"), hidden="\n", **given)


def test_the_ledger_is_charged_before_the_answer(tmp_path: Path) -> None:
    ledger = ph.Ledger(tmp_path / "book.jsonl", budget=1.5, kind="strict", relation="remove")
    data = _data()
    ph.verify(data, data, "mean:y", tolerance=0.1, epsilon=1, ledger=ledger)
    assert ledger.spent == 1.0
    with pytest.raises(BudgetExceeded):
        ph.verify(data, data, "mean:y", tolerance=0.1, epsilon=1, ledger=ledger)
    assert ledger.spent == 1.0


def test_the_command(tmp_path: Path, run: Any) -> None:
    _data().to_csv(tmp_path / "real.csv", index=False)
    _data(9).to_csv(tmp_path / "made.csv", index=False)
    out = tmp_path / "answer.json"
    code, shown = run(
        "verify", "real.csv", "made.csv", "--query", "mean:y", "--tolerance", "0.2",
        "--epsilon", "4", "--json", str(out),
    )[:2]  # fmt: skip
    assert code == 0
    assert "the mean of y" in shown
    assert json.loads(out.read_text())["charge"]["epsilon"] == 4.0


class _Brittle:
    """Fails, or warns, where a block holds the record that it looks for."""

    text, columns, smallest = "the mean of y", ("y",), 1

    def __init__(self, how: str) -> None:
        self.how = how

    def of(self, table: pd.DataFrame) -> float:
        if (table["y"] > 1e6).any():
            if self.how == "raises":
                raise ZeroDivisionError("1e9 is in this block")
            warnings.warn("1e9 is in this block", RuntimeWarning, stacklevel=1)
        return float(table["y"].mean())


@pytest.mark.parametrize("how", ["raises", "warns"])
def test_no_error_and_no_warning_depends_on_a_value(how: str) -> None:
    """An error in a block is an answer without noise: it counts as a block without an estimate."""
    data = _data()
    data.loc[7, "y"] = 1e9
    answer = ph.verify(_data(), data, _Brittle(how), tolerance=0.1, epsilon=1)
    assert abs(answer.value) < 100
    with pytest.raises((ZeroDivisionError, RuntimeWarning)):  # the control: asked without blocks
        _Brittle(how).of(data)


@pytest.mark.parametrize("column", ["y", "g"])
@pytest.mark.parametrize(
    ("read", "entry"), [(pd.isna, Decimal("sNaN")), (str, 10**5000)], ids=["no number", "no text"]
)
def test_an_entry_that_cannot_be_read_is_missing(read: Any, entry: Any, column: str) -> None:
    """Seen: what reading one entry raises ended the verification."""
    data = _data()
    data[column] = data[column].astype(object)
    data.at[7, column] = entry
    ph.verify(_data(), data, "mean:y", tolerance=0.1, epsilon=1)
    with pytest.raises((ArithmeticError, ValueError)):  # the control
        read(entry)


def test_a_sum_past_the_largest_number_says_nothing() -> None:
    data = _data()
    data.loc[:400, "y"] = 1e308
    ph.verify(_data(), data, "mean:y", tolerance=0.1, epsilon=1)


def _blocks_changed(query: Any, data: pd.DataFrame, other: pd.DataFrame) -> int:
    """Blocks whose estimate another table of as many records changes, records dealt alike."""
    types, block = column_types([_data(9)], None, {}), np.random.default_rng(5).integers(8, size=N)
    one, two = [aggregate._by_block(own, query, types, block, 8) for own in (data, other)]
    return int((~np.isclose(one, two, rtol=0, atol=0, equal_nan=True)).sum())


_ODD = {
    "a text": lambda d: d.assign(x=d["x"].astype(object).where(d.index != 7, "unknown")),
    "a text among outcomes": lambda d: d.assign(y=d["y"].astype(object).where(d.index != 7, "")),
    "a new level": lambda d: d.assign(g=d["g"].where(d.index != 7, "A")),
    "a new category": lambda d: d.assign(g=pd.Categorical(d["g"].where(d.index != 7, "A"))),
    "a missing number": lambda d: d.assign(x=d["x"].where(d.index != 7).astype("Float64")),
    "a logical": lambda d: d.assign(x=d["x"].astype(object).where(d.index != 7, True)),
}


@pytest.mark.parametrize("odd", _ODD)
@pytest.mark.parametrize(
    "query", [Coefficient("y ~ x + g", "x"), Coefficient("y ~ x + g", "g[T.b]"), Mean("x")]
)
def test_an_entry_of_another_type_changes_its_own_block_alone(odd: str, query: Any) -> None:
    """Types and levels are the synthetic sets': nothing that one record holds moves two blocks."""
    data = _data()
    assert _blocks_changed(query, data, _ODD[odd](data)) <= 1


@pytest.mark.parametrize("odd", ["a text", "a new category"])
def test_blocks_that_inherit_the_type_of_all_records_are_caught(
    monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """The control: blocks as they are cut from the table."""
    monkeypatch.setattr(aggregate, "coerced", lambda table, _: table)
    data = _data()
    changed = _blocks_changed(Coefficient("y ~ x + g", "x"), data, _ODD[odd](data))
    assert changed > 4


def test_declared_levels_are_read_and_others_are_missing() -> None:
    sets, data = [pd.DataFrame({"g": ["a", "b"], "y": [1.0, 2.0]})], ["a", "c", "b", None, 1, "1"]
    types = column_types(sets, {"g": ph.Nominal(levels=("b", "c", 1))}, {})
    read = coerced(pd.DataFrame({"g": data}), types)["g"]
    assert read.tolist()[1:3] == ["c", "b"]
    assert read.isna().tolist() == [True, False, False, True, False, False]
    assert column_types(sets, {"g": {"kind": "Real"}}, {})["g"] is None
    for given, message in [
        ({"h": ph.Real()}, "types must be of columns"),
        ({"g": "number"}, "types must be kinds"),
        ({"g": ph.Nominal(levels=("1", "01"))}, "must differ as numbers"),
    ]:
        refuses(message, column_types, sets, given, {})


def test_a_share_of_a_level_that_no_synthetic_record_has_is_counted() -> None:
    data = _data().assign(g=["a", "c"] * (N // 2))
    answer = ph.verify(_data(), data, "share:g:c", tolerance=0.2, epsilon=500)
    assert answer.synthetic == 0
    assert answer.value == pytest.approx(0.5, abs=0.05)


def test_dates_are_read_where_they_are_declared() -> None:
    table = _data().assign(day=pd.Timestamp("2020-01-02"))
    with pytest.raises(InvalidInput, match="needs the type of 'day'"):
        ph.verify(table, table, "share:day:2020-01-02", tolerance=0.2, epsilon=1)
    assert ph.verify(table, table, "mean:y", tolerance=1, epsilon=50).within


@pytest.mark.long
def test_the_interval_holds_the_mean_over_blocks_as_often_as_it_says() -> None:
    """Equal records: blocks differ by .3. Bounds of 1e-6; control: 80 % taken for 95 %."""
    data, runs = pd.DataFrame({"y": [5.3] * 200}), 500
    synthetic = pd.DataFrame({"y": [5.0]})
    held = np.zeros(2, dtype=int)
    for _ in range(runs):
        answer = ph.verify(synthetic, data, "mean:y", tolerance=0.2, epsilon=4, blocks=10)
        for place, confidence in enumerate((0.95, 0.8)):
            low, high = answer.interval(confidence)
            held[place] += low <= 0.3 <= high
    low, high = binom.ppf([5e-7, 1 - 5e-7], runs, 0.95)
    assert low <= held[0] <= high
    assert not low <= held[1] <= high

"""What the fuzzers found, each as a case of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, PyhybridError
from pyhybrid.models.formula.design import read_design
from pyhybrid.studies.study import Measured, Size, Study
from tests.normal_draws import FEW_DRAWS
from tests.refusals import refuses

Y = [0, 3, 1, 2, 5, 1, 4, 2]


def released(df: pd.DataFrame, formula: str = "y ~ 1") -> ph.Release:
    return ph.Unweighted(ph.Poisson(formula)).release(df, **FEW_DRAWS)


@pytest.mark.parametrize("values", [
    pd.to_timedelta(Y), pd.IntervalIndex.from_arrays(Y, np.array(Y) + 1),
    pd.to_datetime(Y), np.array(Y) + 1j,
], ids=["timedelta", "interval", "dates", "complex"])  # fmt: skip
def test_predictors_that_are_no_numbers_are_named_without_their_values(values: Any) -> None:
    df = pd.DataFrame({"y": Y, "x": values})
    refuses("x", read_design, "y ~ 0 + x", df, hidden=["1970"])


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "Int8", pd.SparseDtype("int64", 0)], ids=str)
def test_outcomes_in_extension_dtypes_keep_them_and_are_read_back(
    dtype: Any, tmp_path: Path
) -> None:
    """Sparse ones were written as they are, read as text, and the release refused as changed."""
    df = pd.DataFrame({"y": pd.Series(Y).astype(dtype)})
    made = released(df)
    assert made.synthetic[0]["y"].dtype == df["y"].dtype
    made.save(tmp_path / "out", report=False)
    assert ph.Release.load(tmp_path / "out").charge == made.charge


@pytest.mark.parametrize("values", [[10**30] * 8, [1j] * 8], ids=["10^30", "complex"])
def test_what_parquet_cannot_hold_is_refused_and_nothing_is_left(
    values: list[Any], tmp_path: Path
) -> None:
    release = released(pd.DataFrame({"y": Y, "x": values}))
    refuses("save as csv", release.save, tmp_path / "out", file_format="parquet", report=False)
    assert list(tmp_path.iterdir()) == []


def test_dates_with_a_zone_come_back_from_csv(tmp_path: Path) -> None:
    zoned = pd.date_range("2020-10-24", periods=8, tz="Europe/London")  # the clock changes on 25th
    df = pd.DataFrame({"y": Y, "d": zoned, "i": pd.IntervalIndex.from_arrays(Y, np.add(Y, 1))})
    released(df).save(tmp_path / "out", report=False)
    again = ph.Release.load(tmp_path / "out").synthetic[0]
    pd.testing.assert_series_equal(again["d"], df["d"], check_freq=False)
    assert again["i"].tolist() == [str(each) for each in df["i"]]


def _save_release(df: pd.DataFrame, folder: Path) -> None:
    first = ph.LipschitzWeighted(ph.Poisson("y ~ g"), scale=0.9, shift=0.05)
    steps = ph.SequentialSynthesis([first, ph.Unweighted(ph.NormalRegression("x ~ g"))])
    steps.release(df, seed=1, **FEW_DRAWS).save(folder, report=False)


def _save_study(_: pd.DataFrame, folder: Path) -> None:
    size, own = Size(replicates=2, options={}), ph.studies.STUDIES["A"]

    def measure(setting: str, random: Any, options: Any) -> Any:
        return [Measured("all", "mean", float(random.generator("mean").normal()))]

    study = Study(name=own.name, title="t", source="[S22]", settings=("one", "two"),
                  measure=measure, quick=size, paper=size)  # fmt: skip
    ph.studies.run_study(study, out=folder, engine="embedded")


def _use_calibration(df: pd.DataFrame, folder: Path) -> None:
    loaded = ph.mechanisms.Calibration.load(folder)
    bound = loaded.model.bind(df)
    alpha = loaded.weights(bound)
    assert ((alpha >= 0) & (alpha <= 1)).all()
    assert 0 <= loaded.drift(bound).share_outside <= 1


SAVED: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "release": (_save_release, lambda df, folder: repr(ph.Release.load(folder))),
    "calibration": (
        lambda df, folder: ph.calibrate(
            ph.NegativeBinomial("y ~ g"), df, epsilon=4, n_draws=5, holds_no_released_record=True,
            seed=1, **FEW_DRAWS,
        ).save(folder),
        _use_calibration,
    ),
    "study": (_save_study, lambda df, folder: ph.studies.load_study(folder).summary),
}  # fmt: skip
"""What is stored: how it is written, and how it is read."""


def _spots(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in node if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from _spots(node[key])


def _damaged(path: Path, rng: np.random.Generator) -> Iterator[bytes]:
    """Empty, cut, a byte or an entry changed; of JSON one value changed or taken out, anywhere."""
    content = path.read_bytes()
    yield from (b"", content[: len(content) // 2], content + b"\n1,2,3,4,5,6,7,8")
    for value in (b"0", b",", b"\n", b"-2e55"):
        place = int(rng.integers(len(content) + 1))
        yield content[:place] + value + content[place + 1 :]
    for value in ([1], False, "", 1.8e16, -1, None, {}) if path.suffix == ".json" else ():
        whole = json.loads(content)
        spots = list(_spots(whole))
        if spots:
            node, key = spots[rng.integers(len(spots))]
            node[key] = value
            yield json.dumps(whole).encode()
            if isinstance(node, dict):
                del node[key]
                yield json.dumps(whole).encode()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SAVED)
def test_damaged_folders_give_a_result_or_a_typed_error(kind: str, tmp_path: Path) -> None:
    df = pd.DataFrame({
        "y": Y, "x": [0.5, 1.25, 2.0, 0.1, 3.0, 0.7, 1.1, 0.2], "g": pd.Categorical(["a", "b"] * 4),
        "d": pd.date_range("2020-01-01", periods=8),
    }, index=pd.Index([f"p{i}" for i in range(8)], name="label"))  # fmt: skip
    (save, use), rng = SAVED[kind], np.random.default_rng(1)
    save(df, tmp_path / "saved")
    use(df, tmp_path / "saved")
    refused = 0
    for path in [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]:
        content = path.read_bytes()
        for damaged in _damaged(path, rng):
            path.write_bytes(damaged)
            try:
                use(df, tmp_path / "saved")
            except PyhybridError:
                refused += 1
            path.write_bytes(content)
    assert refused > 5


@pytest.mark.parametrize("epsilon", [-1e16, float("nan"), "1", None, {"a": 1}])
def test_an_entry_of_impossible_cost_gives_no_budget_back(epsilon: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    answers = [
        ph.primitives.laplace_counts([0, 1, 1], n_categories=2, relation="replace", epsilon=e)
        for e in (0.5, 5)
    ]
    ph.Ledger(path, budget=1, kind="strict", relation="replace").add(answers[0])
    contents = [json.loads(line) for line in path.read_text().splitlines()]
    contents[1]["charge"]["epsilon"] = epsilon
    path.write_text("".join(json.dumps(content) + "\n" for content in contents))
    ledger = ph.Ledger(path)
    with pytest.raises(InvalidInput, match="entry 1"):
        _ = ledger.left
    refuses("entry 1", ledger.add, answers[1])


def test_sets_of_noisy_marginals_have_one_dtype_whatever_noise_draws(tmp_path: Path) -> None:
    """Missing values that noise draws in one set alone; whole numbers that int8 does not hold."""
    domain = {"y": ph.mechanisms.ColumnDomain(levels=(0,), bins=(1, 10, 1e6), missing=True)}
    for held in (np.array([0, 1], dtype=np.int8), pd.array([0, 1], dtype="Int8")):
        release = ph.NoisyMarginals(domain=domain, epsilon=1.0).release(
            pd.DataFrame({"y": held, "x": [1, 2]}), n_synthetic=12
        )
        assert len({table["y"].dtype for table in release.synthetic}) == 1
        release.save(tmp_path / str(held.dtype), report=False)
        assert len(ph.Release.load(tmp_path / str(held.dtype)).synthetic) == 12

"""Strict releases of distinct rows: what one record can change is within the charge."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines import ConvergenceRule
from pyhybrid.fitting.session import open_session
from pyhybrid.sources import by_formula, synthesize_by_formula
from pyhybrid.sources.rows import CountedRows, count_rows
from tests.sources.test_by_formula import POISSON, READ, censored, table
from tests.sources.test_counting import parquet

pytestmark = [pytest.mark.normal_draws, pytest.mark.usefixtures("opendp")]
ALONE = ph.Poisson("visits ~ 1")
ON_GRID = ph.Censored(ALONE, inner=ph.Unweighted(ALONE), center={"beta": [1.0]}, epsilon=0.5)


def log_density(counted: CountedRows, *, numbers: bool = True) -> Any:
    """Of the exact posterior of distinct rows, with their numbers or each as one record."""
    bound = by_formula._bound(ON_GRID, counted)
    session = open_session(bound if numbers else replace(bound, times=None), seed=1)
    exact = ON_GRID.fit(session).fit.exact
    assert exact is not None
    return exact.log_density


def test_a_cap_holds_for_each_of_the_records_alike(tmp_path: Path) -> None:
    """A record more of a row that is there, or of a new one, moves the log posterior of all rows by
    twice the cap at most, from end to end. One cap for all that are alike is another posterior, and
    a cap that all of a row leave is broken."""
    counted = count_rows(parquet(table(), tmp_path / "survey"), ["visits"], outcomes=["visits"])
    whole, cap = log_density(counted), 0.25
    every = open_session(ON_GRID.bind(counted.records), seed=1)
    np.testing.assert_allclose(whole, ON_GRID.fit(every).fit.exact.log_density, atol=1e-8)  # type: ignore[union-attr]
    one = np.eye(len(counted.table), dtype=np.int64)[[0, int(counted.times.argmax())]]
    neighbors = [replace(counted, times=counted.times + own) for own in one]
    far = pd.concat([counted.table, pd.DataFrame({"visits": [400]})], ignore_index=True)
    neighbors.append(CountedRows(table=far, times=np.append(counted.times, 1)))
    for neighbor in neighbors:
        assert np.ptp(log_density(neighbor) - whole) <= 2 * cap + 1e-9
    assert np.ptp(log_density(neighbors[-1]) - whole) > 1.9 * cap, "it meets the cap"
    assert np.ptp(log_density(counted, numbers=False) - whole) > 2 * cap, "the control: no numbers"
    gone = replace(counted, times=np.where(one[1] > 0, 1, counted.times))
    assert np.ptp(log_density(gone) - whole) > 2 * cap, "the control: all that are alike leave"


def declared(levels: bool) -> ph.Censored:
    model = ph.Categorical("rating ~ age", levels=(0, 1, 2, 3, 4)) if levels else POISSON
    center = {"beta": np.zeros((2, 4)).tolist()} if levels else {"beta": [0.0, 0.05, -0.4, 0.0]}
    return ph.Censored(model, inner=ph.Unweighted(model), center=center, epsilon=1)


@pytest.mark.parametrize("levels", [False, True], ids=["counts", "levels"])
def test_one_record_changes_no_form_and_no_word(levels: bool, tmp_path: Path) -> None:
    """The last record of a level, a value that no other has, or a dtype of all: nothing of the
    public folder but synthetic values says so, nor does the charge."""
    df, name = table(), "rating" if levels else "visits"
    one = df.copy()
    at = df.index[df[name] == df[name].max()][0] if levels else 0
    one.loc[at, name] = 1 if levels else 60
    if levels:
        df = df[(df[name] < 4) | (df.index == at)]  # its last record
        one = one.loc[df.index]
    else:
        one[name] = one[name].astype(float)
    said = []
    for place, own in enumerate((df, one)):
        folder = parquet(own, tmp_path / f"survey{place}")
        out = tmp_path / f"out{place}"
        made = synthesize_by_formula(folder, declared(levels), out=out, seed=4, strict=True)
        assert (made.charge.kind, made.charge.epsilon) == ("strict", 1.0)
        files = {path.name: path.read_text() for path in (out / "public").glob("*.*")}
        first = pd.read_parquet(out / "public" / "synthetic_1")
        said.append((files, first.dtypes.to_dict(), first.drop(columns=name).sort_values(
            [*READ] if not levels else ["age"]).reset_index(drop=True)))  # fmt: skip
    (files, kinds, kept), (files_of_one, kinds_of_one, kept_of_one) = said
    assert files == files_of_one
    assert kinds == kinds_of_one
    pd.testing.assert_frame_equal(kept, kept_of_one)
    if not levels:
        local = synthesize_by_formula(folder, ph.Unweighted(POISSON), out=tmp_path / "local")
        assert local.sample(10)[name].dtype == float, "the control: the dtype of the data"


def calibrated(df: pd.DataFrame, **changes: Any) -> ph.Censored:
    how = {"epsilon": 1, "holds_no_released_record": True, "seed": 2, **changes}
    return ph.Censored(calibration=ph.calibrate(POISSON, df, **how))


@pytest.mark.long
def test_a_calibration_is_held_against_all_records(tmp_path: Path) -> None:
    """Distinct rows count as often as they occur, for what is shared and for drift."""
    folder = parquet(table(), tmp_path / "survey")
    df = count_rows(folder, READ, outcomes=["visits"]).records
    others = table(9)
    strict = calibrated(others)
    made = synthesize_by_formula(folder, strict, out=tmp_path / "out", seed=2, strict=True)
    whole = strict.release(df, seed=2)
    assert made.charge.as_dict() == whole.charge.as_dict()
    counted = count_rows(folder, READ, outcomes=["visits"])
    bound = by_formula._bound(strict, counted)
    assert strict.calibration is not None
    drift, of_all = (strict.calibration.drift(own) for own in (bound, POISSON.bind(df)))
    assert drift.share_outside == pytest.approx(of_all.share_outside, abs=1e-12)
    assert drift.censored_now == pytest.approx(of_all.censored_now, abs=1e-12)
    assert drift.distance == pytest.approx(of_all.distance, rel=1e-6)
    same = calibrated(df)
    with pytest.raises(InvalidInput, match="a strict release lacks a calibration that can be"):
        synthesize_by_formula(folder, same, out=tmp_path / "no", strict=True)
    assert not (tmp_path / "no").exists()
    with pytest.warns(UserWarning, match="asymptotic local"):
        local = synthesize_by_formula(folder, same, out=tmp_path / "local", seed=2)
    assert local.charge.kind == "asymptotic local"


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "weights by budget": (lambda: ph.BudgetWeighted(POISSON), "lacks a cap and a center"),
    "levels that are read": (
        lambda: ph.Censored(m := ph.Categorical("rating ~ age"), inner=ph.Unweighted(m),
                            epsilon=1, center={"beta": np.zeros((2, 4)).tolist()}),
        "lacks",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_strict_is_refused_before_a_fit(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parquet(table(), tmp_path / "survey")
    monkeypatch.setattr(ph.mechanisms.PseudoPosteriorMechanism, "charged_from", None)
    with pytest.raises(InvalidInput, match=REFUSED[what][1]):
        synthesize_by_formula(folder, REFUSED[what][0](), out=tmp_path / "out", strict=True)
    assert os.listdir(tmp_path) == ["survey"]


@pytest.mark.long
def test_a_fit_that_is_not_strict_is_neither_charged_nor_written(tmp_path: Path) -> None:
    folder = parquet(table(), tmp_path / "survey")
    ledger = ph.Ledger(tmp_path / "l.jsonl", budget=5, kind="strict", relation="remove")
    never: Any = {"rule": ConvergenceRule(rhat=1e-9), "on_not_converged": "warn"}
    own, out = censored(check_modes=False), tmp_path / "out"
    with (
        pytest.warns(UserWarning, match="did not converge"),
        pytest.raises(SamplingError, match="nothing is released"),
    ):
        synthesize_by_formula(folder, own, out=out, strict=True, ledger=ledger, **never)
    assert not ledger.entries
    assert sorted(os.listdir(tmp_path)) == ["l.jsonl", "survey"]


def test_the_command_is_strict_with_a_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str, str]]
) -> None:
    folder, last = parquet(table(), tmp_path / "survey"), parquet(table(9), tmp_path / "last")
    monkeypatch.setattr("pyhybrid.sources.rows.MOST_ROWS", 5999)
    asked = ["synthesize", folder, "--formula", "visits ~ age + region", "--model", "poisson",
             "--reference", f"{last}/*0.parquet", "--out", str(tmp_path / "out")]  # fmt: skip
    code, _, said = run(*asked)
    assert (code, "--holds-no-released-record" in said) == (2, True), said
    code, shown, said = run(*asked, "--holds-no-released-record", "--epsilon", "2")
    assert code == 0, said
    assert "strict" in shown
    charge = json.loads((tmp_path / "out" / "public" / "charge.json").read_text())
    assert (charge["kind"], charge["epsilon"]) == ("strict", 2.0)

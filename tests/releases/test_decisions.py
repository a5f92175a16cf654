"""Columns that are not synthesized: refused in public/ until a decision is made by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded
from pyhybrid.releases.column_decisions import Decisions
from tests.fits import fit_options
from tests.refusals import fails, refuses
from tests.releases.test_ledger import local_ledger

N = 60
FAST = fit_options(chains=4, warmup=300, draws=200, seed=1, refits=0)


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    y = rng.poisson(9, N)
    surnames = [f"{a}{b}" for a in ("Ander", "Berg", "Carl", "Dahl") for b in ("son", "man", "en")]
    return pd.DataFrame({
        "y": y, "surname": rng.choice(surnames, N),
        "person_id": np.repeat(1000 + 7 * np.arange(N // 2), 2), "source": 2 * y + 1,
        "age": rng.integers(18, 80, N),
    })  # fmt: skip


@pytest.fixture(scope="module")
def release() -> ph.Release:
    return ph.Unweighted(ph.Poisson("y ~ 1")).release(_table(), n_synthetic=2, **FAST)


def test_columns_that_name_people_or_give_values_away_are_refused(
    release: ph.Release, tmp_path: Path
) -> None:
    """As it was, names, ids and the column that the outcome was made of went into public/."""
    hidden = ("'age'", "Anderson")  # the control, and a value
    text = refuses("must be safe", release.save, tmp_path / "out", report=False, hidden=hidden)
    assert not (tmp_path / "out").exists()
    for name in ("'surname'", "'person_id'", "'source'", "(drop)", "(keep)", "(ids)"):
        assert name in text


def test_each_decision_does_what_it_says(release: ph.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", drop=["source"], keep="surname", ids=["person_id"], report=False)
    table, made = _table(), pd.read_csv(tmp_path / "out/public/synthetic_1.csv")
    assert list(made.columns) == ["y", "surname", "person_id", "age"]
    assert made["surname"].tolist() == table["surname"].tolist()
    assert not set(made["person_id"]) & set(table["person_id"])
    pairs = pd.DataFrame({"one": made["person_id"], "other": table["person_id"]})
    assert len(pairs.drop_duplicates()) == N // 2, "equal ones stay equal"
    assert not made["person_id"].is_monotonic_increasing
    again = pd.read_csv(tmp_path / "out/public/synthetic_2.csv")
    assert again["person_id"].tolist() == made["person_id"].tolist()
    statement = (tmp_path / "out/public/privacy_statement.md").read_text()
    assert "left out of the released table: source" in statement
    assert "equal ones by equal numbers: person_id" in statement
    loaded = ph.Release.load(tmp_path / "out")
    assert loaded.decisions == Decisions(drop=("source",), keep=("surname",), ids=("person_id",))
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "out/public").iterdir():
        assert (tmp_path / "again/public" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("decisions", "message"), [
    ({"drop": "none"}, "drop must name columns of the data: 'none' is none"),
    ({"keep": "y"}, "keep must not name synthesized columns"),
    ({"keep": "age", "drop": ["age"]}, "must be in one of drop, keep and ids"),
    ({"ids": [3]}, "ids must be names of columns"),
    ({"ids": "index"}, "row labels can be dropped or kept"),
])  # fmt: skip
def test_wrong_decisions(decisions: Any, message: str, release: ph.Release, tmp_path: Path) -> None:
    decided = {"drop": ["surname", "person_id", "source"]}
    for name, own in decisions.items():
        decided[name] = [*decided.get(name, []), *([own] if isinstance(own, str) else own)]
    refuses(message, release.save, tmp_path / "out", **decided, report=False)
    assert not (tmp_path / "out").exists()


def test_missing_identifiers_stay_missing_and_labels_can_be_dropped(tmp_path: Path) -> None:
    who = pd.Index([f"person {k * k}" for k in range(N)], name="who")
    table = _table()[["y", "person_id"]].set_index(who)
    table["person_id"] = table["person_id"].astype("Int64")
    table.iloc[3, 1] = pd.NA
    release = ph.Unweighted(ph.Poisson("y ~ 1")).release(table, **FAST)
    how = {"ids": "person_id", "report": False}
    refuses("'who': it looks like an identifier", release.save, tmp_path / "out", **how)
    release.save(tmp_path / "out", drop="who", **how)
    made = ph.Release.load(tmp_path / "out").synthetic[0]
    assert made.index.equals(pd.RangeIndex(N))
    assert made["person_id"].isna().tolist() == table["person_id"].isna().tolist()
    assert b"person 9" not in (tmp_path / "out/public/synthetic_1.csv").read_bytes()


def test_on_the_command_line_before_any_fit(tmp_path: Path, run: Any, refused: Any) -> None:
    _table().to_csv(tmp_path / "data.csv", index=False)
    common = ("synthesize", "data.csv", "--formula", "y ~ 1", "--model", "poisson", "--mechanism",
              "unweighted", "--out", "out", "--fit",
              "engine=embedded,warmup=300,draws=200,seed=1", "--drop", "source", "--keep",
              "surname")  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyhybrid.fitting.session.FitOptions.session", None)  # not reached
        error = refused(*common)
    assert "'person_id': it may identify persons" in error
    assert "source" not in error
    assert run(*common, "--id", "person_id")[0] == 0
    assert "source" not in pd.read_csv("out/public/synthetic_1.csv").columns
    run_record = json.loads(Path("out/confidential/run.json").read_text())
    assert run_record["decisions"] == {
        "drop": ["source"], "keep": ["surname"], "ids": ["person_id"]
    }  # fmt: skip


def test_sequences_are_looked_at_too_and_their_steps_are_not_saved(tmp_path: Path) -> None:
    table = _table()
    table["z"] = np.random.default_rng(4).poisson(4, N)
    table["twice"] = 2 * table["z"]
    steps = [ph.Unweighted(ph.Poisson(f"{c} ~ 1")) for c in ("y", "z")]
    sequence = ph.SequentialSynthesis(steps).release(table, **FAST)
    assert set(sequence.exposed) == {"surname", "person_id", "source", "twice"}
    ledger = local_ledger(tmp_path / "l", sequence.charge.epsilon - 0.01)
    kept = {"ledger": ledger, "report": False, "keep": [*sequence.exposed]}
    fails(BudgetExceeded, "", sequence.save, tmp_path / "out", **kept)
    for part in sequence.parts:
        assert part.charge.epsilon < sequence.charge.epsilon
        assert not hasattr(part, "synthetic")
        assert not hasattr(part, "save")
        refuses("charges from releases only: give the whole", ledger.add, part)
    assert ledger.entries == ()
    assert [path.name for path in tmp_path.iterdir()] == ["l"]

"""Charge, tables and parts belong together: what was changed since it was made goes nowhere."""

import ast
import json
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import ReleaseRecord, content_digest, tables_digest
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import fails, refuses
from tests.releases.test_ledger import answer, local_ledger

OPTIONS = fit_options(chains=2, warmup=150, draws=100, rule=ANY_DRAWS)
Change = Callable[[ph.Release], ph.Release]


def people(seed: int = 1, n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"visits": rng.poisson(4, n), "age": rng.integers(18, 90, n)})
    table["income"] = rng.normal(30, 9, n).round(2)
    return table.assign(region=pd.Categorical(rng.choice(["a", "b", "c"], n)))


def release_of(table: pd.DataFrame, **options: Any) -> ph.Release:
    return ph.Unweighted(ph.Poisson("visits ~ 1")).release(table, n_synthetic=2,
                                                           **{**OPTIONS, **options})  # fmt: skip


@pytest.fixture(scope="module")
def made() -> ph.Release:
    return release_of(people())


@pytest.fixture
def release(made: ph.Release) -> ph.Release:
    """One whose tables may be written to."""
    return replace(made, synthetic=[table.copy() for table in made.synthetic])


@pytest.fixture(scope="module")
def sequence() -> ph.Release:
    steps = [ph.Unweighted(ph.Poisson("visits ~ 1")), ph.Unweighted(ph.Poisson("age ~ visits"))]
    return ph.SequentialSynthesis(steps).release(people(), n_synthetic=2, **OPTIONS)


def as_it_was(sequence: ph.Release, place: int = 0) -> ph.Release:
    """A part as parts once were: all tables, and the charge of one column."""
    own = {f.name: getattr(sequence.parts[place], f.name) for f in fields(ReleaseRecord)}
    own["confidential"] = replace(own["confidential"], data=sequence.data)
    return ph.Release(**own, synthetic=sequence.synthetic)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_step_of_a_sequence_is_not_saved(
    sequence: ph.Release, file_format: str, tmp_path: Path
) -> None:
    ledger = local_ledger(tmp_path / "l", sequence.charge.epsilon - 0.01)
    fails(BudgetExceeded, "", sequence.save, tmp_path / "out", ledger=ledger, report=False)
    for part in sequence.parts:
        assert part.charge.epsilon < sequence.charge.epsilon
        assert not hasattr(part, "synthetic")
        with pytest.raises(InvalidInput, match="a whole release: this is the step of"):
            part.save(tmp_path / "out", ledger=ledger, file_format=file_format)
        refuses("charges from releases only: give the whole", ledger.add, part)
    for how in (as_it_was(sequence), replace(sequence, parts=(), charge=sequence.parts[0].charge)):
        refused = pytest.raises(InvalidInput, match=r"one that a mechanism made|as its mechanism")
        with refused:
            how.save(tmp_path / "out", file_format=file_format, report=False)
        with refused:
            how.with_unsynthesized(how.synthetic[0])
        with refused:
            ledger.add(how)
    assert ledger.entries == ()
    assert [path.name for path in tmp_path.iterdir()] == ["l"]


def test_the_check_sees_a_step_that_carries_all_tables(
    sequence: ph.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without seals the part of old is written at the price of its column: the hole itself."""
    monkeypatch.setattr(ph.Release, "check_seal", lambda _: None)
    ledger = local_ledger(tmp_path / "l", sequence.charge.epsilon - 0.01)
    as_it_was(sequence).save(tmp_path / "out", ledger=ledger)
    assert ledger.spent < sequence.charge.epsilon
    columns = pd.read_csv(tmp_path / "out/public/synthetic_1.csv")
    assert (columns["age"] == sequence.synthetic[0]["age"]).all()


def test_tables_made_so_far_are_not_handed_to_a_release(made: ph.Release) -> None:
    """A cousin: tables with other columns synthesized before are for steps of a sequence only."""
    assert "given" not in ph.Unweighted.release_from.__annotations__
    assert "given" not in ph.Unweighted.release.__annotations__


def edited(release: ph.Release) -> ph.Release:
    release.synthetic[0].loc[3, "visits"] = 99
    return release


def with_column(release: ph.Release) -> ph.Release:
    release.synthetic[1]["wealth"] = 1.0
    return release


def with_other_values(release: ph.Release) -> ph.Release:
    release.synthetic[1]["income"] = people(2)["income"]
    return release


def with_second_table(release: ph.Release) -> ph.Release:
    release.synthetic.append(people(3))
    return release


def shuffled(release: ph.Release) -> ph.Release:
    release.synthetic[0] = release.synthetic[0].iloc[::-1]
    return release


def strictly(release: ph.Release) -> ph.Release:
    cheap = PrivacyCharge.strict(mechanism=release.charge.mechanism, epsilon=0.1, relation="remove",
                                 n_synthetic=2)  # fmt: skip
    return replace(release, charge=cheap)


CHANGES: dict[str, tuple[Change, str]] = {
    "a kind": (
        lambda r: replace(r, charge=replace(
            r.charge, kind="strict", accounting="lipschitz", delta=0.0, epsilon=1e9)), "charge",
    ),
    "a charge of another's": (strictly, "charge"),
    "an epsilon": (
        lambda r: replace(r, charge=replace(r.charge, epsilon=r.charge.epsilon + 1)), "charge",
    ),
    "a value": (edited, "tables"),
    "a value of a column that stays": (with_other_values, "tables"),
    "a column": (with_column, "tables"),
    "a table": (with_second_table, "tables"),
    "the order": (shuffled, "tables"),
    "other tables": (lambda r: replace(r, synthetic=[people(), people()]), "tables"),
    "settings": (lambda r: replace(r, settings={**r.settings, "cap": 1}), "settings"),
    "what was synthesized": (lambda r: replace(r, synthesized=("visits", "age")), "settings"),
    "what must be decided": (lambda r: replace(r, exposed={"income": "it is known"}), "decisions"),
    "what was decided": (
        lambda r: replace(r, decisions=Decisions.of((), ("income",), ())), "decisions",
    ),
    "the name": (lambda r: replace(r, identifier="0" * 32), "identifier"),
    "the data": (
        lambda r: replace(r, confidential=replace(r.confidential, data=None)), "confidential part",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_release_is_neither_saved_nor_charged(
    change: str, release: ph.Release, tmp_path: Path
) -> None:
    make, what = CHANGES[change]
    release.check_seal()
    changed = make(release)
    for kind in ("asymptotic local", "strict"):
        ledger = ph.Ledger(tmp_path / kind, budget=1e6, kind=kind, relation="remove")
        refuses(f"as its mechanism made it: its {what} changed", ledger.add, changed)
        with pytest.raises(InvalidInput, match=f"its {what} changed since"):
            changed.save(tmp_path / "out", ledger=ledger, report=False)
        assert ledger.entries == ()
    refuses(f"its {what} changed since", changed.save, tmp_path / "out", report=False)
    refuses(f"its {what} changed since", changed.with_unsynthesized, people())
    assert not (tmp_path / "out").exists()


def test_the_check_sees_a_charge_that_was_made_strict(
    release: ph.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without seals a strict ledger takes a local release for 0.1: the hole itself."""
    monkeypatch.setattr(ph.Release, "check_seal", lambda _: None)
    ledger = ph.Ledger(tmp_path / "l", budget=1, kind="strict", relation="remove")
    assert ledger.add(strictly(release)).epsilon == 0.1
    assert release.charge.epsilon > 1


def test_text_of_other_columns_comes_back_under_a_new_seal(
    release: ph.Release, tmp_path: Path
) -> None:
    text = people().astype(str)
    restored = release.with_unsynthesized(text)
    restored.check_seal()
    ledger = local_ledger(tmp_path / "l")
    ledger.add(release)
    restored.save(tmp_path / "out", ledger=ledger, report=False)
    assert len(ledger.entries) == 1, "it is the same release"
    with pytest.raises(InvalidInput, match="no columns but those of the release: 'wealth'"):
        release.with_unsynthesized(people().assign(wealth=1.0))
    fewer = release.with_unsynthesized(people().drop(columns="income"))
    assert "income" not in fewer.synthetic[0]


def test_a_saved_release_that_was_edited_is_not_read(release: ph.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out", report=False)
    run, table = tmp_path / "out/confidential/run.json", tmp_path / "out/public/synthetic_2.csv"
    whole, rows = run.read_text(), table.read_text().splitlines(keepends=True)
    content = json.loads(whole)
    cheaper = {**content["charge"], "epsilon": 0.2, "bound": 0.05, "kind": "strict"}
    cheaper |= {"accounting": "lipschitz", "delta": 0.0}
    run.write_text(json.dumps({**content, "charge": cheaper}))
    refuses("as it was saved", ph.Release.load, tmp_path / "out")
    run.write_text(whole)
    assert ph.Release.load(tmp_path / "out").content_digest() == release.content_digest()
    table.write_text("".join([rows[0], "7777" + rows[1][rows[1].index(",") :], *rows[2:]]))
    refuses("as it was saved", ph.Release.load, tmp_path / "out")


_WHOLE, _GAPS, _TEXTS = [3, 1, 2] * 4, [3, None, 2] * 4, ["a", None, "b"] * 4
_SAME_VALUES = {
    "whole": [pd.Series(_WHOLE, dtype=own) for own in ("int64", "int8", "float64", "Int64", object)]
    + [pd.Series(_WHOLE).astype("category")],
    "gaps": [pd.Series(_GAPS, dtype=own) for own in ("float64", "Int64", object)],
    "texts": [pd.Series(_TEXTS, dtype=own) for own in (None, object, "string", "category")]
    + [pd.Series(["a", np.nan, "b"] * 4, dtype=object)],
    "logicals": [pd.Series([True, None] * 6, dtype=own) for own in (object, "boolean")],
}


@pytest.mark.parametrize("which", _SAME_VALUES)
def test_digests_name_values_and_not_dtypes(release: ph.Release, which: str) -> None:
    """Of the ledger's entry and of its data; the control: the digest of version 0.2 named them."""

    def digest(how: Any, values: pd.Series) -> str:
        return str(how(release.charge, {}, [pd.DataFrame({"y": values})], ["y"]))

    same = _SAME_VALUES[which]
    assert len({digest(content_digest, each) for each in same}) == 1
    assert len({data_mark(pd.DataFrame({"y": each})).columns["y"] for each in same}) == 1
    other = same[0].astype(object).where(np.arange(12) > 0, same[0].iloc[1])
    assert digest(content_digest, other) != digest(content_digest, same[0])
    if which in ("whole", "gaps"):
        assert len({digest(partial(content_digest, earlier=True), each) for each in same}) > 1


def test_a_release_that_version_0_2_saved_is_known(release: ph.Release, tmp_path: Path) -> None:
    """Its digests, in its folder and in a ledger, named dtypes."""
    earlier = release.content_digest(earlier=True)
    assert earlier != release.content_digest()
    ledger = ph.Ledger(tmp_path / "l", budget=1e6, kind=release.charge.kind,
                       relation=release.charge.relation)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pyhybrid.releases.release.content_digest",
            lambda *content, earlier: content_digest(*content, earlier=True),
        )
        release.save(tmp_path / "out", report=False, ledger=ledger)
    run = json.loads((tmp_path / "out/confidential/run.json").read_text())
    assert run["content_sha256"] == ledger.entries[0].content_sha256 == earlier
    again = ph.Release.load(tmp_path / "out")
    assert ledger.add(again).number == 1
    assert len(ledger.entries) == 1


def test_releases_cross_processes_with_their_seals(release: ph.Release) -> None:
    import pickle

    pickle.loads(pickle.dumps(release)).check_seal()


def test_a_changed_answer_is_not_charged(tmp_path: Path) -> None:
    ledger = ph.Ledger(tmp_path / "l", budget=9, kind="strict", relation="replace")
    made = answer()
    made.value[0] = 7
    for changed in (
        made, replace(answer(), value=np.array([9, 9])), replace(answer(), sensitivity=1.0),
        replace(answer(), identifier="0" * 32),
    ):  # fmt: skip
        refuses("as its primitive made it", ledger.add, changed)
    with pytest.raises(InvalidInput, match="charge of an answer must be as its primitive made it"):
        replace(answer(), charge=replace(answer().charge, relation="remove"))
    assert ledger.entries == ()
    assert ledger.add(answer()).epsilon == 1


def test_a_charge_fits_its_seal_only_as_it_was_made(release: ph.Release) -> None:
    charge = release.charge
    assert charge.is_sealed
    for field in ("epsilon", "safety_factor"):
        free: dict[str, Any] = {"bound": 0.0, "loss_range": 0.0, "range_failing": None, "mu": 0.0}
        raised = replace(charge, **{**free, field: getattr(charge, field) + 100.0})
        assert not raised.is_sealed
    assert charge.mu is not None
    for change in ({"mu": charge.mu / 2}, {"loss_range": 0.0}, {"mu_standard_error": 0.0}):
        assert not replace(charge, **change).is_sealed, "what a ledger adds is under the seal"
    by_hand = PrivacyCharge.from_dict(charge.as_dict())
    assert by_hand == charge
    assert not by_hand.is_sealed
    assert not ph.arrays.compose_charges([charge, by_hand], mechanism="both").is_sealed
    assert ph.arrays.compose_charges([charge, charge], mechanism="both").is_sealed


def test_seals_are_set_where_things_are_made_and_nowhere_else() -> None:
    """A reviewer's list: whoever seals answers for what is sealed."""
    root, found = Path(ph.__file__).parent, set()
    for path in root.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "sealed" in text else ():
            if isinstance(node, ast.Attribute) and node.attr == "sealed":
                found.add(path.relative_to(root).with_suffix("").as_posix())
    assert found == {
        "mechanisms/accounting/charge",
        "mechanisms/censored/private_calibration", "mechanisms/sequential",
        "mechanisms/weighted/weight_maps", "privacy/charge", "privacy/composition",
        "releases/folder", "releases/release",
        "tables/synthesis",
    }  # fmt: skip


def test_columns_of_any_dtype_are_marked_and_sealed() -> None:
    n = 6
    odd: dict[str, Any] = {
        "lists": [[1], [2], [3], None, [4], [5]], "mixed": [1, "a", None, 2.5, b"x", (1, 2)],
        "zone": pd.date_range("2026", periods=n, tz="UTC"), "span": pd.interval_range(0, n),
        "month": pd.period_range("2026", periods=n, freq="M"), "complex": np.arange(n) * 1j,
        "sparse": pd.arrays.SparseArray([0, 3, 1, 2, 0, 0]),
        "missing": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"), "huge": [2**70, 1, 2, 3, 4, 5],
        "ends": [np.inf, -np.inf, np.nan, 0, -0.0, 1],
    }  # fmt: skip
    for name, values in odd.items():
        table = pd.DataFrame({name: values})
        changed = table.iloc[[1, 0, 2, 3, 4, 5]].reset_index(drop=True)
        assert data_mark(table) == data_mark(changed), "the order of the records tells nothing"
        assert data_mark(table) != data_mark(table.iloc[1:]), name
        assert tables_digest([table]) != tables_digest([changed]), name

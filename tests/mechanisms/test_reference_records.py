"""A calibration on the records that are released is never strict; on others it is."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms.accounting.charge import OWNERS_WORD
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.censored.center import more_alike_than_by_chance, reference_records
from pyhybrid.reports.checklist import review_checklist
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import refuses

MODEL = ph.Poisson("y ~ x + g")
OPTIONS = fit_options(chains=2, warmup=150, draws=100, rule=ANY_DRAWS)
Population = Callable[[np.random.Generator, int], Any]


def survey(seed: int, n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "y": rng.poisson(4, n), "x": rng.normal(size=n).round(2),
        "g": rng.choice(["a", "b"], n), "pay": rng.normal(30, 9, n).round(1),
    })  # fmt: skip


POPULATIONS: dict[str, Population] = {
    "continuous": lambda rng, n: rng.integers(0, 2**60, n),
    "rounded": lambda rng, n: (1000 * rng.normal(size=n)).round(),
    "counts": lambda rng, n: rng.poisson(6, n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.7, 0, rng.integers(1, 10**6, n)),
    "binary": lambda rng, n: rng.integers(0, 2, n),
    "heavy tail": lambda rng, n: rng.zipf(1.5, n) % 2**60,
}


def drawn(name: str, rng: np.random.Generator, n: int) -> Any:
    return POPULATIONS[name](rng, n).astype(np.int64).astype(np.uint64)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(400, 400), (400, 100), (100, 700)])
@pytest.mark.parametrize("name", POPULATIONS)
def test_chance_is_not_taken_for_sharing(name: str, sizes: tuple[int, int]) -> None:
    """Databases of one population, 100 pairs. By a normal law 0.13 % are flagged; exactly equal
    counts of a binary column, one pair in about 35 at n = 400, are flagged on purpose."""
    rng = np.random.default_rng(7)
    flagged = sum(
        more_alike_than_by_chance(drawn(name, rng, sizes[0]), drawn(name, rng, sizes[1]))
        for _ in range(100)
    )
    allowed = 15 if name == "binary" and sizes[0] == sizes[1] else 3
    assert flagged <= allowed


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_same_records_are_found_in_any_order(name: str) -> None:
    rng = np.random.default_rng(8)
    for n in (1, 2, 30, 400):
        own = drawn(name, rng, n)
        assert more_alike_than_by_chance(own, rng.permutation(own))


@pytest.mark.parametrize("name", ["continuous", "rounded", "heavy tail"])
@pytest.mark.parametrize(("kept", "added"), [(360, 0), (200, 0), (60, 0), (400, 400), (60, 2000)])
def test_some_of_the_records_are_found_among_any_others(name: str, kept: int, added: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        own = drawn(name, rng, 400)
        other = np.concatenate([rng.choice(own, kept, replace=False), drawn(name, rng, added)])
        if name == "continuous" or (kept, added) == (360, 0):
            assert more_alike_than_by_chance(own, other), seed
            assert more_alike_than_by_chance(other, own), seed


def test_ten_records_that_are_nowhere_twice_are_enough() -> None:
    rng = np.random.default_rng(1)
    own = drawn("continuous", rng, 500)
    for shared in range(13):
        other = np.concatenate([own[:shared], drawn("continuous", rng, 500 - shared)])
        assert more_alike_than_by_chance(own, other) == (shared >= 10) or shared == 9


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return ph.calibrate(
        MODEL, survey(1), epsilon=6, n_draws=50, holds_no_released_record=True, **OPTIONS
    )


FORMS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "as it was": lambda t: t,
    "shuffled": lambda t: t.sample(frac=1, random_state=1),
    "some dropped": lambda t: t.drop(index=range(0, 80, 5)),
    "others appended": lambda t: pd.concat([t, survey(5)], ignore_index=True),
    "columns in another order": lambda t: t[["pay", "g", "y", "x"]],
    "other dtypes": lambda t: t.astype({"y": "Int16", "x": "float32", "g": "category"}),
    "another column more": lambda t: t.assign(more=1),
    "other pay": lambda t: t.assign(pay=survey(4)["pay"]),
    "all of it": lambda t: pd.concat(
        [t.iloc[::-1].astype({"x": "float32"})[["g", "x", "y"]][9:], survey(6)[["g", "x", "y"]]]
    ).reset_index(drop=True),
}


@pytest.mark.samples
@pytest.mark.parametrize("how", FORMS)
def test_on_its_own_records_a_calibration_is_not_strict(
    how: str, calibration: Calibration, tmp_path: Path
) -> None:
    mechanism = ph.Censored(calibration=calibration, check_modes=False)
    table = FORMS[how](survey(1))
    assert calibration.shared_with(MODEL.bind(table))
    assert not mechanism.is_strict(MODEL.bind(table))
    with pytest.warns(UserWarning, match="was made from records that are released here"):
        release = mechanism.release(table, **OPTIONS)
    assert release.charge.kind == "asymptotic local"
    assert "The calibration was made from records that are released here" in release.statement
    ledger = ph.Ledger(tmp_path / "l", budget=100, kind="strict", relation="remove")
    refuses("must be strict", release.save, tmp_path / "out", ledger=ledger, report=False)


@pytest.mark.samples
def test_on_other_records_it_is_strict(calibration: Calibration, tmp_path: Path) -> None:
    mechanism = ph.Censored(calibration=calibration, check_modes=False)
    release = mechanism.release(survey(2), **OPTIONS)
    assert release.charge.kind == "strict"
    assert OWNERS_WORD in release.statement
    assert OWNERS_WORD in review_checklist(release)
    for seed in range(10, 40):
        assert not calibration.shared_with(MODEL.bind(survey(seed)))
    ledger = ph.Ledger(tmp_path / "l", budget=100, kind="strict", relation="remove")
    release.save(tmp_path / "out", ledger=ledger, report=False)


@pytest.mark.normal_draws
def test_without_the_owners_word_nothing_is_strict(
    calibration: Calibration, tmp_path: Path
) -> None:
    """Also of a stored calibration, as those of version 0.2 are; the message says what to write."""
    unsaid = dataclasses.replace(calibration, holds_no_released_record=False)
    mechanism = ph.Censored(calibration=unsaid, check_modes=False)
    assert not mechanism.is_strict(MODEL.bind(survey(2)))
    with pytest.warns(UserWarning, match=r"holds_no_released_record=True of .*Calibration\.load"):
        release = mechanism.release(survey(2), **OPTIONS)
    assert release.charge.kind == "asymptotic local"
    assert "The owner has not confirmed" in release.statement
    calibration.save(tmp_path / "c")
    file = tmp_path / "c" / "calibration.json"
    content = json.loads(file.read_text())
    assert content.pop("holds_no_released_record") is True
    assert Calibration.load(tmp_path / "c").holds_no_released_record
    file.write_text(json.dumps(content))  # as version 0.2 wrote it
    bound = MODEL.bind(survey(2))
    assert Calibration.load(tmp_path / "c").doubt(bound) == "unsaid"
    said = Calibration.load(tmp_path / "c", holds_no_released_record=True)
    assert said.doubt(bound) is None
    assert said.doubt(MODEL.bind(survey(1))) == "shared", "the word does not outweigh the digests"
    with pytest.raises(InvalidInput, match="holds_no_released_record must be"):
        Calibration.load(tmp_path / "c", holds_no_released_record=1)  # type: ignore[arg-type]


def test_half_of_the_records_of_few_values_are_not_found_but_need_the_word() -> None:
    """The limit of detection, in numbers; see `pyhybrid.mechanisms.censored.center`."""
    found = {"counts": 0, "continuous": 0}
    for name in found:
        for seed in range(40):
            rng = np.random.default_rng(seed)
            own = drawn(name, rng, 400)
            other = np.concatenate([own[:200], drawn(name, rng, 200)])
            found[name] += more_alike_than_by_chance(own, other)
    assert found["continuous"] == 40
    assert found["counts"] < 20, "else say so where detection is described"


@pytest.mark.samples
def test_the_check_sees_a_calibration_on_its_own_records(
    calibration: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without digests that are looked at, the charge is strict: the hole itself."""
    monkeypatch.setattr(Calibration, "shared_with", lambda *_: False)
    mechanism = ph.Censored(calibration=calibration, check_modes=False)
    assert mechanism.release(survey(1), **OPTIONS).charge.kind == "strict"


def test_whole_rows_tell_what_the_models_columns_cannot() -> None:
    """A binary outcome alone: a part of it is what any other part is; whole rows are not."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"y": rng.integers(0, 2, 300), "pay": rng.normal(size=300)})
    model = ph.Poisson("y ~ 1")
    own = reference_records(model.bind(table))
    assert own.shared_with(model.bind(table.iloc[:200][["pay", "y"]]))
    assert not own.shared_with(model.bind(table.iloc[:200][["y"]])), "the limit that is stated"
    assert own.shared_with(model.bind(table[["y"]])), "all of it is found even so"


@pytest.mark.samples
def test_digests_survive_the_disk_and_tell_nothing_without_the_key(
    calibration: Calibration, tmp_path: Path
) -> None:
    calibration.save(tmp_path / "c")
    loaded = Calibration.load(tmp_path / "c")
    np.testing.assert_array_equal(loaded.reference.of_row, calibration.reference.of_row)
    assert loaded.shared_with(MODEL.bind(survey(1)))
    assert not loaded.shared_with(MODEL.bind(survey(2)))
    assert (tmp_path / "c/reference.csv").stat().st_mode & 0o777 == 0o600
    again = reference_records(MODEL.bind(survey(1)))
    assert again.key != calibration.reference.key
    assert not set(again.of_model.tolist()) & set(calibration.reference.of_model.tolist())
    assert calibration.reference.key not in repr(calibration) + repr(calibration.reference)


@pytest.mark.samples
def test_without_digests_nothing_is_strict(calibration: Calibration, tmp_path: Path) -> None:
    """As calibrations of an earlier version are, and those whose digests were taken away."""
    calibration.save(tmp_path / "c")
    file = tmp_path / "c" / "calibration.json"
    content = json.loads(file.read_text())
    del content["reference"]
    file.write_text(json.dumps(content))
    old = Calibration.load(tmp_path / "c")
    assert old.shared_with(MODEL.bind(survey(2))) is None
    with pytest.warns(UserWarning, match="the calibration has no digests"):
        release = ph.Censored(calibration=old, check_modes=False).release(survey(2), **OPTIONS)
    assert release.charge.kind == "asymptotic local"
    assert (
        "An earlier version of pyhybrid made the calibration, so it is not known"
        in release.statement
    )
    file.write_text(json.dumps({**content, "reference": {"key": "", "columns": []}}))
    refuses("must hold a calibration, whole", Calibration.load, tmp_path / "c")


@pytest.mark.samples
def test_a_step_on_its_own_calibration_is_not_composed_as_strict() -> None:
    """Before anything is fitted: weights of 1 are strict, the calibration is not."""
    first = ph.Poisson("y ~ 1")
    table = survey(1)[["y", "x"]].assign(z=survey(2)["y"])
    own = ph.calibrate(
        ph.Poisson("z ~ y"), table, epsilon=6, n_draws=20, holds_no_released_record=True, **OPTIONS
    )
    steps = [
        ph.Censored(first, epsilon=6, inner=ph.Unweighted(first), check_modes=False),
        ph.Censored(calibration=own, check_modes=False),
    ]
    with pytest.raises(InvalidInput, match="step 1 is strict, step 2 is not"):
        ph.SequentialSynthesis(steps).release(table, **OPTIONS)


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore:the calibration was made from records")
@pytest.mark.filterwarnings("ignore:the owner has not confirmed")
def test_from_the_command_line(tmp_path: Path, run: Any, refused: Any) -> None:
    survey(1).to_csv("f.csv", index=False)
    survey(2).to_csv("other.csv", index=False)
    fitted = ("--engine", "embedded")
    code, _, error = run("calibrate", "f.csv", "--formula", "y ~ x + g", "--model", "poisson",
                         "--epsilon", "6", "--out", "c", *fitted)  # fmt: skip
    assert code == 0
    assert "--holds-no-released-record" in error
    said = ["--holds-no-released-record"]
    for data, word, kind in (
        ("f.csv", said, "asymptotic local"), ("other.csv", [], "asymptotic local"),
        ("other.csv", said, "strict"),
    ):  # fmt: skip
        asked = ["synthesize", data, "--calibration", "c", "--out", f"out {kind}", *word, *fitted,
                 "--draws", "500"]  # fmt: skip
        if kind != "strict":
            error = refused(*asked, "--overwrite")
            assert "no strict release; " in error
            assert error.endswith("--local makes a local one\n")
            asked.append("--local")
        assert run(*asked, "--overwrite")[0] == 0
        charge = json.loads((tmp_path / f"out {kind}/public/charge.json").read_text())
        assert charge["kind"] == kind
    ph.Ledger("l", budget=99, kind="strict", relation="remove")
    error = refused("synthesize", "f.csv", "--calibration", "c", "--out", "no", "--ledger", "l",
                    "--local", *fitted)  # fmt: skip
    assert "must be strict, remove: found asymptotic local" in error

"""Releases of tables that stay where they are: stored before the first row, and resumed."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import BudgetExceeded, SaveFailed, SourceFailed
from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms import clipped_scores
from pyhybrid.mechanisms.scored_records import bind_source
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.sources.ibis_table import IbisTable
from tests.refusals import fails, no_space, refuses
from tests.tables.conftest import in_files

FORMULA = "visits ~ size + I((age - 45) / 10) + area + factor(kind) + owner"
MODELS = {
    "counts": ph.Poisson(FORMULA, prior="normal"),
    "zeros": ph.LogNormal(
        FORMULA.replace("visits", "income"), zeros=True, missing=True, decimals=0, prior="normal"
    ),
    "levels": ph.Categorical(FORMULA.replace("visits", "view"), levels=("no", "so", "yes")),
    "ordered": ph.Ordinal(FORMULA.replace("visits", "view"), levels=("no", "so", "yes")),
}


def survey(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, area = rng.integers(18, 90, n), rng.choice(["a", "b", "rare"], n, p=[0.6, 0.398, 0.002])
    visits = rng.poisson(np.exp(0.4 + 0.02 * (age - 45)))
    income = np.where(rng.random(n) < 0.2, 0.0, np.exp(rng.normal(9, 1, n)).round())
    return pd.DataFrame({
        "size": np.where(rng.random(n) < 0.04, np.nan, rng.normal(size=n)), "age": age,
        "area": area, "kind": rng.integers(1, 4, n), "owner": rng.random(n) < 0.4,
        "visits": visits, "income": np.where(rng.random(n) < 0.1, np.nan, income),
        "view": rng.choice(["no", "so", "yes"], n),
    })  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return survey(6_000)


@pytest.fixture
def stored(table: pd.DataFrame, tmp_path: Path) -> Path:
    (tmp_path / "stored").mkdir()
    return in_files(table, tmp_path / "stored", 4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("batch", [7, 977])
def test_sums_over_parts_are_those_of_the_table_to_the_last_bit(
    name: str, batch: int, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins and clipped scores, in batches of any size, with levels that a sample does not have."""
    part = table if batch > 7 else table.iloc[: 40 * batch]
    mechanism = ph.ClippedScores(MODELS[name], delta=1e-6)
    monkeypatch.setattr("pyhybrid.sources.ibis_table.BATCH", batch)
    source = ph.open_source(in_files(part, tmp_path, 4))
    monkeypatch.setattr(source, "sample", lambda columns, n=100: part[[*columns]][:100])
    bound, of_frame = bind_source(MODELS[name], source), mechanism.bind(part)
    assert bound.sample.public.names == of_frame.public.names
    rng = np.random.default_rng(5)
    theta = rng.normal(0, 0.2, bound.sample.public.d)
    design = mechanism._design(of_frame, theta, 0.3, streams(2))
    np.testing.assert_array_equal(bound.score_sum(theta, design), of_frame.score_sum(theta, design))
    edges = np.array([0.0, 1.0, 5.0, np.inf])

    def bin_of(y: np.ndarray) -> np.ndarray:
        first = y if y.ndim == 1 else y[:, 0]
        return np.where(np.isfinite(first), np.searchsorted(edges, first), np.nan)

    np.testing.assert_array_equal(bound.bin_counts(bin_of, 5), of_frame.bin_counts(bin_of, 5))
    assert len(bound.checksums) == 1


def test_the_error_of_a_batch_is_the_callers_with_few_batches_read_after_it(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyhybrid.sources.ibis_table.BATCH", 311)
    sizes: list[int] = []

    def failing(batch: pd.DataFrame) -> int:
        sizes.append(len(batch))
        if len(sizes) >= 5:
            raise ValueError("a batch")
        return len(batch)

    fails(ValueError, "a batch", ph.open_source(stored).sums, failing, ["visits"])
    assert max(sizes) <= 311
    assert 5 <= len(sizes) <= 5 + 4


def _mechanism(name: str = "counts") -> ph.ClippedScores:
    return ph.ClippedScores(MODELS[name], epsilon=2)


def test_a_release_in_parts_is_a_release_like_any_other(
    table: pd.DataFrame, stored: Path, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "l.ledger", budget=2.5, kind="strict", relation="remove", delta=1e-6)
    out = tmp_path / "out"
    charge = ph.release_in_parts(
        _mechanism(), str(stored), out, n_synthetic=2, ledger=ledger, drop=["income"], keep=["size"]
    )
    assert charge.epsilon == 2
    release = Release.load(out)
    assert [len(synthetic) for synthetic in release.synthetic] == [len(table)] * 2
    assert list(release.synthetic[0].columns) == [c for c in table.columns if c != "income"]
    pd.testing.assert_frame_equal(
        release.synthetic[0][["age", "area", "size"]], table[["age", "area", "size"]]
    )
    assert abs(release.synthetic[0]["visits"].mean() / table["visits"].mean() - 1) < 0.15
    assert len(ph.estimates(release)) == 9
    statement = (out / "public" / "privacy_statement.md").read_text()
    assert "6000 records" in statement
    assert "income" in statement
    assert (out / "confidential").stat().st_mode & 0o777 == 0o700
    assert (out / "confidential" / "report.html").is_file()
    assert not (tmp_path / ".out.parts").exists()
    assert len(ledger.entries) == 1
    public = b"".join(p.read_bytes() for p in (out / "public").rglob("*") if p.is_file())
    assert str(release.entropy).encode() not in public
    fails(BudgetExceeded, "", ph.release_in_parts, _mechanism(), str(stored), tmp_path / "two",
          ledger=ledger, keep=["size"])  # fmt: skip
    assert not (tmp_path / "two").exists()
    assert not (tmp_path / ".two.parts").exists()


def test_what_was_stopped_goes_on_without_new_noise_or_charge(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "l.ledger", budget=9, kind="strict", relation="remove", delta=1e-6)
    out, asked = tmp_path / "out", {"ledger": ledger, "keep": ["size"], "n_synthetic": 2}
    looks, of_opendp = [], clipped_scores.gaussian_sums

    def counted(*arguments):
        looks.append(1)
        return of_opendp(*arguments)

    monkeypatch.setattr(clipped_scores, "gaussian_sums", counted)

    def stop(what: str, done: int, total: int) -> None:
        if done > 7_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ph.release_in_parts(_mechanism(), str(stored), out, progress=stop, **asked)
    assert not out.exists()
    parts = tmp_path / ".out.parts"
    assert parts.stat().st_mode & 0o777 == 0o700
    first = sorted(parts.rglob("*.parquet"))
    before, n_looks = [path.read_bytes() for path in first], len(looks)
    written = [path.stat().st_mtime_ns for path in first]
    other = _mechanism("zeros")
    refuses("of the same mechanism", ph.release_in_parts, other, str(stored), out, **asked)
    with monkeypatch.context() as patch:  # the disk is full at the end
        patch.setattr("pyhybrid.releases.folder.stated_charge", no_space)
        call = partial(ph.release_in_parts, _mechanism(), str(stored), out, **asked)
        fails(SaveFailed, "goes on where it stopped", call)
    assert not out.exists()
    assert len(list(parts.rglob("*.parquet"))) == 2
    call()
    assert len(looks) == n_looks
    assert len(ledger.entries) == 1
    after = sorted((out / "public").rglob("*.parquet"))
    assert [path.read_bytes() for path in after[: len(before)]] == before
    assert [path.stat().st_mtime_ns for path in after[: len(written)]] == written
    assert not parts.exists()


def test_a_folder_of_parts_that_another_could_have_made_is_refused(
    stored: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "public").mkdir(parents=True)
    call = partial(refuses, "that you alone can read", ph.release_in_parts, _mechanism())
    (tmp_path / ".out.parts").symlink_to(elsewhere)
    call(str(stored), tmp_path / "out", keep=["size"])
    assert list(elsewhere.iterdir()) == [elsewhere / "public"]
    (tmp_path / ".out.parts").unlink()
    (tmp_path / ".out.parts").mkdir()
    os.chmod(tmp_path / ".out.parts", 0o777)
    call(str(stored), tmp_path / "out", keep=["size"])


def test_a_table_that_changes_between_passes_is_not_released(
    table: pd.DataFrame, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One outcome more or less, or another one: by number and by checksum."""
    for changed in (table[1:], table.assign(visits=table["visits"].mask(table.index == 3, 9))):
        changed.to_parquet(tmp_path / "changed.parquet")
        source, passes = ph.open_source(stored), []
        before, after = source.sums, ph.open_source(str(tmp_path / "*.parquet")).sums

        def changing(of_batch, columns, before=before, after=after, passes=passes):
            passes.append(columns)
            return (before if len(passes) < 9 else after)(of_batch, columns)

        monkeypatch.setattr(source, "sums", changing)
        fails(SourceFailed, "must not change while it is read", _mechanism().estimate, source, 1)
        assert len(passes) >= 9


def test_what_a_source_cannot_do_is_said(stored: Path, tmp_path: Path) -> None:
    table, out = str(stored), tmp_path / "out"
    for mechanism, words in (
        (ph.ClippedScores(MODELS["counts"], unit="age"), "unit must be left out"),
        (ph.ClippedScores(MODELS["counts"], weights="age"), "weights must be left out"),
        (ph.ClippedScores(ph.Poisson("visits ~ scale(age)")), "one record at a time"),
        (ph.ClippedScores(ph.Poisson("visits ~ nothing")), "nothing"),
        (ph.ClippedScores(MODELS["counts"], delta=0.01), "delta must be below 1 / n"),
    ):
        refuses(words, ph.release_in_parts, mechanism, table, out, keep=["size"])
    names = pd.read_parquet(table).assign(name=lambda t: [f"person {k}" for k in range(len(t))])
    for other in stored.glob("*.parquet"):
        other.unlink()
    names.to_parquet(stored / "named.parquet")
    refuses("'name'", ph.release_in_parts, _mechanism(), table, out)
    assert not out.exists()
    assert not (tmp_path / ".out.parts").exists()


def test_text_of_csv_files_is_read_as_numbers_where_all_of_it_is(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "csv"
    folder.mkdir()
    table.assign(area=table["area"].map({"a": "01", "b": "02", "rare": "03"})).to_csv(
        folder / "t.csv", index=False
    )
    source = ph.open_source(folder)
    assert isinstance(source, IbisTable)
    bound = bind_source(MODELS["counts"], source)
    assert [name for name in bound.sample.public.names if name.startswith("area")] == [
        "area[T.02]", "area[T.03]",
    ]  # fmt: skip
    of_frame, zero = _mechanism().bind(table), np.zeros(bound.sample.public.d)
    assert bound.sample.public.d == of_frame.public.d
    design = _mechanism()._design(of_frame, zero, 0.3, streams(2))
    np.testing.assert_array_equal(bound.score_sum(zero, design), of_frame.score_sum(zero, design))

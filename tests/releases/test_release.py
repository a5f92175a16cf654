"""Releases: what is kept of the input, determinism, files, modes, atomic saving, leaks."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import SaveFailed
from pyhybrid.engines import SamplerSettings
from pyhybrid.releases import folder as storage
from pyhybrid.releases.statement import assumptions, not_covered
from pyhybrid.running import files
from tests.fits import fit_options
from tests.refusals import fails, no_space, refuses

MODEL = ph.NegativeBinomial("visits ~ region")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng, n = np.random.default_rng(21), 60
    return pd.DataFrame({
        "id": [f"{i % 5:04d}" for i in range(n)],
        "visits": pd.array(rng.negative_binomial(2, 0.3, n), dtype="Int32"),
        "age": rng.integers(18, 90, n).astype("int16"),
        "region": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a"]),
        "paid": rng.choice([1.25, np.nan], n), "member": rng.choice([True, False], n),
        "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D"),
        "note": rng.choice(["", "a,b", 'say "hi"', "é"], n),
    }, index=pd.Index(rng.permutation(n) + 1000))  # fmt: skip


@pytest.fixture(scope="module")
def release(table: pd.DataFrame) -> ph.Release:
    return ph.LipschitzWeighted(MODEL).release(
        table, n_synthetic=2, seed=987654321, engine="embedded", refits=2,
        settings=SamplerSettings(warmup=300, draws=250),
    )  # fmt: skip


def test_everything_but_the_outcome_comes_back(table: pd.DataFrame, release: ph.Release) -> None:
    before = table.copy(deep=True)
    others = table.drop(columns="visits")
    for synthetic in release.synthetic:
        pd.testing.assert_frame_equal(synthetic.drop(columns="visits"), others)
        assert list(synthetic.columns) == list(table.columns)
        assert synthetic["visits"].dtype == table["visits"].dtype
        assert (synthetic["visits"] >= 0).all()
        assert not synthetic["visits"].equals(table["visits"])
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_saved_releases_load_as_they_were(release: ph.Release, form: str, tmp_path: Path) -> None:
    release.save(tmp_path / "out", file_format=form, report=False)
    loaded = ph.Release.load(tmp_path / "out")
    for ours, theirs in zip(release.synthetic, loaded.synthetic, strict=True):
        expected = ours if form == "parquet" else ours.replace({"note": {"": np.nan}})
        pd.testing.assert_frame_equal(theirs, expected, check_index_type=False, check_freq=False)
    for name in ("charge", "diagnostics", "provenance", "statement"):
        assert getattr(loaded, name) == getattr(release, name), name
    np.testing.assert_array_equal(loaded.confidential.alpha, release.confidential.alpha)
    np.testing.assert_array_equal(loaded.confidential.lipschitz, release.confidential.lipschitz)
    assert loaded.confidential.entropy == 987654321
    refuses("loaded has no data", ph.reports.plot_release, loaded)
    assert loaded.fit is None


def test_representations_show_the_cost_and_no_secret(release: ph.Release) -> None:
    kept, in_notebook = release.confidential, release._repr_html_() + release.charge._repr_html_()
    assert in_notebook.count(release.charge.cost) >= 2
    text = in_notebook + "".join(map(repr, (release, kept, release.fit, release.provenance)))
    for secret in (987654321, release.provenance.seed):
        assert str(secret) not in text
    for secret in (kept.lipschitz_bound, release.charge.bound, kept.loss.loss_range):
        assert f"{secret:.5f}"[:-1] not in text


def test_plot_shows_the_data_beside_the_sets(release: ph.Release) -> None:
    legend = ph.reports.plot_release(release, "visits").legends[0]
    assert "data" in [text.get_text() for text in legend.get_texts()]
    refuses("column must be a synthesized one, visits", ph.reports.plot_release, release, "other")


def test_a_full_folder_is_overwritten_on_demand(release: ph.Release, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    release.save(out, report=False)  # empty is fine
    refuses("overwrite=True", release.save, out, report=False)
    (out / "stale").write_text("old")
    release.save(out, overwrite=True, report=False)
    assert not (out / "stale").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
    for how in ({}, {"overwrite": True}):
        refuses("it is a file", release.save, out / "public/charge.json", report=False, **how)


@pytest.mark.parametrize(
    "stage", [(storage, "_write_confidential"), (storage, "write_table"), (files, "_swap")]
)
def test_a_disk_error_leaves_the_older_release(
    release: ph.Release, stage: tuple[Any, str], tmp_path: Path, monkeypatch: Any
) -> None:
    """A new one leaves nothing: see `tests/security/test_leaks.py`."""
    out = tmp_path / "out"
    release.save(out, report=False)
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    monkeypatch.setattr(*stage, no_space)
    fails(SaveFailed, "No space left", release.save, out, overwrite=True, report=False)
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError(5, "Input/output"), KeyboardInterrupt(), SystemExit()])
def test_a_failing_rename_brings_the_old_release_back(
    release: ph.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    out = tmp_path / "out"
    release.save(out, report=False)
    (out / "mark").write_text("old")
    rename = Path.rename

    def refuse(self: Path, target: Any) -> Path:
        if ".partial-" in self.name:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(SaveFailed if isinstance(error, OSError) else type(error)):
        release.save(out, overwrite=True, report=False)
    assert (out / "mark").read_text() == "old"
    if isinstance(error, OSError):
        assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("index", [
    pd.RangeIndex(60),
    pd.RangeIndex(60, name="row"),
    pd.MultiIndex.from_product([range(30), ["a", "b"]], names=["house", None]),
    pd.DatetimeIndex(pd.date_range("2026-01-01", periods=60).to_numpy()),
])  # fmt: skip
def test_any_index_survives_csv(release: ph.Release, index: pd.Index, tmp_path: Path) -> None:
    moved = replace(release, synthetic=[t.set_axis(index) for t in release.synthetic])
    moved.save(tmp_path / "out", report=False)
    loaded = ph.Release.load(tmp_path / "out")
    pd.testing.assert_index_equal(loaded.synthetic[1].index, index, exact="equiv")


def test_damaged_releases_are_refused(release: ph.Release, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refuses(r"run\.json", ph.Release.load, out)
    release.save(out, report=False)
    run = out / "confidential" / "run.json"
    content = json.loads(run.read_text())
    run.write_text(json.dumps(content | {"format": 99}))
    refuses("format 2: found 99", ph.Release.load, out)
    run.write_text("{")
    refuses("whole and as saved", ph.Release.load, out)
    run.write_text(json.dumps({k: v for k, v in content.items() if k != "charge"}))
    refuses("'charge' is missing", ph.Release.load, out)
    run.write_text(json.dumps(content))
    records = out / "confidential" / "records.csv"
    kept = records.read_bytes()
    records.unlink()
    refuses("records", ph.Release.load, out)
    records.write_bytes(kept)
    (out / "public" / "synthetic_2.csv").unlink()
    refuses("synthetic_2", ph.Release.load, out)


def test_unknown_formats_and_other_rows_are_refused(release: ph.Release, tmp_path: Path) -> None:
    refuses("csv, parquet", release.save, tmp_path / "out", file_format="xlsx", report=False)
    assert not (tmp_path / "out").exists()
    refuses("must have the rows", release.with_unsynthesized, pd.DataFrame({"visits": [1]}))
    others = release.synthetic[0].assign(wealth=1.0)
    refuses("no columns but those of the release: 'wealth'", release.with_unsynthesized, others)
    fewer = release.with_unsynthesized(release.synthetic[0].drop(columns="paid"))
    assert "paid" not in fewer.synthetic[0]


def test_statement_says_what_it_must(release: ph.Release) -> None:
    text = release.statement
    charge = release.charge
    for part in (
        f"epsilon = {charge.epsilon:g}", "2 synthetic data sets", "asymptotic local",
        "remove one record", "LipschitzWeighted", "## Assumed", "## Not covered",
        "Columns other than visits, if there are any,", release.provenance.program_sha256,
    ):  # fmt: skip
        assert part in text
    for sentence in (*assumptions(charge), *not_covered(charge)):
        assert sentence in text


def test_no_report_costs_a_release(release: ph.Release, tmp_path: Path, monkeypatch: Any) -> None:
    """Seen: a traceback of the report after an hour of fitting, and nothing saved."""

    def fails(*_: object, **_how: object) -> dict[str, str]:
        raise ValueError("'NA' of a record")

    monkeypatch.setattr("pyhybrid.reports.release_pages", fails)
    with pytest.warns(RuntimeWarning, match=r"saved without its report, .*\(ValueError\)") as said:
        release.save(tmp_path / "out")
    assert "NA" not in str(said[0].message)
    assert not (tmp_path / "out" / "confidential" / "report.html").exists()
    assert ph.Release.load(tmp_path / "out").charge == release.charge


def test_statement_and_public_charge(tmp_path: Path) -> None:
    """All three numbers in words; range and bound stay with the owner."""
    df = pd.DataFrame({"y": np.random.default_rng(2).poisson(20, 300)})
    few = fit_options(chains=4, warmup=300, draws=400, refits=0)
    mechanism = ph.Unweighted(ph.Poisson("y ~ 1"), accounting="gaussian")
    release = mechanism.release(df, n_synthetic=2, seed=4, **few)
    of, text = release.charge, release.statement
    for said in (
        f"**epsilon = {of.epsilon:g} at delta = 1e-06** for 2 synthetic data sets",
        "by at most delta = 1e-06", "The guarantee is per instance", "local and asymptotic",
        f"{of.epsilon_range:g} by the range of what changes when a record leaves",
        f"the weights taken as fixed, epsilon would be {of.epsilon_published:g}",
        "mu grows with the square root of their number",
    ):  # fmt: skip
        assert said in text, said
    release.save(tmp_path / "out", keep=list(release.exposed))
    public = json.loads((tmp_path / "out/public/charge.json").read_text())
    assert not {"bound", "loss_range"} & set(public)
    assert (public["mu"], public["delta"]) == (of.mu, 1e-6)
    assert ph.Release.load(tmp_path / "out").charge == of

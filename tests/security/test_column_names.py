"""Names of columns are values: none of them is taken for a keyword, an option or a formula."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.models.formula.values import with_columns
from pyhybrid.primitives import noise
from tests.fits import fit_options
from tests.refusals import fails, refuses

N = 60
SHORT = fit_options(chains=4, warmup=20, draws=400, seed=1)
NAMES = [
    "self", "index", "columns", "df", "table", "class", "None", "two words", " edge ", "it's",
    'a "quoted" one', "a.b", "a+b", "a~b", "1", "-", "größe", "年齢", "e\u0301", "x" * 300, "%s",
    "{0}", "\\", "<b>", "$1", "a\tb",
]  # fmt: skip
OTHERS = [1, 0, -1, 2.5, True, ("a", "b")]
"""Names that are no texts, of columns that are not synthesized."""


def frame(name: Any, other: Any = "x") -> pd.DataFrame:
    rng = np.random.default_rng(1)
    made = pd.DataFrame({0: rng.poisson(4, N), 1: rng.integers(18, 80, N)})
    made.columns = pd.Index([name, other], tupleize_cols=False)
    return made


def marginals(name: str, given: tuple[str, ...] = ("x",)) -> ph.NoisyMarginals:
    domain = {name: ph.mechanisms.ColumnDomain(bins=(0, 2, 5, 100))}
    return ph.NoisyMarginals(domain=domain, given=given, epsilon=8.0)


def censored(model: Any) -> ph.Censored:
    return ph.Censored(model, cap=2.0, inner=ph.Unweighted(model), center=None, check_modes=False)


def released(name: str) -> dict[str, ph.Release]:
    """By every strict mechanism that takes the name as it is."""
    df = frame(name)
    histogram = ph.PerturbedHistogram(column=name, lower=0, upper=100, n_bins=10, epsilon=8.0)
    kinds = {name: ph.Counts(lower=0, upper=100, typical=4, spread=2)}
    kept = [other for other in df if other != name]
    made = {
        "marginals": marginals(name).release(df, n_synthetic=2),
        "histogram": histogram.release(df),
        "table": ph.synthesize_table(df, epsilon=8, types=kinds, keep=kept),
    }
    if name.isprintable() and name.strip() == name:  # what backticks of a formula can hold
        made["censored"] = censored(ph.Poisson(f"`{name}` ~ I(x / 100)")).release(df, **SHORT)
    return made


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_comes_through_a_strict_release(name: str, tmp_path: Path) -> None:
    df = frame(name)
    for how, release in released(name).items():
        assert release.charge.kind == "strict", how
        for made in release.synthetic:
            assert list(made.columns) == [name, "x"], how
            pd.testing.assert_series_equal(made["x"], df["x"])
            assert (made[name] >= 0).all()
    for file_format in ("csv", "parquet"):
        release = marginals(name).release(df)
        release.save(tmp_path / file_format, file_format=file_format, report=False)
        again = ph.Release.load(tmp_path / file_format)
        pd.testing.assert_frame_equal(again.synthetic[0], release.synthetic[0])
    (made,) = release.synthetic
    ph.measures.column_utility(df, made, n_resamples=100, rng=1)
    ph.measures.table_utility(df, made, n_bins=3)
    ph.measures.propensity_utility(df, made, n_permutations=2, rng=1)
    ph.measures.matching_risk(df, made, keys=[name, "x"], radius={name: 1.0})
    ph.measures.attribute_risk(df, made, sensitive=name, keys=["x"])


@pytest.mark.parametrize("name", ["a~b", "~"])
def test_a_tilde_in_backticks_is_a_part_of_the_name(name: str) -> None:
    """Seen: the form was looked up by what is before the tilde: floats, and a KeyError."""
    formula, df = f"`{name}` ~ I(x / 100)", frame(name)
    model = ph.Poisson(formula)
    assert censored(model).synthesizes == (name,)
    release = censored(model).release(df.astype({name: float}), **SHORT)
    assert release.charge.kind == "strict"
    assert release.synthetic[0][name].dtype == np.int64
    assert ph.PerturbedHistogram.for_formula(
        f"`{name}` ~ 1", lower=0, upper=9, n_bins=3, epsilon=1.0).column == name  # fmt: skip


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_columns_beside_may_have_names_that_are_no_texts(other: Any, tmp_path: Path) -> None:
    df = frame("y", other)
    release = marginals("y", given=()).release(df)
    (made,) = release.synthetic
    assert list(made.columns) == ["y", other]
    pd.testing.assert_series_equal(made[other], df[other])
    release.save(tmp_path / "out", report=False)
    assert list(ph.Release.load(tmp_path / "out").synthetic[0].columns) == ["y", str(other)]
    categories = with_columns(df, {other: df[other].astype("category")})
    own = marginals("y", given=()).release(categories)
    own.save(tmp_path / "categories", report=False)
    assert ph.Release.load(tmp_path / "categories").synthetic[0].shape == (N, 2)


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither OpenDP nor a sampler must be asked for anything."""

    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(noise, "load_opendp", asked)
    monkeypatch.setattr(EmbeddedEngine, "run", asked)


@pytest.mark.usefixtures("no_noise")
def test_names_that_occur_twice_are_refused_before_anything_is_drawn() -> None:
    twice = pd.DataFrame(np.ones((N, 3), dtype=int), columns=["y", "x", "x"])
    model = ph.Poisson("y ~ 1")
    for release in (
        lambda: marginals("y", given=()).release(twice),
        lambda: ph.PerturbedHistogram(
            column="y", lower=0, upper=9, n_bins=3, epsilon=1.0).release(twice),
        lambda: ph.synthesize_table(twice, epsilon=1.0, types={"y": ph.Counts(upper=9)}),
        lambda: ph.Censored(model, epsilon=1.0, inner=ph.Unweighted(model)).release(
            twice, **SHORT),
    ):  # fmt: skip
        refuses("column names must be unique", release)


def test_as_keywords_some_names_would_fail() -> None:
    """The control: version 0.2 handed names to assign as keywords, after the noise was drawn."""
    df = frame("self")
    fails(TypeError, "", df.assign, **{name: df[name] for name in df})
    pd.testing.assert_frame_equal(with_columns(df, {"self": df["self"]}), df)


TAGS = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>"]


@pytest.mark.parametrize("name", ["self", "index", "größe", 'a "quoted" one', *TAGS])
def test_any_name_has_a_report_and_tags_are_text_there_and_in_the_statement(
    name: str, tmp_path: Path
) -> None:
    """Markdown takes tags as HTML: seen in the published statement."""
    release = marginals(name).release(frame(name))
    release.save(tmp_path / "out")
    statement = (tmp_path / "out/public/privacy_statement.md").read_text()
    assert "<" not in statement
    assert name.replace("<", "&lt;") in statement
    page = (tmp_path / "out/confidential/report.html").read_text()
    assert name not in TAGS or name not in page

"""The top of a report, a row for each column, and the data by predictor."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.released import _show_poor
from pyhybrid.reports.columns import GroupedMeans, by_predictor, grouped_means, lost_relations
from pyhybrid.reports.opening import lost_remedy, remedy
from pyhybrid.reports.page import Marked, Section, Table, render_page
from pyhybrid.reports.release import release_report
from pyhybrid.reports.side_by_side import side_by_side
from pyhybrid.reports.verdicts import verdict_section
from tests.reports.accessible import check_page


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    site = rng.choice(["a", "b"], 400)
    return pd.DataFrame({"site": site, "x": rng.normal(size=400),
                         "visits": rng.poisson(np.where(site == "a", 2, 5)),
                         "stays": rng.poisson(2, 400)})  # fmt: skip


@pytest.fixture(scope="module")
def release(data: pd.DataFrame) -> ph.Release:
    steps = [
        ph.Unweighted(ph.Poisson(text), accounting="gaussian")
        for text in ("visits ~ site", "stays ~ 1")
    ]
    settings = ph.engines.SamplerSettings(warmup=400, draws=400)
    return ph.SequentialSynthesis(steps).release(
        data, n_synthetic=2, seed=1, engine="embedded", settings=settings, on_not_converged="warn"
    )


def _with(release: ph.Release, tables: list[pd.DataFrame]) -> ph.Release:
    return replace(release, synthetic=tables)


def test_a_copy_is_good_and_a_wreck_is_named(release: ph.Release, data: pd.DataFrame) -> None:
    good = verdict_section(_with(release, [data, data]), data)
    assert good.bullets == ["The checks of this page found nothing wrong."]
    assert "Good (" in good.paragraphs[1][2]
    wreck = data.assign(stays=data["stays"] + 4)
    bad = verdict_section(_with(release, [wreck, wreck]), data)
    assert len(bad.bullets) == 1
    assert bad.bullets[0].startswith("stays: error of the mean")
    cells = {str(row[0]): row[1:] for row in bad.tables[0].rows}
    assert {c.word for c in cells["stays"] if isinstance(c, Marked)} == {"POOR"}
    assert {c.word for c in cells["visits"] if isinstance(c, Marked)} == {"good"}
    page = render_page("x", [bad], confidential=True)
    assert '<span class="word poor">POOR</span>' in page
    assert "prefers-color-scheme: dark" in page


def test_what_is_promised_differs_by_kind(release: ph.Release, data: pd.DataFrame) -> None:
    local = verdict_section(release, data).paragraphs[0][2]
    assert release.charge.cost in local
    assert "This is local" in local
    histogram = ph.PerturbedHistogram(column="stays", lower=0, upper=20, n_bins=21, epsilon=1.0)
    strict = histogram.release(data, n_synthetic=1)
    assert "This is strict" in verdict_section(strict, data).paragraphs[0][2]


def test_the_page_opens_with_the_columns_the_worst_first_and_what_to_try(
    release: ph.Release, data: pd.DataFrame
) -> None:
    """Folded after that, and without a number of more digits than anyone reads."""
    wreck = _with(release, [data.assign(stays=data["stays"] + 4)])
    page = release_report(wreck, data, table="survey.csv")
    check_page(page)
    top, _, below = page.partition("<details>")
    assert "survey.csv: 400 records, 4 columns" in top
    assert re.findall(r'<strong>(\w+)</strong> <span class="word chip (\w+)"', top) == [
        ("stays", "poor"), ("visits", "good")
    ]  # fmt: skip
    assert "<h2>What to try next</h2>" in top
    assert "stays: The model does not fit: no weights hold it back." in top
    assert below.count("<summary>") >= 4
    assert not re.search(r"\d\.\d{9,}", re.sub(r'src="[^"]+"', "", top))


_WEIGHTED = "LipschitzWeighted"


def _made(mechanism: str, y: pd.Series, kind: str = "asymptotic local", **settings: Any) -> Any:
    charge = SimpleNamespace(mechanism=mechanism, kind=kind, epsilon=0.41)
    alpha = np.ones(0 if mechanism == "NoisyMarginals" else 3)
    return SimpleNamespace(parts=(), charge=charge, settings=settings, synthesized=("y",),
                           confidential=SimpleNamespace(alpha=alpha),
                           synthetic=[pd.DataFrame({"y": y})])  # fmt: skip


def test_an_epsilon_is_advised_only_where_a_larger_one_helps() -> None:
    """Seen: twice the charge, also of unweighted fits, and where the fit without weights was POOR,
    too, or the cells were too coarse for any epsilon."""
    data = pd.DataFrame({"y": np.random.default_rng(1).gamma(1, 2, 400).round(1)})
    own, off = data["y"], data["y"] + 2
    for mechanism, kind, plain, said in (
        (
            "LipschitzWeighted",
            "asymptotic local",
            own,
            "without weights is better. Try `--epsilon 2`",
        ),
        ("Censored", "strict", own, "Clipping keeps too little of the data"),
        (
            "LipschitzWeighted",
            "asymptotic local",
            off,
            "without weights is POOR, too. A larger eps",
        ),
        (_WEIGHTED, "asymptotic local", None, "it with `--mechanism unweighted`"),
        ("Unweighted", "asymptotic local", None, "no weights hold it back. A larger epsilon alone"),
    ):
        beside = None if plain is None else _made("Unweighted", plain)
        found = remedy(_made(mechanism, off, kind, epsilon=1.0), data, "y", beside)
        assert said in found
        assert ("`--epsilon 2`" in found) == (plain is own)
    shares = pd.DataFrame({"y": np.linspace(0.01, 1, 400)})
    for beyond, named in ((4, False), (20, True), (200, False)):  # chance, a tail, another model
        far = pd.Series(np.where(np.arange(400) < beyond, 5.0, 0.9))
        made = _made("Unweighted", far, model="LogNormal", formula="y ~ 1", unit=0.5)
        said = remedy(made, shares, "y")
        assert ("as in `--model lognormal:unit=0.5,upper=1" in said) == named
    large = _made("LipschitzWeighted", off, epsilon=12.0)
    assert "--epsilon" not in remedy(large, data, "y", _made("Unweighted", own))
    for bins, said in (
        ((0, 40, 80), "Its cells are too coarse"),
        ((*range(40), 40), "noise is too large"),
    ):
        domain = {"y": {"bins": bins, "step": 0.1}}
        made = _made("NoisyMarginals", off, "strict", domain=domain, epsilon=0.41)
        assert said in remedy(made, data, "y")


def test_a_phone_cuts_no_marked_cell_off() -> None:
    """Rows with words are lists there; other tables of numbers scroll."""
    marked = Table(caption="c", header=["a", "b"], rows=[["x", Marked(text="1", word="POOR")]],
                   numbers=True)  # fmt: skip
    plain = Table(caption="d", header=["a", "b"], rows=[["x", "1"]], numbers=True)
    section = Section(heading="In short", tables=[marked, plain])
    page = render_page("Title", [section], confidential=True)
    assert page.count('<table class="numbers listed">') == page.count('data-label="b"') == 1
    assert page.count('<table class="numbers">') == 1


def test_groups_are_those_of_pandas(data: pd.DataFrame) -> None:
    other = data.assign(site=data["site"].map({"a": "b", "b": "a"}))
    found = grouped_means("visits", "site", data, [data, other])
    expected = data.groupby("site")["visits"].agg(["size", "mean", "sem"])
    assert found.groups == ("a", "b")
    np.testing.assert_allclose(np.c_[found.count, found.mean, found.error], expected.to_numpy())
    np.testing.assert_allclose(found.synthetic, [found.mean, found.mean[::-1]])
    fifths = grouped_means("visits", "x", data, [data])
    assert list(fifths.count) == [80] * 5
    np.testing.assert_allclose(fifths.synthetic[0], fifths.mean)
    assert grouped_means("visits", "one", data.assign(one=1), [data.assign(one=1)]) is None


def test_a_sequence_has_a_row_for_each_step_and_all_of_its_statement(
    release: ph.Release, data: pd.DataFrame
) -> None:
    (section,) = by_predictor(release, data)
    assert section.heading == "By predictor: visits"
    assert [str(row[0]) for row in section.tables[0].rows] == ["site = a", "site = b"]
    page = release_report(release, data)
    check_page(page)
    assert "Steps of the sequence" in page
    assert "###" not in page
    assert page.count('<td data-label="Program">poisson.stan</td>') == 2
    assert "{'" not in page and "{&#39;" not in page  # noqa: PT018
    for part in release.parts:
        assert page.count(str(part.charge.epsilon)) >= 1


def test_measures_of_many_columns_have_a_row_for_each(
    release: ph.Release, data: pd.DataFrame
) -> None:
    many: Any = {f"y{k}": data["visits"] for k in range(4)}
    table = data.assign(**many)
    one = replace(release, synthetic=[table, table], synthesized=tuple(many), parts=())
    section = side_by_side({"one": one}, table)[0]
    rows = [table.rows for table in section.tables if table.caption.startswith("A row for each")]
    named = [[str(row[0]).partition(",")[0] for row in own] for own in rows]
    assert [list(dict.fromkeys(own)) for own in named] == [list(many)] * len(rows)
    assert rows
    assert "As above" not in str([t.rows for t in section.tables])


def test_a_relation_that_is_lost_is_named_on_top_and_chance_is_not(
    release: ph.Release, data: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same distribution of the outcome, given to other sites: only the groups show it."""
    drawn = [
        data.sample(len(data), replace=True, random_state=k, ignore_index=True) for k in (1, 2)
    ]
    assert not lost_relations(_with(release, drawn), data)
    shuffled = data.assign(visits=data["visits"].sample(frac=1, random_state=3).to_numpy())
    shown = _with(release, [shuffled])
    (said,) = verdict_section(shown, data, [*lost_relations(shown, data).values()]).bullets
    assert said.startswith("visits by site: 2 of 2 groups off by up to ")
    assert "(POOR). The relation is not kept." in said
    _show_poor(data, replace(shown, synthetic=[shuffled.drop(columns="site")]), None)
    printed = capsys.readouterr().out
    assert f"POOR {said.replace(' (POOR)', '')}" in printed
    assert "A relation to a predictor is lost. Try a larger --epsilon." in printed
    x = np.arange(400.0)
    for values, term in ((x % 3, "factor(`a b`)"), (x % 90, "`a b` + I(`a b`^2)"),
                         (np.exp(x / 99), "log(`a b`)")):  # fmt: skip
        how = lost_remedy(shown, data.assign(**{"a b": values}), [("visits", "a b")])
        assert f"or an effect that is no straight line: `{term}`." in how
    beside = replace(shown, charge=replace(shown.charge, mechanism="Unweighted"))
    for sets, more in ((drawn, True), ([shuffled], False)):
        how = lost_remedy(shown, data, [("visits", "site")], replace(beside, synthetic=sets))
        assert ("larger `--epsilon`" in how, "another `--model`" in how) == (more, not more)


def test_groups_without_records_or_spread_are_not_judged() -> None:
    found = GroupedMeans(
        groups=("a", "b", "c"), count=np.array([20, 20, 20]), mean=np.array([1.0, 2.0, 3.0]),
        error=np.array([0.5, 0.0, 0.5]),
        synthetic=np.array([[2.0, 2.0, np.nan], [4.0, 2.0, np.nan]]),
    )  # fmt: skip
    np.testing.assert_array_equal(found.made, [3.0, 2.0, np.nan])
    np.testing.assert_array_equal(found.difference, [4.0, np.nan, np.nan])

"""The report: whole, escaped, self-contained."""

import base64
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.privacy.charge import Range
from pyhybrid.reports.columns import numeric_values
from pyhybrid.reports.page import number_text, render_page
from pyhybrid.reports.release import charge_section, exact_section, release_report
from tests.reports.accessible import Page, check_page

SEED = 918_273_645
MODEL = ph.NegativeBinomial("visits ~ 1")
SETTINGS = ph.engines.SamplerSettings(warmup=500, draws=500)
OPTIONS = {"seed": SEED, "engine": "embedded", "settings": SETTINGS}
HOSTILE = '<b>x</b> & "y" **z** $a_{ \''


def without_images(html):
    return re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", html)


def cells(html, caption):
    """Rows of the table whose caption begins with `caption`."""
    for table in re.findall(r"<table.*?</table>", html, re.S):
        if f"<span>{caption}" in table:
            rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
            return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]
    raise AssertionError(f"no table {caption}")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(SEED)
    return pd.DataFrame({"visits": rng.negative_binomial(1, 0.3, 500), "site": ["a", "b"] * 250})


@pytest.fixture(scope="module")
def release(data):
    return ph.LipschitzWeighted(MODEL).release(data, n_synthetic=3, **OPTIONS)


@pytest.fixture(scope="module")
def html(release, data):
    return release_report(release, data)


def test_self_contained_without_scripts_and_accessible(html):
    page = Page(html)
    plain = without_images(html).lower()
    assert [word for word in ("<script", "http", "url(", "@import") if word in plain] == []
    names = {name for _, attrs in page.tags for name in attrs}
    assert not {name for name in names if name.startswith("on")}
    assert all(attrs["href"].startswith("#part-") for attrs in page.attributes("a"))
    assert "href" not in {name for tag, attrs in page.tags if tag != "a" for name in attrs}
    sources = [attrs["src"] for attrs in page.attributes("img")]
    assert len(sources) == 6
    for head, _, body in (source.partition(",") for source in sources):
        assert head == "data:image/png;base64"
        assert base64.b64decode(body).startswith(b"\x89PNG")
    check_page(html)
    assert page.attributes("html")[0]["lang"] == "en"
    assert (len(page.attributes("table")), len(page.attributes("figure"))) == (4, 6)


def test_every_field_of_the_charge_with_its_meaning(html, release):
    rows = {row[0]: row[1:] for row in cells(html, "The privacy charge")}
    fields = set(release.charge.public()) - {"spent", "unit"}
    assert set(rows) - {"Quantity", "bound", "rho"} == fields
    assert rows["Quantity"][0] == "LipschitzWeighted"
    for name in ("epsilon", "epsilon_lipschitz", "epsilon_range", "accounting", "n_synthetic",
                 "n_draws_released", "kind", "relation"):  # fmt: skip
        assert rows[name][0] == str(getattr(release.charge, name))
    assert float(rows["bound"][0]) == pytest.approx(release.charge.bound, rel=1e-3)
    assert rows["converged"][0] == "yes"
    assert all(len(row) == 2 and len(row[1]) > 20 for name, row in rows.items() if name[0] != "Q")


@pytest.mark.parametrize("epsilon", [1_234_567.89, 5e4 + 0.01, 99.123457])
def test_epsilon_is_never_rounded_down(release, epsilon):
    counted = {"accounts": {"range": Range(loss_range=epsilon)}, "accounting": "range"}
    charge = replace(release.charge, n_draws_released=1, **counted)
    page = render_page("", [charge_section(replace(release, charge=charge))], confidential=True)
    shown = {row[0]: row[1] for row in cells(page, "The privacy charge")}["epsilon"]
    assert shown == str(charge.epsilon)
    assert float(shown) >= epsilon


def test_summaries_equal_numpy(html, release, data):
    rows = {row[0]: row[1:] for row in cells(html, "Summaries")}
    assert set(rows) - {""} == {"data", "LipschitzWeighted, mean of 3"}
    for name, tables in (("data", [data]), ("LipschitzWeighted, mean of 3", release.synthetic)):
        each = [[t["visits"].mean(), *t["visits"].quantile([0.5, 0.15, 0.9])] for t in tables]
        np.testing.assert_allclose(np.array(rows[name], float), np.mean(each, axis=0), rtol=5e-4)


def test_statement_diagnostics_and_provenance_are_whole(html, release):
    text = "".join(Page(html).text.split())
    for line in release.statement.replace("**", "").splitlines():
        assert "".join(line.lstrip("#- ").split()) in text
    rows = {row[0]: row[1] for row in cells(html, "Worst values")}
    assert float(rows["max_rhat"]) == pytest.approx(release.diagnostics.max_rhat, abs=6e-4)
    assert rows["n_draws"] == f"{release.diagnostics.n_draws:,}"
    assert set(rows) - {"Diagnostic"} == {
        name
        for name, value in vars(release.diagnostics).items()
        if name not in ("problems", "rule") and value is not None  # other modes: if looked for
    }
    assert release.provenance.program_sha256 in html, "of the statement"


def test_problems_of_an_unconverged_fit_are_shown(release, data):
    bad = replace(release.diagnostics, problems=("R-hat of beta is 1.2, must be at most 1.01",))
    text = Page(release_report(replace(release, diagnostics=bad), data)).text
    assert "The chains HAVE NOT CONVERGED" in text
    assert "R-hat of beta is 1.2" in text


def test_the_seed_is_not_in_the_report(html, release):
    assert release.confidential.entropy == SEED
    for seed in (SEED, release.provenance.seed):
        assert not re.search(rf"{seed}|{seed:,}|{seed:_}", without_images(html))


def test_names_are_escaped(release, data):
    data, *tables = (t.rename(columns={"visits": HOSTILE}) for t in (data, *release.synthetic))
    settings = {**release.settings, "formula": f"`{HOSTILE}` ~ 1"}
    how = {"synthetic": tables, "synthesized": (HOSTILE,), "settings": settings}
    report = release_report(replace(release, **how), data)
    page = Page(report)
    assert "<b>" not in report
    assert not page.attributes("b")
    assert HOSTILE in page.text


@pytest.mark.parametrize("values", [["a", 1], pd.date_range("2024-01-01", periods=2),
                                    pd.to_timedelta([1, 2]), [None], [{}, 1]])  # fmt: skip
def test_what_is_no_number_is_not_taken_for_one(values):
    assert numeric_values(pd.Series(values)).size == 0
    np.testing.assert_array_equal(numeric_values(pd.Series([3, None, 5], dtype="Int64")), [3, 5])


@pytest.mark.parametrize(("value", "text"), [
    (107_609.25, "107,609"), (2009.4, "2009"), (0.000012, "1.2e-05"), (1.0, "1"), (0.0, "0"),
    (True, "yes"), (None, "none"), (12_000, "12,000"), (float("nan"), "–"), ("text", "text"),
])  # fmt: skip
def test_large_numbers_are_shown_without_exponents(value, text):
    assert number_text(value) == text


def test_a_release_without_a_model_has_no_rows_about_fits(data):
    pytest.importorskip("opendp")
    mechanism = ph.PerturbedHistogram(column="visits", lower=0, upper=40, n_bins=8, epsilon=1)
    html = release_report(mechanism.release(data, n_synthetic=2), data)
    rows = {row[0]: row[1:] for row in cells(html, "The privacy charge")}
    numbers = {"epsilon", "n_synthetic", "n_draws_released", "bound"}
    assert set(rows) == {"Quantity", "mechanism", "kind", "relation", *numbers}
    assert "weights come from" not in rows["mechanism"][1]


@pytest.mark.long
def test_steps_of_a_reweighting_are_shown(data):
    release = ph.LipschitzWeighted(MODEL, reweighting=True).release(data, **OPTIONS)
    html = release_report(release, data)
    steps = cells(html, "Steps of the search")
    assert len(steps) == 1 + len(release.reweighted.steps)
    assert "before and after re-weighting" in html


def test_what_a_release_tells_about_each_record(release, html, data):
    """The largest deviation in the table, and refits; a release without them has neither."""
    assert "Disclosure by record" in html
    own = release.confidential.loss
    assert f"the largest is {own.deviations.max():.4g}" in html
    assert ("refits.csv" in html) == bool(own.refits)
    without = replace(release, confidential=replace(release.confidential, loss=None))
    assert "Disclosure by record" not in release_report(without, data)


@pytest.mark.parametrize(("mass", "said"), [([0, 1, 8, 1, 0], []), ([5, 3, 2, 0, 0], ["AT THE"])])
def test_an_exact_posterior_that_reaches_the_end_of_its_grid_says_so(mass, said):
    axis = SimpleNamespace(name="beta", lower=-1.0, upper=1.0, size=5)
    exact = SimpleNamespace(grid=SimpleNamespace(axes=[axis], size=5), mass=np.array(mass) / 10,
                            resolution={"beta": 2.0})  # fmt: skip
    texts = [text for (text,) in exact_section(exact).paragraphs]
    assert [text[:6] for text in texts[1:]] == said

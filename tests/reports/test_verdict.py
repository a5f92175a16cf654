"""The top of a report, a row for each column, and relations that are lost."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.released import show_release
from pyhybrid.reports.columns import damaged_pairs, pair_ratios
from pyhybrid.reports.page import Marked, Section, render_page
from pyhybrid.reports.release import release_report
from pyhybrid.reports.verdicts import judged_columns, judged_table, verdict_section
from tests.fits import fit_options
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
    models = map(ph.Poisson, ("visits ~ site", "stays ~ 1"))
    steps = [ph.Unweighted(model, accounting="gaussian") for model in models]
    how = fit_options(chains=4, warmup=400, draws=400, on_not_converged="warn")
    return ph.SequentialSynthesis(steps).release(data, n_synthetic=2, seed=1, **how)


def _verdict(release: ph.Release, data: pd.DataFrame) -> Section:
    lost = damaged_pairs(pair_ratios(release, data))
    return verdict_section(release, judged_columns(release, data), lost)


def test_a_copy_is_good_and_a_wreck_is_named(release: ph.Release, data: pd.DataFrame) -> None:
    good = _verdict(replace(release, synthetic=[data, data]), data)
    assert good.bullets == ["The checks of this page found nothing wrong."]
    assert good.paragraphs[1][2] == "Good: visits, stays."
    wreck = replace(release, synthetic=[data.assign(stays=data["stays"] + 4)] * 2)
    bad = _verdict(wreck, data)
    (said,) = bad.bullets
    assert said.startswith("stays is POOR: error of the mean 2")
    assert said.count("(beyond ") == 4
    table = judged_table(judged_columns(wreck, data))
    assert "Max-ECDF (good to 0.05, POOR beyond 0.1)" in table.header
    cells = {str(row[0]): row[1:] for row in table.rows}
    for name, word in (("stays", "POOR"), ("visits", "good")):
        assert {cell.word for cell in cells[name] if isinstance(cell, Marked)} == {word}
    page = render_page("x", [replace(bad, tables=[table])], confidential=True)
    assert '<span class="word poor">POOR</span>' in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_opens_with_the_columns_the_worst_first_and_what_to_try(
    release: ph.Release, data: pd.DataFrame
) -> None:
    """Folded after that, and without a number of more digits than anyone reads."""
    wreck = replace(release, synthetic=[data.assign(stays=data["stays"] + 4)])
    page = release_report(wreck, data, table="survey.csv")
    check_page(page)
    top, _, below = page.partition("<details>")
    assert "survey.csv: 400 records, 4 columns" in top
    chips = re.findall(r'<strong>(\w+)</strong> <span class="word chip (\w+)"', top)
    assert chips == [("stays", "poor"), ("visits", "good")]
    assert "stays is POOR: error of the mean" in top
    assert below.count("<summary>") >= 4
    assert not re.search(r"\d\.\d{9,}", re.sub(r'src="[^"]+"', "", top))


def test_a_sequence_has_a_row_for_each_step_and_all_of_its_statement(
    release: ph.Release, data: pd.DataFrame
) -> None:
    page = release_report(release, data)
    check_page(page)
    assert "###" not in page
    assert "{'" not in page and "{&#39;" not in page  # noqa: PT018
    for column, part in zip(("visits", "stays"), release.parts, strict=True):
        assert page.count(str(part.charge.epsilon)) >= 1
        for heading in ("Disclosure by record", "By-record bounds", "Convergence"):
            assert f"<h3>{heading}: {column}</h3>" in page


def test_a_relation_that_is_lost_is_named_on_top_and_chance_is_not(
    release: ph.Release, data: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same distribution of the outcome, given to other sites: only the groups show it."""
    drawn = [data.sample(400, replace=True, random_state=k, ignore_index=True) for k in (1, 2)]
    assert not damaged_pairs(pair_ratios(replace(release, synthetic=drawn), data))
    shuffled = data.assign(visits=data["visits"].sample(frac=1, random_state=3).to_numpy())
    shown = replace(release, synthetic=[shuffled])
    (said,) = _verdict(shown, data).bullets
    assert "by a factor of: site and visits " in said
    show_release(data, replace(shown, synthetic=[shuffled.drop(columns="site")]), Path("out"))
    assert f"- {said}" in capsys.readouterr().out

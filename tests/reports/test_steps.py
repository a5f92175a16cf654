"""The pages of a sequence: each step has the checks of its fit that a single release has."""

import re

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.reports.page import number_text
from pyhybrid.reports.release import release_pages
from tests.reports.accessible import check_page


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    visits = rng.poisson(3, 300)
    return pd.DataFrame({"visits": visits, "stays": rng.poisson(1 + visits / 4)})


@pytest.fixture(scope="module")
def release(data: pd.DataFrame) -> ph.Release:
    steps = [
        ph.LipschitzWeighted(ph.Poisson("visits ~ 1")),
        ph.CountWeighted(ph.Poisson("stays ~ visits"), radius=0.2),
    ]
    settings = ph.engines.SamplerSettings(warmup=400, draws=400)
    return ph.SequentialSynthesis(steps).release(
        data, n_synthetic=2, seed=1, engine="embedded", settings=settings, on_not_converged="warn"
    )


@pytest.fixture(scope="module")
def pages(release: ph.Release) -> dict[str, str]:
    return release_pages(release)


def _cells(page: str, heading: str) -> dict[str, list[str]]:
    """Cells of the table under a heading, by the first of each row."""
    section = re.search(rf"<h3>{heading}</h3>(.*?)</section>", page, re.DOTALL)
    assert section is not None, heading
    found = {}
    for row in re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", section[1], re.DOTALL):
        first, *rest = (re.sub(r"<[^>]+>", "", cell) for cell in re.split(r"</t[hd]>", row))
        found[first] = rest[:-1]
    return found


@pytest.mark.long
def test_steps_have_predictive_checks_of_their_own_column(
    pages: dict[str, str], data: pd.DataFrame
) -> None:
    for place, column in enumerate(("visits", "stays"), start=1):
        page = pages[f"report_step_{place}.html"]
        check_page(page)
        assert f"<h1>Step {place} of 2: {column}</h1>" in page
        shown = _cells(page, f"Posterior predictive checks: {column}")
        assert shown["mean"][0] == number_text(float(data[column].mean()))
        assert shown["largest"][0] == number_text(float(data[column].max()))
    assert "Posterior predictive checks" not in pages["report.html"]


@pytest.mark.long
def test_steps_have_the_losses_of_their_own_fit(
    release: ph.Release, pages: dict[str, str], data: pd.DataFrame
) -> None:
    largest = []
    for place, (step, text) in enumerate(
        zip(release.steps.values(), ("visits ~ 1", "stays ~ visits"), strict=True), start=1
    ):
        log_lik = ph.Poisson(text).bind(data).log_lik(step.fit.draws)
        kept = np.flatnonzero(step.fit.bounds.kept_draws)
        draws = kept[np.linspace(0, kept.size - 1, 1_000).astype(np.intp)]
        terms = np.hstack([block for _, block in log_lik.at(draws).blocks()])
        loss = ph.leave_one_out_loss(terms[:, log_lik.row_of], step.fit.alpha)
        shown = _cells(pages[f"report_step_{place}.html"], "Leave-one-out loss by record")
        assert shown["largest over the draws"][-1] == number_text(float(loss.by_record.max()))
        largest.append(shown["largest over the draws"][-1])
    assert largest[0] != largest[1]


def test_levels_that_are_numbers_are_checked_by_their_values() -> None:
    """Seen: the mean of places among the levels stood as that of the data."""
    data = pd.DataFrame({"y": np.random.default_rng(2).choice([0, 1, 6], 300)})
    release = ph.Unweighted(ph.Ordinal("y ~ 1")).release(data, seed=1, engine="embedded")
    shown = _cells(release_pages(release)["report.html"], "Posterior predictive checks: y")
    assert shown["mean"][0] == number_text(float(data["y"].mean()))
    assert shown["largest"][:2] == ["6", "6 [6, 6]"]

"""The pages of a sequence: each step has the checks of its fit that a single release has."""

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
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


@pytest.mark.long
def test_steps_have_pages_of_their_own_column(pages: dict[str, str]) -> None:
    for place, column in enumerate(("visits", "stays"), start=1):
        page = pages[f"report_step_{place}.html"]
        check_page(page)
        assert f"<h1>Step {place} of 2: {column}</h1>" in page
        assert f"Data against synthetic data: {column}" in page
        assert "Disclosure by record" in page
    check_page(pages["report.html"])

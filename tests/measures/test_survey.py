"""Design-based means against statsmodels' cluster-robust weighted regression and by simulation."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from pyhybrid.measures import SurveyDesign, survey_mean
from tests.refusals import refuses


def _sample(rng: np.random.Generator, n_clusters: int = 40, size: int = 5) -> pd.DataFrame:
    cluster = np.repeat(np.arange(n_clusters), size)
    y = rng.normal(size=n_clusters)[cluster] + rng.normal(size=cluster.size)
    return pd.DataFrame({"y": y, "w": rng.uniform(1, 5, cluster.size), "c": cluster})


def test_the_variance_is_the_cluster_robust_one() -> None:
    table = _sample(np.random.default_rng(1))
    found = survey_mean(table["y"], SurveyDesign(weights="w", clusters="c").read(table))
    fit = sm.WLS(table["y"], np.ones(len(table)), weights=table["w"]).fit(
        cov_type="cluster", cov_kwds={"groups": table["c"], "use_correction": False}
    )
    assert found.estimate == pytest.approx(fit.params.iloc[0], rel=1e-12)
    assert found.standard_error == pytest.approx(fit.bse.iloc[0] * np.sqrt(40 / 39), rel=1e-10)
    assert found.degrees == 39


def test_equal_weights_without_clusters_are_the_textbook_mean() -> None:
    y = np.random.default_rng(2).normal(size=50)
    records = SurveyDesign(weights="w").read(pd.DataFrame({"y": y, "w": 3.0}))
    found = survey_mean(y, records).standard_error
    assert found == pytest.approx(y.std(ddof=1) / np.sqrt(50), rel=1e-12)
    refuses("50 finite numbers", survey_mean, [1.0, np.nan], records)
    assert "confidential" in repr(records)


def test_strata_take_their_means_out_of_the_variance() -> None:
    rng = np.random.default_rng(3)
    stratum = np.repeat([0, 1], 100)
    y = 10.0 * stratum + rng.normal(size=200)
    table = pd.DataFrame({"y": y, "w": 1.0, "s": stratum})
    with_strata = survey_mean(y, SurveyDesign(weights="w", strata="s").read(table))
    without = survey_mean(y, SurveyDesign(weights="w").read(table))
    by_hand = np.sqrt(sum(y[stratum == h].var(ddof=1) / 100 / 4 for h in (0, 1)))
    assert with_strata.standard_error == pytest.approx(by_hand, rel=1e-10)
    assert without.standard_error > 4 * with_strata.standard_error

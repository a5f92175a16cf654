"""The owner's report shows published estimates beside those without clip and noise."""

import numpy as np
import pandas as pd
import statsmodels.api as sm

import pyhybrid as ph
from pyhybrid.reports.release import _steps, estimates_section, release_pages

STEPS = ph.SequentialSynthesis([
    ph.ClippedScores(ph.Bernoulli("stays ~ x", levels=(0, 1)), epsilon=1),
    ph.ClippedScores(ph.Poisson("visits ~ stays"), epsilon=1),
])  # fmt: skip


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=3000).round(3)
    stays = rng.binomial(1, 1 / (1 + np.exp(-x)))
    return pd.DataFrame({"x": x, "visits": rng.poisson(np.exp(1 + 0.3 * x)), "stays": stays})


def test_estimates_stand_beside_those_of_another_library() -> None:
    """Of statsmodels, whose maximum likelihood the prior hardly moves."""
    table = _table()
    release = ph.ClippedScores(ph.Poisson("visits ~ x"), epsilon=2).release(table)
    (part,) = estimates_section(release, release.origin)
    shown = {row[0]: [float(cell) for cell in row[1:3]] for row in part.tables[0].rows}
    fit = sm.Poisson(table["visits"], sm.add_constant(table["x"])).fit(disp=False)
    for name, place in (("Intercept", 0), ("x", 1)):
        assert abs(shown[name][0] - fit.params.iloc[place]) < 0.2 * fit.bse.iloc[place] + 5e-4
        assert shown[name][1] == float(f"{ph.estimates(release)['estimate'][name]:.4g}")
    assert len(part.pictures) == 1


def test_each_step_of_a_sequence_has_estimates_and_a_loaded_release_none(tmp_path) -> None:
    release = STEPS.release(_table())
    parts = [estimates_section(*step)[0] for step in _steps(release)]
    names = [[row[0] for row in part.tables[0].rows] for part in parts]
    assert names == [["Intercept", "x"], ["Intercept", "stays"]]
    release.save(tmp_path / "out", report=False)
    loaded = ph.Release.load(tmp_path / "out")
    assert not any(estimates_section(*step) for step in _steps(loaded))


def test_a_record_that_cannot_be_coded_hides_estimates_and_not_the_report() -> None:
    """Seen: the whole report failed by a text among the counts of an earlier step."""
    table = _table().astype({"stays": object})
    table.loc[7, "stays"] = "zz"
    release = STEPS.release(table)
    first, second = _steps(release)
    assert estimates_section(*first)
    assert not estimates_section(*second)
    page = release_pages(release)["report.html"]
    assert ("Estimates: stays" in page, "Estimates: visits" in page) == (True, False)

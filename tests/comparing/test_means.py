"""A warning where re-weighting takes the mean from the data; none where it does not."""

import html
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.reports.comparison import comparison_report
from pyhybrid.studies.comparing import comparison
from pyhybrid.studies.comparing.comparison import Comparison, compare, moved_away

MODEL = ph.NegativeBinomial("y ~ 1")
STEP = Reweighting.published()
CANDIDATES = {
    "LW_final": ph.LipschitzWeighted(MODEL, reweighting=STEP),
    "CW_final": ph.CountWeighted(MODEL, reweighting=STEP),
    "CW": ph.CountWeighted(MODEL),
}


def _compared(y: Any, names: tuple[str, ...]) -> Comparison:
    return compare(
        {name: CANDIDATES[name] for name in names}, pd.DataFrame({"y": y}), n_synthetic=2, seed=4,
        engine="embedded", settings=SamplerSettings(chains=4, warmup=300, draws=300),
        on_not_converged="warn",
    )  # fmt: skip


@pytest.fixture(scope="module")
def skewed() -> Comparison:
    """Most values 0 or small, as the visits of study D: the mean of CW falls further."""
    y = np.random.default_rng(4).negative_binomial(0.5, 0.5 / 3.3, 400)
    with pytest.warns(UserWarning, match="further from the data in CW_final: its weights"):
        return _compared(y, tuple(CANDIDATES))


@pytest.mark.long
def test_it_names_the_candidates_and_no_value(skewed: Comparison) -> None:
    """LW_final re-weights, too, and comes nearer; CW does not re-weight."""
    assert skewed.moved_away == ("CW_final",)
    said = comparison.moved_away_text(("CW_final", "B"), "y")
    assert "in CW_final, B: their weights" in said
    assert not any(sign.isdigit() for sign in said)
    page = html.unescape(comparison_report(skewed))
    told = comparison.moved_away_text(("CW_final",), "y")
    assert page.count(f"<li>{told[0].upper()}{told[1:]}.</li>") == 1


def test_nothing_is_said_where_the_mean_comes_nearer() -> None:
    rng = np.random.default_rng(4)
    y = rng.poisson(rng.gamma(np.where(rng.random(400) < 0.2, 5.0, 20.0), 5.0))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="re-weighting took")
        found = _compared(y, ("LW_final",))
    assert found.moved_away == ()
    assert "Re-weighting took" not in comparison_report(found)


@pytest.mark.long
@pytest.mark.parametrize(("shift", "moved"), [(-0.55, True), (-0.45, False), (1.0, False)])
def test_only_a_material_move_away_counts(
    shift: float, moved: bool, skewed: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a standard error of the data's mean is where it begins to matter."""
    release = skewed.releases["CW_final"]
    path = release.reweighted
    data = np.asarray(skewed.session.bound.outcome, dtype=np.float64)
    error = data.std() / np.sqrt(data.size)

    def simulated(_: Any, fit: Any, *__: Any) -> Any:
        moved_by = shift * error if fit is path.fit else 0.0
        return np.full((50, 1), data.mean() - 3 * error + moved_by)

    monkeypatch.setattr(comparison, "means_of", simulated)
    named = moved_away(skewed.session, {"x": release}, "y")
    assert named == (("x",) if moved else ())
    kept = replace(release, reweighted=replace(path, fit=path.start))
    assert moved_away(skewed.session, {"x": kept}, "y") == ()

"""Studies C and D: the papers' step, and a mean that does not come back is said."""

import pandas as pd

from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.models import NegativeBinomial
from pyhybrid.studies import STUDIES
from pyhybrid.studies.counts import candidates


def test_the_candidates_make_the_published_step_under_the_papers_accounting() -> None:
    made = candidates(NegativeBinomial("y ~ 1"))
    step = Reweighting.published(k=0.95)
    assert {name: each.reweighting for name, each in made.items()} == {
        "Unweighted": False, "LW": False, "CW": False, "LW_final": step, "CW_final": step,
        "CW (radius 0.3, shift 0.1)": False, "CW (radius 0.3, shift 0.1)_final": step,
    }  # fmt: skip
    counted = [each for name, each in made.items() if name.startswith("CW")]
    assert [(each.radius, each.shift) for each in counted] == [(0.2, 0), (0.2, 0)] + [
        (0.3, 0.1)
    ] * 2
    assert {each.accounting for each in made.values()} == {"lipschitz"}


def _line(visits: float) -> tuple[bool, str, str]:
    """Whether the claim holds if CW_final's mean of the visits is this."""
    means = {
        "salary, simulated": {"data": 100.0, "CW": 105.0, "CW_final": 99.0},
        "visits, RAND": {"data": 3.0, "CW": 1.4, "CW_final": visits},
    }
    summary = pd.DataFrame([
        {"setting": setting, "synthesizer": name, "quantity": "mean", "mean": value}
        for setting, by_name in means.items()
        for name, value in by_name.items()
    ])  # fmt: skip
    claim = next(c for c in STUDIES["D"].claims if c.text.startswith("re-weighting brings"))
    found, holds = claim.check(summary)
    return holds, found, claim.note


def test_a_mean_further_from_the_data_after_reweighting_is_said() -> None:
    """The control: nearer in both settings is agreement."""
    holds, found, note = _line(1.2)
    assert not holds
    assert "visits, RAND: data 3, CW 1.4, CW_final 1.2" in found
    assert "On the visits" in note
    assert _line(1.8)[0]

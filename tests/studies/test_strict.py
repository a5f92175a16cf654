"""Studies F and G: the papers' mechanisms, counts held against theirs, the cost of a cap."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.mechanisms import Censored, Truncated
from pyhybrid.models import Beta
from pyhybrid.studies import STUDIES
from pyhybrid.studies.runner import reproduce
from pyhybrid.studies.strict import replaced_and_removed, strict_mechanisms

PUBLISHED = {
    "Weighted-e": (29, 195, 573), "Censor_uw": (247, 419, 809), "Censor_w": (110, 408, 741),
}  # fmt: skip
MEANS = "mean counts are the published ones, within 3 standard errors"


def _agrees(censor_w: tuple[float, ...], n: int) -> bool:
    counts = {**PUBLISHED, "Censor_w": censor_w}
    rows = [
        {
            "setting": "n = 2000", "synthesizer": f"{name} at {epsilon}",
            "quantity": "records at the cap", "n": n, "mean": value, "mc_error": 1.0,
        }
        for name, values in counts.items()
        for epsilon, value in zip((5, 4, 3), values, strict=True)
    ]  # fmt: skip
    lines = reproduce(STUDIES["F"], pd.DataFrame(rows))
    return next(line.agrees for line in lines if line.quantity == MEANS)


@pytest.mark.parametrize("n", [5, 40])
def test_counts_of_plain_weights_inside_the_censoring_do_not_agree(n: int) -> None:
    """The control: 11, 78, 436 is what plain Lipschitz weights give over 40 databases."""
    assert _agrees((107, 389, 741), n)
    assert not _agrees((11, 78, 436), n)
    assert not _agrees((110, 408, 436), n)


def test_a_count_that_differs_at_one_epsilon_alone_is_seen_over_enough_databases() -> None:
    assert not _agrees((11, 408, 741), 40)


def test_the_censoring_has_reweighted_weights_and_the_truncation_plain_ones() -> None:
    made = strict_mechanisms(Beta("y ~ 1"), 4)
    weighted, truncated = made["Censor_w"], made["Weighted-e"]
    assert isinstance(weighted, Censored)
    assert isinstance(truncated, Truncated)
    plan = weighted.inner.reweighting
    assert (plan.k, plan.search, plan.recursive) == (0.95, False, False)  # type: ignore[union-attr]
    assert truncated.inner is None
    assert {each.accounting for each in (*made.values(), weighted.inner)} == {"lipschitz"}


def test_replacing_costs_four_caps_where_densities_exceed_one() -> None:
    """[C25] states 2 M for a replaced record: that is the cost of one that leaves."""
    cap = 1.5
    many = np.tile([30.0, -30.0], (2000, 1))
    terms = np.vstack([[-30.0, 30.0], many])
    replaced, removed = replaced_and_removed(terms, cap=cap)
    assert 4 * cap - 0.02 < replaced <= 4 * cap
    assert 2 * cap - 0.02 < removed <= 2 * cap
    replaced, removed = replaced_and_removed(np.minimum(terms, 0), cap=cap)
    assert 2 * cap - 0.02 < replaced <= 2 * cap
    assert cap - 0.02 < removed <= cap


def test_no_densities_cost_more() -> None:
    """Any parameters, any records; the control is 2 M for a replaced one, which many exceed."""
    most = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        terms = rng.normal(scale=rng.choice([0.5, 3.0, 30.0]), size=(rng.integers(2, 50), 4))
        replaced, removed = replaced_and_removed(terms, cap=1.0)
        assert removed <= 2 + 1e-12
        assert replaced <= 4 + 1e-12
        below, alone = replaced_and_removed(-np.abs(terms), cap=1.0)
        assert below <= 2 + 1e-12
        assert alone <= 1 + 1e-12
        most = max(most, replaced)
    assert most > 2.5

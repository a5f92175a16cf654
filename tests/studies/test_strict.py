"""Studies F and G: the papers' mechanisms, counts held against theirs, the cost of a cap."""

import numpy as np
import pytest

from pyhybrid.mechanisms import Censored, Truncated
from pyhybrid.models import Beta
from pyhybrid.studies import STUDIES
from pyhybrid.studies.runner import reproduce
from pyhybrid.studies.strict import replaced_and_removed, strict_mechanisms
from tests.studies.test_claims import summary_of

PUBLISHED = {
    "Weighted-e": (29, 195, 573), "Censor_uw": (247, 419, 809), "Censor_w": (110, 408, 741),
}  # fmt: skip
DEVIATIONS = (130.0, 93.0, 36.0)


@pytest.mark.parametrize(("counts", "n", "expected"), [
    ((107, 389, 741), 40, ["agrees"] * 3), ((107, 389, 741), 9, ["no evidence"] * 3),
    # The control: plain Lipschitz weights give 11, 78, 436 over 40 databases.
    ((11, 78, 436), 40, ["differs, with experiment"] * 3),
    ((110, 408, 436), 40, ["agrees", "agrees", "differs, with experiment"]),
    ((11, 408, 741), 40, ["differs, with experiment", "agrees", "agrees"]),
])  # fmt: skip
def test_counts_of_plain_weights_inside_the_censoring_do_not_agree(
    counts: tuple[float, ...], n: int, expected: list[str]
) -> None:
    """At epsilon 5, 4 and 3, with deviations as published."""
    rows = {
        ("n = 2000", f"{name} at {epsilon}", "records at the cap"): value
        for name, values in {**PUBLISHED, "Censor_w": counts}.items()
        for epsilon, value in zip((5, 4, 3), values, strict=True)
    }
    errors = np.tile(DEVIATIONS, len(PUBLISHED)) / n**0.5
    lines = reproduce(STUDIES["F"], summary_of(rows, n).assign(mc_error=errors))
    of_counts = lines["quantity"].str.fullmatch(r"Censor_w at \d, records at the cap .*")
    assert lines["verdict"][of_counts].tolist() == expected


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

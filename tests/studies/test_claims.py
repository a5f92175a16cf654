"""Claims of the studies hold for numbers that meet them, and fail for numbers that do not."""

from collections.abc import Mapping

import pandas as pd
import pytest

from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.models import NegativeBinomial
from pyhybrid.studies import STUDIES, masked
from pyhybrid.studies.counts import candidates
from pyhybrid.studies.income import PUBLISHED_BOUNDS


def _summary(rows: Mapping[tuple[str, str, str], float], n: int = 10) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "setting": setting, "synthesizer": synthesizer, "quantity": quantity, "n": n,
            "mean": value, "mc_error": 0.1, "lowest": value, "highest": value,
        }
        for (setting, synthesizer, quantity), value in rows.items()
    )  # fmt: skip


def _holds(study: str, start: str, summary: pd.DataFrame) -> bool | None:
    claim = next(c for c in STUDIES[study].claims if c.text.startswith(start))
    return claim.check(summary)[1]


def _bounds(factor: float, *, reverse: bool = False) -> dict[tuple[str, str, str], float]:
    values = list(PUBLISHED_BOUNDS.values())
    values = values[::-1] if reverse else values
    return {
        (setting, f"LW ({c:g}, {g:g})", "Lipschitz bound"): factor * value
        for setting in STUDIES["E"].settings
        for (c, g), value in zip(PUBLISHED_BOUNDS, values, strict=True)
    }


Rows = dict[tuple[str, str, str], float]


def _unweighted(of_mixture: float) -> Rows:
    values = zip(STUDIES["E"].settings, (60.0, of_mixture), strict=True)
    return {(setting, "Unweighted", "Lipschitz bound"): value for setting, value in values}


def _one_weight(scalar: float, counts: float) -> Rows:
    rows = _bounds(1.0)
    for setting in STUDIES["E"].settings:
        rows[setting, "EM for the bound of LW (0.7, 0)", "Lipschitz bound"] = scalar
        rows[setting, "CW (0.7, 0), balls around log income", "Lipschitz bound"] = counts
        rows[setting, "CW (0.7, 0), balls around income", "Lipschitz bound"] = 3.0
    return rows


def _counts(weighted: float, censored: float, scale: str) -> Rows:
    where = "n = 2000", f"at 4, weights times {scale}"
    return {
        (where[0], f"Weighted-e {where[1]}", "records at the cap"): weighted,
        (where[0], f"Censor_w {where[1]}", "records at the cap"): censored,
    }


def _errors(copula: float) -> Rows:
    return {
        ("n = 1000", "DA-MI, s2/K = 0.05, a = 6", "error of x"): -0.04,
        ("n = 1000", "DA-MI by a copula, s2/K = 0.05, a = 6", "error of x"): copula,
        ("n = 1000", "CART", "error of x"): 0.0,
    }


def _nearer(final: float, scalar: float) -> Rows:
    values = {"data": 100.0, "CW": 105.0, "CW_final": final, "LW": 110.0, "SW": scalar}
    return {
        ("salary, simulated", name, statistic): value
        for statistic in ("mean", "median", "q15", "q90")
        for name, value in values.items()
    }


def _sets(many: float) -> Rows:
    return {
        (masked._SETTING, name, quantity): value
        for name, error in ((masked._FEW, 1.0), (masked._MANY, many))
        for quantity, value in ((masked._ERROR, error), (masked._NAMED, 0.01))
    }


def _salaries(values: dict[str, float], setting: str = "salary, simulated") -> Rows:
    return {(setting, name, "max-ECDF"): value for name, value in values.items()}


def _ordered(of_epsilon: float) -> Rows:
    rest = {"Weighted": 6.0, "Censor_w": 9.0, "Censor_uw": 13.0}
    return _salaries({**rest, "Weighted-e": of_epsilon})


def _truncated(quantity: str, *values: float) -> Rows:
    """A quantity of Weighted-M at the four sizes of study A."""
    sizes = STUDIES["A"].settings
    return {(n, "Weighted-M", quantity): x for n, x in zip(sizes, values, strict=True)}


def _medians(weighted: float, histogram: float) -> Rows:
    values = {
        "data": 10.0, "Weighted": weighted, "Censor_w at 5": 12.0, "Censor_uw at 5": 14.0,
        "Weighted-e at 5": 15.0, "PH at 5": histogram,
    }  # fmt: skip
    return {("n = 2000", name, "median"): value for name, value in values.items()}


def _down_scaled(after: float) -> Rows:
    values = {"data": 0.0, "Weighted": 5.0, "Weighted, weights times 0.8": after}
    return {("n = 2000", name, "avg-ECDF"): value for name, value in values.items()}


def _posterior(mean: float, spread: float) -> Rows:
    values = {"posterior": (10.0, 2.0), "censored posterior": (mean, spread)}
    return {
        ("posterior of phi, n = 2000", name, f"{what} of phi"): value
        for name, both in values.items()
        for what, value in zip(("mean", "standard deviation"), both, strict=True)
    }


def _at_risk(named: float, error: float) -> Rows:
    """norm + logit names 0.001, at an error of 2; the masks `named` at `error`."""
    masks = dict.fromkeys((*masked._STRENGTHS, masked._COPULA), (named, error))
    off = {"DA-MI, masks off": (0.0, 0.0)}  # no mask: counts for nothing
    return {
        (masked._SETTING, name, quantity): value
        for name, both in {**masks, **off, "normal + logit": (0.001, 2.0)}.items()
        for quantity, value in zip((masked._NAMED, masked._ERROR), both, strict=True)
    }


def _apart(changes: Mapping[str, float]) -> Rows:
    """max-ECDF as published: Weighted best, then Censor_w, ..., PH worst."""
    order = {"Censor_w": 0.06, "Censor_uw": 0.1, "Weighted-e": 0.08, "PH": 0.2} | dict(changes)
    rows = {
        ("n = 2000", f"{name} at {epsilon}", "max-ECDF"): value
        for name, value in order.items()
        for epsilon in (5, 4, 3)
    }
    return rows | {("n = 2000", "Weighted", "max-ECDF"): 0.05}


BOUND, MU, SHARE = "Lipschitz bound", "posterior mean of mu", "share of weights at 0"
CLAIMS: dict[tuple[str, str], list[tuple[Rows, bool | None]]] = {
    ("A", "the largest Weighted-M bound"): [  # 1.05 M is 3.675
        (_truncated(BOUND, 3.6, 3.6, 3.6, 3.6), True),
        (_truncated(BOUND, 3.7, 3.6, 3.6, 3.6), False),
    ],
    ("A", "a factor of safety"): [  # 1.10 M is 3.85
        (_truncated(BOUND, 3.8, 3.8, 3.6, 3.6), True),
        (_truncated(BOUND, 3.8, 3.8, 3.7, 3.6), False),
    ],
    ("A", "of order root n"): [
        (_truncated(SHARE, 0.4, 0.2, 0.1, 0.05), True),
        (_truncated(SHARE, 0.1, 0.1, 0.1, 0.1), False),
    ],
    ("A", "utility loss"): [
        (_truncated(MU, 99.9, 99.5, 99, 98), True), (_truncated(MU, 99.9, 99.9, 99.9, 99.9), None),
        (_truncated(MU, 98, 99, 99, 99.9), False),
    ],
    ("F", "Weighted has the nearest median"): [
        (_medians(11, 16), True), (_medians(11, 12), None), (_medians(11, 10), False),
    ],
    ("F", "down-scaled weights bring the avg-ECDF of Weighted at 3"): [
        (_down_scaled(4.0), True), (_down_scaled(4.8), None), (_down_scaled(6.0), False),
    ],
    ("H", "censoring distorts"): [
        (_posterior(11, 2), True), (_posterior(10, 3), True), (_posterior(10.1, 2), None),
    ],
    ("I", "coefficients are nearer to the truth than with normal"): [
        (_at_risk(0.001, 1.0), True), (_at_risk(0.001, 1.9), None), (_at_risk(0.001, 3.0), False),
        (_at_risk(0.002, 1.0), None),
    ],
    ("E", "from (0.7, 0) to (0.5, -0.3)"): [
        (_bounds(1.0), True), (_bounds(1.0, reverse=True), False)
    ],
    ("E", "bounds of the six pairs"): [  # of another year they are proportional
        (_bounds(1.23), True), (_bounds(1.23, reverse=True), False)
    ],
    ("E", "the unweighted bound of the mixture"): [
        (_unweighted(70.0), True), (_unweighted(16.0), False),
        (_unweighted(70.0) | {("mixture", "Unweighted", "worst R-hat"): 1.8}, None),
    ],
    ("E", "EM (10.2) and CW"): [
        (_one_weight(10.2, 11.2), True), (_one_weight(10.2, 3.0), False),
        (_one_weight(25.0, 11.2), False),
    ],
    ("F", "down-scaled at 4"): [  # one scale must fit both counts
        (_counts(91, 144, "0.925") | _counts(0, 140, "0.8"), True),
        (_counts(91, 360, "0.925") | _counts(0, 140, "0.8"), False),
    ],
    ("F", "Censor_w has the lowest"): [(_apart({}), True), (_apart({"Censor_uw": 0.055}), False)],
    ("F", "Weighted has the lowest"): [(_apart({}), True), (_apart({"Censor_w": 0.04}), False)],
    ("F", "PH has a larger"): [(_apart({}), True), (_apart({"PH": 0.07}), False)],
    ("I", "a copula"): [
        (_errors(0.01), True), (_errors(-0.01), True), (_errors(-0.06), False)
    ],
    ("I", "more sets"): [(_sets(0.5), True), (_sets(0.9), None), (_sets(1.5), False)],
    ("D", "on salary CW_final is nearer"): [(_nearer(101, 120), True), (_nearer(108, 101), False)],
    ("D", "on salary LW is nearer"): [(_nearer(101, 120), True), (_nearer(108, 101), False)],
    ("B", "almost no re-weighted bound"): [  # the mean deviates by 0.32
        ({("Poisson(100)", "LW_final", "Lipschitz bound"): 2.9}, True),
        ({("Poisson(100)", "LW_final", "Lipschitz bound"): 3.4}, False),
    ],
    ("G", "Weighted is nearest"): [
        (_ordered(10.0), True), (_ordered(9.1), None), (_ordered(1.0), False)
    ],
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=" ".join)
def test_a_claim_holds_for_numbers_that_meet_it_alone(claim: tuple[str, str]) -> None:
    for rows, holds in CLAIMS[claim]:
        assert _holds(*claim, _summary(rows)) is holds


@pytest.mark.parametrize(("power", "holds"), [(-0.5, True), (-0.4, False)])
def test_the_rate_of_contraction(power: float, holds: bool) -> None:
    names = ("Unweighted", "Weighted", "Weighted-M")
    parts = []
    for setting in STUDIES["A"].settings:
        rows = _summary({(setting, name, MU): 100.0 for name in names})
        parts.append(rows.assign(mc_error=float(setting.removeprefix("n = ")) ** power))
    assert _holds("A", "posteriors contract", pd.concat(parts)) is holds


def test_a_setting_of_few_databases_is_no_evidence() -> None:
    rows, few = _ordered(10.0), _salaries(dict.fromkeys(("Weighted", "Censor_w"), 1.0), "few")
    both = pd.concat([_summary(rows), _summary(few, n=9)])
    assert _holds("G", "Weighted is nearest", both) is True
    assert _holds("G", "Weighted is nearest", _summary(rows, n=9)) is None


def test_chains_that_disagree_are_no_evidence() -> None:
    """The control: a mixture of wrong order counts where its chains agree."""
    rows = _bounds(1.0)
    first, mixture = STUDIES["E"].settings
    wrong = _bounds(1.0, reverse=True)
    rows |= {key: value for key, value in wrong.items() if key[0] == mixture}
    start = "bounds of the six pairs"
    for rhat, holds in ((1.8, True), (1.01, False)):
        of_chains = {(mixture, "LW (0.7, 0)", "worst R-hat"): rhat}
        assert _holds("E", start, _summary(rows | of_chains)) == holds
    both = {(setting, "LW (0.7, 0)", "worst R-hat"): 1.8 for setting in (first, mixture)}
    assert not _holds("E", start, _summary(_bounds(1.0) | both))


def test_the_candidates_make_the_published_step_under_the_papers_accounting() -> None:
    made = candidates(NegativeBinomial("y ~ 1"))
    step = Reweighting.published(k=0.95)
    assert {name: each.reweighting for name, each in made.items()} == {
        "Unweighted": False, "LW": False, "CW": False, "LW_final": step, "CW_final": step,
    }  # fmt: skip
    counted = [each for name, each in made.items() if name.startswith("CW")]
    assert [(each.radius, each.shift) for each in counted] == [(0.2, 0), (0.2, 0)]
    assert {each.accounting for each in made.values()} == {"lipschitz"}


@pytest.mark.parametrize(("visits", "holds"), [(1.0, False), (1.8, True), (1.2, None)])
def test_a_mean_further_from_the_data_after_reweighting_is_said(
    visits: float, holds: bool | None
) -> None:
    means = {
        "salary, simulated": {"data": 100.0, "CW": 105.0, "CW_final": 99.0},
        "visits, RAND": {"data": 3.0, "CW": 1.4, "CW_final": visits},
    }
    rows = {
        (setting, name, "mean"): value
        for setting, by_name in means.items()
        for name, value in by_name.items()
    }
    claim = next(c for c in STUDIES["D"].claims if c.text.startswith("re-weighting brings"))
    found, held = claim.check(_summary(rows))
    assert held is holds
    assert f"visits, RAND: mean: data 3, CW_final {visits:g}, CW 1.4" in found
    assert "on the visits" in claim.experiment

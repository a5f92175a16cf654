"""Claims of the studies hold for numbers that meet them, and fail for numbers that do not."""

from collections.abc import Mapping

import pandas as pd
import pytest

from pyhybrid.studies import STUDIES, masked
from pyhybrid.studies.income import PUBLISHED_BOUNDS


def _summary(rows: Mapping[tuple[str, str, str], float], n: int = 10) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "setting": setting, "synthesizer": synthesizer, "quantity": quantity, "n": n,
            "mean": value, "mc_error": 0.1, "lowest": value, "highest": value,
        }
        for (setting, synthesizer, quantity), value in rows.items()
    )  # fmt: skip


def _holds(study: str, start: str, summary: pd.DataFrame) -> bool:
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


def test_bounds_of_another_year_are_proportional_or_they_are_not() -> None:
    assert _holds("E", "bounds of the six pairs", _summary(_bounds(1.23)))
    assert not _holds("E", "bounds of the six pairs", _summary(_bounds(1.23, reverse=True)))


@pytest.mark.parametrize(("of_mixture", "holds"), [(70.0, True), (16.0, False)])
def test_the_mixture_must_have_the_published_unweighted_bound(
    of_mixture: float, holds: bool
) -> None:
    rows = {
        (setting, "Unweighted", "Lipschitz bound"): value
        for setting, value in zip(STUDIES["E"].settings, (60.0, of_mixture), strict=True)
    }
    assert _holds("E", "the unweighted bound of the mixture", _summary(rows)) == holds


@pytest.mark.parametrize(("scalar", "counts", "holds"), [(10.2, 11.2, True), (10.2, 3.0, False),
                                                         (25.0, 11.2, False)])  # fmt: skip
def test_one_weight_and_counts_must_be_like_lipschitz(
    scalar: float, counts: float, holds: bool
) -> None:
    rows = _bounds(1.0)
    for setting in STUDIES["E"].settings:
        rows[setting, "EM for the bound of LW (0.7, 0)", "Lipschitz bound"] = scalar
        rows[setting, "CW (0.7, 0), balls around log income", "Lipschitz bound"] = counts
        rows[setting, "CW (0.7, 0), balls around income", "Lipschitz bound"] = 3.0
    assert _holds("E", "EM (10.2) and CW", _summary(rows)) == holds


def _counts(weighted: float, censored: float, scale: str) -> dict[tuple[str, str, str], float]:
    where = "n = 2000", f"at 4, weights times {scale}"
    return {
        (where[0], f"Weighted-e {where[1]}", "records at the cap"): weighted,
        (where[0], f"Censor_w {where[1]}", "records at the cap"): censored,
    }


@pytest.mark.parametrize(("weighted", "censored", "holds"), [(91, 144, True), (91, 360, False)])
def test_one_scale_must_fit_both_counts(weighted: float, censored: float, holds: bool) -> None:
    rows = _counts(weighted, censored, "0.925") | _counts(0, 140, "0.8")
    assert _holds("F", "down-scaled at 4", _summary(rows)) == holds


def _errors(published: float, copula: float) -> dict[tuple[str, str, str], float]:
    return {
        ("n = 1000", "DA-MI, s2/K = 0.05, a = 6", "error of x"): published,
        ("n = 1000", "DA-MI by a copula, s2/K = 0.05, a = 6", "error of x"): copula,
        ("n = 1000", "CART", "error of x"): 0.0,
    }


@pytest.mark.parametrize(("copula", "holds"), [(0.01, True), (-0.01, True), (-0.06, False)])
def test_the_copula_must_be_nearer(copula: float, holds: bool) -> None:
    assert _holds("I", "a copula", _summary(_errors(-0.04, copula))) == holds


def _differences(ours: float, searched: float) -> dict[tuple[str, str, str], float]:
    """Centers of intervals less the data's: the published ones, apart by these numbers."""
    published = {"q15": 6.5, "q90": -4.75, "mean": 1.4, "median": 2.05}
    return {
        ("one database", name, f"{statistic} less the data's"): value + apart
        for name, apart in (("CW", ours), ("CW (radius 0.3, shift 0.1)", searched))
        for statistic, value in published.items()
    }


@pytest.mark.parametrize(
    ("ours", "searched", "holds"), [(3, 0.1, True), (0.1, 0.1, False), (3, 3, False)]
)
def test_the_weights_searched_for_must_bring_the_published_differences(
    ours: float, searched: float, holds: bool
) -> None:
    summary = _summary(_differences(ours, searched))
    assert _holds("C", "the published differences of CW", summary) == holds


@pytest.mark.parametrize(("final", "scalar", "better"), [(101, 120, True), (108, 101, False)])
def test_salaries_must_come_nearer_as_published(final: float, scalar: float, better: bool) -> None:
    setting = "salary, simulated"
    rows = {
        (setting, name, statistic): value
        for statistic in ("mean", "median", "q15", "q90")
        for name, value in {
            "data": 100.0, "CW": 105.0, "CW_final": final, "LW": 110.0, "SW": scalar,
        }.items()
    }  # fmt: skip
    assert _holds("D", "on salary CW_final is nearer", _summary(rows)) == better
    assert _holds("D", "on salary LW is nearer", _summary(rows)) == better


@pytest.mark.parametrize(("bound", "holds"), [(2.9, True), (3.4, False)])
def test_almost_no_bound_must_exceed(bound: float, holds: bool) -> None:
    rows = {("Poisson(100)", "LW", "Lipschitz bound"): bound}  # deviates by 0.32
    assert _holds("B", "almost no bound", _summary(rows)) == holds


@pytest.mark.parametrize(("many", "holds"), [(0.5, True), (0.9, False)])
def test_more_sets_must_help_beyond_their_error(many: float, holds: bool) -> None:
    rows = {}
    for name, error in ((masked._FEW, 1.0), (masked._MANY, many)):
        rows |= {
            (masked._SETTING, name, masked._ERROR): error,
            (masked._SETTING, name, masked._NAMED): 0.01,
        }
    assert _holds("I", "more sets", _summary(rows)) == holds


def _salaries(
    values: dict[str, float], setting: str = "salary, simulated"
) -> dict[tuple[str, str, str], float]:
    return {(setting, name, "max-ECDF"): value for name, value in values.items()}


def test_the_order_of_the_salaries_is_checked() -> None:
    rows = _salaries({"Weighted": 0.06, "Censor_w": 0.09, "Weighted-e": 0.1, "Censor_uw": 0.13})
    start = "Weighted is nearest"
    assert _holds("G", start, _summary(rows))
    rows["salary, simulated", "Weighted-e", "max-ECDF"] = 0.01
    assert not _holds("G", start, _summary(rows))


@pytest.mark.parametrize(("rounded", "holds"), [(0.08, True), (0.02, False)])
def test_each_change_of_the_salaries_must_help(rounded: float, holds: bool) -> None:
    names = ("Weighted", "Weighted-e", "Censor_w", "Censor_uw", "PH")
    rows: dict[tuple[str, str, str], float] = {}
    for change, value in (
        ("", 0.04), (", rounded", rounded), (", with zeros", 0.07),
        (", rounded and with zeros", 0.09),
    ):  # fmt: skip
        rows |= _salaries(dict.fromkeys(names, value), f"salary of table 2's quantiles{change}")
    rows |= _salaries(dict.fromkeys(names, 0.03))
    assert _holds("G", "the margin of table 2", _summary(rows)) == holds


F_COUNTS = {
    "Weighted-e": {5: 29, 4: 195, 3: 573}, "Censor_uw": {5: 247, 4: 419, 3: 809},
    "Censor_w": {5: 110, 4: 408, 3: 741},
}  # fmt: skip


def _met(more: float, quantity: str = "records at the cap") -> dict[tuple[str, str, str], float]:
    return {
        ("n = 2000", f"{name} at {epsilon}", quantity): value + more
        for name, by_epsilon in F_COUNTS.items()
        for epsilon, value in by_epsilon.items()
    }


def test_counts_are_judged_by_the_printed_deviations() -> None:
    start = "mean counts are the published ones"
    assert _holds("F", start, _summary(_met(3)))
    assert not _holds("F", start, _summary(_met(12)))  # 6 errors of Censor_uw at 5
    few = "records at the cap, of 1,000 draws"
    start = "fewer draws"
    assert _holds("F", start, _summary(_met(12) | _met(2, few)))
    assert not _holds("F", start, _summary(_met(12) | _met(12, few)))


def _apart(
    changes: Mapping[str, float], bins: Mapping[int, float] = {}
) -> dict[tuple[str, str, str], float]:
    """max-ECDF as published: Weighted best, then Censor_w, ..., PH worst."""
    order = {"Censor_w": 0.06, "Censor_uw": 0.1, "Weighted-e": 0.08, "PH": 0.2} | dict(changes)
    rows = {
        ("n = 2000", f"{name} at {epsilon}", "max-ECDF"): value
        for name, value in order.items()
        for epsilon in (5, 4, 3)
    }
    rows |= {
        ("n = 2000", f"PH at {epsilon}, {number} bins", "max-ECDF"): bins.get(number, 0.01)
        for number in (10, 50, 100)
        for epsilon in (5, 4, 3)
    }
    return rows | {("n = 2000", "Weighted", "max-ECDF"): 0.05}


@pytest.mark.parametrize(
    ("start", "wrong"),
    [
        ("Censor_w has the lowest", {"Censor_uw": 0.055}),
        ("Weighted has the lowest", {"Censor_w": 0.04}),
        ("PH has a larger", {"PH": 0.07}),
        ("so it is for one", {"PH": 0.07}),
    ],
)
def test_orders_at_each_epsilon(start: str, wrong: Mapping[str, float]) -> None:
    assert _holds("F", start, _summary(_apart({})))
    assert not _holds("F", start, _summary(_apart(wrong)))
    if start.startswith("so it is"):
        assert _holds("F", start, _summary(_apart(wrong, {100: 0.3})))


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

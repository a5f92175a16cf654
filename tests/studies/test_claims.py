"""Claims of the studies hold for numbers that meet them, and fail for numbers that do not."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pytest

from pyhybrid.studies import STUDIES
from pyhybrid.studies.income import PUBLISHED_BOUNDS


def _summary(rows: Mapping[tuple[str, str, str], float], n: int = 10) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "setting": setting,
            "synthesizer": synthesizer,
            "quantity": quantity,
            "n": n,
            "mean": value,
            "mc_error": 0.1,
            "lowest": value,
            "highest": value,
        }
        for (setting, synthesizer, quantity), value in rows.items()
    )


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


@pytest.mark.parametrize(("wide", "holds"), [((128.5, 134.0), True), ((125.0, 130.0), False)])
def test_the_radius_must_bring_the_published_quantile(
    wide: tuple[float, float], holds: bool
) -> None:
    rows = {}
    for name, ends in (("CW", (125.0, 130.0)), ("CW30", wide)):
        for end, value in zip(("lower", "upper"), ends, strict=True):
            rows["one database", name, f"q90 {end}"] = value
    assert _holds("C", "the published 90th percentile", _summary(rows)) == holds


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


@pytest.mark.parametrize(("with_zeros", "holds"), [(0.13, True), (0.09, False), (0.19, False)])
def test_zeros_must_bring_the_distances_to_the_published(with_zeros: float, holds: bool) -> None:
    rows = _salaries({"Weighted-e": 0.05, "Censor_uw": 0.07})
    rows |= _salaries(
        {"Weighted-e": 0.1, "Censor_uw": with_zeros}, "salary, simulated, rounded and with zeros"
    )
    assert _holds("G", "zeros among the salaries", _summary(rows)) == holds

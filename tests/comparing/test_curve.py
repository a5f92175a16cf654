"""The curve: equal bounds, numbers recomputed, bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.fitting.session import open_session
from pyhybrid.measures.estimates import avg_ecdf, max_ecdf
from pyhybrid.mechanisms.epsilon_search import Search
from pyhybrid.reports.figures import figure_png, plot_curve
from pyhybrid.studies.comparing import curve
from pyhybrid.studies.comparing.curve import NEAR, NOT_COVERED, RiskUtilityCurve, risk_utility_curve
from tests.comparing.test_comparison import private_files
from tests.fits import fit_options
from tests.refusals import refuses

MODEL = ph.Poisson("visits ~ 1")
OPTIONS = fit_options(chains=4, warmup=300, draws=600, n_synthetic=4, seed=8)
GRID: dict[str, Any] = {"scales": (1.0, 0.6), "shifts": (0.0, -0.1)}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"visits": np.random.default_rng(3).negative_binomial(20, 0.4, 300)})


@pytest.fixture(scope="module")
def found(table: pd.DataFrame) -> RiskUtilityCurve:
    return risk_utility_curve(MODEL, table, **GRID, **OPTIONS)


@pytest.mark.long
def test_scalar_weights_reach_the_bound_and_stay_below(found: RiskUtilityCurve) -> None:
    points = found.table
    assert list(points["mechanism"]) == ["Unweighted", *["LW", "SW"] * 4]
    vector = points[points["mechanism"] == "LW"].reset_index()
    scalar = points[points["mechanism"] == "SW"].reset_index()
    assert list(zip(vector["scale"], vector["shift"], strict=True)) == [
        (1.0, 0.0), (1.0, -0.1), (0.6, 0.0), (0.6, -0.1)
    ]  # fmt: skip
    ratio = scalar["lipschitz_bound"] / vector["lipschitz_bound"]
    np.testing.assert_allclose(scalar["bound_ratio"], ratio, rtol=1e-12)
    assert ratio.between(NEAR, 1, inclusive="right").all()
    assert (scalar["refits"] >= 1).all()
    costs = scalar["epsilon"] / vector["epsilon"]
    np.testing.assert_allclose(costs, ratio, rtol=0.01)  # epsilons are rounded up
    assert (vector["bound_ratio"] == 1).all()
    assert (vector["mean_weight"] > scalar["mean_weight"]).all()  # what vectors are for


@pytest.mark.parametrize("power", [0.4, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("wanted", [0.3, 1.3, 2.6, 3.8])
def test_the_search_reaches_the_bound_whatever_its_power(wanted: float, power: float) -> None:
    """Bounds that are a power of the weight, from 3.9 at a weight of 1."""
    search = Search(lambda w: 3.9 * w**power if w else 0.0, (0.0, 1.0), "weight", 10)
    weight = search.largest_within(wanted, (1 - NEAR) * wanted)
    assert NEAR * wanted < search.tried[weight] <= wanted
    assert len(search.tried) < curve._MOST_REFITS


@pytest.mark.long
def test_utilities_are_means_over_the_sets(found: RiskUtilityCurve, table: pd.DataFrame) -> None:
    """Recomputed from the sets of the same weights: they share their random stream."""
    alpha = np.full(300, found.table.iloc[-1]["mean_weight"])
    session = open_session(
        MODEL.bind(table), seed=8, engine="embedded", settings=OPTIONS["settings"]
    )
    plain = session.unweighted()
    weights = ph.arrays.weights_from_lipschitz(plain.bounds.by_record, scale=0.6, shift=-0.1)
    vector = session.fit(weights, label="LW", warm_start=plain.draws.warm_start())
    fit, refits = curve.scalar_fit(session, vector)
    np.testing.assert_allclose(fit.alpha, alpha, rtol=1e-12)
    release = ph.GivenWeights(MODEL, alpha=fit.alpha, accounting="lipschitz").release_from(
        session, n_synthetic=4, n_draws_released=4
    )
    y, row = table["visits"], found.table.iloc[-1]
    sets = [each["visits"] for each in release.synthetic]
    assert row["refits"] == refits
    assert row["max_ecdf"] == pytest.approx(np.mean([max_ecdf(y, s) for s in sets]))
    assert row["avg_ecdf"] == pytest.approx(np.mean([avg_ecdf(y, s) for s in sets]))
    assert row["error_mean"] == pytest.approx(abs(np.mean([s.mean() for s in sets]) - y.mean()))
    expected = abs(np.mean([np.quantile(s, 0.9) for s in sets]) - np.quantile(y, 0.9))
    assert row["error_q90"] == pytest.approx(expected)


@pytest.mark.parametrize(("change", "message"), [
    ({"scales": []}, "scales must hold at least one number"),
    ({"scales": "1"}, "each of scales must be a finite number"),
    ({"scales": [float("nan")]}, "each of scales must be a finite number"),
    ({"scales": [-1.0]}, "scales must be >= 0"), ({"shifts": ["a"]}, "each of shifts"),
    ({"scales": [0.5], "shifts": [-0.5]}, "at scale 0.5, shift -0.5"),
    ({"n_synthetic": 0}, "n_synthetic"),
    ({"engine": "none"}, "engine must be one of"),
])  # fmt: skip
def test_bad_arguments(table: pd.DataFrame, change: dict[str, Any], message: str) -> None:
    arguments = {"scales": [1.0], **OPTIONS, **change}
    refuses(message, risk_utility_curve, MODEL, table, **arguments)


@pytest.mark.long
def test_the_plot_shows_both_curves_and_its_points(found: RiskUtilityCurve) -> None:
    figure = plot_curve(found.table)
    assert len(figure.axes) == 4
    for ax, measure in zip(figure.axes, ("max_ecdf", "avg_ecdf", "error_mean", "error_q90"),
                           strict=True):  # fmt: skip
        vector, scalar, unweighted = ax.lines
        own = found.table[found.table["mechanism"] == "LW"].sort_values("epsilon")
        np.testing.assert_array_equal(vector.get_xydata(), own[["epsilon", measure]])
        assert len(scalar.get_xdata()) == 4
        assert unweighted.get_ydata()[0] == found.table[measure][0]
        assert {text.get_text() for text in ax.texts} == {
            "(1, 0)", "(1, -0.1)", "(0.6, 0)", "(0.6, -0.1)"
        }  # fmt: skip
    assert figure_png(figure) == figure_png(plot_curve(found.table))


@pytest.mark.long
def test_the_command_writes_a_private_folder(
    run: Any, found: RiskUtilityCurve, table: pd.DataFrame, tmp_path: Path
) -> None:
    table.to_csv("data.csv", index=False)
    code, out, err = run(
        "curve", "data.csv", "--formula", "visits ~ 1", "--model", "poisson", "--out", "out",
        "--fit", "engine=embedded,seed=8,warmup=300,draws=600", "--n-synthetic", "4",
        "--scales", "1", "--shifts", "0",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert NOT_COVERED in out
    folder = tmp_path / "out"
    assert private_files(folder) == {"curve.png", "table.csv"}
    pd.testing.assert_frame_equal(pd.read_csv(folder / "table.csv"), found.table[:3])

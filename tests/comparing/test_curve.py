"""The curve: equal bounds, numbers recomputed, resumption bit for bit, workers, bad input."""

import json
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.measures.arrays.estimates import avg_ecdf, max_ecdf
from pyhybrid.reports.figures import figure_png, plot_curve
from pyhybrid.running.resumable import fingerprint, open_parts
from pyhybrid.studies.comparing import curve
from pyhybrid.studies.comparing.curve import NEAR, NOT_COVERED, RiskUtilityCurve, risk_utility_curve
from tests.fits import fit_options
from tests.refusals import fails, refuses

MODEL = ph.Poisson("visits ~ 1")
OPTIONS = fit_options(chains=4, warmup=300, draws=600, n_synthetic=4, seed=8)
BY_BOUND = {**OPTIONS, "accounting": "lipschitz"}
GRID: dict[str, Any] = {"scales": (1.0, 0.6), "shifts": (0.0, -0.1)}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.DataFrame({"visits": np.random.default_rng(3).negative_binomial(20, 0.4, 300)})


@pytest.fixture(scope="module")
def written(table: pd.DataFrame, tmp_path_factory: Any) -> tuple[RiskUtilityCurve, bytes]:
    """The curve of all points, and its results file."""
    path = tmp_path_factory.mktemp("curve") / "points.jsonl"
    return risk_utility_curve(MODEL, table, **GRID, **BY_BOUND, results=path), path.read_bytes()


@pytest.fixture(scope="module")
def found(written: tuple[RiskUtilityCurve, bytes]) -> RiskUtilityCurve:
    return written[0]


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
    assert ratio.between(NEAR["lipschitz"], 1, inclusive="right").all()
    assert (scalar["refits"] >= 1).all()
    np.testing.assert_allclose(scalar["epsilon_ratio"], ratio, rtol=0.01)  # epsilons are rounded up
    assert (vector[["bound_ratio", "epsilon_ratio"]] == 1).all(axis=None)
    assert (vector["mean_weight"] > scalar["mean_weight"]).all()  # what vectors are for


# Epsilon of scalar weights of 400 negative binomial counts, as charged at one seed: where the
# posterior is nearly the prior, smaller weights make it wider, and the cost hardly falls.
_FEW_RECORDS = {
    1.0: 3.9, 0.8: 3.71, 0.5: 3.24, 0.3: 2.53, 0.2: 2.31, 0.15: 2.27, 0.1: 2.07, 0.07: 1.96,
    0.05: 1.85, 0.03: 1.99, 0.02: 1.97, 0.01: 1.21, 0.005: 0.89, 0.002: 0.6,
}  # fmt: skip


def _cost_of_few(weight: float) -> float:
    weights = sorted(_FEW_RECORDS)
    return float(
        np.interp(np.log(weight), np.log(weights), [_FEW_RECORDS[each] for each in weights])
    )


@pytest.mark.parametrize("wanted", [1.3, 1.7, 1.83, 1.95, 2.05, 2.13, 2.25, 2.29, 2.6, 3.1, 3.6])
def test_the_search_crosses_where_the_cost_hardly_falls(wanted: float) -> None:
    near = NEAR["gaussian"]
    search = curve._WeightSearch(wanted=wanted, unweighted=3.9, power=2.0, near=near)
    costs = []
    while not (costs and near * wanted < costs[-1] <= wanted):
        costs.append(_cost_of_few(search.weight))
        search.found(costs[-1])
        assert len(costs) < curve._MOST_REFITS


def test_the_control_steps_by_the_power_alone_do_not_cross_it() -> None:
    wanted, weight = 1.83, 1.0
    for _ in range(curve._MOST_REFITS):
        cost = _cost_of_few(weight)
        weight *= min(1.0, (0.975 * wanted / cost) ** 2.0)
        assert cost > wanted


@pytest.mark.long
def test_points_are_those_of_the_mechanism(found: RiskUtilityCurve, table: pd.DataFrame) -> None:
    release = ph.LipschitzWeighted(MODEL, scale=0.6, shift=-0.1).release(table, **OPTIONS)
    row = found.table.iloc[-2]
    assert row["lipschitz_bound"] == release.confidential.lipschitz_bound
    assert row["mean_weight"] == release.confidential.alpha.mean()
    assert row["epsilon"] == ph.arrays.epsilon_of_bound(row["lipschitz_bound"])
    unweighted = ph.Unweighted(MODEL).release(table, **OPTIONS)
    first = found.table.iloc[0]
    assert first["lipschitz_bound"] == unweighted.confidential.lipschitz_bound
    assert np.isnan(first["scale"])


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
    fit, refits = curve.scalar_fit(session, vector, session.unweighted().bounds.overall)
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


@pytest.mark.samples
def test_workers_and_executors_do_not_change_the_results(table: pd.DataFrame) -> None:
    """Workers sample in processes of their own, where no other draws can be put in their place."""
    how: Any = {"scales": (1.0, 0.6), **BY_BOUND}
    two = risk_utility_curve(MODEL, table, **how, workers=2)
    with ThreadPoolExecutor(1) as pool:
        other = risk_utility_curve(MODEL, table, **how, executor=pool)
    pd.testing.assert_frame_equal(other.table, two.table, check_exact=True)


class _Killed(BaseException):
    pass


@pytest.mark.long
def test_a_killed_run_goes_on_where_it_was(
    found: RiskUtilityCurve, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "points.jsonl"
    honest, calls = curve.scalar_fit, []

    def dies_at_the_third(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise _Killed
        return honest(*arguments)

    monkeypatch.setattr(curve, "scalar_fit", dies_at_the_third)
    fails(_Killed, "", risk_utility_curve, MODEL, table, **GRID, **BY_BOUND, results=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().count(b"\n") == 4  # header, unweighted, two points
    with path.open("ab") as file:
        file.write(b'{"key": "0.6, 0.0", "part": [{"mechan')  # as if killed while writing
    again = risk_utility_curve(MODEL, table, **GRID, **BY_BOUND, results=path)
    assert again.points_resumed == 2
    assert len(calls) == 5
    pd.testing.assert_frame_equal(again.table, found.table, check_exact=True)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [row.get("key") for row in rows[1:]] == [
        "unweighted", "1.0, 0.0", "1.0, -0.1", "0.6, 0.0", "0.6, -0.1"
    ]  # fmt: skip


@pytest.mark.long
def test_a_finished_file_needs_no_fit_and_serves_a_part_of_its_grid(
    written: Any, table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "points.jsonl"
    path.write_bytes(written[1])
    monkeypatch.setattr(curve.CurveSettings, "session", None)
    part = risk_utility_curve(MODEL, table, scales=[0.6], **BY_BOUND, results=path)
    assert part.points_resumed == 1
    expected = written[0].table.iloc[[0, 5, 6]].reset_index(drop=True)
    pd.testing.assert_frame_equal(part.table, expected, check_exact=True)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*scalar:UserWarning")  # of few draws, at one seed in many
def test_without_a_seed_the_file_keeps_its_own(table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    unseeded = {**BY_BOUND, "seed": None}
    first = risk_utility_curve(MODEL, table, scales=[1], **unseeded, results=path)
    both = risk_utility_curve(MODEL, table, scales=[1, 0.7], **unseeded, results=path)
    pd.testing.assert_frame_equal(both.table[:3], first.table, check_exact=True)


@pytest.mark.long
@pytest.mark.parametrize(("change", "message"), [
    ({"n_synthetic": 5}, "other settings or data"),
    ({"settings": SamplerSettings(warmup=301, draws=600)}, "other settings or data"),
    ({"seed": 9}, "other seed"), ({"accounting": "range"}, "other settings or data"),
    ({"df": pd.DataFrame({"visits": [1, 2, 3]})}, "other settings or data"),
    ({"model": ph.NegativeBinomial("visits ~ 1")}, "other settings or data"),
])  # fmt: skip
def test_a_file_of_another_run_is_refused(
    written: Any, table: pd.DataFrame, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "points.jsonl"
    path.write_bytes(written[1])
    arguments = {"model": MODEL, "df": table, "scales": [1], **BY_BOUND, **change}
    refuses(message, risk_utility_curve, **arguments, results=path)
    assert path.read_bytes() == written[1]


@pytest.mark.parametrize("tear", range(0, 130, 9))
def test_a_file_torn_anywhere_is_read_up_to_its_last_whole_line(tmp_path: Path, tear: int) -> None:
    path, settings = tmp_path / "parts.jsonl", fingerprint({"a": 1})
    with open_parts(path, settings=settings, seed=3) as parts:
        parts.add("one", [1.5])
        parts.add("two", [0.1 + 0.2])
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - tear)])
    kept = path.read_bytes().count(b"\n")
    with open_parts(path, settings=settings, seed=3) as parts:
        assert parts.entropy == 3
        assert len(parts.parts) == max(0, kept - 1)
        assert all(parts.parts[k] == v for k, v in {"one": [1.5]}.items() if k in parts.parts)
        parts.add("three", 3)
    with open_parts(path, settings=settings, seed=None) as parts:
        assert list(parts.parts)[-1] == "three"
        assert parts.entropy == 3


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"{}\n", b"[1]\n", b"no line", b"\xff\xfe\n",
                                     b'{"format": 1, "settings": "x"}\n'])  # fmt: skip
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    refuses("results file", open_parts(path, settings="x", seed=None).__enter__)
    assert path.read_bytes() == content


def test_a_file_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "parts.jsonl"
    with open_parts(path, settings="x", seed=1):
        refuses("another run has it", open_parts(path, settings="x", seed=1).__enter__)


@pytest.mark.parametrize(("change", "message"), [
    ({"scales": []}, "scales must hold at least one number"),
    ({"scales": "1"}, "scales must be a sequence of numbers"),
    ({"scales": 1.0}, "scales must be a sequence of numbers"),
    ({"scales": [float("nan")]}, "each of scales must be a finite number"),
    ({"scales": [-1.0]}, "scales must be >= 0"), ({"shifts": ["a"]}, "each of shifts"),
    ({"scales": [0.5], "shifts": [-0.5]}, "at scale 0.5, shift -0.5"),
    ({"n_synthetic": 0}, "n_synthetic"), ({"workers": 0}, "workers"),
    ({"engine": "none"}, "engine must be one of"),
])  # fmt: skip
def test_bad_arguments(table: pd.DataFrame, change: dict[str, Any], message: str) -> None:
    arguments = {"scales": [1.0], **BY_BOUND, **change}
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
    one = plot_curve(found.table, measures={"max_ecdf": "max-ECDF"})
    assert len([ax for ax in one.axes if ax.get_visible()]) == 1


@pytest.mark.long
def test_the_plot_refuses_other_tables(found: RiskUtilityCurve) -> None:
    refuses("of a risk-utility curve", plot_curve, pd.DataFrame({"a": [1]}))
    refuses("each of measures", plot_curve, found.table, measures={"nothing": "x"})
    refuses("at least one column", plot_curve, found.table, measures={})


BASE = ["curve", "data.csv", "--formula", "visits ~ 1", "--model", "poisson", "--out", "out"]
QUICK = ["--accounting", "lipschitz", "--engine", "embedded", "--seed", "8", "--warmup", "300",
         "--draws", "600", "--n-synthetic", "4"]  # fmt: skip


@pytest.mark.long
def test_the_command_writes_a_private_folder(
    run: Any, found: RiskUtilityCurve, table: pd.DataFrame, tmp_path: Path
) -> None:
    table.to_csv("data.csv", index=False)
    code, out, err = run(*BASE, *QUICK, "--scales", "1", "--shifts", "0")
    assert (code, err) == (0, "")
    assert NOT_COVERED in out
    folder = tmp_path / "out"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "out"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    files = "curve.png points.jsonl report.html table.csv"
    assert " ".join(sorted(path.name for path in folder.iterdir())) == files
    pd.testing.assert_frame_equal(pd.read_csv(folder / "table.csv"), found.table[:3])
    page = (folder / "report.html").read_text()
    assert "CONFIDENTIAL" in page
    assert NOT_COVERED in page
    assert " · data.csv: " in page
    assert f"{found.table['max_ecdf'][1]:.3g}" in page
    assert "<script" not in page


@pytest.mark.parametrize(("arguments", "message"), [
    (["--scales", "1;2"], "--scales must be numbers with commas between"),
    (["--shifts", ""], "--shifts must be numbers"),
    (["--scales", "0"], "weights must not all be 0"), (["--scales", "-1"], "scales must be >= 0"),
    (["--accounting", "renyi"], "accounting must be one of"),
    (["--delta", "2"], "delta must lie in (0, 1)"),
    (["--workers", "0"], "--workers must be a whole number >= 1"),
    (["--n-synthetic", "x"], "--n-synthetic"), (["--formula", "nothing ~ 1"], "nothing"),
    (["--engine", "none"], "engine must be one of"),
])  # fmt: skip
def test_bad_options_are_one_line_and_write_nothing(
    refused: Any, table: pd.DataFrame, arguments: list[str], message: str
) -> None:
    table.to_csv("data.csv", index=False)
    assert message in refused(*BASE, *QUICK, *arguments)


@pytest.mark.long
def test_an_interrupted_command_goes_on(table: pd.DataFrame, tmp_path: Path) -> None:
    """A real process, stopped by a real signal once a point is there, then run again."""
    table.to_csv(tmp_path / "data.csv", index=False)
    code = (  # SIGINT is ignored by what a shell starts in the background
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from pyhybrid.cli import main; main()"
    )
    scales = ",".join(f"{1 - place / 40:g}" for place in range(4))
    command = [sys.executable, "-c", code, *BASE, *QUICK, "--scales", scales]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    points = tmp_path / "out.points.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if points.exists() and points.read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished points kept in out.points.jsonl (confidential)" in err
    assert stat.S_IMODE(points.stat().st_mode) == 0o600
    assert not (tmp_path / "out").exists()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "were there already" in done.stdout
    assert not points.exists()
    assert (tmp_path / "out" / "table.csv").exists()


@pytest.mark.long
@pytest.mark.parametrize("accounting", ["gaussian", "range"])
def test_scalar_weights_reach_the_epsilon_of_every_accounting(
    accounting: str, table: pd.DataFrame
) -> None:
    """One point by another accounting; the account's own draws, so that its limit can hold."""
    found = risk_utility_curve(MODEL, table, scales=[0.6], accounting=accounting, **OPTIONS).table
    plain, vector, scalar = (row for _, row in found.iterrows())
    asked = str(vector["accounting"])
    assert 0.99 * NEAR[asked] < scalar["epsilon"] / vector["epsilon"] <= 1  # rounded up
    assert scalar["epsilon_ratio"] == scalar["epsilon"] / vector["epsilon"]
    assert vector["epsilon_ratio"] == 1
    assert vector["epsilon"] < plain["epsilon"]
    # The control: at equal bounds, as by the papers' accounting, these epsilons differ.
    assert not NEAR["lipschitz"] < scalar["bound_ratio"] <= 1
    for _, row in found.iterrows():
        assert row["epsilon_lipschitz"] == ph.arrays.epsilon_of_bound(row["lipschitz_bound"])
        assert row["epsilon"] <= row["epsilon_lipschitz"]

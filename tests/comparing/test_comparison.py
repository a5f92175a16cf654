"""Comparisons: shared fits, numbers that are the releases' own, the private folder, bad input."""

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.cli.comparing import build_mechanisms
from pyhybrid.measures.estimates import STATISTICS, summaries
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.studies.comparing.comparison import NOT_COVERED, Comparison, compare
from tests.fits import fit_options
from tests.refusals import refuses

OPTIONS = fit_options(chains=4, warmup=300, draws=300, n_synthetic=3, seed=5)
MODEL = ph.NegativeBinomial("visits ~ 1")
CANDIDATES = {
    "plain": ph.Unweighted(MODEL), "LW": ph.LipschitzWeighted(MODEL),
    "LW_final": ph.LipschitzWeighted(MODEL, reweighting=True), "CW": ph.CountWeighted(MODEL),
    "half": ph.GivenWeights(MODEL, alpha=np.full(400, 0.5)),
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"visits": rng.negative_binomial(4, 0.3, 400)})
    return frame.assign(sex=rng.choice(["f", "m"], 400))


@pytest.fixture(scope="module")
def found(table: pd.DataFrame) -> Comparison:
    return compare(CANDIDATES, table, **OPTIONS)


def test_fits_are_shared_and_counted(found: Comparison) -> None:
    """Alone 1, 2, 2 + refits, 1, 1; three share the unweighted fit, two the LW one."""
    refits = int(found.table["refits"].sum())
    assert refits > 0
    assert found.session.n_fits == 4 + refits


@pytest.mark.long
def test_releases_are_those_of_the_mechanisms_alone(found: Comparison, table: pd.DataFrame) -> None:
    for name in ("LW", "LW_final"):
        alone = CANDIDATES[name].release(table, refits=0, **OPTIONS)
        shared = found.releases[name]
        assert shared.charge == alone.charge
        for ours, theirs in zip(shared.synthetic, alone.synthetic, strict=True):
            pd.testing.assert_frame_equal(ours, theirs)
        np.testing.assert_array_equal(shared.confidential.alpha, alone.confidential.alpha)


def test_the_table_holds_the_numbers_of_the_releases(found: Comparison) -> None:
    assert list(found.table["mechanism"]) == list(CANDIDATES) == list(found.releases)
    for _, row in found.table.iterrows():
        release = found.releases[row["mechanism"]]
        kept = release.confidential
        assert row["lipschitz_bound"] == kept.lipschitz.max() == release.charge.bound
        assert row["epsilon"] == release.charge.epsilon
        assert row["epsilon_lipschitz"] == pytest.approx(6 * kept.lipschitz.max(), abs=0.01)
        assert row["epsilon_range"] == release.charge.epsilon_range < row["epsilon_lipschitz"]
        assert row["accounting"] == release.charge.accounting
        assert row["delta"] == release.charge.delta
        assert (row["kind"], row["relation"]) == ("asymptotic local", "remove")
        assert (row["n_synthetic"], row["n_draws_released"]) == (3, 3)
        assert row["efficiency"] == pytest.approx(kept.lipschitz.mean() / kept.lipschitz.max())
        size = kept.alpha.sum() ** 2 / (kept.alpha**2).sum()
        assert row["effective_sample_size"] == pytest.approx(size)
        steps = release.reweighted.steps if release.reweighted else ()
        assert row["refits"] == len(steps)
        sets = [each["visits"].to_numpy() for each in release.synthetic]
        estimated = found.estimates.set_index(["source", "statistic"])["estimate"][row["mechanism"]]
        np.testing.assert_allclose(estimated[list(STATISTICS)], summaries(sets))


def test_unlike_kinds_are_told_apart(table: pd.DataFrame) -> None:
    two = {"local": ph.Unweighted(MODEL), "two": ph.Unweighted(MODEL, relation="replace")}
    both = compare(two, table, **{**OPTIONS, "n_synthetic": 1})
    assert both.session.n_fits == 1
    assert list(both.table["relation"]) == ["remove", "replace"]


def test_one_that_is_refused_does_not_stop_the_others(table: pd.DataFrame) -> None:
    """Seen: after an hour of fits the last candidate stopped all."""
    clipped = ph.ClippedScores(MODEL, epsilon=1, delta=0.9)  # delta must be below 1 / n
    options = {**OPTIONS, "n_synthetic": 1}
    both = compare({"clipped": clipped, "plain": ph.Unweighted(MODEL)}, table, **options)
    assert [*both.releases] == ["plain"]
    assert "delta" in both.refused["clipped"]
    bound = both.table.set_index("mechanism").loc["plain"]
    assert bound["epsilon_published"] == pytest.approx(2 * bound["lipschitz_bound"], rel=1e-2)
    refuses("delta", compare, {"clipped": clipped}, table, **options)


@pytest.mark.parametrize(("mechanisms", "message"), [
    ({}, "at least one name"), ([ph.Unweighted(MODEL)], "must be a mapping"),
    ({"data": ph.Unweighted(MODEL)}, "other than 'data'"),
    ({1: ph.Unweighted(MODEL)}, "must be text"),
    ({"a": MODEL}, r"mechanisms\['a'\] must be a mechanism over a model: found NegativeBinomial"),
    ({"a": ph.Unweighted(MODEL), "b": ph.Unweighted(ph.Poisson("visits ~ 1"))},
        "over one model and design: .a. has .* .b. Poisson"),
    ({"a": ph.Unweighted(MODEL), "b": ph.Unweighted(ph.NegativeBinomial("visits ~ sex"))},
        "over one model"),
])  # fmt: skip
def test_candidates_that_are_none(mechanisms: Any, message: str, table: pd.DataFrame) -> None:
    refuses(message, compare, mechanisms, table)


def test_default_candidates_are_the_papers() -> None:
    made = build_mechanisms([], MODEL)
    both = ["lipschitz:scale=0.8,reweighting=true", "count:radius=0.3"]
    assert [*build_mechanisms(both, MODEL)] == both
    assert list(made) == ["Unweighted", "LW", "LW_final", "CW", "CW_final"]
    assert [m.reweighting for m in made.values()] == [False, False, True, False, True]


def private_files(folder: Path) -> set[str]:
    """Names of what a command left for its owner alone, and nothing beside the folder."""
    assert {path.name for path in folder.parent.iterdir()} == {"data.csv", folder.name}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    return {path.name for path in folder.iterdir()}


BASE = ["compare", "data.csv", "--formula", "visits ~ 1", "--out", "out"]
QUICK = ["--fit", "engine=embedded,seed=5,warmup=300,draws=300"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:re-weighting found no weights")
def test_the_command_writes_a_private_folder(run: Any, table: pd.DataFrame, tmp_path: Path) -> None:
    table.to_csv("data.csv", index=False)
    chosen = ["--mechanism", "unweighted", "--mechanism", "lipschitz:scale=0.8,reweighting=true"]
    code, out, err = run(*BASE, *QUICK, *chosen, "--n-synthetic", "3")
    assert (code, err) == (0, "")
    assert NOT_COVERED in out
    folder = tmp_path / "out"
    files = {"table.csv", "estimates.csv", "estimates.png", "bounds.png"}
    assert private_files(folder) == files
    expected = compare(build_mechanisms(chosen[1::2], MODEL), table, **OPTIONS)
    for name, made in (("table", expected.table), ("estimates", expected.estimates)):
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{name}.csv"), made)
    assert epsilon_text(float(expected.table["epsilon"][1])) in out
    assert run(*BASE, *QUICK)[0] == 2  # the folder is not empty now
    assert private_files(folder) == files


@pytest.mark.parametrize(("command", "option", "value", "message"), [
    ("curve", "--scales", "1;2", "--scales must be a number"),
    ("curve", "--shifts", "", "--shifts must be a number"),
    ("curve", "--scales", "0", "weights must not all be 0"),
    ("curve", "--scales", "-1", "scales must be >= 0"),
    ("compare", "--mechanism", "nothing", "--mechanism must be one of unweighted, lipschitz"),
    ("compare", "--mechanism", "count:radius=-1", "radius must be above 0: found -1"),
    ("compare", "--mechanism", "count:color=red", "takes no color"),
    ("compare", "--mechanism=count", "--mechanism=count", "'count' is there twice"),
    ("compare", "--n-synthetic", "0", "--n-synthetic must be a whole number >= 1"),
    ("compare", "--model", "nothing", "--model must be one of"),
    ("compare", "--formula", "nothing ~ 1", "nothing"),
])  # fmt: skip
def test_bad_options_are_one_line_and_write_nothing(
    refused: Any, table: pd.DataFrame, command: str, option: str, value: str, message: str
) -> None:
    table.to_csv("data.csv", index=False)
    assert message in refused(command, *BASE[1:], *QUICK, option, value)

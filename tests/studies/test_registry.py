"""Study J on a stand-in of the pseudo registry: simulated from its moments, none of its records."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.measures.combining import combine_multiple_imputation
from pyhybrid.measures.utility import interval_overlap
from pyhybrid.studies import STUDIES, Size, run_study
from pyhybrid.studies import registry as study
from pyhybrid.studies.runner import reproduce
from tests.conftest import require

DATA = Path(__file__).parents[3] / "shared" / "data"
# Mean, standard deviation (None of shares) and missing values.
MOMENTS: dict[str, tuple[float, float | None, int]] = {
    "Age_raw": (54.7, 9.02, 0), "NewWhite": (0.881, None, 0), "Gender": (0.847, None, 0),
    "MoreThanHighSchool": (0.532, None, 5), "Diffuse": (0.409, None, 1), "BaseFVC": (9.11, 1.85, 6),
    "CentroPositive": (0.301, None, 0), "BaseDLCO": (0.698, 0.203, 67),
    "BaseTLC": (0.925, 0.178, 42), "DiseaseDuration": (1.01, 0.876, 2),
    "WorkDisabled": (0.275, None, 0), "BaselineILD": (0.315, None, 5),
    "OneYearILD": (0.311, None, 116),
}  # fmt: skip


def stand_in() -> pd.DataFrame:
    """698 records; lungs go together, and with ILD."""
    rng = np.random.default_rng(5)
    lungs = rng.normal(size=698)
    table = {}
    for name, (mean, deviation, missing) in MOMENTS.items():
        shared = 0.7 if name.startswith("Base") else -0.5 if name.endswith("ILD") else 0.0
        z = shared * lungs + np.sqrt(1 - shared**2) * rng.normal(size=698)
        if deviation is None:
            values = (z > np.quantile(z, 1 - mean)).astype(float)
        else:
            values = mean + deviation * z
        values[rng.choice(698, missing, replace=False)] = np.nan
        table[name] = values
    return pd.DataFrame(table)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    stand_in().to_csv(tmp_path / "csrg.csv")
    return tmp_path / "csrg.csv"


def test_the_file_is_read_with_its_missing_values(path: Path) -> None:
    table = study.pseudo_registry(path)
    assert table.isna().sum().drop("Age").to_dict() == {
        n: m for n, (_, _, m) in MOMENTS.items()
    } | {"Age_raw": 0}
    assert table["Age"].mean() == pytest.approx(0, abs=1e-9)
    assert table["Age"].std() == pytest.approx(1)


@pytest.mark.parametrize(("change", "message"), [
    (lambda t: t.drop(columns=["BaseTLC", "Gender"]), "it lacks Gender, BaseTLC"),
    (lambda t: t.iloc[:500], "work disability of 698 records"),
    (lambda t: t.assign(Gender=t["Gender"] + 1), "codes are 0, 1 or missing"),
])  # fmt: skip
def test_another_file_is_refused_before_anything_runs(
    change: Any, message: str, path: Path, tmp_path: Path, run: Any
) -> None:
    change(stand_in()).to_csv(path)
    code, _, err = run("study", "run", "J", "--out", "out", "--data", str(path))
    assert (code, err.count("\n")) == (2, 1)
    assert f"must be {study.FILE}: " in err
    assert message in err
    code, _, err = run("study", "run", "J", "--out", "out")
    assert f"study J needs data: {study.FILE}" in err
    assert not (tmp_path / "out").exists()


def test_who_is_named_by_hand() -> None:
    """Record 0 is one of two in the first set, and alone in the second: alone likeliest of both."""
    keys = np.array([[0.0, 0], [5.0, 0], [9.0, 1]])
    sets = np.array([[[0.4, 0], [-0.4, 0], [9.0, 1]], [[0.2, 0], [0.3, 1], [9.1, 1]]])
    assert study.named(keys, sets, 0.5).tolist() == [True, False, True]
    assert study.named(keys, sets[:1], 0.5).tolist() == [False, False, True]
    assert study.named(keys, keys[None], 0.0).all()


def test_named_records_get_their_neighbors_keys() -> None:
    keys = pd.DataFrame(
        {"Age": [0.0, 1.0, 3.0, 3.1], "Gender": [0.0] * 4, "NewWhite": [0, 0, 0, 1.0],
         "MoreThanHighSchool": [1.0] * 3 + [np.nan]}
    )  # fmt: skip
    swapped = study._with_neighbors(keys, [keys], 0.1)[0]
    assert swapped["Age"].tolist() == [1.0, 0.0, 1.0, 3.1]  # the last, with a missing key, stays


def test_nested_imputations_are_rubins_where_inner_ones_agree() -> None:
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(4, 3)), rng.uniform(1, 2, size=(4, 3))
    nested = study._nested_imputation(*(np.repeat(x[:, None], 2, axis=1) for x in (q, v)))
    plain = combine_multiple_imputation(q, v)
    for name in ("estimate", "variance", "df"):
        np.testing.assert_allclose(getattr(nested, name), getattr(plain, name), rtol=1e-12)
    inner = study._nested_imputation(np.array([[[1.0], [3.0]], [[1.0], [3.0]]]), np.ones((2, 2, 1)))
    assert inner.variance[0] == pytest.approx(1 + 2 / 2)  # nothing between; inner variance 2
    assert inner.df[0] == pytest.approx(2**2 / (1 / 2))


def test_the_courses_numbers_are_those_of_its_printed_intervals() -> None:
    require(DATA.exists(), "the course's tables are not in ../shared/data")
    table = pd.read_csv(DATA / "published_course_estimates.csv")
    ends = table.set_index(["table", "method", "coefficient"])[["lower", "upper"]]
    ends = ends.sort_index()

    def overlap(where: str, base: str, method: str) -> float:
        first, second = (ends.loc[(where, name)].T.to_numpy() for name in (base, method))
        return float(interval_overlap(first, second).mean())

    stored = {(line.synthesizer, line.quantity): line.low for line in STUDIES["J"].published}
    for where, outcome in (("work disability", "work disability"), ("ILD onset", "onset of ILD")):
        for method, name in (("DA-MI", "DA-MI"), ("CART", "CART"), ("norm+logit", "norm + logit")):
            found = overlap("with missing data", f"Unperturbed MI {where}", f"{method} {where}")
            assert found == pytest.approx(stored[name, f"{study._OF_KEYS}, {outcome}"], abs=6e-4)


@pytest.mark.long
def test_every_line_is_run_and_masks_keep_what_trees_lose(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_M", 3)  # of 5 imputations, 2 of 3 sets each
    monkeypatch.setattr(study, "_R", 2)
    short = Size(replicates=1, options={"warmup": 20, "draws": 50})
    run = {"out": tmp_path / "J", "size": short, "data": path, "engine": "embedded"}
    result = run_study(STUDIES["J"], **run)
    assert result.failed == {}
    lines = reproduce(STUDIES["J"], result.summary)
    assert len(lines) == len(STUDIES["J"].published)
    assert not (lines["ours"] == "not run").any()
    means = result.summary.set_index(["synthesizer", "quantity"])["mean"]
    for outcome in ("work disability", "onset of ILD"):
        for other in ("CART", "norm + logit"):
            quantity = f"overlap of the keys, {outcome}"
            assert means["DA-MI", quantity] > means[other, quantity] - 0.02
    for years in (3, 5):
        named = f"% named, {years} years"
        assert means["DA-MI", named] < means[study._BEFORE, named]

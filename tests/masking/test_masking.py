"""Masked releases: what comes back, limits of the mask, missing values, subgroups, bad input."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import squareform

import pyhybrid as ph
from pyhybrid.core.errors import NotConverged
from pyhybrid.engines import ConvergenceRule
from pyhybrid.masking import CartSynthesis, GibbsSettings, ParametricSynthesis
from tests.refusals import fails, refuses

# Short chains may miss the rule; what is tested here does not depend on it.
pytestmark = pytest.mark.filterwarnings("ignore:the association model has not converged")
EASY = ConvergenceRule(rhat=1.1, ess_per_chain=20)
QUICK = GibbsSettings(chains=2, warmup=40, draws=100, sweeps=10, rule=EASY)
KEYS = ["age", "sex", "region", "health"]


def people(n: int = 300, seed: int = 1) -> pd.DataFrame:
    """Keys of all four types, an outcome, a column that is none of the model's business."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 15, n).round().astype("int64")
    sex = rng.random(n) < 0.5
    region = rng.choice(["north", "east", "west"], n)
    health = np.digitize(0.02 * (age - 45) + rng.normal(size=n), [-0.7, 0.6])
    income = 2 + 0.03 * age + 0.5 * sex + 0.4 * (region == "west") + rng.normal(size=n)
    return pd.DataFrame({
        "label": [f"row {i}" for i in range(n)], "income": income, "age": age,
        "sex": pd.Categorical(np.where(sex, "f", "m"), categories=["f", "m", "x"]),
        "region": region,
        "health": pd.Categorical.from_codes(health, ["bad", "fair", "good"], ordered=True),
        "note": [f"n{i}" for i in range(n)],
    }).set_index("label")  # fmt: skip


def imputation(**changes: Any) -> ph.masking.MaskedImputation:
    given = {"keys": KEYS, "n_synthetic": 2, "settings": QUICK, "on_not_converged": "warn"}
    return ph.masking.MaskedImputation(**(given | changes))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="module")
def fit(frame: pd.DataFrame) -> Any:
    return imputation().fit(frame, seed=3)


def masks(frame: pd.DataFrame, **strength: Any) -> Any:
    return ph.masking.masks_by_type(frame, KEYS, **strength)


def test_nothing_claims_differential_privacy_and_no_ledger_takes_it(
    fit: Any, frame: pd.DataFrame, tmp_path: Path
) -> None:
    release: Any = imputation(masks=masks(frame)).release_from(fit)
    assert not hasattr(release, "charge")
    assert not release.statement.differentially_private
    assert "**NOT differentially private.** There is no epsilon." in release.statement.text
    assert "NOT differentially private" in repr(release)
    ledger = ph.Ledger(tmp_path / "l", budget=10.0, kind="strict", relation="replace")
    refuses("", ledger.add, release)
    assert ledger.spent == 0


def test_towards_no_mask_noise_the_data_come_back(fit: Any, frame: pd.DataFrame) -> None:
    tight = masks(frame, copies=20, variance=1e-9, separation=200.0)
    release = imputation(masks=tight).release_from(fit)
    for table in release.synthetic:
        pd.testing.assert_frame_equal(table, frame)
    levels = {"sex": 2, "region": 3, "health": 3}
    exact = {k: ph.masking.MisclassificationMask(matrix=np.eye(n)) for k, n in levels.items()}
    table = imputation(masks=exact).release_from(fit).synthetic[0]
    pd.testing.assert_frame_equal(table.drop(columns="age"), frame.drop(columns="age"))


def test_released_numbers_keep_decimals_and_dtypes(frame: pd.DataFrame) -> None:
    table = frame.assign(age=frame["age"].astype("int16"), pay=frame["income"].round(2))
    table = table.drop(columns="income")
    drawn = imputation(keys=["age", "pay"]).release(table, seed=1).synthetic[0]
    assert drawn["age"].dtype == np.int16
    np.testing.assert_array_equal(drawn["pay"].round(2), drawn["pay"])
    assert drawn["pay"].nunique() > 150
    many_small = np.random.default_rng(1).exponential(8, len(table)).round().astype("uint8")
    wider = imputation(keys=["age"]).release(table.assign(age=many_small), seed=1).synthetic
    assert {drawn["age"].dtype for drawn in wider} == {np.dtype("int64")}


def test_masks_differ_by_subgroup(fit: Any, frame: pd.DataFrame) -> None:
    groups = ph.masking.risk_subgroups(frame, KEYS, 25, {"age": 25})
    assert set(groups.by_record) == {"low", "medium", "high"}
    exact = ph.masking.MixtureMask(separation=200.0)
    chosen = {"region": {"low": exact, "medium": exact, "high": None}}
    others = masks(frame, variance=1e-9, separation=200.0)
    release = imputation(masks={**others, **chosen}, subgroups=groups).release_from(fit)
    same = (release.synthetic[0]["region"] == frame["region"]).to_numpy()
    assert same[groups.by_record != "high"].all()
    assert not same[groups.by_record == "high"].all()
    assert "by risk subgroup: low, mixture mask" in release.statement.text
    all_low = ph.masking.risk_subgroups(frame, ["sex"], 1)
    imputation(masks=chosen, subgroups=all_low).release_from(fit)  # of subgroups without a record


def test_subgroups_against_a_double_loop() -> None:
    frame = people(120, seed=4)
    frame.loc[frame.index[:6], "age"] = np.nan
    frame.loc[frame.index[3:9], "region"] = np.nan
    keys, k0, radius = ["age", "sex", "region"], 3, 4.0
    found = ph.masking.risk_subgroups(frame, keys, k0, radius)
    rows = frame[keys].astype(object).where(frame[keys].notna(), None).to_numpy().tolist()
    for i, (age, *levels) in enumerate(rows):
        ages = [other[0] for j, other in enumerate(rows) if j != i and other[1:] == levels]
        level, near = len(ages), ages.count(None)
        if age is not None:
            near = sum(b is not None and abs(age - b) <= radius for b in ages)
        assert (found.n_matches[i], found.n_matches_levels[i]) == (near, level)
        expected = "low" if near >= k0 else "medium" if level >= k0 else "high"
        assert found.by_record[i] == expected
    table = found.table.set_index("subgroup")
    assert list(table.index) == ["low", "medium", "high"]
    assert table[["records", "share"]].sum().tolist() == pytest.approx([120, 1])


def test_imputations_stay_within_a_nest() -> None:
    """Exact masks release the imputed values: equal within an imputation, unlike between two."""
    rng, n = np.random.default_rng(7), 500
    holes = people(n, seed=6).assign(wealth=lambda d: d["age"] / 30 + rng.normal(size=n))
    holes["age"] = holes["age"].astype(float)
    for name in ("age", "region", "health", "wealth"):
        holes.loc[rng.random(n) < 0.2, name] = np.nan
    how = {"keys": ["age", "sex"], "n_synthetic": 2, "n_imputations": 2}
    tight = ph.masking.masks_by_type(holes, ["age", "sex"], variance=1e-9, separation=200.0)
    release = imputation(**how, masks=tight).release(holes, seed=2)
    assert (release.rule, release.statement.n_imputations) == ("nested", 2)
    a, b, c, _ = release.synthetic
    pd.testing.assert_series_equal(a["wealth"], holes["wealth"])
    missing = holes["age"].isna()
    pd.testing.assert_series_equal(a["age"], b["age"])
    assert not a.loc[missing, "age"].equals(c.loc[missing, "age"])
    pd.testing.assert_series_equal(a.loc[~missing, "age"], holes.loc[~missing, "age"])


def test_copula_correlations_are_recovered() -> None:
    rng, n = np.random.default_rng(11), 1500
    true = squareform([0.6, -0.4, 0.3, -0.2, 0.5, 0]) + np.eye(4)
    z = rng.multivariate_normal(np.zeros(4), true, n)
    data = pd.DataFrame({
        "skew": np.exp(z[:, 0]), "other": z[:, 1] ** 3,
        "grade": np.digitize(z[:, 2], [-1, 0.2, 0.9]).astype(float), "flag": z[:, 3] > 0.4,
    })  # fmt: skip
    for name in ("skew", "grade"):
        data.loc[rng.random(n) < 0.15, name] = np.nan
    model = ph.masking.MaskedImputation(
        keys=["skew", "grade", "flag"], association="copula", n_synthetic=2, n_imputations=2,
        types={"grade": "ordered"}, on_not_converged="warn",
        settings=GibbsSettings(chains=2, warmup=100, draws=400, rule=EASY),
    )  # fmt: skip
    found = model.fit(data, seed=1)
    names = [margin.column.name for margin in found.model.margins]
    order = [list(data.columns).index(name) for name in names]
    expected = true[np.ix_(order, order)][np.triu_indices(4, 1)]
    draws = found.quantities["correlation"].reshape(-1, 6)
    # Posterior sd covers sampling error of the data; 4 of them, and Monte Carlo error.
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - expected), 4.3 * draws.std(axis=0))
    assert draws.std(axis=0).max() < 0.06


def test_comparators_have_the_interface_and_their_models(frame: pd.DataFrame) -> None:
    for kind in (CartSynthesis, ParametricSynthesis):
        release = kind(keys=KEYS, n_synthetic=3).release(frame, seed=1)
        assert len(release.synthetic) == 3
        assert "NOT differentially private" in release.statement.text
        assert "without masks" in release.statement.text
        table = release.synthetic[0]
        assert (table.dtypes == frame.dtypes).all()
        pd.testing.assert_series_equal(table["income"], frame["income"])
    cart = CartSynthesis(keys=["age"], n_synthetic=1).release(frame, seed=1).synthetic[0]
    assert set(cart["age"]) <= set(frame["age"])  # values of the data, from leaves


@pytest.mark.parametrize("kind", [CartSynthesis, ParametricSynthesis])
def test_proper_sets_have_models_of_their_own(kind: Any) -> None:
    """Slopes of sets vary more than with one model; a level of two records is never lost."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=60)
    data = pd.DataFrame({"z": z, "x": z + 0.1 * rng.normal(size=60), "rare": [1] * 2 + [0] * 58})
    spread = []
    for proper in (False, True):
        release = kind(keys=["x", "rare"], n_synthetic=60, proper=proper).release(data, seed=4)
        spread.append(np.std([np.polyfit(z, table["x"], 1)[0] for table in release.synthetic]))
        assert ("resample" in release.statement.method) == proper
        again = kind(keys=["x", "rare"], n_synthetic=60, proper=proper).release(data, seed=4)
        pd.testing.assert_frame_equal(again.synthetic[-1], release.synthetic[-1])
    assert spread[1] > 1.15 * spread[0]
    refuses("proper", kind, keys=["x"], proper="yes")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_saved_releases_are_read(fit: Any, frame: pd.DataFrame, tmp_path: Path, form: str) -> None:
    release = imputation(masks=masks(frame)).release_from(fit)
    attached = {"report.html": "<p>private</p>"}
    release.save(tmp_path / "a", file_format=form, attachments=attached, report=False, keep="note")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[form]
    for place, table in enumerate(release.synthetic, start=1):
        written = read(tmp_path / f"a/public/synthetic_{place}.{form}")
        assert (written[KEYS].astype(str).to_numpy() == table[KEYS].astype(str).to_numpy()).all()
        np.testing.assert_allclose(written["income"], table["income"])
    assert stat.S_IMODE((tmp_path / "a/confidential").stat().st_mode) == 0o700
    told = json.loads((tmp_path / "a/public/statement.json").read_text())
    assert not told["differentially_private"]
    assert "must be empty or new" in refuses("", release.save, tmp_path / "a")


def test_nothing_confidential_is_public(frame: pd.DataFrame, tmp_path: Path) -> None:
    release = imputation(masks=masks(frame)).release(frame, seed=918273645)
    refuses("'note': it looks like an identifier", release.save, tmp_path / "out")
    release.save(tmp_path / "out", report=False, drop="note")
    assert "note" not in pd.read_csv(tmp_path / "out/public/synthetic_1.csv")
    public = "".join(p.read_text() for p in (tmp_path / "out/public").iterdir())
    assert "918273645" not in public
    assert "918273645" in (tmp_path / "out/confidential/run.json").read_text()
    assert "rhat" not in public
    assert {p.name for p in (tmp_path / "out/public").iterdir()} == {
        "synthetic_1.csv", "synthetic_2.csv", "risk_statement.md", "statement.json", "schema.json",
    }  # fmt: skip


GAUSS, FOUR = ph.masking.GaussianMask(variance=1), ph.masking.MisclassificationMask.keep(0.9, 4)


@pytest.mark.parametrize(("how", "message"), [
    ({"masks": {"income": GAUSS}}, "masks must be for keys: 'income' is none"),
    ({"masks": {"sex": GAUSS}}, "the mask of 'sex', which is binary, must be"),
    ({"masks": {"region": FOUR}},
     "the mask of 'region', which is nominal, must be a mask of 3 levels"),
    ({"masks": {"sex": 3.0}}, "must be a mask of 2 levels: found float"),
    ({"masks": {"age": {"lowest": None}}}, "the masks of 'age' must be by low"),
    ({"masks": {"age": {"low": GAUSS}}}, "masks by risk subgroup, as for 'age', need subgroups="),
    ({"predictors": ["age"]}, "predictors must not be keys"),
    ({"association": "copula"}, "a copula has no place for 'region'"),
])  # fmt: skip
def test_settings_that_do_not_fit_are_refused(frame: pd.DataFrame, how: Any, message: str) -> None:
    refuses(message, imputation(**how).release, frame, seed=1)


@pytest.mark.parametrize(("column", "where", "value", "message"), [
    ("age", slice(None), 3, "key 'age' must vary: it is constant"),
    ("age", 4, np.inf, "key 'age' must be finite: row 'row 4' is not"),
    ("region", 7, "moon", "each category of key 'region' must have at least 2 records: the one of "
     "row 'row 7' has 1"),
    ("age", [1, 2], None, "n_synthetic must be at least 2 where keys have missing values"),
])  # fmt: skip
def test_values_that_will_not_do_are_refused_by_name(
    frame: pd.DataFrame, column: str, where: Any, value: Any, message: str
) -> None:
    changed = frame.astype({"age": float})
    changed.iloc[where, changed.columns.get_loc(column)] = value
    refuses(message, imputation(n_synthetic=1).release, changed, seed=1)


def test_chains_that_have_not_converged_raise(frame: pd.DataFrame) -> None:
    strict = GibbsSettings(chains=2, warmup=20, draws=50, rule=ConvergenceRule(ess_per_chain=1e6))
    imputed = imputation(keys=["age"], settings=strict, on_not_converged="raise")
    fails(NotConverged, "the association model has not converged", imputed.release, frame, seed=1)


def test_masks_are_drawn_anew_for_each_set(fit: Any, frame: pd.DataFrame) -> None:
    """Errors of two sets about the true keys are uncorrelated: no mask is shared."""
    release = imputation(masks=masks(frame, copies=1, variance=0.05)).release_from(fit)
    errors = [(table["age"] - frame["age"]).to_numpy() for table in release.synthetic]
    assert abs(np.corrcoef(errors)[0, 1]) < 5 / np.sqrt(len(frame))

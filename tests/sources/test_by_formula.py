"""Distinct rows with their numbers, fitted, charged and drawn: as all rows in memory are."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.cli import sources, synthesize
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms.accounting import loss_account
from pyhybrid.mechanisms.accounting.loss_account import _refit_without
from pyhybrid.mechanisms.weighted import base
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.registry import chosen_model
from pyhybrid.privacy.weight_sensitivity import WeightsWithout, moved_terms
from pyhybrid.releases import data_fingerprint
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.sources import by_formula, parts, rows, synthesize_by_formula
from pyhybrid.sources.rows import count_rows
from tests.refusals import fails, refuses
from tests.sources.test_counting import parquet

pytestmark = pytest.mark.normal_draws
N = 6000
READ = ["age", "region"]
POISSON = ph.Poisson("visits ~ age + region")
DELTA = 1e-6


def table(seed: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, region = (
        rng.integers(20, 26, N),
        rng.choice(["east", "north", "west"], N, p=[0.7, 0.2, 0.1]),
    )
    df = pd.DataFrame({"person": np.arange(N), "age": age, "region": region})
    df["visits"] = rng.poisson(np.exp(age / 20 - 0.4 * (region == "north")))
    df["rating"] = np.minimum(df["visits"], 4)
    df["often"] = df["visits"] > 3
    df["group"] = rng.choice(["a", None], N)
    return df


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return parquet(table(), tmp_path / "survey")


MODELS = {
    "poisson": POISSON,
    "zeros": ph.ZeroInflated(POISSON),
    "two levels": ph.Bernoulli("often ~ cut(age, breaks=c(19, 22, 30)) + region"),
    "levels": ph.Categorical("rating ~ age"), "ordered": ph.Ordinal("rating ~ age + region"),
    "of a range": ph.BetaBinomial("rating ~ region", lower=0, upper=4),
}  # fmt: skip


def both(folder: str, model: Any) -> tuple[BoundRegression, BoundRegression]:
    """The model joined to distinct rows and to all of them."""
    counted = count_rows(folder, READ, outcomes=["visits", "rating", "often"])
    few, whole = (model.bind(own) for own in (counted.table, counted.records))
    assert len(counted.table) < 250
    return replace(few, times=counted.times.astype(float)), whole


def told(data: dict[str, Any]) -> Any:
    """What a program reads, but for the order of rows and places that no posterior depends on."""
    read = [np.asarray(data[name], float).reshape(data["n"], -1) for name in
            ("y", "X", "frequency", "weights", "reference")]  # fmt: skip
    rows = np.hstack(read)
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "zeros"])
def test_a_program_reads_the_same_rows(name: str, folder: str) -> None:
    """Of weights of 1, of one for each distinct row, and under a cap with a center."""
    few, whole = both(folder, MODELS[name])
    rng = np.random.default_rng()
    some = rng.random(few.n).round(2)
    for alpha in (np.ones(few.n), some):
        own = np.repeat(alpha, few.times.astype(int))
        one, all_rows = few.stan_data(alpha), whole.stan_data(own)
        np.testing.assert_allclose(told(one), told(all_rows))
        assert np.asarray(one["frequency"]).sum() == N == few.n_records
        for hint in ("center_beta", "information_root"):
            if hint in one:
                np.testing.assert_allclose(one[hint], all_rows[hint], rtol=1e-6, atol=1e-8)
    assert replace(few, times=None).stan_data(some)["frequency"].sum() < N, "the control"


@pytest.mark.parametrize("name", [name for name in MODELS if name != "zeros"])
def test_sums_over_records_count_them(name: str, folder: str) -> None:
    few, whole = both(folder, MODELS[name])
    draws = open_session(whole, seed=3).unweighted().draws
    alpha = np.random.default_rng().random(few.n)
    every = np.repeat(np.arange(few.n), few.times.astype(int))
    one, other = few.log_lik(draws), whole.log_lik(draws)
    np.testing.assert_allclose(one.total(alpha), other.total(alpha[every]))
    two = np.column_stack([alpha, 1 - alpha])
    np.testing.assert_allclose(one.totals(two), other.totals(two[every]))
    clipped = [own.clipped_total(a, 0.3, 0.2, own.lowest) for own, a in
               ((one, alpha), (other, alpha[every]))]  # fmt: skip
    np.testing.assert_allclose(*clipped)
    np.testing.assert_array_equal(one.lowest[every], other.lowest)
    places = np.arange(0, draws.n_draws, 7)
    np.testing.assert_allclose(one.at(places).total(alpha), other.total(alpha[every])[places])
    bare = replace(few, times=None).log_lik(draws).total(alpha)
    assert not np.allclose(bare, other.total(alpha[every])), "the control"


def mechanism(**changes: Any) -> ph.Unweighted:
    return ph.Unweighted(POISSON, **{"delta": DELTA, **changes})


def budget(epsilon: float = 0.2, model: Any = POISSON, **changes: Any) -> ph.BudgetWeighted:
    return ph.BudgetWeighted(model, epsilon=epsilon, **{"delta": DELTA, **changes})


def censored(**changes: Any) -> ph.Censored:
    """About a public center, near what the records were drawn from."""
    settings = {"epsilon": 1.0, "center": CENTER, **changes}
    return ph.Censored(POISSON, inner=ph.Unweighted(POISSON), **settings)


CENTER = {"beta": [0.0, 0.05, -0.4, 0.0]}
CHARGED: dict[str, tuple[Callable[[], Any], float]] = {
    "unweighted": (mechanism, 1e-5),  # whose limit is looked at of 200 records, alike or not
    "by size": (lambda: mechanism(accounting="lipschitz"), 1e-5),
    "replaced": (lambda: mechanism(relation="replace"), 1e-5),
    "draws dropped": (lambda: mechanism(draw_quantile=0.9), 1e-5),
    "budget": (budget, 1e-9),
    "with refits": (lambda: budget(0.3, relation="replace"), 1e-6),
    "strict": (censored, 1e-9),
    "without a center": (lambda: censored(center=None, epsilon=9.0), 1e-9),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if "refits" in name else ()) for name in CHARGED],
)
def test_the_charge_is_that_of_all_rows(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, precision = CHARGED[name][0](), CHARGED[name][1]
    if name == "budget":  # modes of refits are found to 1e-8
        monkeypatch.setattr(base, "refits_by_default", lambda *_: 0)
    made = synthesize_by_formula(folder, own, out=tmp_path / "out", seed=2, n_synthetic=2)
    df = count_rows(folder, READ, outcomes=["visits"]).records
    whole = own.release(df, seed=2, n_synthetic=2)
    for field, value in whole.charge.as_dict().items():
        if isinstance(value, float):
            value = pytest.approx(value, rel=precision)
        assert made.charge.as_dict()[field] == value, field
    assert made.data == whole.data
    assert made.settings == whole.settings
    assert made.record.diagnostics == whole.diagnostics
    assert made.charge.kind == ("strict" if type(own) is ph.Censored else "asymptotic local")


def accounted(bound: BoundRegression, own: ph.BudgetWeighted) -> tuple[Any, Any, Any]:
    """Fit, weights with and without each record, and what a draw tells of records."""
    session = open_session(bound, seed=3, settings=SamplerSettings(draws=300))
    path = own.fit(session)
    return path.fit, own.recomputed(session), own._accounts(session, path, 0).present


@pytest.mark.parametrize("name", ["poisson", "group levels", "levels", "of a range"])
def test_weights_by_budget_are_those_of_all_rows(
    name: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights, how they change as a record leaves, and the account."""
    few, whole = both(folder, MODELS[name])
    assert few.times is not None
    own, every = budget(model=MODELS[name]), np.repeat(np.arange(few.n), few.times.astype(int))
    (fit, without, told), (of_all, without_all, other) = accounted(few, own), accounted(whole, own)
    np.testing.assert_allclose(fit.alpha[every], of_all.alpha, rtol=1e-12)
    assert (fit.alpha < 1).any()
    first = np.searchsorted(every, np.arange(few.n))
    places = np.unique([0, few.n - 1, few.times.argmax(), few.times.argmin()])
    terms = moved_terms(few.log_lik(fit.draws), without, places)
    terms_of_all = moved_terms(whole.log_lik(fit.draws), without_all, first[places])
    np.testing.assert_allclose(terms, terms_of_all, rtol=1e-9, atol=1e-9)
    for field in ("mu", "loss_range", "mu_standard_error", "largest_of_limit"):
        assert getattr(told, field) == pytest.approx(getattr(other, field), rel=1e-9)
    np.testing.assert_allclose(told.mu_by_record, other.mu_by_record[first], rtol=1e-9)
    twice = accounted(replace(few, times=2 * few.times), own)[2]
    assert twice.mu != pytest.approx(told.mu, rel=0.01), "the control: other numbers"
    change_to = WeightsWithout.change_to
    monkeypatch.setattr(
        WeightsWithout, "change_to", lambda own, weights, at, _: change_to(own, weights, at, None)
    )
    broken = accounted(few, own)[2]
    assert broken.mu > 1.1 * told.mu, "the control: all that are alike leave"


@pytest.mark.long
def test_a_refit_leaves_out_one_of_those_alike(tmp_path: Path) -> None:
    """Of a distinct row that most records share, and of one that one record has alone."""
    own, (few, whole) = budget(0.5), both(parquet(table()[:1000], tmp_path / "few"), POISSON)
    last = np.cumsum(few.times).astype(int) - 1
    for place in (int(np.argmax(few.times)), int(np.argmin(few.times))):
        found = []
        for bound, left in ((few, place), (whole, int(last[place]))):
            session = open_session(bound, seed=4)
            fit, known = own.fit(session).fit, own.recomputed(session)
            account = loss_account.account_of_fit(session, fit, known)
            found.append(_refit_without(session, fit, account, left, known, "refit"))
        one, other = found
        np.testing.assert_allclose(one.loss.by_draw, other.loss.by_draw, atol=1e-6)
        without = one.loss.by_draw_without, other.loss.by_draw_without
        np.testing.assert_allclose(*without, atol=1e-3)


def test_delta_is_held_against_the_number_of_records(folder: str, tmp_path: Path) -> None:
    asked = mechanism(delta=1 / 3000)  # more than the distinct rows, fewer than the records
    with pytest.raises(InvalidInput, match=r"delta must be below 1 / n = 1.7e-04"):
        synthesize_by_formula(folder, asked, out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["survey"]


@pytest.mark.parametrize("at_once", [7, 10**6])
def test_a_ledger_knows_counted_rows_as_it_knows_records(
    at_once: int, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_fingerprint, "_AT_ONCE", at_once)
    counted = count_rows(folder, [*READ, "group", "often"], outcomes=["visits"])
    df = table()[counted.table.columns]
    assert data_mark(counted.table, counted.times) == data_mark(df)
    more = counted.times + (np.arange(counted.times.size) == 0)
    assert data_mark(counted.table, more) != data_mark(df)
    person = count_rows(folder, ["person"], outcomes=["visits"])
    assert data_mark(person.table, person.times) == data_mark(table()[["person", "visits"]])


def released(folder: str, out: Path, **changes: Any) -> Any:
    options = {"rows_per_part": 1700, "keep": ["group"], **changes}
    return synthesize_by_formula(folder, mechanism(), out=out, **options)


def test_rows_are_drawn_for_all_records_and_written_in_parts(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_formula, "_AT_ONCE", 1000)
    release = released(folder, tmp_path / "out", n_synthetic=2)
    public = tmp_path / "out" / "public"
    sets = [pd.read_parquet(public / f"synthetic_{m}") for m in (1, 2)]
    df = table()
    for made in sets:
        assert [*made] == ["age", "region", "visits", "group"]
        known = ["age", "region", "group"]
        each, every = (own.groupby(known, dropna=False).size() for own in (made, df))
        assert each.equals(every)
        for of_cell, own in made.groupby(["age", "region"]):
            mean = np.exp(of_cell[0] / 20 - 0.4 * (of_cell[1] == "north"))
            error = np.sqrt(mean / len(own)) + mean * 0.03  # of draws, and of the fit
            assert abs(own["visits"].mean() - mean) < 5 * error
        north = made[made["region"] == "east"]["visits"]
        assert stats.chisquare(*counts_of(north, df[df["region"] == "east"])).pvalue > 1e-6
    assert not sets[0].equals(sets[1])
    sizes = [len(pd.read_parquet(path)) for path in sorted((public / "synthetic_1").iterdir())]
    assert sizes == [1500] * 4
    described = json.loads((public / "metadata.json").read_text())["fileDscr"]
    assert [own["caseQnty"] for own in described] == sizes * 2
    first = release.sample(1000)
    assert abs(first["age"].mean() - df["age"].mean()) < 5 * df["age"].std() / 1000**0.5
    assert not first["age"].is_monotonic_increasing, "parts are in no order"
    statement = (public / "privacy_statement.md").read_text()
    assert f"The column visits of {N} records was replaced" in statement
    text = "".join(path.read_text() for path in public.glob("*.*"))
    assert str(release.entropy) not in text + repr(release)
    assert (tmp_path / "out/confidential").stat().st_mode & 0o777 == 0o700


def counts_of(values: pd.Series, real: pd.DataFrame) -> tuple[Any, Any]:
    """Synthetic counts, and those of the law that the data come from, of equally many records."""
    ends = np.arange(8)
    found = np.bincount(np.minimum(values, 8), minlength=9)
    law = np.zeros(9)
    for age, n in real["age"].value_counts().items():
        own = stats.poisson(np.exp(float(age) / 20)).pmf(ends)
        law += n * np.append(own, 1 - own.sum())
    return found, law * found.sum() / law.sum()


def test_a_stopped_run_goes_on_without_a_fit_or_a_charge(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = ph.Ledger(tmp_path / "l.jsonl", budget=50, kind="asymptotic local", delta=DELTA,
                       relation="remove")  # fmt: skip
    draw, drawn = parts._draw, []

    def stopping(part: Any) -> None:
        drawn.append(part.part)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        draw(part)

    monkeypatch.setattr(parts, "_draw", stopping)
    fails(KeyboardInterrupt, "", released, folder, tmp_path / "out", ledger=ledger)
    assert len(ledger.entries) == 1
    assert not (tmp_path / "out").exists()
    whole = parts._drawn_in(tmp_path / ".out.parts")
    monkeypatch.setattr(by_formula, "count_rows", None)  # neither counted nor fitted again
    release = released(folder, tmp_path / "out", ledger=ledger)
    assert len(ledger.entries) == 1
    assert drawn == [1, 2, 3, 3, 4]
    assert release.charge == whole.record.charge
    made = pd.read_parquet(tmp_path / "out/public/synthetic_1/part_00004.parquet")
    pd.testing.assert_frame_equal(made, whole.rows(1, 4), check_dtype=False)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "weights": (lambda: ph.LipschitzWeighted(POISSON), "by ph.BudgetWeighted, ph.Unweighted"),
    "a cap on weights": (lambda: ph.Censored(POISSON, epsilon=1), "inner=ph.Unweighted.model."),
    "budget of units": (lambda: budget(unit="person"), "without unit"),
    "a unit": (lambda: mechanism(unit="person"), "without unit"),
    "support": (lambda: mechanism(support={"visits": (0, 9)}), "without unit, design, support"),
    "re-weighting": (lambda: mechanism(reweighting=True), "re-weighting"),
    "continuous": (lambda: ph.Unweighted(ph.NormalRegression("visits ~ age"), delta=DELTA),
                   "'visits' must be of counts or levels"),
    "published": (lambda: ph.Unweighted(ph.Poisson("visits ~ 1", program="published")), "default"),
    "steps": (lambda: ph.Unweighted(MODELS["zeros"]), "of one column and one step"),
    "all records": (lambda: ph.Unweighted(ph.Poisson("visits ~ scale(age)")), "depends on all"),
    "no column": (lambda: ph.Unweighted(ph.Poisson("visits ~ agee")), "did you mean 'age'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_fitted_by_numbers_is_refused(what: str, folder: str, tmp_path: Path) -> None:
    made, words = REFUSED[what]
    refuses(words, synthesize_by_formula, folder, made(), out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["survey"]


def test_rows_that_do_not_fall_together_are_told_before_a_fit(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_DISTINCT", 500)
    monkeypatch.setattr(by_formula.FitOptions, "session", None)
    asked = replace(mechanism(), model=ph.Poisson("visits ~ age + person"))
    words = (
        r"at most 500 distinct rows of .*: found 6,000 among 6,000 rows; 'person' has 6,000 values"
    )
    refuses(words, synthesize_by_formula, folder, asked, out=tmp_path / "out")
    monkeypatch.setattr(rows, "MOST_DISTINCT", 10)
    refuses("at most 10 distinct rows of .* among 6,000 rows", count_rows, folder, READ,
            outcomes=["visits"])  # fmt: skip
    empty = parquet(table().head(0), tmp_path / "empty", n_files=1)
    refuses("must have rows: found none", count_rows, empty, READ, outcomes=["visits"])


@pytest.mark.long
def test_a_command_fits_distinct_rows_of_what_is_too_large_to_be_read(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., tuple[int, str, str]], refused: Callable[..., str],
) -> None:  # fmt: skip
    monkeypatch.setattr(rows, "MOST_ROWS", N - 1)
    with duckdb.connect(str(tmp_path / "survey.db")) as connection:
        connection.execute(f"CREATE TABLE persons AS SELECT * FROM '{folder}/*.parquet'")
    asked = ["synthesize", f"duckdb:///{tmp_path}/survey.db::persons", "--formula",
             "visits ~ age + region", "--out", str(tmp_path / "out")]  # fmt: skip
    assert "leave out --unit" in refused(*asked, "--unit", "person")
    twice = refused(*asked, *asked[2:4])
    assert "are fitted, by one --formula, or by --calibration" in twice
    assert "--mechanism budget or unweighted" in refused(*asked, "--mechanism", "lipschitz")
    monkeypatch.setattr(synthesize, "default_delta", lambda n: 1 / (100 * n))
    asked += ["--keep", "group", "--workers", "2", "--overwrite"]
    for own, model, name, cost in (
        (["--epsilon", "30"], chosen_model("visits ~ age + region", table()), "BudgetWeighted", 30),
        (["--mechanism", "unweighted", "--model", "poisson"], POISSON, "Unweighted", np.inf),
    ):
        code, shown, said = run(*asked, *own)
        assert code == 0, said
        assert "6,000 records" in shown
        made = pd.read_parquet(tmp_path / "out" / "public" / "synthetic_1")
        assert [*made] == ["age", "region", "visits", "group"]
        made_by = json.loads((tmp_path / "out" / "confidential" / "run.json").read_text())
        assert made_by["settings"]["model"] == model.describe()["model"]
        charge = made_by["charge"]
        assert (charge["mechanism"], charge["delta"]) == (name, 1 / (100 * N))
        assert charge["epsilon"] <= cost
    assert run("report", str(tmp_path / "out"), "--data", asked[1])[0] == 0
    page = (tmp_path / "out" / "confidential" / "report.html").read_text()
    assert "survey.db::persons: 6,000 records, 3 columns" in page


def test_a_model_is_chosen_by_all_rare_rows(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_SHOWN", N // 10)
    shown = sources.rows_to_choose_by(folder + "/*.parquet", "visits ~ 1").value_counts()
    every = table()[["visits"]].value_counts()
    assert (shown >= np.minimum(every, 20)).all()
    assert (shown <= every).all()
    assert shown.max() == np.ceil(every.max() / 10)

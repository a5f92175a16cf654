"""Noisy marginals: tables that come back, dtypes, charge, noise, refusals, files, coverage."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

import pyhybrid as ph
from benchmarks import coverage
from pyhybrid.core import randomness
from pyhybrid.mechanisms.marginals import measure as measuring
from pyhybrid.mechanisms.marginals import noisy_marginals, sample
from pyhybrid.primitives.tables import Price, cross_table
from pyhybrid.releases.statement import assumptions, not_covered
from pyhybrid.reports.release import release_report
from tests.mechanisms.test_reference_records import OWNERS_WORD
from tests.refusals import refuses

DOMAIN: dict[str, Any] = {
    "visits": ph.mechanisms.ColumnDomain(levels=(0,), bins=(1, 3, 10, 41)),
    "region": ("north", "south", "west"),
    "income": ph.mechanisms.ColumnDomain(bins=(0, 20, 50, 200), missing=True),
}
pytestmark = pytest.mark.usefixtures("opendp")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    n = 3000
    age = rng.integers(18, 90, n)
    region = np.where(rng.random(n) < age / 120, "north", "south")
    visits = np.minimum(rng.poisson(age / 30 + 2 * (region == "north")), 40)
    income = np.where(rng.random(n) < 0.1, np.nan, rng.gamma(4, 5 + visits).clip(0, 200))
    return pd.DataFrame({
        "age": age, "sex": pd.Categorical(rng.choice(["f", "m"], n)),
        "visits": pd.array(visits, dtype="Int16"), "region": region,
        "income": income.astype("float32"),
    }, index=pd.Index([f"row {i}" for i in range(n)], name="label"))  # fmt: skip


def mechanism(**changes: Any) -> ph.NoisyMarginals:
    own = {"domain": DOMAIN, "given": ["age", "sex"], "epsilon": 1.0}
    return ph.NoisyMarginals(**{**own, **changes})


def shares(df: pd.DataFrame, *columns: str) -> np.ndarray:
    """Shares of the cells of a table of columns of `DOMAIN`."""
    named = {**DOMAIN, "sex": ("f", "m")}
    domains = {name: ph.mechanisms.ColumnDomain.from_dict(named[name]) for name in columns}
    places = tuple(own.places(df[name]) for name, own in domains.items())
    counts = np.zeros([own.n_cells for own in domains.values()])
    np.add.at(counts, places, 1)
    return counts / len(df)


def test_the_bins_of_auto_follow_the_noise_and_read_no_record(table: pd.DataFrame) -> None:
    """Root of n over 5 mean sizes of the noise on a cell: tables at two thirds of epsilon 2."""
    own = mechanism(domain=FINE, epsilon=2.0, most_bins="auto")
    size = 2 * own.n_tables / (2 / 3 * 2.0)  # of Laplace noise under "replace"
    assert own.bins_of(3000) == round(np.sqrt(3000 / (5 * size)))
    assert (own.bins_of(50), own.bins_of(10**7)) == (3, 20)
    near = mechanism(domain=FINE, epsilon=2.0, most_bins="auto", reference=table,
                     holds_no_released_record=True)  # fmt: skip
    assert near.bins_of(50) == 20  # the reference tells them apart
    assert own.too_few(3000) is None
    said = own.too_few(100)
    assert said is not None
    assert "100 records are too few for 9 tables at epsilon 2" in said
    by_home = dataclasses.replace(own, unit="home", rows_per_unit=4).too_few(100)
    assert "100 records, up to 4 for a home, are too few" in by_home
    for delta in (None, 1e-6):
        one = dataclasses.replace(own, delta=delta)
        enough = float(re.findall(r"an epsilon of ([\d.]+)", one.too_few(100) or "")[0])
        assert dataclasses.replace(one, epsilon=enough).too_few(100) is None
        assert dataclasses.replace(one, epsilon=enough - 1).too_few(100) is not None
    release = own.release(table[:100])
    assert release.charge.kind == "strict"
    assert release.settings["most_bins"] == "auto"


def test_tables_come_back_when_noise_is_small(table: pd.DataFrame) -> None:
    """Every pair of cells within 6 binomial standard errors of two samples."""
    own = mechanism(epsilon=1e5)
    sets = [own.release(table).synthetic[0] for _ in range(3)]
    for pair in (
        ("visits", "region"), ("visits", "income"), ("region", "income"), ("sex", "visits")
    ):  # fmt: skip
        truth = shares(table, *pair)
        found = np.mean([shares(each, *pair) for each in sets], axis=0)
        error = np.sqrt(truth * (1 - truth) / len(table)) + 1 / len(table)
        assert (np.abs(found - truth) < 6 * error).all()


def test_records_do_not_keep_their_values(table: pd.DataFrame) -> None:
    ordered = table.sort_values(["age", "visits"])
    visits = {"visits": DOMAIN["visits"]}
    made = mechanism(domain=visits, given=[], epsilon=1e4).release(ordered).synthetic[0]
    drawn = made["visits"].to_numpy(dtype=float)
    after = ordered["age"].to_numpy(dtype=float)
    assert abs(np.corrcoef(drawn, after)[0, 1]) < 5 / np.sqrt(drawn.size)


FINE = {**DOMAIN, "income": ph.mechanisms.ColumnDomain(bins=tuple(range(0, 201, 4)), missing=True)}


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize(("relation", "rows"), [("remove", 1), ("replace", 1), ("replace", 3)])
def test_no_record_moves_all_tables_by_more_than_the_price(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, relation: str, rows: int, delta: Any
) -> None:
    """Brute force: all that leave, or all pairs, as many times as a unit has rows. The controls:
    a second cell of the last table alone (blocks of bins, with a delta), or nothing paid for it."""
    own = table.iloc[:600].assign(person=np.arange(600) // 3)
    unit: dict[str, Any] = {} if rows == 1 else {"unit": "person", "rows_per_unit": rows}
    unit |= {"epsilon": 40.0 * rows, "delta": delta, "relation": relation}
    one = mechanism(domain=FINE, most_bins=4, **unit)
    price, real = Price.of(one.epsilon, delta), measuring.noisy_tables
    whole, power = (price.epsilon, 1) if price.rho is None else (2 * price.rho, 2)

    def cost(broken: str) -> float:
        moved: list[np.ndarray] = []
        by_record: dict[int, np.ndarray] = {}

        def counted(codes: Any, shape: Any) -> Any:
            table = cross_table(codes, shape)
            cells = np.ravel_multi_index(tuple(codes), shape)
            by_record[id(table)] = np.eye(table.size)[cells]
            return table

        def ask(tables: Any, **options: Any) -> Any:
            alone, names = not moved, list(asked.order)
            blocks = asked._blocks() if alone else {}
            for (name, query), wide in zip(blocks.items(), tables[len(names) :], strict=False):
                by_record[id(wide)] = by_record[id(tables[names.index(name)])] @ query.T
            paid = tables[:-1] if alone and broken == "unpaid" else tables
            twice = tables[-1 if alone and broken == "twice" else len(tables) :]
            scale = real(paid, **options).scale
            moved.extend(by_record[id(each)] / scale for each in (*tables, *twice))
            return real(tables, **options)

        with monkeypatch.context() as patch:
            patch.setattr(measuring, "noisy_tables", ask)
            patch.setattr(sample, "cross_table", counted)
            asked = one._counted(own)
            asked.all_tables()
        held = rows * np.hstack(moved)
        others = held if relation == "replace" else np.zeros((1, held.shape[1]))
        return float(cdist(held, others, "minkowski", p=power).max() ** power)

    assert 0.99 < cost("") / whole < 1 + 1e-12
    assert min(cost("twice"), cost("unpaid")) > 1.01 * whole
    assert one.n_tables == 9
    person = {"unit": "person", "rows_per_unit": 2}
    refuses("at most rows_per_unit=2 rows", mechanism(**person).release, own)


@pytest.mark.parametrize("m", [1, 2])
def test_releases_depend_on_noisy_answers_alone(table: Any, monkeypatch: Any, m: int) -> None:
    """Other values, the same answers and randomness: the same sets. Control: its own answers."""
    monkeypatch.setattr(noisy_marginals, "streams", lambda: randomness.streams(5))
    data, real, kept = table.iloc[:1200], measuring.noisy_tables, list[Any]()
    own = mechanism(epsilon=20, domain=FINE, most_bins=4, delta=1e-6)

    def keep(*parts: Any, **options: Any) -> Any:
        kept.append(real(*parts, **options))
        return kept[-1]

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "noisy_tables", keep)
        one = own.release(data, n_synthetic=m)
    other = data.assign(**{
        name: pd.Series(data[name].to_numpy()[::-1], data.index, dtype=data[name].dtype)
        for name in DOMAIN
    })  # fmt: skip
    with monkeypatch.context() as patch:
        answers = iter(kept)
        patch.setattr(measuring, "noisy_tables", lambda *_, **__: next(answers))
        two = own.release(other, n_synthetic=m)
    for a, b in zip(one.synthetic, two.synthetic, strict=True):
        pd.testing.assert_frame_equal(a, b)
    assert not own.release(other).synthetic[0]["visits"].equals(one.synthetic[0]["visits"])


def test_a_reference_tells_what_noise_drowns(table: pd.DataFrame) -> None:
    """At an epsilon of .01, five times: near the data with one, never without, as is charged."""
    data = table.iloc[:1500].assign(region=table["region"].iloc[:1500].astype(str))
    other = table.iloc[1500:].assign(region=table["region"].iloc[1500:].astype(str))
    own = mechanism(epsilon=0.01, given=["sex"])

    def off(released: ph.Release) -> float:
        both = [shares(df, "region", "visits") for df in (released.synthetic[0], data)]
        return float(np.abs(both[0] - both[1]).sum() / 2)

    told = own.release(data)
    refuses("a reference must be confirmed", dataclasses.replace, own, reference=other)
    own = dataclasses.replace(own, holds_no_released_record=True)
    assert max(off(own.release(data)) for _ in range(5)) > 0.2
    known = dataclasses.replace(own, reference=other, public=True).release(data)
    for _ in range(5):
        assert off(dataclasses.replace(own, reference=other).release(data)) < 0.15
    assert "reference, which is public" in " ".join(not_covered(known.charge))
    mine = dataclasses.replace(own, reference=other).release(data)
    assert "the model that is drawn from has them" in " ".join(not_covered(mine.charge))
    assert OWNERS_WORD in assumptions(mine.charge)
    assert OWNERS_WORD not in assumptions(told.charge)
    assert known.settings["reference"] == {"records": 1500, "public": True}
    assert "reference" not in " ".join(not_covered(told.charge))
    for wrong, words in (
        (other.drop(columns="sex"), "reference: column 'sex' must be in the data"),
        (other.assign(region="east"), "reference: column 'region' must"),
        (other.iloc[:0], "reference: data must have rows"),
        ([1, 2], "reference: data must be"),
    ):
        refuses(words, dataclasses.replace(own, reference=wrong).release, data)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_bins_are_merged_by_noisy_counts_and_filled_again(table: pd.DataFrame, delta: Any) -> None:
    """Uniform values within four wide bins would miss the quantiles of a gamma law."""
    own = mechanism(domain=FINE, epsilon=1e4, delta=delta, most_bins=4)
    sets = own.release(table, n_synthetic=5)
    drawn = np.concatenate([each["income"].to_numpy(dtype=float) for each in sets.synthetic])
    own_values = table["income"].dropna().to_numpy(dtype=float)
    drawn = drawn[np.isfinite(drawn)]
    at = np.quantile(own_values, np.linspace(0.05, 0.95, 19))
    found, truth = (np.array([(y <= x).mean() for x in at]) for y in (drawn, own_values))
    assert np.abs(found - truth).max() < 5 * 0.5 / np.sqrt(len(table)) + 0.02
    assert sets.charge.epsilon == 1e4
    assert sets.provenance.noise.count("discrete") >= 3


@pytest.mark.parametrize(("changes", "words"), [
    ({"domain": {}}, "it is never read from the data"),
    ({"domain": {"visits": {"bins": [3, 1]}}}, "domain of 'visits': bins must be two edges"),
    ({"domain": {"visits": {"level": [1]}}}, "must be levels, or have the keys"),
    ({"domain": {"age": (1, 2)}}, "a column that is not in given"),
    ({"domain": {"y": {"levels": (0,), "bins": (0, 1, 4)}}}, "each bin must hold a multiple"),
    ({"domain": {"y": {"bins": (0, 0.5, 0.7, 4), "step": 1}}}, "of its step 1"),
    ({"epsilon": 0}, "epsilon must be above 0"), ({"delta": 1.0}, "delta must lie in"),
    ({"most_bins": 1}, "most_bins must be"),
    ({"most_bins": "few"}, "most_bins must be a number or 'auto'"),
    ({"given": "age"}, "given must be a list"), ({"relation": "add"}, "relation must be one of"),
    ({"unit": "person"}, "unit and rows_per_unit must be given together"),
    ({"predictors": {"age": []}}, "'age' is none"),
    ({"predictors": {"visits": ["region"]}}, "'region' is not"),
    ({"predictors": {"region": ["visit"]}}, "'visit' is not .did you mean 'visits'"),
])  # fmt: skip
def test_bad_settings_are_refused(changes: Any, words: str) -> None:
    refuses(words, mechanism, **changes)


@pytest.mark.parametrize(("change", "words"), [
    (lambda t: t.drop(columns="sex"), "column 'sex' must be in the data"),
    (lambda t: t.rename(columns={"visits": "Visit"}), "did you mean 'Visit'"),
    (lambda t: t.assign(visits=99), "column 'visits' must lie in its domain: row 'row 0'"),
    (lambda t: t.assign(region="east"), "column 'region' must lie in its domain"),
    (lambda t: t.assign(region=None), "column 'region' must not be missing"),
    (lambda t: t.iloc[:0], "data must have rows"),
    (lambda t: pd.concat([t, t["age"]], axis=1), "'age' occurs more than once"),
])  # fmt: skip
def test_bad_data_are_refused_without_a_value(table: pd.DataFrame, change: Any, words: str) -> None:
    refuses(words, mechanism().release, change(table), hidden=["99", "east"])


def test_a_model_that_is_too_large_is_refused_before_the_data_are_read(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {**DOMAIN, "region": [f"r{place}" for place in range(600)]}
    monkeypatch.setattr(measuring, "noisy_tables", None)
    refuses("'region' times those of its predictors .* 3000", mechanism(domain=many).release, table)
    refuses("seed must not be given", mechanism().release, table, seed=1)


@pytest.mark.long
def test_saved_loaded_charged_and_reported(table: pd.DataFrame, tmp_path: Path) -> None:
    release = mechanism().release(table, n_synthetic=2)
    release.save(tmp_path / "out")
    loaded = ph.Release.load(tmp_path / "out")
    pd.testing.assert_frame_equal(loaded.synthetic[1], release.synthetic[1])
    assert loaded.provenance.counts == "tables"
    assert loaded.statement == release.statement
    words = " ".join(release.statement.split())
    assert "any number of sets costs no more than one" in words
    assert "scale 17 on each count of 8 tables, 144 counts in all" in words
    assert "noise_aware" in words
    settings = json.loads((tmp_path / "out/confidential/run.json").read_text())["settings"]
    assert settings["predictors"]["visits"] == ["age", "sex"]
    again = {k: settings[k] for k in ("domain", "predictors", "epsilon", "relation")}
    assert ph.NoisyMarginals(given=["age", "sex"], **again).describe() == settings
    for page in (release.statement, release_report(release, table)):
        assert re.search("noisy tables|tables with noise", page)


@pytest.mark.long
def test_intervals_that_know_of_the_noise_cover_and_those_that_do_not_fail() -> None:
    """95 % intervals in the benchmark of coverage, on 12 whole tables of each form; four quantities
    count as two. The control knows nothing of the noise."""
    least = 0.95 - 5 * np.sqrt(0.95 * 0.05 / (12 * 2))
    aware, naive = {}, {}
    for form in ("plain", "most_bins, delta"):
        found = np.array([coverage.covered(form, "whole", seed) for seed in range(12)])
        aware[form], naive[form] = found[:, :, 0, 1].mean(axis=(0, 2))
    assert min(aware.values()) > least
    assert naive["most_bins, delta"] < least

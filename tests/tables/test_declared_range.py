"""What is declared of a column holds for what is released: its range, its decimals, no zeros."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.registry import within
from pyhybrid.tables.domains import domain_of
from tests.fits import fit_options
from tests.fuzzing.engine import RandomDraws
from tests.refusals import refuses

N = 200
SHORT = fit_options(chains=4, warmup=20, draws=400, engine=RandomDraws())
P_VALUE = 1e-6
RNG = np.random.default_rng(6)
DATA = pd.DataFrame({
    "age": np.linspace(0, 1, N), "education": RNG.choice([9.0, 12, 12, 14, 16, 20], N),
    "wage": np.round(np.clip(RNG.gamma(2, 10, N), 0.5, 59.95), 2),
    "profit": np.round(np.clip(RNG.normal(0, 20, N), -30, 40), 1) * (RNG.random(N) < 0.8),
    "visits": np.minimum(RNG.poisson(3, N), 30),
})  # fmt: skip
TYPES: dict[str, Any] = {
    "education": ph.Real(lower=9, upper=20, center=13, unit=3, decimals=0),
    "wage": ph.Amounts(upper=60, center=20, unit=10, decimals=2),
    "profit": ph.SemiContinuous(lower=-30, upper=40, center=0, unit=20, decimals=1),
    "visits": ph.Counts(lower=0, upper=30, center=3, unit=2),
}


def plan_of(*columns: str, data: pd.DataFrame = DATA, **types: Any) -> Any:
    own = {name: {**TYPES, **types}[name] for name in columns}
    return ph.Table(data[["age", *columns]], sensitive=list(columns), types=own).plan()


def released(plan: Any, mechanism: str, **options: Any) -> ph.Release:
    if mechanism == "censored":
        reference = plan.table.df.iloc[::-1].reset_index(drop=True)
        reference = reference.assign(age=0.003 + 0.9 * reference["age"])
        word = {"public": True, "holds_no_released_record": True}
        made = ph.tables.calibrate_table(
            plan, reference, epsilon=20, n_draws_released=4, **word, **SHORT
        )
        options |= {"calibration": made, "holds_no_released_record": True}
    if mechanism in ("censored", "scalar", "marginals"):
        options |= {"epsilon": 20.0}
    if mechanism != "marginals":
        options |= SHORT
    return ph.synthesize_table(plan, mechanism=mechanism, n_synthetic=4, **options)


@pytest.mark.filterwarnings("ignore:.*at an end of the declared range")
@pytest.mark.parametrize("mechanism", ["censored", "unweighted", "marginals"])
def test_no_released_value_leaves_its_declared_range(mechanism: str) -> None:
    """Of draws from anywhere: the stand-in engine knows nothing of the data."""
    plan = plan_of(*TYPES)
    release = released(plan, mechanism)
    for made in release.synthetic:
        for name, kind in TYPES.items():
            assert isinstance(kind, ph.Counts | ph.Real)
            low, high = (kind.lower, kind.upper)
            assert made[name].between(low, high).all(), name
            np.testing.assert_array_equal(made[name].round(getattr(kind, "decimals", 0)),
                                          made[name])  # fmt: skip
        assert (made["wage"] > 0).all()
    if mechanism == "marginals":
        return
    text = " ".join(release.statement.split())
    for said in ("values of education are at least 9 and at most 20, as declared",
                 "values of wage are at most 60",
                 "values of profit are at least -30 and at most 40",
                 "(truncated), which reads no record and costs nothing"):  # fmt: skip
        assert said in text


def test_without_ends_values_leave_the_range() -> None:
    """The control: the models of version 0.2, which were told of no range."""
    plan = plan_of("education")
    (column,) = plan.columns
    free = replace(column.model_of(plan.kinds), lower=None, upper=None)
    mechanism = ph.Unweighted(free)
    made = mechanism.release(DATA[["age", "education"]], seed=2, **SHORT).synthetic[0]["education"]
    assert not made.between(9, 20).all()


def test_ends_of_a_model_are_kept_where_they_are_narrower() -> None:
    assert within(ph.Poisson("y ~ 1", upper=9), 2.5, 20).describe()["upper"] == 9
    assert within(ph.Poisson("y ~ 1"), 2.5, 20).lower == 3
    bounded = within(ph.NormalRegression("y ~ 1", upper=9.0), 0, 20)
    assert (bounded.lower, bounded.upper) == (0, 9)
    two = within(plan_of("profit").columns[0].model_of(plan_of("profit").kinds), None, None)
    assert (two.positive.upper, two.negative.upper, two.positive.lower) == (40, 30, None)
    refuses("must keep to the declared range", within, ph.MixtureRegression("y ~ 1"), 0, 1)


def test_a_calibration_that_keeps_to_no_range_is_refused() -> None:
    plan = plan_of("education")
    other = DATA[["age", "education"]].iloc[::-1].reset_index(drop=True)
    word = {"holds_no_released_record": True}
    made = ph.tables.calibrate_table(plan, other.assign(age=other["age"] / 2), epsilon=9, **word,
                                     **SHORT)  # fmt: skip
    free = replace(made["education"].model, lower=None, upper=None)
    old = {"education": replace(made["education"], model=free)}
    with pytest.raises(InvalidInput, match="keeps to the declared range"):
        ph.synthesize_table(plan, epsilon=9, calibration=old, **word, **SHORT)


def test_a_strict_charge_asks_for_decimals_and_a_reference_has_them() -> None:
    bare = ph.Amounts(upper=60, center=20, unit=10)
    for mechanism in ("censored", "marginals"):
        with pytest.raises(InvalidInput, match="needs the decimals of released numbers: wage"):
            released(plan_of("wage", wage=bare), mechanism)
    local = released(plan_of("wage", wage=bare), "unweighted")
    assert "was read from the confidential data" in " ".join(local.statement.split())
    assert (local.synthetic[0]["wage"] % 1 > 0).any()
    reference = DATA[["age", "wage"]].assign(wage=DATA["wage"].round(1))
    table = ph.Table(DATA[["age", "wage"]], sensitive=["wage"], types={"wage": bare},
                     reference=reference)  # fmt: skip
    assert table.plan()["wage"].kind.kind.decimals == 1


def test_money_keeps_its_mean() -> None:
    """Values are rounded, and not floored, where fewer decimals are declared than they have."""
    y = pd.Series(np.round(RNG.gamma(4, 4, 20_000), 2).clip(0.01, 99), name="wage")
    for decimals, off in ((2, 0.006), (0, 0.03)):
        kind = ph.Amounts(upper=100, center=15, unit=8, decimals=decimals)
        domain = domain_of("wage", kind)
        drawn = domain.values(domain.places(y), np.random.default_rng(1), y, even=True)
        assert abs(drawn.mean() - y.mean()) < off + 5 * 0.6 / np.sqrt(y.size)
        assert (drawn > 0).all()
    floored = np.floor(y).mean()  # the control: half a unit is lost
    assert abs(floored - y.mean()) > 0.4


def test_kinds_from_a_reference_keep_its_decimals() -> None:
    reals = pd.Series(np.random.default_rng(3).gamma(2, 1e4, 200), name="y")
    kind = ph.Table(
        reals.to_frame().assign(x=1.0), sensitive=["y"], reference=reals.to_frame()
    ).plan()["y"].kind.kind  # fmt: skip
    assert kind.decimals == 8


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a model that the stand-in leaves unfit
@pytest.mark.parametrize("seed", range(3))
def test_amounts_above_zero_may_be_missing_in_a_plan(seed: int) -> None:
    """Centers are bought from noisy counts, whose table must hold no zero: 0 is no amount."""
    wage = np.ceil(np.random.default_rng(seed).gamma(1, 5, N))
    data = DATA[["age"]].assign(wage=pd.Series(wage).where(np.arange(N) != 4))
    kind = ph.Amounts(upper=100, center=5, unit=5, decimals=0, missing=True)
    release = ph.synthesize_table(plan_of("wage", data=data, wage=kind), epsilon=2.0, **SHORT)
    made = release.synthetic[0]["wage"]
    assert str(made.dtype) == "Int64"
    assert (made.dropna() >= 1).all()
    low = domain_of("wage", replace(kind, missing=False))
    cells = np.zeros(2000, dtype=np.int64)
    drawn = low.values(cells, np.random.default_rng(1), pd.Series(cells, name="wage"))
    assert drawn.min() == 1
    control = ph.mechanisms.ColumnDomain(bins=(0.0, 3.0, 100.0), step=1)
    assert control.values(cells, np.random.default_rng(1), pd.Series(cells)).min() == 0


def test_a_missing_amount_that_is_not_declared_is_said_to_be_missing() -> None:
    data = DATA[["age", "wage"]].assign(wage=DATA["wage"].where(np.arange(N) != 4))
    for mechanism in ("censored", "unweighted", "marginals"):
        refuses(r"must not be missing.*: row 4 is", released, plan_of("wage", data=data), mechanism)


def test_levels_that_are_numbers_stay_levels_for_later_columns() -> None:
    """Released as whole numbers; the next model codes them as the levels that were declared."""
    region = pd.Series(np.arange(N) % 3 + 1).astype(object).where(np.arange(N) != 5, "3")
    data = DATA[["age", "visits"]].assign(region=region.to_numpy())
    types = {"region": ph.Nominal(levels=(1, 2, 3)), "visits": TYPES["visits"]}
    table = ph.Table(data, sensitive=["region", "visits"], types=types, order=["region", "visits"])
    release = released(table.plan(), "censored")
    assert release.synthetic[0]["region"].dtype == np.int64
    assert "region" in table.plan()["visits"].predictors
    (made,) = {tuple(sorted(each["region"].unique())) for each in release.synthetic}
    assert set(made) <= {1, 2, 3}


def test_missing_values_marked_by_a_text_have_a_report() -> None:
    """In version 0.2 the report of a column of numbers with NA in its file failed."""
    y = pd.Series(DATA["visits"].astype(float)).where(np.arange(N) % 7 > 0)
    model = ph.WithMissing(ph.Poisson("y ~ 1"))
    release = ph.Unweighted(model).release(pd.DataFrame({"y": y, "x": DATA["age"]}), seed=3,
                                           **SHORT)  # fmt: skip
    marked = release.with_marks({"y": "NA"}, ["y"])
    assert set(marked.synthetic[0]["y"].map(type)) == {int, str}
    assert ph.reports.release_pages(marked)


def test_an_outcome_that_is_declared_complete_has_no_missing_values() -> None:
    data = DATA[["age", "visits"]].assign(age=DATA["age"].where(np.arange(N) != 3))
    model = ph.WithMissing(ph.Poisson("visits ~ age"), fill={"age": 0.5}, complete=True)
    assert [part.name for part in model.bind(data).parts] == ["value"]
    gone = data.assign(visits=data["visits"].where(np.arange(N) != 4))
    refuses(r"must not be missing, as complete=True declares: row 4", model.bind, gone)

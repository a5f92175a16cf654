"""A person with several rows: epsilon by unit, in bounds, weights, censoring, charge and words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.fitting.session import FitSession
from pyhybrid.privacy.conversions import epsilon_of_bound
from pyhybrid.privacy.log_lik import LogLik, unit_terms
from tests.audits.enumeration import held_loss
from tests.fits import fit_options, session_fixture
from tests.refusals import refuses

OPTIONS = fit_options(chains=4, warmup=500, draws=600, seed=5)
MODEL = ph.Poisson("y ~ 1")


def people() -> pd.DataFrame:
    """60 rows of 24 persons; person 3 has 8 rows."""
    rng = np.random.default_rng(8)
    person = np.concatenate([np.full(8, 3), np.arange(24), rng.integers(4, 24, 28)])
    return pd.DataFrame({"y": rng.poisson(20, 60), "person": [f"id {p}" for p in person]})


session = session_fixture(lambda: MODEL.bind(people()), **OPTIONS)


@pytest.mark.samples
def test_epsilon_is_that_of_all_rows_of_a_person(session: FitSession) -> None:
    """As it was, a person with 8 rows was charged as one row: the control."""
    made = {"n_synthetic": 1, "n_draws_released": 1, "refits": 0}
    own = (ph.Unweighted(MODEL, unit=unit) for unit in ("person", None))
    person, row = (mechanism.release_from(session, **made) for mechanism in own)
    assert (person.charge.unit, row.charge.unit) == ("person", None)
    assert row.charge.epsilon < 0.3 * person.charge.epsilon, "the control: a row is no person"
    assert "remove all records of one person" in person.statement
    assert "k rows of one person cost k times" in row.statement


def _censored(**options: Any) -> ph.Censored:
    inner = ph.Unweighted(MODEL, **options)
    return ph.Censored(MODEL, epsilon=30, inner=inner, check_modes=False, **options)


def test_censoring_clips_the_sum_of_a_person(session: FitSession) -> None:
    """Log densities of the Stan program with and without a person differ by at most 2 caps, from
    any point to any other; clipped row by row they differ by more, the control."""
    by_person = session.by_unit("person")
    table, moved = people(), {}
    alpha = np.ones(60)
    alpha[(table["person"] == "id 3").to_numpy()] = 0
    for name, own in (("person", by_person), ("row", session)):
        data = [own.bound.stan_data(a, cap=own.cap_of(25.0)) for a in (np.ones(60), alpha)]
        # Hints are location and scale of the reparametrization; one set, so that points agree.
        by_row = {"n", "y", "frequency", "weights", "X", "offsets", "reference", "unit"}
        data[1] |= {k: data[0][k] for k in data[0].keys() - by_row}
        both = [ProgramAtPoints(own.bound.program, each) for each in data]
        points = np.random.default_rng(2).normal(0, 2.5, (60, both[0].n_unconstrained))
        density = [at.log_density(points) for at in both]
        moved[name] = np.ptp(density[0] - density[1])
    assert moved["person"] <= 25.0 + 1e-9, "f <= 0: the sum lies in [-cap, 0]"
    assert moved["row"] > 2 * 25.0, "the control: each of 8 rows clipped by itself"


def test_bounds_of_a_unit_hold_its_loss_by_enumeration() -> None:
    """Local charge: 2 x the bound by unit covers the removal of a person, that by row does not."""
    grid = np.linspace(0, 1, 41)[:, None]
    sigma = np.exp(-2) / np.sqrt(2 * np.pi)  # log density 2 at its mode
    far = np.sqrt(8) * sigma
    rows = np.array([0.0, 0.0, *[far] * 12])  # a person at 0, six persons elsewhere
    f = stats.norm.logpdf(rows, grid * far, sigma)  # within [-2, 2]
    unit = np.arange(14) // 2
    sums = unit_terms(LogLik.of(f), np.ones(14), unit)
    lost = held_loss(sums)
    assert lost <= epsilon_of_bound(ph.lipschitz_bounds(sums).overall)
    by_row = epsilon_of_bound(ph.lipschitz_bounds(f).overall)
    assert lost > by_row, "the control: charged by row, the person loses more than is stated"


@pytest.mark.samples
def test_a_censored_release_by_person_is_strict(session: FitSession) -> None:
    release = _censored(unit="person").release_from(session, n_synthetic=1, n_draws_released=1)
    assert (release.charge.kind, release.charge.epsilon) == ("strict", 30.0)
    assert release.charge.unit == "person"
    assert release.confidential.censored is not None
    met = people().assign(met=release.confidential.censored).groupby("person")["met"]
    assert (met.nunique() == 1).all(), "a person meets the cap as a whole"
    by_row = _censored().release_from(session, n_synthetic=1, n_draws_released=1)
    assert by_row.fit.draws is not release.fit.draws, "the two posteriors are not one"


@pytest.mark.parametrize(("make", "message"), [
    (lambda t: (ph.Unweighted(MODEL, unit="household"), t), "unit must be a column of the"),
    (lambda t: (ph.Unweighted(MODEL, unit="y"), t), "unit must be a column that is not synth"),
    (
        lambda t: (ph.Unweighted(MODEL, unit="person"), t.replace("id 7", None)),
        "unit 'person' must not be missing: row .* is",
    ),
    (lambda t: (ph.Unweighted(MODEL, unit="person"), t.assign(person=[["id 7"]] * len(t))),
     "unit 'person' must hold numbers, text"),
])  # fmt: skip
def test_what_is_no_unit_is_refused(make: Any, message: str) -> None:
    mechanism, table = make(people())
    refuses(message, mechanism.release, table, hidden=["id 7"], **OPTIONS)


def test_the_unit_of_an_outcome_does_not_hide_the_unit_of_privacy() -> None:
    """Models of scaled outcomes have a setting named unit, too; unlike units, unlike streams."""
    by_person = ph.Unweighted(ph.LogNormal("y ~ 1", unit=1000), unit="person")
    settings = by_person.describe()
    assert (settings["unit_of_privacy"], settings["unit"]) == ("person", 1000)
    assert by_person.stream() != replace(by_person, unit="household").stream()
    assert ph.Unweighted(MODEL, unit="person").describe()["unit"] == "person"


def test_unlike_units_do_not_meet() -> None:
    said, own = "inner must have the unit of privacy of ", ph.Unweighted(MODEL, unit="person")
    of_rows = ph.Unweighted(MODEL)
    refuses(f"{said}Truncated", ph.Truncated, MODEL, cap=3, unit="person", inner=of_rows)
    refuses(f"{said}Censored", ph.Censored, MODEL, epsilon=3, inner=own)
    steps = [own, ph.Unweighted(ph.Poisson("z ~ 1"))]
    refuses("one unit of privacy: found 'person' and None", ph.SequentialSynthesis, steps)
    refuses("unit must be the name of a column", ph.Unweighted, MODEL, unit=3)

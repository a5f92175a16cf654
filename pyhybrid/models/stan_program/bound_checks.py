"""All that is checked when a user's program is bound to a table, in the order of what it costs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, PyhybridError, SamplingError
from pyhybrid.engines.embedded import ProgramAtPoints, check_compiles
from pyhybrid.models.stan_program.bound_stan_model import BoundStanModel
from pyhybrid.models.stan_program.data_leak_checks import NotChecked, all_pairs, check_reads
from pyhybrid.models.stan_program.python_parts import (
    check_follows_rows,
    check_holds_no_records,
    check_no_copy,
    is_copy,
)
from pyhybrid.models.stan_program.stan_checks import check_weights_act, usable_points
from pyhybrid.models.stan_program.stan_data import handed_over

__all__ = ["check_bound"]

_SEEDS = (20220101, 20220102)
_MANY, _PART = 500, 128


def check_bound(bound: BoundStanModel) -> None:
    """Check the functions, the program's weights and cap, and what it reads.

    Raises
    ------
    InvalidInput
        Says which of the demands is not met.
    NotChecked, EngineUnavailable
        If nothing can be said.
    """
    model = bound.model
    for name, function in (("data", model.data), ("predict", model.predict)):
        if callable(function):
            check_holds_no_records(function, name, bound.outcome, model.public)
    _check_public(bound)
    bound.data_with(None)  # what is wrong with the data is said first
    check_compiles(bound.program)
    check_weights_act(
        bound.program,
        bound.data_at,
        bound.n,
        weighted=model.log_lik_weighted,
        capped=bound.takes_cap,
    )
    if callable(model.data):
        columns = (*bound.predictors, model.outcome)
        _check_rows(bound, handed_over(bound.table, columns))
    at, points = _points(bound)
    found = [at.quantities(points, seed=seed) for seed in _SEEDS]
    predicts = callable(model.predict) or model.predict in found[0]  # else refused where it is used
    _check_all_reads(bound, at, points, predicts=predicts)
    if predicts:
        _check_replicates(bound, points, found)


def _check_all_reads(
    bound: BoundStanModel, at: ProgramAtPoints, points: FloatArray, *, predicts: bool
) -> None:
    """All pairs of records and several references; for many records those of a part of them, then
    one reference for all."""
    model = bound.model
    generated = model.predict if predicts and isinstance(model.predict, str) else None

    def check(some: BoundStanModel, *which: Any, thorough: bool) -> None:
        check_reads(
            some,
            *which,
            predict=generated,
            weighted=model.log_lik_weighted,
            n_references=2 if thorough else 1,
            splits=all_pairs(some.n) if thorough else (),
        )

    if bound.n > _MANY and callable(model.data):
        places = np.random.default_rng(_SEEDS[0]).choice(bound.n, _PART, replace=False)
        part = bound.part(np.sort(places))
        try:
            of_part = _points(part)
        except InvalidInput:  # it does not take fewer records
            of_part = None
        if of_part is not None:
            try:
                check(part, *of_part, thorough=True)
                return check(bound, at, points, thorough=False)
            except (NotChecked, SamplingError):  # records that the part has not
                pass
    check(bound, at, points, thorough=True)


def _check_public(bound: BoundStanModel) -> None:
    """What is declared public in a mapping must not be the outcome or in its order."""
    data = bound.model.data
    if not isinstance(data, Mapping):
        return
    for name in bound.model.public:
        value = np.asarray(data.get(name))
        columns = value.reshape(len(value), -1).T if value.shape[:1] == (bound.n,) else ()
        if any(is_copy(np.asarray(column, dtype=float), bound.outcome) for column in columns):
            raise InvalidInput(
                f"public must not name the confidential outcome: entry {name!r} of data is a "
                "function of it"
            )


def _check_rows(bound: BoundStanModel, shown: pd.DataFrame) -> None:
    data = bound.model.data
    assert callable(data)
    try:
        check_follows_rows(data, shown, bound.model.public)
    except InvalidInput:
        raise
    except Exception as error:
        raise NotChecked(
            f"data fails when the rows of the table change places ({type(error).__name__})"
        ) from None


def _points(bound: BoundStanModel) -> tuple[ProgramAtPoints, FloatArray]:
    """The program with the true data, and points where its log density is finite."""
    at = ProgramAtPoints(bound.program, bound.data_with(None))
    points, _ = usable_points(at, np.random.default_rng(_SEEDS[0]), bound.program)
    return at, points


def _check_replicates(
    bound: BoundStanModel, points: FloatArray, found: Sequence[Mapping[str, FloatArray]]
) -> None:
    """Replicates at several points and seeds: no copy of the outcome, and, of a function in Python,
    the same whether what the program computes for it read the outcome or not."""
    makes, how = bound.replicates, bound.model.predict
    if isinstance(how, str):
        sets = [makes.as_column(each) for each_seed in found for each in each_seed[how]]
    else:
        sets = [
            made
            for seed, each in zip(_SEEDS, found, strict=True)
            for made in _called(bound, each, seed)
        ]
        _check_called(bound, points, sets[: len(points)])
    check_no_copy(np.array(sets), bound.outcome, makes.said)


def _check_called(bound: BoundStanModel, points: FloatArray, here: list[FloatArray]) -> None:
    for other in bound.others():
        try:
            at = ProgramAtPoints(bound.program, bound.data_with(other))
            found = at.quantities(points, seed=_SEEDS[0])
        except PyhybridError:
            continue
        there = _called(bound, found, _SEEDS[0])
        if not np.array_equal(np.array(here), np.array(there), equal_nan=True):
            raise InvalidInput(
                f"{bound.replicates.said} must not read the confidential outcome: what it returns "
                "changes when other values stand in its place, or when it is called again; read "
                "parameters and predictors alone, and draw random numbers from rng"
            )
        return
    raise NotChecked("the program takes no other values in the place of the outcome")


def _called(bound: BoundStanModel, found: Mapping[str, FloatArray], seed: int) -> list[FloatArray]:
    """What the function in Python returns at each point."""
    made = []
    for place in range(len(next(iter(found.values())))):
        parameters = {name: v[place] for name, v in found.items() if name != "log_lik"}
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                rng = np.random.default_rng([seed, place])
                made.append(bound.replicates.called(parameters, bound.table, rng))
        except PyhybridError:
            raise
        except Exception as error:
            raise NotChecked(
                f"predict fails at random parameters ({type(error).__name__})"
            ) from None
    return made

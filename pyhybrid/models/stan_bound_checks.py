"""All that is checked when a user's program is bound to a table, in the order of what it costs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from pyhybrid.engines.embedded_points import ProgramAtPoints, check_compiles
from pyhybrid.errors import InvalidInput, PyhybridError
from pyhybrid.models.design import Design
from pyhybrid.models.other_values import OtherValues
from pyhybrid.models.python_parts import (
    check_follows_rows,
    check_holds_no_records,
    check_no_copy,
    is_copy,
)
from pyhybrid.models.stan_checks import check_weights_act, usable_points
from pyhybrid.models.stan_data import Replaced, handed_over
from pyhybrid.models.stan_reads import NotChecked, check_reads
from pyhybrid.validation import FloatArray

if TYPE_CHECKING:
    from pyhybrid.models.bound_stan_model import BoundStanModel

__all__ = ["check_bound", "reads_other_rows"]

_SEEDS = (20220101, 20220102)


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
        lambda alpha, cap: bound.stan_data(alpha, cap=cap),
        bound.n,
        weighted=model.log_lik_weighted,
        capped=bound.takes_cap,
    )
    if callable(model.data):
        columns = (*bound.predictors, model.outcome)
        _check_rows(bound, handed_over(bound.table, columns))
    points = _points(bound)
    generated = model.predict if isinstance(model.predict, str) else None
    if generated is not None and generated not in _made(bound, None, points, _SEEDS[0]):
        generated = None  # refused where it is used
    check_reads(bound, points, predict=generated, by_record=model.by_record)
    if generated is not None or callable(model.predict):
        _check_replicates(bound, points)


def reads_other_rows(design: Design, table: pd.DataFrame) -> bool:
    """True if the coding of a record changes when the predictors of others do."""
    n = len(table)
    for mask in (np.arange(n) < n // 2, np.arange(n) >= n // 2):
        places = Replaced(records=mask, rows=True).places(n)
        moved = table.iloc[places].reset_index(drop=True)
        try:
            coded = design.matrix_of(moved)
        except PyhybridError:
            return True
        if not np.allclose(coded[~mask], design.X[~mask], rtol=1e-9, atol=0):
            return True
    return False


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


def _points(bound: BoundStanModel) -> FloatArray:
    at = ProgramAtPoints(bound.program, bound.data_with(None))
    points, _ = usable_points(at, np.random.default_rng(_SEEDS[0]), bound.program)
    return points


def _made(
    bound: BoundStanModel, other: OtherValues | None, points: FloatArray, seed: int
) -> dict[str, FloatArray]:
    """The program's variables at points, without log_lik."""
    at = ProgramAtPoints(bound.program, bound.data_with(other))
    found = at.quantities(points, seed=seed)
    return {name: value for name, value in found.items() if name != "log_lik"}


def _check_replicates(bound: BoundStanModel, points: FloatArray) -> None:
    """Replicates at several points and seeds: no copy of the outcome, and, of a function in Python,
    the same whether what the program computes for it read the outcome or not."""
    makes = bound.replicates
    sets = []
    for seed in _SEEDS:
        found = _made(bound, None, points, seed)
        if isinstance(bound.model.predict, str):
            sets += [makes.as_column(each) for each in found[bound.model.predict]]
        else:
            sets += _called(bound, found, seed)
    if callable(bound.model.predict):
        _check_called(bound, points, sets[: len(points)])
    check_no_copy(np.array(sets), bound.outcome, makes.said)


def _check_called(bound: BoundStanModel, points: FloatArray, here: list[FloatArray]) -> None:
    for other in bound.others():
        try:
            found = _made(bound, other, points, _SEEDS[0])
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


def _called(bound: BoundStanModel, found: dict[str, FloatArray], seed: int) -> list[FloatArray]:
    """What the function in Python returns at each point."""
    made = []
    for place in range(len(next(iter(found.values())))):
        parameters = {name: value[place] for name, value in found.items()}
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

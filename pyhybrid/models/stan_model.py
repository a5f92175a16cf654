"""A model in a Stan program of the user's own, and the same joined to a table.

The program takes ``weights`` and yields ``log_lik``. That the weights act is checked numerically;
all else that it does is for its author to know, so that its charges are local, never strict.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, IntArray, check_flag
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import block_text, declared_names, parameter_names, user_program
from pyhybrid.models.base import BLOCK_ELEMENTS, BoundModel
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import check_decimals, in_form_of
from pyhybrid.models.formula.design import Design, read_design
from pyhybrid.models.formula.values import with_columns
from pyhybrid.privacy.censoring import Cap

DataOfTable = Callable[[pd.DataFrame], Mapping[str, Any]]
Predictor = Callable[[dict[str, FloatArray], pd.DataFrame, np.random.Generator], Any]

_SEED = 20220101
_TRIES, _POINTS = 60, 5  # random parameters, and those used: where the log density is finite
_SINGLE_RECORDS = 3  # whose weights are changed alone
_TOLERANCE = 1e-7  # relative to the log densities compared
_LARGEST = 1e12  # beyond this size, rounding hides a record's term
_ROUNDING = 1e-9  # of the log of a probability of 1


@dataclass(frozen=True, eq=False)
class StanModel:
    """A user's Stan program as a synthesizer, for local charges.

    The program declares ``weights``, one per record, in its data block and multiplies each record's
    log-likelihood by its weight; ``log_lik`` in its generated quantities has the same
    log-likelihoods, in the order of the table, without weights or times `weights`, as the papers
    print it: generated quantities are given weights of 1. That the weights act is checked
    numerically when a table is bound; the charge states what the user answers for beyond that.

    Parameters
    ----------
    program : str or path
        A ``.stan`` file, or the program's text. Arrays may be declared as in old Stan.
    outcome : str
        The sensitive column that replicates replace.
    predict : str or callable
        The name of a generated quantity with one value per record, or ``predict(parameters, df,
        rng)``, which gets the program's variables at one draw by name, the table without its
        outcome and a random generator, and returns an array of shape (n,). Replicates are made from
        data in which the records' outcomes have changed places; a generated quantity that moves
        with them is refused.
    data : mapping or callable
        The rest of the data block: constants, or a function of the table, which gets the outcome
        and the predictors. ``weights`` comes from pyhybrid, and so do ``n``, ``y`` (the outcome),
        ``K`` and ``X`` (the design matrix of `formula`) where the program declares them and `data`
        does not give them.
    formula : str, optional
        As in R, with the outcome on its left.
    predictors : tuple of str
        Columns that `data` reads beside the outcome and those of the formula. In a sequence they
        come with the synthetic values of columns that were synthesized before.
    density_above_one : bool, default True
        False for discrete outcomes, whose log-likelihood is never above 0: under relation "replace"
        they cost half as much. A log_lik above 0 is then refused.
    decimals : int, optional
        Number of decimals of released values, 0 to 15; read from the data if omitted.

    Raises
    ------
    InvalidInput
        For a program that does not declare ``weights`` and ``log_lik`` or cannot be read.
    """

    program: str | os.PathLike[str]
    _: KW_ONLY
    outcome: str
    predict: str | Predictor
    data: Mapping[str, Any] | DataOfTable = field(default_factory=dict, repr=False)
    formula: str | None = None
    predictors: tuple[str, ...] = ()
    density_above_one: bool = True
    decimals: int | None = None

    def __post_init__(self) -> None:
        check_flag(self.density_above_one, "density_above_one")
        check_decimals(self.decimals)
        if isinstance(self.predictors, str):
            raise InvalidInput(f"predictors must be a tuple of names: found {self.predictors!r}")
        if not (callable(self.data) or isinstance(self.data, Mapping)):
            raise InvalidInput("data must be a mapping or a function of the table")
        if not (callable(self.predict) or isinstance(self.predict, str)):
            raise InvalidInput("predict must name a generated quantity, or be a function")
        name, generated = self.source.name, block_text(self.source, r"generated\s+quantities")
        if "weights" not in declared_names(self.source, "data"):
            raise InvalidInput(
                f"program {name!r} must declare weights in its data block, e.g. "
                "'vector<lower=0, upper=1>[n] weights;', and multiply each record's "
                "log-likelihood by its weight"
            )
        if "log_lik" not in generated:
            raise InvalidInput(
                f"program {name!r} must yield log_lik in its generated quantities: a vector with "
                "the log-likelihood of each record"
            )

    @property
    def name(self) -> str:
        return type(self).__name__

    @cached_property
    def source(self) -> StanProgram:
        """The program, of a file or a text, as `user_program` makes it."""
        text = os.fspath(self.program)
        if "{" in text:
            return user_program("user_program", text)
        path = Path(text)
        try:
            return user_program(path.stem, path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidInput(f"program must be a readable Stan file: {text}: {reason}") from None

    @property
    def given_decimals(self) -> int | None:
        return self.decimals

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Form of the outcome's column, if decimals are given."""
        return {} if self.decimals is None else {self.outcome: Form(decimals=self.decimals)}

    def describe(self) -> dict[str, Any]:
        """Public settings: the program by name and hash, no data."""
        return {
            "model": self.name,
            "program": self.source.name,
            "program_sha256": self.source.sha256,
            "outcome": self.outcome,
            "formula": self.formula,
            "predict": self.predict if isinstance(self.predict, str) else "a function",
            "density_above_one": self.density_above_one,
            "decimals": self.decimals,
        }

    def bind(self, df: pd.DataFrame) -> BoundStanModel:
        """Check `df` and the program on it, and join them; InvalidInput for what `read_design`
        refuses, for a program that does not compile (with the compiler's message) or does not take
        the data, whose weights do not act, or whose replicates read the outcome. The check needs
        stanli whichever engine samples."""
        design = read_design(self.formula or f"`{self.outcome}` ~ 1", df)
        if design.outcome != self.outcome:
            raise InvalidInput(
                f"formula must have the outcome {self.outcome!r} on its left: found "
                f"{design.outcome!r}"
            )
        if design.has_offset:
            raise InvalidInput(
                "formula gives a program its design matrix X alone: found offset() in "
                f"{self.formula!r}; hand the exposure over in data="
            )
        if not {*self.predictors} <= {*df.columns} - {self.outcome}:
            raise InvalidInput(
                f"predictors must be columns of the data beside the outcome: {self.predictors}"
            )
        matrix = None if self.formula is None else design
        reads = () if matrix is None else matrix.predictors
        bound = BoundStanModel(
            model=self, table=df, synthesized=(self.outcome,), source=self.source,
            reads=(*reads, *self.predictors), matrix=matrix,
            likelihood_parameters=parameter_names(self.source),
        )  # fmt: skip
        bound.data(1.0)  # what is wrong with the data is said first
        check_weights_act(bound)
        return bound


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundStanModel(BoundModel):
    """A user's program joined to a table. Confidential."""

    model: StanModel
    matrix: Design | None

    @property
    def data_dependent(self) -> tuple[str, ...]:
        terms = () if self.matrix is None else self.matrix.data_dependent
        return (*terms, "the data of the Stan program", *super().data_dependent)

    @property
    def assumptions(self) -> tuple[str, ...]:
        own = (
            "The user's own Stan program: that its weights multiply log_lik was checked at random "
            "parameters. The user answers for the rest: that the prior and a record's log_lik read "
            "no other record's outcome, and that replicates are made from a released draw and "
            "columns that are released."
        )
        discrete = ("The user states that no density of the program exceeds 1.",)
        return (own, *(() if self.density_above_one else discrete), *super().assumptions)

    @property
    def row_of(self) -> IntArray:
        return np.arange(self.n)

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        if cap is not None:
            raise InvalidInput(
                "censoring needs a built-in model: what a StanModel's program does is not known, "
                "so that no charge of it is strict; choose a mechanism with weights"
            )
        return self.data(self.under_survey(alpha, None)[0])

    def data(self, alpha: FloatArray | float, table: pd.DataFrame | None = None) -> dict[str, Any]:
        """Data block under weights `alpha`, one or (n,), of the bound table or one of its rows."""
        table = self.table if table is None else table
        shown = table[[*dict.fromkeys(self.reads), self.model.outcome]].reset_index(drop=True)
        declared = declared_names(self.program, "data")
        available: dict[str, Any] = {"n": len(table), "y": shown[self.model.outcome].to_numpy()}
        if self.matrix is not None:
            X = self.matrix.recoded(table).X
            available |= {"K": X.shape[1], "X": X}
        given: Any = self.model.data
        if isinstance(given, Mapping):
            if self.n > 1 and any(np.shape(value)[:1] == (self.n,) for value in given.values()):
                raise InvalidInput(
                    "data must be a function of the table where it has one value per record: "
                    "data=lambda df: {...}"
                )
        elif not isinstance(given := given(shown), Mapping):
            raise InvalidInput(
                f"data must return a mapping of names to values: found {type(given).__name__}"
            )
        return {
            **{name: value for name, value in available.items() if name in declared},
            **given,
            "weights": np.full(len(table), alpha) if isinstance(alpha, float) else alpha,
        }

    def log_lik_blocks(self, draws: Draws) -> Iterator[FloatArray]:
        log_lik = draws.flat("log_lik")
        self.check_log_lik(log_lik, draws.n_draws)
        size = max(1, BLOCK_ELEMENTS // draws.n_draws)
        for rows in (slice(start, start + size) for start in range(0, self.n, size)):
            terms = log_lik[:, rows]
            yield terms if self.survey is None else terms * self.survey.weight[rows]

    def monitored(self, draws: Draws) -> dict[str, FloatArray]:
        names = [name for name in self.likelihood_parameters if name in draws.variables]
        total = draws.variables["log_lik"].sum(axis=2)
        return {**{name: draws.variables[name] for name in names}, "sum of log_lik": total}

    def replicate(
        self, draws: Draws, draw: int, rng: np.random.Generator, given: pd.DataFrame | None = None
    ) -> pd.DataFrame:
        """The outcome drawn anew at one draw, from data whose outcomes have changed places."""
        name, predict = self.model.outcome, self.model.predict
        table, like = self.table if given is None else given, self.table[name]
        at = ProgramAtPoints(self.program, self.data(1.0, _with_shuffled(table, like, rng)))
        quantities = at.quantities(at.unconstrained(draws, draw), seed=int(rng.integers(1, 2**31)))
        if isinstance(predict, str):
            values: Any = quantities[predict][0]
        else:
            parameters = {key: v[0] for key, v in quantities.items() if key != "log_lik"}
            values = predict(parameters, table.drop(columns=name, errors="ignore"), rng)
        try:
            replicate = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(f"predict must return numbers: found {type(values)}") from None
        if replicate.shape != (self.n,):
            raise InvalidInput(f"predict must have shape ({self.n},): found {replicate.shape}")
        if not np.isfinite(replicate).all():
            raise SamplingError("a replicate is not finite: see predict")
        rounded = replicate if self.decimals is None else np.round(replicate, self.decimals)
        return in_form_of(rounded, like, self.model.decimals).to_frame()

    def check_log_lik(self, log_lik: FloatArray, n_draws: int) -> None:
        """Raise InvalidInput for another shape than (S, n), or for what the user's flag denies."""
        what = f"log_lik of program {self.program.name!r} must"
        if log_lik.shape != (n_draws, self.n):
            raise InvalidInput(
                f"{what} have one value per record, {self.n}: found {log_lik.shape[1:]}"
            )
        if not self.density_above_one and bool((log_lik > _ROUNDING).any()):
            raise InvalidInput(
                f"{what} be at most 0 where density_above_one=False: it is not; leave the flag out"
            )


def _with_shuffled(
    table: pd.DataFrame, outcome: pd.Series, rng: np.random.Generator
) -> pd.DataFrame:
    order = rng.permutation(len(table))
    return with_columns(table, {str(outcome.name): outcome.array[order]})


def check_weights_act(bound: BoundStanModel) -> None:
    """Raise InvalidInput unless weights multiply log_lik, and `predict` leaves the outcome unread.

    At random parameters the log density with weights, less that with all weights 0, must be the sum
    of weights times log_lik, up to a constant, which a program may drop: for weights of all records
    and of single ones. log_lik must not depend on the weights.
    """
    rng, program = np.random.default_rng(_SEED), f"program {bound.program.name!r}"
    alpha = rng.uniform(0.2, 1, bound.n)
    unweighted, weighted = (ProgramAtPoints(bound.program, bound.data(a)) for a in (0.0, alpha))
    points = rng.uniform(-1, 1, (_TRIES, unweighted.n_unconstrained))
    points = points[np.abs(weighted.log_density(points)) < _LARGEST][:_POINTS]
    prior = unweighted.log_density(points)
    if not np.isfinite(prior).any():
        raise InvalidInput(
            f"the log density of {program} must be finite somewhere: it is not at {_TRIES} random "
            "points; see its constraints and its data"
        )
    quantities = unweighted.quantities(points, seed=_SEED)
    log_lik = quantities["log_lik"]
    bound.check_log_lik(log_lik, len(points))
    if not np.allclose(weighted.quantities(points)["log_lik"], log_lik, rtol=1e-6, atol=1e-9):
        raise InvalidInput(
            f"log_lik of {program} must not depend on weights: it does; take the weights out of "
            "generated quantities"
        )
    singles = np.zeros((_SINGLE_RECORDS, bound.n))
    singles[np.arange(_SINGLE_RECORDS), rng.integers(bound.n, size=_SINGLE_RECORDS)] = 0.7
    for weights in (alpha, *singles):
        moved = ProgramAtPoints(bound.program, bound.data(weights)).log_density(points) - prior
        expected = log_lik @ weights
        error = moved - expected
        error = error - error.mean() if error.size > 1 else error
        if not (np.abs(error) <= _TOLERANCE * (1 + np.abs(prior) + np.abs(expected))).all():
            raise InvalidInput(
                f"weights of {program} must multiply each record's log_lik in the model block: "
                "when weights change, the log density must move by weights times log_lik, and it "
                "does not; write 'target += weights[i] * ..._lpdf(y[i] | ...);' with the same term "
                "as in log_lik"
            )
    predict = bound.model.predict
    if isinstance(predict, str):
        if predict not in quantities:
            raise InvalidInput(f"predict must be a variable of {program}: {predict!r} is not")
        table, rng = bound.table, np.random.default_rng(_SEED)
        shuffled = _with_shuffled(table, table[bound.model.outcome], rng)
        other = ProgramAtPoints(bound.program, bound.data(0.0, shuffled))
        again = other.quantities(points, seed=_SEED)[predict]
        if not np.array_equal(quantities[predict], again, equal_nan=True):
            raise InvalidInput(
                f"{predict!r} of {program} must not read the confidential outcome: it changes when "
                "outcomes change places; draw it from parameters and predictors alone, before "
                "other random numbers of generated quantities"
            )

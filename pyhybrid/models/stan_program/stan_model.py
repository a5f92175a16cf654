"""A model in a Stan program of the user's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from pyhybrid.core.checks import check_choice, check_flag
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.engines.base import StanProgram
from pyhybrid.models.columns.form import Form
from pyhybrid.models.columns.support import check_decimals
from pyhybrid.models.formula.design import read_design
from pyhybrid.models.stan_program.bound_checks import check_bound
from pyhybrid.models.stan_program.bound_stan_model import BoundStanModel
from pyhybrid.models.stan_program.data_leak_checks import NotChecked
from pyhybrid.models.stan_program.free_text import check_decides_nothing, composed_template
from pyhybrid.models.stan_program.own_program import (
    DataOfTable,
    Predictor,
    check_columns,
    checked_names,
    program_text,
)
from pyhybrid.models.stan_program.stan_checks import check_declares

__all__ = ["StanModel"]


@dataclass(frozen=True, eq=False)
class StanModel:
    """A user's own whole Stan program as a synthesizer: for local charges.

    What a whole program does under every weight and cap cannot be known by trying some, so that no
    charge of it is strict, whatever the mechanism: `pyhybrid.ComposedModel` is the form that can
    be. Here the weights and the cap that are released are tried, with other outcomes too, and what
    decides by weights or cap is refused.

    The program declares ``weights``, one per record, in its data block and multiplies each record's
    log-likelihood by its weight; ``log_lik`` in its generated quantities is the same
    log-likelihood, one value per record in the order of the table, not weighted. Whether the
    weights act so is checked at random points when a table is bound.

    Parameters
    ----------
    program : str or path
        A ``.stan`` file, or the program's text.
    outcome : str
        The sensitive column that replicates replace.
    data : mapping or callable
        The rest of the data block, or a function of the table that returns it. ``weights`` comes
        from pyhybrid; so do ``n`` and ``y`` (the outcome), where the program declares them and
        `data` does not give them, and ``cap`` and ``use_cap``.
    formula : str, optional
        As in R, with the outcome on its left: the program then gets ``K`` and ``X``, the design
        matrix of shape (n, K) that the built-in models have, where it declares them.
    predict : str or callable
        How a replicate of the outcome is made: the name of a generated quantity with one value per
        record, or ``predict(parameters, df, rng)``, which gets the variables of one draw by name
        and the table without its outcome, and returns an array of shape (n,). Neither may read the
        confidential outcome, which no epsilon would cover: one that moves when other values stand
        in its place is refused, and replicates are made from data without it.
    log_lik_weighted : bool, default False
        True for programs whose log_lik is already weighted, as the published ones and brms's: it is
        then never read from the fit, where a record of weight 0 has left no trace, but computed at
        the same draws with all weights 1, which needs stanli and S x n numbers of memory.
    density_above_one : bool, default True
        False for discrete outcomes, whose log-likelihood is never above 0: under relation "replace"
        they cost half as much. A wrong False is an understatement of epsilon: a log_lik above 0 is
        then refused.
    by_record : bool, default False
        True, which asked for a strict charge in version 0.2, is refused: the error shows the
        composed program to write.
    predictors : tuple of str
        Columns that the function `data` reads beside the outcome; those of a formula are known.
        The function is given these and the outcome, without row labels. In a sequence they come
        with the synthetic values of columns that were synthesized before.
    public : tuple of str
        Names of what is public without being a column: entries of a mapping `data`, which count as
        confidential otherwise, and objects with one value per record that functions read. The
        charge names them.
    if_unchecked : {"refuse", "local"}, default "refuse"
        What to do with a program that cannot be checked, because it rejects other values than the
        data's, or because stanli is missing: "local" releases anyway. The charge is then
        asymptotic local and says that nothing was checked.
    monitored : tuple of str, optional
        Variables that must have converged; the program's parameters if omitted. Give variables
        that do not depend on labels where components can change names. The sum of log_lik is
        monitored in any case.
    decimals : int, optional
        Number of decimals of released values, 0 to 15; 0 for counts. A strict charge needs it: if
        omitted it is read from the data, and the charge says so and is not strict.

    Notes
    -----
    Censoring needs ``cap`` in the data block, with the term of record i as
    ``fmax(-cap, fmin(cap, weights[i] * f_i))``, and, to be told when there is none, ``int
    use_cap``; a program without ``use_cap`` gets a cap of 1e300 then. The clipping is checked like
    the weights. The prior must not read the outcome, nor log_lik the outcomes of other records:
    both are tried with other values at random points, and at draws of the fit before a replicate
    leaves. Constants computed from the data are given as numbers that are known beforehand.
    Generated quantities that predict are drawn anew for every replicate, whichever engine sampled.
    Starting points are Stan's own, also where other modes are looked for.
    """

    program: str | os.PathLike[str]
    _: KW_ONLY
    outcome: str
    predict: str | Predictor
    data: Mapping[str, Any] | DataOfTable = field(default_factory=dict, repr=False)
    formula: str | None = None
    log_lik_weighted: bool = False
    density_above_one: bool = True
    by_record: bool = False
    predictors: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    if_unchecked: str = "refuse"
    monitored: tuple[str, ...] | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        for name in ("log_lik_weighted", "density_above_one", "by_record"):
            check_flag(getattr(self, name), name)
        if not (callable(self.data) or isinstance(self.data, Mapping)):
            raise InvalidInput(
                "data must be a mapping or a function of the table: found "
                f"{type(self.data).__name__}"
            )
        if not (callable(self.predict) or isinstance(self.predict, str)):
            raise InvalidInput(
                "predict must name a generated quantity, or be a function of (parameters, df, "
                f"rng): found {type(self.predict).__name__}"
            )
        check_decimals(self.decimals)
        check_choice(self.if_unchecked, "if_unchecked", ("refuse", "local"))
        for name in ("predictors", "public"):
            object.__setattr__(self, name, checked_names(getattr(self, name), name))
        check_declares(self.source)
        if self.by_record:
            raise InvalidInput(
                "by_record=True asks for a strict charge, which a whole program cannot have: what "
                "it does under every weight and cap is not known. Write it for one record, as "
                "ph.ComposedModel(program, outcome=..., columns=...), from this, made of yours:\n"
                + composed_template(self.source)
            )
        check_decides_nothing(self.source)

    @property
    def name(self) -> str:
        """Name of the model."""
        return type(self).__name__

    @cached_property
    def source(self) -> StanProgram:
        """The program; its text is read once."""
        name, text = program_text(self.program)
        return StanProgram(name=name, text=text)

    def forms(self, df: pd.DataFrame) -> dict[str, Form]:
        """Numbers of the decimals given, of the outcome's column, if they are."""
        return {} if self.decimals is None else {self.outcome: Form(decimals=self.decimals)}

    def describe(self) -> dict[str, Any]:
        """Public settings: the program by name and hash, no data."""
        how = self.predict
        return {
            "model": self.name,
            "program": self.source.name,
            "program_sha256": self.source.sha256,
            "outcome": self.outcome,
            "formula": self.formula,
            "predict": how if isinstance(how, str) else getattr(how, "__qualname__", "a function"),
            "log_lik_weighted": self.log_lik_weighted,
            "density_above_one": self.density_above_one,
            "decimals": self.decimals,
            "public": list(self.public),
            "if_unchecked": self.if_unchecked,
        }

    def bind(self, df: pd.DataFrame) -> BoundStanModel:
        """Check `df` and the program on it, and join them.

        Raises
        ------
        InvalidInput
            For an outcome that is missing or not numeric, predictors that are no columns, a formula
            that cannot be evaluated or has another outcome, a program that does not compile (with
            the compiler's message), does not take the data, whose log_lik has another length, whose
            weights or cap do not act as they should, whose replicates or prior read the outcome,
            whose log_lik reads other records, or that cannot be checked.
        """
        design = read_design(self.formula or f"`{self.outcome}` ~ 1", df)
        if design.outcome != self.outcome:
            raise InvalidInput(
                f"formula must have the outcome {self.outcome!r} on its left: found "
                f"{design.outcome!r}"
            )
        if design.has_offset:
            raise InvalidInput(
                f"formula gives a program its design matrix X alone: found offset() in "
                f"{self.formula!r}; hand the exposure over in data= and name its column in "
                "predictors="
            )
        check_columns(self.predictors, self.outcome, df)
        coding = None if self.formula is None else design
        bound = BoundStanModel(model=self, table=df, design=coding)
        try:
            check_bound(bound)
        except (EngineUnavailable, NotChecked) as error:
            if self.if_unchecked == "local":
                return replace(bound, checked=False)
            raise InvalidInput(
                f"what program {self.source.name!r} reads was not checked: {error}; name what is "
                'public in predictors= and public=, or give if_unchecked="local" for a charge that '
                "is never strict and says so"
            ) from None
        return bound

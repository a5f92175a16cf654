"""A model in a whole Stan program of the user's own, and the same joined to a table.

The function that makes a program's data sees the outcome and the declared predictors, nothing else:
no other column, no row labels, no notes on the table. Replicates are made without the confidential
outcome: what no check can see, such as a reading in one draw of a million, cannot happen there. The
program runs on data in which other values stand in the place of the outcome, and a function in
Python gets the parameters of one draw, what the program computes of them and those data, and the
other columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import BoolArray, FloatArray, check_choice, check_flag
from pyhybrid.core.errors import EngineUnavailable, InvalidInput, PyhybridError, SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints, check_compiles
from pyhybrid.engines.programs import declared_names, parameter_names, with_large_weights
from pyhybrid.models.base import Model
from pyhybrid.models.stan_program.checks import (
    NotChecked,
    OtherValues,
    Reads,
    all_pairs,
    check_acts_at,
    check_declares,
    check_follows_rows,
    check_holds_no_records,
    check_no_copy,
    check_weights_act,
    is_copy,
    one_split,
    references,
    usable_points,
)
from pyhybrid.models.stan_program.composed_text import composed_template
from pyhybrid.models.stan_program.own_program import (
    BoundProgram,
    OwnProgram,
    called_on,
    handed_over,
    one_draw,
    plain_numbers,
)
from pyhybrid.models.stan_program.printed import (
    check_is_model,
    check_names_no_weights,
    formula_of,
    is_weighted,
    model_as_predictor,
    replicate_by,
)
from pyhybrid.models.stan_program.text_rules import check_decides_nothing
from pyhybrid.privacy.censoring import Cap

_SEEDS = (20220101, 20220102)
_MANY, _PART = 500, 128
_DRAWS_CHECKED = 6
_NO_CAP = 1e300
_FROM_PYHYBRID = frozenset({"weights", "use_cap", "cap"})
DataOfTable = Callable[[pd.DataFrame], Mapping[str, Any]]
Predictor = Callable[[dict[str, FloatArray], pd.DataFrame, np.random.Generator], Any]


@dataclass(frozen=True, eq=False)
class StanModel(OwnProgram):
    """A user's whole Stan program as a synthesizer: for local charges.

    Trying some weights and caps does not show what a program does under all of them, so its charges
    are never strict; `pyhybrid.ComposedModel` can be strict. Here the weights and the cap of the
    release are tried, also with other outcomes; a program that branches on weights or cap is
    refused.

    The program declares ``weights``, one per record, in its data block and multiplies each record's
    log-likelihood by its weight; ``log_lik`` in its generated quantities is the same
    log-likelihood, one value per record in the order of the table, not weighted, or times its
    weight. A program may be as a paper prints it: arrays of old Stan are rewritten, for every
    engine. Whether the weights act so is checked at random points when a table is bound.

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
        and the table without its outcome, and returns an array of shape (n,). For printed programs,
        which make no replicates, a regression of pyhybrid that the program is:
        ``ph.NegativeBinomial("y ~ x")``, whose formula is then the program's; both are compared by
        their log-likelihoods at the same parameters. None may read the confidential outcome, which
        no epsilon would cover: one that moves with other outcomes is refused, and replicates are
        made from data without it.
    log_lik_weighted : bool, optional
        True for programs whose log_lik is already weighted, as the published ones and brms's: it is
        then never read from the fit, where a record of weight 0 has left no trace, but computed at
        the same draws with all weights 1, which needs stanli and S x n numbers of memory. If
        omitted it is found by trying weights of 1 and 1/2, and refused if it is neither.
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
        Variables that must have converged; the program's parameters if omitted. Where component
        labels can switch, give variables that do not depend on them. The sum of log_lik is
        monitored in any case.
    decimals : int, optional
        Number of decimals of released values, 0 to 15; 0 for counts. A strict charge needs it: if
        omitted it is read from the data, and the charge says so and is not strict.

    Notes
    -----
    Censoring needs ``cap`` in the data block, with the term of record i as
    ``fmax(-cap, fmin(cap, weights[i] * f_i))``, and ``int use_cap``, 0 if there is none; a program
    without ``use_cap`` gets a cap of 1e300 then. The clipping is checked like the weights. The
    prior must not read the outcome, nor log_lik the outcomes of other records: both are tried with
    other values at random points, and at draws of the fit before a replicate leaves. Constants
    computed from the data are given as numbers that are known beforehand. Generated quantities that
    predict are drawn anew for every replicate, whichever engine sampled. Starting points are
    Stan's, also where other modes are looked for.
    """

    _: KW_ONLY
    predict: str | Predictor | Model
    data: Mapping[str, Any] | DataOfTable = field(default_factory=dict, repr=False)
    log_lik_weighted: bool | None = None
    public: tuple[str, ...] = ()
    if_unchecked: str = "refuse"
    exposure: ClassVar[str] = "hand the exposure over in data= and name its column in predictors="

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.log_lik_weighted is not None:
            check_flag(self.log_lik_weighted, "log_lik_weighted")
        if self.declared is not None:
            formula = formula_of(self.declared, self.formula)
            object.__setattr__(self, "formula", formula)
        if not (callable(self.data) or isinstance(self.data, Mapping)):
            raise InvalidInput(
                "data must be a mapping or a function of the table: found "
                f"{type(self.data).__name__}"
            )
        if self.declared is None and not (callable(self.predict) or isinstance(self.predict, str)):
            raise InvalidInput(
                "predict must name a generated quantity, or be a function of (parameters, df, "
                f"rng) or a regression of ours: found {type(self.predict).__name__}"
            )
        check_choice(self.if_unchecked, "if_unchecked", ("refuse", "local"))
        self._check_names("public")
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
    def declared(self) -> Any:
        """The model of ours that the program is declared to be, if it is."""
        return model_as_predictor(self.predict)

    def describe(self) -> dict[str, Any]:
        how: Any = self.predict if self.declared is None else type(self.predict)
        return {
            **super().describe(),
            "predict": how if isinstance(how, str) else getattr(how, "__qualname__", "a function"),
            "log_lik_weighted": self.log_lik_weighted,
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
        design = self.design_of(df)
        bound = BoundStanModel(
            model=self,
            table=df,
            design=None if self.formula is None else design,
            weighted=bool(self.log_lik_weighted),
        )
        try:
            return check_bound(bound)
        except (EngineUnavailable, NotChecked) as error:
            if self.if_unchecked == "local":
                if self.log_lik_weighted is None:
                    check_names_no_weights(self.source)
                return replace(bound, checked=False)
            raise InvalidInput(
                f"what program {self.source.name!r} reads was not checked: {error}; name what is "
                'public in predictors= and public=, or give if_unchecked="local" for a charge that '
                "is never strict and says so"
            ) from None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BoundStanModel(BoundProgram):
    """A user's model joined to a table; `checked`: what it does and reads was. Confidential."""

    model: StanModel
    checked: bool = True
    _seen: WeakSet[Draws] = field(default_factory=WeakSet)
    _tried: set[tuple[bytes, float | None]] = field(default_factory=set)

    @property
    def program(self) -> StanProgram:
        return self.model.source

    @property
    def data_dependent(self) -> tuple[str, ...]:
        """Terms that may look at all records: the program's data, too."""
        terms = () if self.design is None else self.design.data_dependent
        if not self.checked:
            terms = (*terms, "what the Stan program reads, which was not checked")
        return (*terms, "the data of the Stan program")

    @property
    def assumptions(self) -> tuple[str, ...]:
        model = self.model
        said = [
            "The user's own program: replicates are made from a released draw and columns that are "
            "released, not from the confidential outcome.",
            "A whole program: what it does was tried at the weights and the cap of its fits, not "
            "known for all of them, so that no charge of it is strict; a composed program can be "
            "(ph.ComposedModel).",
        ]
        if callable(model.data) or callable(model.predict):
            said.append(
                "The user's own functions in Python read no records but those that they are given: "
                "they were tried on other values, not looked into."
            )
        if model.public:
            said.append(f"The user states that these are public: {', '.join(model.public)}.")
        if not model.density_above_one:
            said.append("The user states that no density of the program exceeds 1.")
        if not self.checked:
            said.append(
                "WHAT THE PROGRAM READS, AND ITS USE OF THE WEIGHTS, WERE NOT CHECKED: its epsilon "
                "may not hold, and its replicates may hold confidential values."
            )
        return tuple(said)

    def data_of_ones(self) -> dict[str, Any]:
        return self.data(1.0)

    @property
    def takes_cap(self) -> bool:
        """True if the program can censor."""
        return "cap" in declared_names(self.program, "data")

    def stan_data(
        self, alpha: FloatArray, *, cap: float | Cap | None = None, dispersion: float = 1.0
    ) -> dict[str, Any]:
        """Data block, refused if the program does not do at these weights and cap what it must."""
        if isinstance(cap, Cap):
            if not cap.is_plain:
                raise InvalidInput(
                    "a whole program is censored at [-cap, cap], record by record: found one with "
                    "a center, units or unequal ends; a composed program takes those "
                    "(ph.ComposedModel)"
                )
            cap = cap.above
        if cap is not None and not self.takes_cap:
            raise InvalidInput(
                f"censoring needs a program that takes a cap: {self.program.name!r} declares none; "
                "add 'int<lower=0, upper=1> use_cap; real<lower=0> cap;' to its data block and "
                "clip each weighted term with fmax(-cap, fmin(cap, ...)), or choose another "
                "mechanism"
            )
        if self.checked and (alpha.tobytes(), cap) not in self._tried:
            check_acts_at(
                with_large_weights(self.program), self.data, self.others(), alpha, cap,
                weighted=self.weighted,
            )  # fmt: skip
            self._tried.add((alpha.tobytes(), cap))
        return self.data(alpha, cap)

    def data(
        self,
        alpha: FloatArray | float,
        cap: float | None = None,
        *,
        other: OtherValues | None = None,
        records: BoolArray | None = None,
        rest: bool = True,
        differ: bool = True,
        table: pd.DataFrame | None = None,
    ) -> dict[str, Any]:
        """Data block, unchecked; see `pyhybrid.models.stan_program.checks.DataBlock`. `differ` as
        in `OtherValues.instead_of`, False for what is released; `table` may have earlier columns of
        a sequence synthesized."""
        model, table = self.model, self.table if table is None else table
        declared = declared_names(model.source, "data")
        instead = _Instead(other=other, records=records, rest=rest, differ=differ)
        outcome = table[model.outcome].reset_index(drop=True)
        if other is not None:
            outcome = pd.Series(instead.by_record(plain_numbers(outcome))).astype(outcome.dtype)
        shown = handed_over(table, (*self.predictors, model.outcome))
        shown[model.outcome] = outcome
        if callable(model.data):
            given = called_on(model.data, shown, table, quiet=other is not None)
        else:
            kept = {*model.public, *_FROM_PYHYBRID}
            given = {
                name: value if name in kept else instead.entry(name, value, len(table))
                for name, value in model.data.items()
            }
        if self.design is not None:
            X = self.design.matrix_of(table)
            given = {n: v for n, v in (("K", X.shape[1]), ("X", X)) if n in declared} | given
        censored = {
            "use_cap": int(cap is not None),
            "cap": cap if cap is not None else (0.0 if "use_cap" in declared else _NO_CAP),
        }
        known = {"n": len(table), "y": outcome.to_numpy()}
        weights = np.full(len(table), alpha) if isinstance(alpha, float) else alpha
        return {
            **{name: value for name, value in known.items() if name in declared},
            **given,
            "weights": weights,
            **{name: value for name, value in censored.items() if name in declared},
        }

    @property
    def has_rest(self) -> bool:
        """True if a data mapping holds entries that are neither public nor one per record."""
        data, public = self.model.data, (*self.model.public, "n")
        return isinstance(data, Mapping) and any(
            np.shape(value)[:1] != (self.n,) for name, value in data.items() if name not in public
        )

    def others(self) -> Iterator[OtherValues]:
        """References of other values that suit the kinds of numbers here: "f" reals, "i" whole
        ones, "fi" both."""
        model = self.model
        values = [plain_numbers(self.table[model.outcome])]
        if isinstance(model.data, Mapping):
            values += [np.asarray(v) for name, v in model.data.items() if name not in model.public]
        kinds = {"i" if numbers.dtype.kind in "iub" else "f" for numbers in values}
        return references("".join(sorted(kinds)))

    def reads(self, points: FloatArray, predict: str | None) -> Reads:
        """Reads of the program at points; `predict` is its replicate."""
        return Reads(
            program=self.program, data=self.data, outcome=self.outcome, others=self.others,
            has_rest=self.has_rest, points=points, predict=predict,
            weighted=self.weighted,
        )  # fmt: skip

    def check_draws(self, draws: Draws) -> None:
        """Raise InvalidInput if the program reads what it must not at draws that it was fitted to:
        random points need not come where the posterior lies."""
        if not self.checked or draws in self._seen:
            return
        at = ProgramAtPoints(self.program, self.data(1.0))
        places = np.unique(np.linspace(0, draws.n_draws - 1, _DRAWS_CHECKED).astype(int))
        points = np.concatenate([at.unconstrained(one_draw(draws, int(p))) for p in places])
        how = self.model.predict
        generated = how if isinstance(how, str) and how in draws.variables else None
        try:  # another name is refused below
            self.reads(points, generated).check(n_references=1, splits=one_split(self.n))
        except NotChecked as error:
            raise InvalidInput(
                f"what program {self.program.name!r} reads was not checked at its draws: {error}"
            ) from None
        self._seen.add(draws)

    def replicate(
        self,
        draws: Draws,
        draw: int,
        rng: np.random.Generator,
        given: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """The outcome drawn anew: the program, or the function in Python, gets one draw of the
        parameters and data in which other values stand in the place of the confidential outcome."""
        self.check_draws(draws)
        table, how = self.table if given is None else given, self.model.predict
        self._check_mapping(table)
        if isinstance(how, str) and how not in draws.variables:
            raise InvalidInput(
                f"predict must be a variable of program {self.program.name!r}: {how!r} is not"
            )
        single, seed = one_draw(draws, draw), int(rng.integers(1, 2**31))
        try:
            made = self._without_outcome(single, seed, table)
        except EngineUnavailable:
            if isinstance(how, str):
                raise
            names = [name for name in parameter_names(self.program) if name in draws.variables]
            made = {name: single.flat(name) for name in names}
        made = {name: made[name] for name in draws.variables if name in made}
        replicate = self.replicate_of(made, 0, table, rng)
        return self.released(replicate, f"{self.predictor} of draw {draw + 1}")

    @property
    def predictor(self) -> str:
        """Maker of replicates, for messages."""
        how = self.model.predict
        if self.model.declared is not None:
            return f"the {type(how).__name__} that the program is declared to be"
        return how if isinstance(how, str) else "predict(parameters, df, rng)"

    def replicate_of(
        self,
        quantities: Mapping[str, FloatArray],
        point: int,
        table: pd.DataFrame,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Outcome (n,) that the program generated, or the function in Python returns, of the
        variables at a point; floats, which may be infinite."""
        how: Any = self.model.predict
        if self.model.declared is not None:
            assert self.design is not None
            parameters = {name: v[point] for name, v in quantities.items()}
            X = self.design.matrix_of(table)
            values: Any = replicate_by(how, parameters, X, rng, self.decimals)
        elif isinstance(how, str):
            values = quantities[how][point]
        else:
            parameters = {name: v[point] for name, v in quantities.items() if name != "log_lik"}
            columns = tuple(name for name in table.columns if name != self.model.outcome)
            values = how(parameters, handed_over(table, columns), rng)
        try:
            replicate = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"{self.predictor} must return numbers: found {type(values)}"
            ) from None
        if replicate.shape != (self.n,):
            raise InvalidInput(
                f"{self.predictor} must have shape ({self.n},): found {replicate.shape}"
            )
        return replicate

    def _without_outcome(
        self, single: Draws, seed: int, table: pd.DataFrame
    ) -> dict[str, FloatArray]:
        """The program's variables at one draw, by the first other values that it takes."""
        with_true = ProgramAtPoints(self.program, self.data(1.0, table=table))  # or why not
        for other in self.others():
            try:
                data = self.data(1.0, other=other, differ=False, table=table)
                at = ProgramAtPoints(self.program, data)
                return at.quantities(at.unconstrained(single), seed=seed)
            except (InvalidInput, SamplingError, RuntimeError, ValueError):
                continue
        if self.checked:
            raise SamplingError(
                f"program {self.program.name!r} failed to make a replicate from data without the "
                "confidential outcome"
            )
        return with_true.quantities(with_true.unconstrained(single), seed=seed)

    def _check_mapping(self, table: pd.DataFrame) -> None:
        """A mapping has no synthetic version: beside columns synthesized before it may hold only
        what has not one value per record, or the outcome, which is replaced."""
        data, public = self.model.data, self.model.public
        if not isinstance(data, Mapping):
            return
        by_record = [n for n, value in data.items() if n in public and self.n in np.shape(value)]
        before = self.synthesized_before(table)
        if before and by_record:
            raise InvalidInput(
                f"data must be a function of the table where {before[0]!r} is synthesized before: "
                f"entry {by_record[0]!r} of the mapping has one value per record, and may hold the "
                "true column"
            )


# --- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Instead:
    """Other values in the place of confidential ones; see `BoundStanModel.data`."""

    other: OtherValues | None
    records: BoolArray | None
    rest: bool
    differ: bool

    def by_record(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """`values`, one per record, with those of the chosen records replaced."""
        assert self.other is not None
        others = self.other.instead_of(values, differ=self.differ)
        if self.records is None:
            return others
        return np.where(self.records.reshape(-1, *(1,) * (values.ndim - 1)), others, values)

    def entry(self, name: str, value: Any, n: int) -> Any:
        """An entry of a data mapping that is not declared public, and counts as confidential."""
        array = np.asarray(value)
        if self.other is None or (name == "n" and array.ndim == 0):
            return value
        if array.shape[:1] == (n,):
            return self.by_record(array)
        return self.other.instead_of(array, differ=self.differ) if self.rest else value


# --- all that is checked when a table is bound, in the order of what it costs --------------------


def check_bound(bound: BoundStanModel) -> BoundStanModel:
    """The model, knowing whether its log_lik is weighted, after checks of functions, weights, cap
    and what it reads; NotChecked and EngineUnavailable say that nothing can be said."""
    model = bound.model
    for name, function in (("data", model.data), ("predict", model.predict)):
        if callable(function):
            check_holds_no_records(function, name, bound.outcome, model.public)
    _check_public(bound)
    bound.data(1.0)  # what is wrong with the data is said first
    check_compiles(bound.program)
    if model.log_lik_weighted is None:
        bound = replace(bound, weighted=is_weighted(bound.program, bound.data))
    check_weights_act(
        bound.program, bound.data, bound.n, weighted=bound.weighted, capped=bound.takes_cap
    )
    if callable(model.data):
        shown = handed_over(bound.table, (*bound.predictors, model.outcome))
        try:
            check_follows_rows(model.data, shown, model.public)
        except InvalidInput:
            raise
        except Exception as error:
            raise NotChecked(
                f"data fails when the rows of the table change places ({type(error).__name__})"
            ) from None
    at, points = _points(bound)
    by_seed = [at.quantities(points, seed=seed) for seed in _SEEDS]
    if model.declared is not None:
        assert bound.design is not None
        check_is_model(bound.program, model.declared, by_seed[0], bound.outcome, bound.design.X)
    generated = model.predict if isinstance(model.predict, str) else None
    named = generated in by_seed[0]  # a name that is not is refused where it is used
    _check_all_reads(bound, points, generated if named else None)
    if named or generated is None:
        here, again = (
            _replicates(bound, made, seed) for made, seed in zip(by_seed, _SEEDS, strict=True)
        )
        if generated is None:
            _check_predicted(bound, points, here)
        check_no_copy(np.array([*here, *again]), bound.outcome, bound.predictor)
    return bound


def _check_all_reads(bound: BoundStanModel, points: FloatArray, generated: str | None) -> None:
    """All pairs of records and several references; for many records those of a part of them, then
    one reference for all."""
    if bound.n > _MANY and callable(bound.model.data):
        places = np.random.default_rng(_SEEDS[0]).choice(bound.n, _PART, replace=False)
        part = replace(bound, table=bound.table.iloc[np.sort(places)])
        try:
            of_part = _points(part)[1]
        except InvalidInput:  # it does not take fewer records
            of_part = None
        if of_part is not None:
            try:
                part.reads(of_part, generated).check(n_references=2, splits=all_pairs(part.n))
                return bound.reads(points, generated).check(n_references=1, splits=())
            except (NotChecked, SamplingError):  # records that the part has not
                pass
    bound.reads(points, generated).check(n_references=2, splits=all_pairs(bound.n))


def _check_public(bound: BoundStanModel) -> None:
    """Refuse entries declared public that are the outcome or in its order."""
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


def _points(bound: BoundStanModel) -> tuple[ProgramAtPoints, FloatArray]:
    """The program with the true data, and points where its log density is finite."""
    at = ProgramAtPoints(bound.program, bound.data(1.0))
    points, _ = usable_points(at, np.random.default_rng(_SEEDS[0]), bound.program)
    return at, points


def _check_predicted(bound: BoundStanModel, points: FloatArray, here: list[FloatArray]) -> None:
    """A function in Python must return the same whether what the program computes for it read the
    outcome or not."""
    for other in bound.others():
        try:
            at = ProgramAtPoints(bound.program, bound.data(1.0, other=other))
            quantities = at.quantities(points, seed=_SEEDS[0])
        except PyhybridError:
            continue
        there = _replicates(bound, quantities, _SEEDS[0])
        if not np.array_equal(np.array(here), np.array(there), equal_nan=True):
            raise InvalidInput(
                f"{bound.predictor} must not read the confidential outcome: what it returns "
                "changes when other values stand in its place, or when it is called again; read "
                "parameters and predictors alone, and draw random numbers from rng"
            )
        return
    raise NotChecked("the program takes no other values in the place of the outcome")


def _replicates(
    bound: BoundStanModel, quantities: Mapping[str, FloatArray], seed: int
) -> list[FloatArray]:
    """A replicate at each point."""
    replicates = []
    for point in range(len(next(iter(quantities.values())))):
        rng = np.random.default_rng([seed, point])
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                replicates.append(bound.replicate_of(quantities, point, bound.table, rng))
        except PyhybridError:
            raise
        except Exception as error:
            raise NotChecked(
                f"predict fails at random parameters ({type(error).__name__})"
            ) from None
    return replicates

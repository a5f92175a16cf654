"""A whole table at one charge: a sequence of columns, each at its share of epsilon."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_draws_released,
    check_flag,
    check_fraction,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.engines import ConvergenceRule, Engine, SamplerSettings
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import (
    NoisyMarginals,
)
from pyhybrid.mechanisms.accounting.charge import SAY_SO
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.sequential import SequentialSynthesis, Step
from pyhybrid.models.columns.kinds import Number
from pyhybrid.models.default_model import MARGINALS
from pyhybrid.privacy.composition import compose_charges, over_draws
from pyhybrid.releases.column_decisions import check_decided
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import Origin, ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.tables.domains import SELECTS, domains_of, pairs_or_choice
from pyhybrid.tables.plan import Plan
from pyhybrid.tables.steps import (
    LOCAL,
    MarginalsOfPlan,
    as_asked,
    epsilon_of,
    fitting_plan,
    of_draws,
    step_of,
)
from pyhybrid.tables.table_spec import in_form_of_data, working_table

MECHANISMS = ("censored", "marginals", "scalar", "lipschitz", "unweighted")
_AT_EPSILON = ("censored", "scalar", "marginals")  # whose epsilon is given


@bar_in_notebooks
def synthesize_table(
    plan: Plan,
    *,
    epsilon: float | None = None,
    mechanism: str = "censored",
    calibration: Mapping[str, Calibration] | None = None,
    reference: Any = None,
    public: bool = False,
    holds_no_released_record: bool = False,
    center_share: float = 0.25,
    delta: float | None = None,
    select: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    relation: str = "remove",
    n_synthetic: int = 1,
    n_draws_released: int | None = None,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    check_modes: bool = False,
    decided: bool = True,
    workers: int = 1,
    executor: Executor | None = None,
    progress: FitProgress | None = None,
) -> Release:
    """Synthesize a table by its plan.

    Parameters
    ----------
    plan : Plan
    epsilon : float, optional
        Of the whole release, all sets together, nats; each column has its share. Needed by
        "censored" and "marginals" (strict), "scalar" (a target, by the Lipschitz bound) and
        histograms; what the other mechanisms cost is found by fitting.
    mechanism : {"censored", "marginals", "scalar", "lipschitz", "unweighted"}
        Of all columns but those of noisy counts. With "censored" these are also columns whose model
        the reference, or noisy tables, find unfit (`pyhybrid.tables.steps`): a warning and the
        charge name them. "marginals" takes no models: `pyhybrid.NoisyMarginals` in the plan's
        order, for any number of sets at one price.
    calibration : mapping of str to Calibration, optional
        Of `calibrate_table`, for this plan and epsilon.
    reference : DataFrame, optional
        In its place: historical or public records that it is made from here. The center of clipping
        comes from them; "marginals" adds their likelihood to that of its noisy tables. Their own
        records are not protected.
    public : bool, default False
        True if the reference is public.
    holds_no_released_record : bool, default False
        The owner confirms that the reference, and that of the plan, hold none of the records to be
        released. Without it a strict charge takes no reference.
    center_share : float, default 0.25
        Share of epsilon, in (0, 1): without calibration and reference it pays for noisy marginals,
        from which "censored" gets its centers.
    delta : float, optional
        Of "marginals" with Gaussian noise: public, below 1 / n; see `pyhybrid.NoisyMarginals`.
    select : {"plan", "all", "private"}, optional
        Of "marginals": the plan's tables; those of all pairs of columns; or a private choice among
        these, see `pyhybrid.NoisyMarginals`. By default the plan's without a delta, and with one
        all pairs, or, where a column's model of all would be large, a private choice (with a
        reference the plan's): Gaussian noise grows by the root of the number of tables, Laplace
        noise by their number.
    unit, rows_per_unit : str, int, optional
        Of "marginals": the column of persons or other units to protect, and the most rows of one.
    relation : {"remove", "replace"}
    n_synthetic, n_draws_released, seed, engine, settings, rule, on_not_converged, progress
        See `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism.release`. With m draws
        released, each has 1 / m of epsilon; ``n_draws_released=1`` gives all sets one draw, at all
        of it.
    check_modes : bool, default False
        Look for other modes of each censored posterior; see `pyhybrid.Censored`.
    decided : bool, default True
        Columns to drop are left out, and the id is numbers; False leaves that to `Release.save`, by
        `plan.decisions`.
    workers, executor
        Where columns are fitted; see `pyhybrid.SequentialSynthesis.release`.

    Returns
    -------
    Release
        With one charge; `parts` hold the cost of each column, for the record only.

    Raises
    ------
    InvalidInput
        For a strict release of columns whose type was read from the confidential data (they are
        named), a reference without its owner's confirmation, an epsilon or a calibration that is
        missing, columns that need a decision before they are published, and whatever a step
        refuses.
    EngineUnavailable, SamplingError, NotConverged
        As a release of any column would; SamplingError names a rule that cannot be met.
    """
    check_choice(mechanism, "mechanism", MECHANISMS)
    m = check_count(n_synthetic, "n_synthetic")
    drawn = check_draws_released(n_draws_released, m)
    _check_epsilon(plan, mechanism, epsilon)
    _check_used(mechanism, calibration=calibration, check_modes=check_modes)
    _check_used(mechanism, only=("censored", "marginals"), reference=reference)
    noise = {"delta": delta, "select": select, "unit": unit, "rows_per_unit": rows_per_unit}
    _check_used(mechanism, only=("marginals",), **noise)
    if mechanism in ("censored", "marginals"):
        check_declared(plan)
        _check_word(plan, reference, calibration or {}, holds_no_released_record)
    told: dict[str, Any] = {"public": public, "holds_no_released_record": holds_no_released_record}
    table, own = plan.table, [column.name for column in plan.columns]
    decisions, exposed = plan.decisions, exposed_columns(table.df, own)
    check_decided(exposed, decisions, [str(name) for name in table.df.columns], own)
    fits: dict[str, Any] = {"seed": seed, "engine": engine, "settings": settings}
    said: dict[str, Any] = {"n_synthetic": m, "rule": rule, "progress": progress,
                            "on_not_converged": on_not_converged}  # fmt: skip
    if mechanism == "marginals":
        assert epsilon is not None
        noisy = marginals_by_plan(
            plan, epsilon, relation, delta=delta, select=select, reference=reference, **told
        )
        noisy = _warned(replace(noisy, unit=unit, rows_per_unit=rows_per_unit), plan)
        release = noisy.release(table.df, n_draws_released=n_draws_released, **said, **fits)
        return release.with_decisions(decisions) if decided else release
    read = dict.fromkeys([*plan.kept, *(n for rule in table.read_rules for n in rule.columns)])
    fits |= {"workers": workers, "executor": executor}
    bought, taken, asked = None, "", epsilon
    if mechanism == "censored" and calibration is None:
        assert epsilon is not None
        if reference is None:
            check_fraction(center_share, "center_share")
            bought = measured(
                plan, of_draws(center_share * epsilon, drawn), relation, n_synthetic=m,
                n_draws_released=drawn,
            )  # fmt: skip
            epsilon = (1 - center_share) * epsilon
        plan, calibration, taken = fitting_plan(
            plan, reference, bought, epsilon=epsilon, n_draws_released=drawn, relation=relation,
            on_not_converged=on_not_converged, **told, **fits,
        )  # fmt: skip
    working = working_table(table.df, plan.kinds, [*(n for n in read if n not in own), *own])
    steps = _counted_together(plan, epsilon or 0, relation, drawn, reference, told)
    steps += [
        step_of(column, plan.kinds, mechanism, relation,
              None if epsilon is None else epsilon_of(column, epsilon, drawn),
              (calibration or {}).get(column.name), bought=bought is not None,
              check_modes=check_modes)
        for column in plan.columns if column.model != MARGINALS
    ]  # fmt: skip
    kinds = {type(step).__name__ for step in steps}
    mixed = len(kinds) > 1 and "Censored" not in kinds  # the whole is then stated as local
    sequence = SequentialSynthesis(steps, rules=table.rules, allow_unlike=mixed)
    release = sequence.release(working, n_draws_released=drawn, **said, **fits)
    whole = _of_table(
        release, plan, exposed, bought, taken, asked=asked, declared=mechanism == "censored"
    )
    return whole.with_decisions(decisions) if decided else whole


def delta_of(mechanism: str, delta: float | None = None) -> float | None:
    """Delta that a release by this mechanism is counted at; None without one."""
    if mechanism == "marginals":
        return delta
    own = LOCAL.get(mechanism)
    return float(own.delta) if own is not None and own.accounting == "gaussian" else None


def _check_used(mechanism: str, *, only: Sequence[str] = ("censored",), **given: Any) -> None:
    """Refuse what some mechanisms alone read, given to others."""
    named = [name for name, own in given.items() if own is not None and own is not False]
    if named and mechanism not in only:
        raise InvalidInput(
            f"{named[0]} is read by mechanism {' or '.join(map(repr, only))} only: leave it out "
            f"for {mechanism!r}"
        )


def _check_epsilon(plan: Plan, mechanism: str, epsilon: float | None) -> None:
    if not isinstance(plan, Plan):
        raise InvalidInput(
            "plan must be that of a table, e.g. ph.Table(df, sensitive=['income']).plan(): found "
            f"{type(plan).__name__}"
        )
    histograms = [column.name for column in plan.columns if column.model_of(plan.kinds) is None]
    if epsilon is not None:
        check_positive(epsilon, "epsilon")
        if mechanism not in _AT_EPSILON and not histograms:
            raise InvalidInput(
                f"epsilon must not be given to mechanism {mechanism!r}: what it costs is found by "
                "fitting, and no column comes from noisy counts"
            )
        return
    if mechanism in _AT_EPSILON:
        raise InvalidInput(f"epsilon must be given to mechanism {mechanism!r}")
    if histograms:
        raise InvalidInput(
            f"epsilon must be given: {', '.join(histograms)} come from noisy counts, which cost "
            "their share of it; or give them another model in the plan"
        )


def check_declared(plan: Plan) -> None:
    """A strict charge reads nothing of the confidential columns but through its mechanism."""
    if plan.not_declared:
        raise InvalidInput(
            "a strict charge needs types of sensitive columns that are declared, or read from a "
            f"reference: those of {', '.join(plan.not_declared)} come from the confidential data, "
            "or from their dtypes, which follow them (astype('category'), logicals); give "
            "ph.Table(..., types={...}) or reference= (pyhybrid plan --types FILE, or --reference "
            "FILE)"
        )
    bare = [c.name for c in plan.columns if isinstance(c.kind.kind, Number)]
    bare = [name for name in bare if plan.kinds[name].form.decimals is None]
    if bare:
        raise InvalidInput(
            f"a strict charge needs the decimals of released numbers: {', '.join(bare)} must have "
            'decimals= in its type, 2 for cents ("decimals": 2 in the file of pyhybrid plan '
            "--types), or a reference that has the column"
        )


def _check_word(
    plan: Plan,
    reference: pd.DataFrame | None,
    calibration: Mapping[str, Calibration],
    said: bool,
) -> None:
    """Refuse a reference, of centers, tables or types, without its owner's confirmation."""
    check_flag(said, "holds_no_released_record")
    frozen = [own for own in calibration.values() if own.bought is None]
    unsaid = {
        "centers": any(not own.holds_no_released_record for own in frozen),
        "centers or tables": reference is not None and not said,
        "types": plan.of_reference and not (said or plan.table.holds_no_released_record),
    }
    for what, so in unsaid.items():
        if so:
            raise InvalidInput(
                f"a strict charge needs confirmation of the reference that {what} come from: "
                f"{SAY_SO}"
            )


def _of_table(
    release: Release,
    plan: Plan,
    exposed: Mapping[str, str],
    bought: MarginalsOfPlan | None,
    taken: str,
    *,
    asked: float | None,
    declared: bool,
) -> Release:
    """The release of the working table with the columns and order of the data's, and their dtypes;
    what is strict has the form that was declared."""
    df = plan.table.df
    tables = []
    for made in release.synthetic:
        own = {
            name: plan.kinds[name].form.cast(made[name])
            if declared
            else in_form_of_data(made[name], df[name])
            for name in release.synthesized
        }
        tables.append(joined(df, pd.DataFrame(own, index=df.index)))
    charge, parts = release.charge, release.parts
    origins = () if release.origin is None else release.origin.steps
    if bought is not None:  # it had no fit
        charge = compose_charges([bought.record.charge, charge], mechanism=charge.mechanism)
        parts, origins = (bought.record, *parts), (Origin(data=df), *origins)
    stated, also = as_asked(charge, asked, len(parts)), [taken] if taken else []
    if also or stated != charge.epsilon:
        charge = replace(charge, epsilon=stated, assumes=(*charge.assumes, *also)).sealed()
    kept = {f.name: getattr(release, f.name) for f in fields(ReleaseRecord)}
    record = replace(
        ReleaseRecord(**kept),
        exposed=exposed,
        charge=charge,
        confidential=replace(release.confidential, data=data_mark(df)),
    )
    return Release.of(
        record,
        tables,
        parts=parts,
        identifier=release.identifier,
        origin=Origin(data=df, steps=origins),
    )


def _counted_together(
    plan: Plan,
    epsilon: float,
    relation: str,
    n_draws: int,
    reference: pd.DataFrame | None,
    told: Any,
) -> list[Step]:
    """Noisy marginals of the columns that come from them, at their shares of epsilon; no step if
    there are none."""
    own = [column for column in plan.columns if column.model == MARGINALS]
    if not own:
        return []
    total = math.fsum(column.share for column in own)
    columns = tuple(replace(column, share=column.share / total) for column in own)
    part = replace(plan, table=replace(plan.table, rules=()), columns=columns)
    share = of_draws(epsilon * total, n_draws)
    return [_warned(marginals_by_plan(part, share, relation, reference=reference, **told), plan)]


def _warned(noisy: NoisyMarginals, plan: Plan) -> NoisyMarginals:
    if warning := noisy.too_few(len(plan.table.df)):
        warnings.warn(warning, stacklevel=3)
    return noisy


def marginals_by_plan(
    plan: Plan,
    epsilon: float,
    relation: str,
    *,
    delta: float | None = None,
    select: str | None = None,
    noise_aware: bool = True,
    reference: Any = None,
    public: bool = False,
    holds_no_released_record: bool = False,
) -> NoisyMarginals:
    """The mechanism over the plan's columns, in its order."""
    if select is not None:
        check_choice(select, "select", SELECTS)
    if plan.table.rules:
        raise InvalidInput(
            f"noisy marginals draw by no rule: found {plan.table.rules[0]!r}; take "
            "mechanism='censored', or leave rules out"
        )
    domain = domains_of({c.name: c.kind.kind for c in plan.columns}, reference)
    names = [column.name for column in plan.columns]
    pairs = {name: (*plan.kept, *names[:place]) for place, name in enumerate(names)}
    how = select or ("plan" if delta is None else pairs_or_choice(plan.kinds, pairs))
    if how == "private" and select is None and reference is not None:
        how = "plan"  # by which the reference chose
    predictors = {c.name: c.tables for c in plan.columns} if how == "plan" else pairs
    given = tuple(dict.fromkeys(n for own in predictors.values() for n in own if n in plan.kept))
    return NoisyMarginals(
        domain=domain,
        epsilon=epsilon,
        delta=delta,
        most_bins="auto",
        select="private" if how == "private" else "all",
        given=given,
        predictors=predictors,
        relation=relation,
        noise_aware=noise_aware,
        reference=reference,
        public=public,
        holds_no_released_record=holds_no_released_record,
    )


def measured(
    plan: Plan, epsilon: float, relation: str, *, n_synthetic: int, n_draws_released: int
) -> MarginalsOfPlan:
    """Tables at `epsilon`, whose charge is stated for as many sets as are made of them."""
    free = replace(plan, table=replace(plan.table, rules=()))
    own = [*plan.kept, *(column.name for column in plan.columns)]
    release = marginals_by_plan(free, epsilon, relation).release(plan.table.df[own], n_synthetic=2)
    charge = over_draws(replace(release.charge, n_synthetic=n_synthetic), n_draws_released)
    charge = replace(
        charge,
        assumes=(
            *charge.assumes,
            "The centers of clipping come from noisy two-way tables of these records, whose "
            "epsilon is included; they are drawn from as often as one likes.",
        ),
    ).sealed()
    kept: Mapping[str, Any] = {f.name: getattr(release, f.name) for f in fields(ReleaseRecord)}
    table, other = release.synthetic
    return MarginalsOfPlan(
        table=table, other=other, record=replace(ReleaseRecord(**kept), charge=charge)
    )

"""Noisy marginals by a plan: a whole table of their own, or the centers that models start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.mechanisms import NoisyMarginals
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.composition import compose_charges
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.tables.domains import MOST_BINS, domain_of
from pyhybrid.tables.plan import Plan

__all__ = ["MarginalsOfPlan", "marginals_by_plan", "measured"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalsOfPlan:
    """A synthetic table from noisy marginals, with what it cost.

    Attributes
    ----------
    table : DataFrame
        Its columns are those of the plan; released under `record.charge`.
    record : ReleaseRecord
    """

    table: pd.DataFrame
    record: ReleaseRecord

    def added_to(self, charge: PrivacyCharge) -> PrivacyCharge:
        """The charge of both together."""
        return compose_charges([self.record.charge, charge], mechanism=charge.mechanism)


def marginals_by_plan(
    plan: Plan,
    epsilon: float,
    relation: str,
    *,
    delta: float | None = None,
    select: str = "all",
    noise_aware: bool = True,
    reference: pd.DataFrame | None = None,
    public: bool = False,
    holds_no_released_record: bool = False,
) -> NoisyMarginals:
    """The mechanism over the plan's columns, with its order and predictors; with select="private"
    it chooses among all kept columns and those before each.

    Raises
    ------
    InvalidInput
        For numbers without a declared range, and rules, which it does not draw by.
    """
    if plan.table.rules:
        raise InvalidInput(
            f"noisy marginals draw by no rule: found {plan.table.rules[0]!r}; take "
            "mechanism='censored', or leave rules out"
        )
    domain = {column.name: domain_of(column.name, column.kind.kind) for column in plan.columns}
    names = [column.name for column in plan.columns]
    predictors = {
        column.name: (*plan.kept, *names[:place]) if select == "private" else column.tables
        for place, column in enumerate(plan.columns)
    }
    given = tuple(dict.fromkeys(n for own in predictors.values() for n in own if n in plan.kept))
    return NoisyMarginals(
        domain=domain,
        epsilon=epsilon,
        delta=delta,
        most_bins=MOST_BINS,
        select=select,
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
    """One table at `epsilon`, whose charge is stated for as many sets as are made of it."""
    free = replace(plan, table=replace(plan.table, rules=()))
    own = [*plan.kept, *(column.name for column in plan.columns)]
    release = marginals_by_plan(free, epsilon, relation, noise_aware=False).release(
        plan.table.df[own]
    )
    charge = replace(
        PrivacyCharge.strict(
            mechanism=release.charge.mechanism,
            epsilon=epsilon / n_draws_released,
            relation=relation,
            n_synthetic=n_synthetic,
            n_draws_released=n_draws_released,
        ),
        assumes=(
            *release.charge.assumes,
            "The centers of clipping come from noisy two-way tables of these records, whose "
            "epsilon is included; they are drawn from as often as one likes.",
        ),
        not_covered=release.charge.not_covered,
    ).sealed()
    kept: Mapping[str, Any] = {f.name: getattr(release, f.name) for f in fields(ReleaseRecord)}
    record = replace(ReleaseRecord(**kept), charge=charge)
    return MarginalsOfPlan(table=release.synthetic[0], record=record)

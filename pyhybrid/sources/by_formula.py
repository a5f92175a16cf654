"""A column of a table that stays where it is, released by a model that is fitted to distinct rows.

The engine groups the records, outcome and predictors, and answers with distinct rows and their
numbers, in one pass. These are all that a likelihood reads: a fit takes the time of the distinct
rows, the account looks at each of them once, as records that are alike cost alike, and outcomes are
drawn for so many records of each. What is drawn is kept as distinct rows, too, and written part by
part. Nothing here has the length of the table, but for what it is checked by in a ledger, block by
block.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_draws_released,
    check_output_folder,
)
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import new_identifier
from pyhybrid.engines import ConvergenceRule, Draws, Engine, SamplerSettings
from pyhybrid.fitting.replicates import choose_draws, in_one_dtype
from pyhybrid.fitting.session import FitOptions, FitSession
from pyhybrid.mechanisms import BudgetWeighted, Censored, PseudoPosteriorMechanism, Unweighted
from pyhybrid.models.base import BoundModel
from pyhybrid.models.columns.form import in_their_forms
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.folder import FORMATS
from pyhybrid.releases.ledger import Ledger
from pyhybrid.running.resumable import fingerprint
from pyhybrid.running.tasks import Progress
from pyhybrid.sources.parts import DrawnByFormula, ReleaseInParts, plain_rows, release_in_parts
from pyhybrid.sources.release import ROWS_PER_PART
from pyhybrid.sources.rows import CountedRows, count_rows
from pyhybrid.sources.source import name_of, opened

_AT_ONCE = 500_000  # records that outcomes are drawn for


@bar_in_notebooks
def synthesize_by_formula(
    data: Any,
    mechanism: PseudoPosteriorMechanism,
    *,
    out: str | os.PathLike[str],
    keep: Sequence[str] = (),
    n_synthetic: int = 1,
    n_draws_released: int | None = None,
    seed: int | None = None,
    engine: str | Engine = "auto",
    settings: SamplerSettings | None = None,
    rule: ConvergenceRule | None = None,
    on_not_converged: str = "raise",
    file_format: str = "parquet",
    rows_per_part: int = ROWS_PER_PART,
    strict: bool = False,
    ledger: Ledger | None = None,
    overwrite: bool = False,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> ReleaseInParts:
    """Release a column by a regression on others, of any number of rows that are few distinct ones.

    The release is that of ``mechanism.release`` on the same rows in another order. Weights, risks
    and charges are computed once for each distinct row, and count as often as it occurs. Neighbors
    differ in one record.

    Parameters
    ----------
    data : str, path, ibis table, DuckDB relation or Source
        See `open_source`. Read only.
    mechanism : BudgetWeighted, Unweighted or Censored
        Over a model of counts or levels: ``ph.BudgetWeighted(ph.Poisson("visits ~ age"),
        epsilon=1, delta=1e-9)``. `Censored` with a calibration, or with a center and
        ``inner=ph.Unweighted(model)``. Other weights are made record by record
        (`pyhybrid.sources.read_columns`).
    out : path
        Folder for the release, new or empty.
    keep : sequence of str
        Columns to publish unchanged beside outcome and predictors.
    n_synthetic, n_draws_released, seed, engine, settings, rule, on_not_converged
        See `pyhybrid.mechanisms.mechanism.Mechanism.release`.
    strict : bool, default False
        Only a strict release, of `Censored`: nothing is charged or written otherwise.
    file_format, rows_per_part, ledger, overwrite, workers, executor, progress
        See `synthesize_source`.

    Raises
    ------
    InvalidInput
        For more than 100,000 distinct rows, before anything is fitted: their number, and the column
        that has most values. For data, models and mechanisms that cannot be read, or fitted so, or
        that lack what `strict` asks for.
    BudgetExceeded
        If the ledger has less left, or a budget is not enough; nothing is written.
    NotConverged, SamplingError, EngineUnavailable
        As of ``mechanism.release``; SamplingError also where a charge is not strict and was to be.
    """
    target = Path(out)
    check_choice(file_format, "file_format", FORMATS)
    m = check_count(n_synthetic, "n_synthetic")
    drawn = m if n_draws_released is None else check_draws_released(n_draws_released, m)
    check_count(rows_per_part, "rows_per_part")
    check_count(workers, "workers")
    check_output_folder(target, overwrite=overwrite)
    _check_mechanism(mechanism)
    mechanism = mechanism.for_draws(drawn)
    options = FitOptions(
        seed=seed, engine=engine, settings=settings, rule=rule, on_not_converged=on_not_converged,
        progress=progress,
    )  # fmt: skip
    begun_with = fingerprint({
        "data": name_of(data), "mechanism": mechanism.describe(), "keep": list(keep), "seed": seed,
        "n_synthetic": m, "n_draws_released": drawn, "file_format": file_format,
        "rows_per_part": rows_per_part, "strict": strict,
    })  # fmt: skip

    def fitted() -> DrawnByFormula:
        if progress is not None:
            progress("distinct rows", 0, 0)
        counted, columns = _read(data, mechanism, keep)
        session = options.session(_bound(mechanism, counted))
        if strict:
            _check_strict(mechanism, session.bound)
        decisions = Decisions.of(keep=keep)
        check_decided(session.exposed, decisions, columns, mechanism.synthesizes)
        charged = mechanism.charged_from(session, n_synthetic=m, n_draws_released=drawn)
        if strict:
            _check_charge(charged.charge)
        draws, kept = mechanism.released_draws(charged)
        mark = data_mark(counted.table, counted.times)
        record = mechanism.record_of(session, charged, draws.provenance, mark)
        return DrawnByFormula(
            identifier=new_identifier(),
            begun_with=begun_with,
            n_records=counted.n,
            rows_per_part=rows_per_part,
            file_format=file_format,
            entropy=str(session.streams.child("rows").entropy),
            charge=record.charge.as_dict(),
            settings=record.settings,
            sets=_sets(
                mechanism, session, charged.charge, draws.part(np.flatnonzero(kept)), columns
            ),
            run=json.loads(json.dumps(record.as_dict())),
            decisions=decisions.as_dict(),
        )

    return release_in_parts(
        target, begun_with, fitted, overwrite=overwrite, ledger=ledger, progress=progress,
        workers=workers, executor=executor,
    )  # fmt: skip


def _check_mechanism(mechanism: PseudoPosteriorMechanism) -> None:
    """What is by record in the data, and not by row of the model, is not counted."""
    given = [name for name in ("unit", "design", "support") if getattr(mechanism, name, None)]
    by_row = type(mechanism) in (BudgetWeighted, Unweighted) or (
        type(mechanism) is Censored and mechanism.record_indexed
    )
    if not by_row or mechanism.reweighting is not False or given:
        raise InvalidInput(
            "rows are fitted by their numbers by ph.BudgetWeighted, ph.Unweighted, or ph.Censored "
            "with a calibration or inner=ph.Unweighted(model), without unit, design, support and "
            "re-weighting (--mechanism budget or unweighted, --reference, --calibration): other "
            "weights are found record by record, of what ph.sources.read_columns reads"
        )


def _check_strict(mechanism: PseudoPosteriorMechanism, bound: BoundModel) -> None:
    """Refuse, before a fit, what cannot be strict and was to be."""
    lacks = "a cap and a center: ph.Censored (--reference, --calibration)"
    told = mechanism.why_local(bound) if isinstance(mechanism, Censored) else lacks
    if told is not None:
        raise InvalidInput(f"a strict release lacks {told}; leave out strict (--local)")


def _check_charge(charge: PrivacyCharge) -> None:
    """Refuse, before it is entered, a charge that is not strict and was to be."""
    if charge.kind != STRICT:
        raise SamplingError(
            "nothing is released: chains did not converge, or ended in other modes, so that the "
            "charge would be local, not strict; give more draws, or leave out strict (--local)"
        )


def _read(
    data: Any, mechanism: PseudoPosteriorMechanism, keep: Sequence[str]
) -> tuple[CountedRows, list[str]]:
    """What the model reads and what is published with it; and its columns, in their order."""
    with opened(data) as source:
        parsed = parse_formula(str(mechanism.model.describe()["formula"]), source.columns)
        named = [parsed.outcome, *parsed.predictors, *keep]
        counted = count_rows(source, named, outcomes=[parsed.outcome])
        return counted, [name for name in source.columns if name in named]


def _bound(mechanism: PseudoPosteriorMechanism, counted: CountedRows) -> BoundModel:
    """The model joined to distinct rows, each of which stands for so many."""
    bound = mechanism.bind(counted.table)
    if not isinstance(bound, BoundRegression) or bound.model.program != "default":
        raise InvalidInput(
            "rows are fitted by their numbers by models of one column and one step, in their "
            f"default program: {mechanism.model.name} is another; ph.sources.read_columns reads "
            "rows for it"
        )
    if bound.density_above_one:
        raise InvalidInput(
            f"outcome {bound.design.outcome!r} must be of counts or levels, where distinct rows "
            f"are drawn: {mechanism.model.name} draws a continuous one; cut it into levels in a "
            "view, or take a view of a sample"
        )
    if bound.design.data_dependent:
        raise InvalidInput(
            "predictors must be coded record by record, where distinct rows are fitted: "
            f"{bound.design.data_dependent[0]} depends on all; give its constants"
        )
    return replace(bound, times=counted.times.astype(np.float64))


def _sets(
    mechanism: PseudoPosteriorMechanism,
    session: FitSession,
    charge: PrivacyCharge,
    draws: Draws,
    columns: Sequence[str],
) -> list[dict[str, Any]]:
    """Distinct rows of each set and their numbers, from `draws` that may be released."""
    stream, drawn = mechanism.stream(), charge.n_draws_released
    rng = session.streams.generator(f"{stream}/draws")
    chosen = choose_draws(np.ones(draws.n_draws, dtype=bool), drawn, rng)
    sets = [
        _drawn(session, draws, int(chosen[place % drawn]), f"{stream}/replicate {place + 1}")
        for place in range(charge.n_synthetic)
    ]
    forms = mechanism.forms(session.bound.table)
    whole = [in_their_forms(each.table[list(columns)], forms) for each in sets]
    tables = in_one_dtype(whole, mechanism.synthesizes)
    return [plain_rows(own, each.times) for own, each in zip(tables, sets, strict=True)]


def _drawn(session: FitSession, draws: Draws, draw: int, stream: str) -> CountedRows:
    """Distinct rows of a set: outcomes of one draw for all records, a block at a time."""
    bound, rng = session.bound, session.streams.generator(stream)
    assert isinstance(bound, BoundRegression)
    assert bound.times is not None
    outcome, table = bound.design.outcome, bound.table
    known = table.drop(columns=outcome)
    group = np.zeros(len(table), dtype=np.intp)
    if known.shape[1]:
        group = known.groupby([*known], sort=False, dropna=False).ngroup().to_numpy()
    _, first = np.unique(group, return_index=True)
    last = np.cumsum(np.bincount(group, weights=bound.times)).astype(np.int64)
    found = []
    for start in range(0, int(last[-1]), _AT_ONCE):
        records = np.arange(start, min(start + _AT_ONCE, int(last[-1])))
        at = np.searchsorted(last, records, side="right")
        values = bound.drawn(draws, draw, rng, bound.design, first[at])
        pairs: pd.DataFrame = pd.DataFrame({"at": at, "value": values})
        found.append(pairs.groupby(["at", "value"]).size())
    each = pd.concat(found).groupby(level=["at", "value"]).sum().reset_index(name="times")
    whole = table.iloc[first[each["at"]]].reset_index(drop=True)
    whole[outcome] = bound.released(each["value"].to_numpy(np.float64), whole[outcome])
    return CountedRows(table=whole, times=each["times"].to_numpy(np.int64))

"""From a fit and its charge to synthetic tables and the record of what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.engines import Draws
from pyhybrid.fitting.replicates import joined, synthesize
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import FitSession
from pyhybrid.models.formula.row_rules import RowRule
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.hypothetical_records import PossibleAccount
from pyhybrid.privacy.leave_one_out import Refits
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import Confidential, ReleaseRecord

__all__ = ["Made", "made_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Made:
    """Tables, and what a mechanism says of the column that it made of them. No release yet."""

    record: ReleaseRecord
    tables: list[pd.DataFrame]


def made_of(
    session: FitSession,
    path: Reweighted,
    *,
    charge: PrivacyCharge,
    account: LocalAccount | None,
    refits: Refits | None,
    possible: PossibleAccount | None,
    settings: Mapping[str, Any],
    draws: Draws,
    kept: npt.NDArray[np.bool_],
    stream: str,
    given: Sequence[pd.DataFrame] | None,
    rules: Sequence[RowRule] = (),
) -> Made:
    """Synthesize what `charge` was made for from the `draws` that are `kept`, shape (S,).

    `stream` names the random numbers; `given` and `rules` are those of
    `pyhybrid.mechanisms.weighted.base.PseudoPosteriorMechanism.make_from`.
    """
    bound, fit, report = session.bound, path.fit, session.progress
    made = synthesize(
        bound,
        draws,
        kept,
        n_synthetic=charge.n_synthetic,
        n_draws_released=charge.n_draws_released,
        streams=session.streams,
        stream=stream,
        earlier=session.releases_of(stream),
        drawn_for_this=fit.exact is not None,
        given=given,
        rules=rules,
        progress=None if report is None else lambda a, b: report("synthetic data", a, b),
    )
    session.note_release(stream, charge.n_draws_released)
    tables = [bound.table] * charge.n_synthetic if given is None else given
    record = ReleaseRecord(
        charge=charge,
        diagnostics=fit.diagnostics,
        settings=settings,
        synthesized=bound.synthesized,
        predictors=bound.predictors,
        provenance=draws.provenance,
        requested=None if fit.exact is not None else session.settings,
        seeded=session.streams.seeded,
        confidential=Confidential(
            labels=bound.table.index,
            alpha=fit.alpha,
            lipschitz=fit.bounds.by_record,
            lipschitz_bound=fit.bounds.overall,
            entropy=session.streams.entropy,
            censored=fit.censored,
            data=data_mark(bound.table) if given is None else None,
            account=account,
            refits=refits,
            possible=possible,
        ),
        exposed=session.exposed,
        fit=fit,
        reweighted=path if path.steps else None,
    )
    whole = [joined(*each) for each in zip(tables, made, strict=True)]
    return Made(record=record, tables=whole)

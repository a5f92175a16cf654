"""What a release tells about each record, bounded and estimated. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.diagnostics import RELIABLE_K
from pyhybrid.privacy.leave_one_out import LeaveOneOutLoss, leave_one_out_loss
from pyhybrid.privacy.refits import LocalLoss
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures import plot_losses, plot_told
from pyhybrid.reports.page import Section, Table, number_text, section

_QUANTILES = {"median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99, "largest": 1.0}
_MOST_RECORDS, _MOST_DRAWS = 1_000, 1_000


def told_section(releases: Mapping[str, Release]) -> list[Section]:
    """Figure and table of deviation and range by record, the release last, and its refits; none
    where these are not known, as of one that was read from a folder or is censored."""
    losses = {
        name: each.confidential.loss
        for name, each in releases.items()
        if each.confidential.loss is not None
    }
    release = list(releases.values())[-1]
    loss = release.confidential.loss
    if loss is None or not np.isfinite(loss.mu) or loss.mu == 0:
        return []
    whose = "record" if release.charge.unit is None else "unit"
    values: dict[str, FloatArray] = {}
    for name, each in reversed(losses.items()):
        values |= {f"{name}, deviation": each.deviations, f"{name}, range in nats": each.ranges}
    largest = float(loss.deviations.max())
    told = section(
        "told",
        figures=[plot_told({k: each.deviations for k, each in losses.items()}, charged=largest)],
        tables=[_quantile_table(values)],
        largest=largest, n=loss.deviations.size, whose=whose,
        near=int((loss.deviations > largest / 2).sum()),
    )  # fmt: skip
    return [told, _refits(release, loss, whose)] if loss.refits else [told]


def _quantile_table(values: Mapping[str, FloatArray]) -> Table:
    at = list(_QUANTILES.values())
    rows = [
        [name, *map(number_text, np.quantile(each, at, method="higher"))]
        for name, each in values.items()
    ]
    return Table(header=["", *_QUANTILES], rows=rows, numbers=True)


def _refits(release: Release, loss: LocalLoss, whose: str) -> Section:
    """What full refits without single records lost."""
    rows = [
        [
            _name(release, refit.record),
            *map(number_text, (loss.deviations[refit.record], loss.ranges[refit.record])),
            number_text(refit.loss),
        ]
        for refit in loss.refits
    ]
    header = [f"{whose} left out", "own deviation", "own range", "loss"]
    return section("refits", tables=[Table(header=header, rows=rows, numbers=True)], whose=whose)


def _name(release: Release, place: int) -> str:
    """Label of a record; a unit has a number, in order of first appearance."""
    if release.charge.unit is not None:
        return f"{release.charge.unit} number {place + 1}"
    return str(release.confidential.labels[place])


def loss_section(release: Release) -> list[Section]:
    """Figure and table of the losses of the records of largest deviation; none of a release that
    was loaded, is censored, has units of several records or no fit."""
    losses = _losses(release)
    if losses is None:
        return []
    charge = release.charge
    charged = charge.epsilon if charge.n_draws_released == 1 else None
    values = {
        **{f"{share:.0%} of the draws stay below": losses.quantiles[:, k]
           for k, share in enumerate(losses.probabilities)},
        "largest over the draws": losses.by_record,
    }  # fmt: skip
    return [
        section(
            "losses",
            figures=[plot_losses(losses, charged=charged)],
            tables=[_quantile_table(values)],
            shown=losses.by_record.size, n=release.confidential.alpha.size, limit=RELIABLE_K,
            unreliable=int((losses.pareto_k > RELIABLE_K).sum()),
        )
    ]  # fmt: skip


def _losses(release: Release) -> LeaveOneOutLoss | None:
    session = None if release.origin is None else release.origin.session
    loss, fit = release.confidential.loss, release.fit
    if session is None or fit is None or loss is None or session.units is not None:
        return None
    mu = loss.deviations
    if fit.cap is not None or mu.size != fit.alpha.size or not np.isfinite(mu).any():
        return None
    largest = np.argsort(-np.where(np.isfinite(mu), mu, -1.0), kind="stable")[:_MOST_RECORDS]
    chosen = np.sort(largest)
    kept = np.flatnonzero(fit.bounds.kept_draws)
    draws = kept[np.linspace(0, kept.size - 1, min(_MOST_DRAWS, kept.size)).astype(np.intp)]
    log_lik = session.bound.log_lik(fit.draws).at(draws)
    terms = np.empty((draws.size, chosen.size))
    row_of = log_lik.row_of[chosen]
    for rows, block in log_lik.blocks():
        inside = np.flatnonzero((row_of >= rows.start) & (row_of < rows.stop))
        terms[:, inside] = block[:, row_of[inside] - rows.start]
    return leave_one_out_loss(terms, fit.alpha[chosen])

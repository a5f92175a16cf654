"""What a release tells about each record, bounded and estimated. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.privacy.diagnostics import RELIABLE_K
from pyhybrid.privacy.leave_one_out import LeaveOneOutLoss, Refits, leave_one_out_loss
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures import plot_losses, plot_told
from pyhybrid.reports.page import Section, Table, number_text, section

_QUANTILES = {"median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99, "largest": 1.0}
_MOST_RECORDS, _MOST_DRAWS = 1_000, 1_000


def told_section(releases: Mapping[str, Release]) -> list[Section]:
    """Figure and table of mu by record, the release last; none where it has no account, as one
    that was read from a folder or is censored."""
    accounts = {
        name: each.confidential.account
        for name, each in releases.items()
        if each.confidential.account is not None
    }
    release = list(releases.values())[-1]
    account = release.confidential.account
    if account is None or not np.isfinite(account.mu) or account.mu == 0:
        return []
    whose = "record" if release.charge.unit is None else "unit"
    values: dict[str, FloatArray] = {}
    for name, each in reversed(accounts.items()):
        values |= {f"{name}, mu": each.mu_by_record, f"{name}, range in nats": each.loss_ranges}
    told = section(
        "told",
        figures=[plot_told({k: a.mu_by_record for k, a in accounts.items()}, charged=account.mu)],
        tables=[_quantile_table(values), _possible(release)],
        account=account, whose=whose, near=int((account.mu_by_record > account.mu / 2).sum()),
        charge=release.charge, possible=release.confidential.possible,
    )  # fmt: skip
    refits = release.confidential.refits
    return [told] if refits is None else [told, _refits(release, refits, whose)]


def _quantile_table(values: Mapping[str, FloatArray]) -> Table:
    at = list(_QUANTILES.values())
    rows = [
        [name, *map(number_text, np.quantile(each, at, method="higher"))]
        for name, each in values.items()
    ]
    return Table(header=["", *_QUANTILES], rows=rows, numbers=True)


def _possible(release: Release) -> Table | None:
    """Records present beside records that could have been, where a support is declared."""
    found, charge = release.confidential.possible, release.charge
    present = release.confidential.account
    if found is None or present is None:
        return None
    accounts = (present, found.account)
    bound = charge.bound if charge.bound_present is None else charge.bound_present
    rows = [
        ["mu", *(number_text(account.mu) for account in accounts)],
        ["range, nats", *(number_text(account.loss_range) for account in accounts)],
        ["Lipschitz bound, nats", *map(number_text, (bound, found.lipschitz_bound))],
        ["Gaussian limit holds", *("yes" if each.limit_holds else "no" for each in accounts)],
    ]
    return Table(header=["", "present", "possible"], rows=rows, numbers=True)


def _refits(release: Release, refits: Refits, whose: str) -> Section:
    """What fits without single records found, beside what was said before."""
    rows = [
        [
            _name(release, each.record),
            *map(number_text, (each.mu, each.loss.mu_without, each.loss.moved)),
            *map(number_text, (each.loss_range, each.loss.largest)),
            "yes" if each.within else "no, and the larger is charged",
        ]
        for each in refits.each
    ]
    header = [f"{whose} left out", "mu charged before", "deviation under the refit",
              "distance of the posteriors", "range charged before", "largest loss",
              "within"]  # fmt: skip
    return section("refits", tables=[Table(header=header, rows=rows, numbers=True)], whose=whose)


def _name(release: Release, place: int) -> str:
    """Label of a record; a unit has a number, in order of first appearance."""
    if release.charge.unit is not None:
        return f"{release.charge.unit} number {place + 1}"
    return str(release.confidential.labels[place])


def loss_section(release: Release) -> list[Section]:
    """Figure and table of the losses of the records of largest mu; none of a release that
    was loaded, is censored, has units of several records or no fit."""
    losses = _losses(release)
    if losses is None:
        return []
    charge, account = release.charge, release.confidential.account
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
            recounted=account is not None and account.draws_recounted,
            unreliable=int((losses.pareto_k > RELIABLE_K).sum()),
        )
    ]  # fmt: skip


def _losses(release: Release) -> LeaveOneOutLoss | None:
    session = None if release.origin is None else release.origin.session
    account, fit = release.confidential.account, release.fit
    if session is None or fit is None or account is None or session.units is not None:
        return None
    mu = account.mu_by_record
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

"""Leave-one-out loss by record in the owner's report: what draws say of each. CONFIDENTIAL."""

from __future__ import annotations

import numpy as np

from pyhybrid.privacy.diagnostics import RELIABLE_K
from pyhybrid.privacy.leave_one_out import LeaveOneOutLoss, leave_one_out_loss
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures.accounts import plot_losses
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Section, Table, picture_of

__all__ = ["loss_section"]

_MOST_RECORDS, _MOST_DRAWS = 1_000, 1_000


def loss_section(release: Release) -> list[Section]:
    """Figure and table of the losses of the records that most is told about.

    None of a release that was loaded, is censored, has units of several records or no fit.
    """
    found = _losses(release)
    if found is None:
        return []
    n, shown = release.confidential.alpha.size, found.by_record.size
    charge = release.charge
    which = "all records" if shown == n else f"the {shown:,} records of largest mu"
    unreliable = int((found.pareto_k > RELIABLE_K).sum())
    picture = picture_of(
        plot_losses(found, charged=charge.epsilon if charge.n_draws_released == 1 else None),
        alt=f"Leave-one-out loss of {shown:,} records in descending order: median, 90 % and 99 % "
        "quantile and largest over the draws.",
        caption="What releasing one draw tells about whether a record was there, the most told "
        "about first: for half of the draws less than the lowest line.",
    )
    text = (
        "The loss of a draw about a record is the log ratio of the posterior with and without it: "
        f"what a release really tells, estimated and not bounded [V17], for {which}, with weights "
        "held fixed."
    )
    account = release.confidential.account
    if account is not None and account.draws_recounted:
        text += (
            " The epsilon charged counts, too, how the weights of others change when a record "
            "leaves: this picture shows none of that."
        )
    if unreliable:
        text += (
            f" For {unreliable:,} of them Pareto k is above {RELIABLE_K:g}: their estimates are "
            "unreliable."
        )
    return [
        Section(
            heading="Leave-one-out loss by record",
            paragraphs=[[text]],
            pictures=[picture],
            tables=[_table(found)],
        )
    ]


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
        own = np.flatnonzero((row_of >= rows.start) & (row_of < rows.stop))
        terms[:, own] = block[:, row_of[own] - rows.start]
    return leave_one_out_loss(terms, fit.alpha[chosen])


def _table(found: LeaveOneOutLoss) -> Table:
    at = {"median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99, "largest": 1.0}
    losses = {
        **{f"{p:.0%} of the draws stay below": found.quantiles[:, k]
           for k, p in enumerate(found.probabilities)},
        "largest over the draws": found.by_record,
    }  # fmt: skip
    rows = [
        [name, *map(number_text, np.quantile(values, list(at.values()), method="higher"))]
        for name, values in losses.items()
    ]
    caption = (
        "Absolute loss in nats over the records shown. Confidential; from 0, smaller is safer."
    )
    return Table(caption=caption, header=["", *at], rows=rows, numbers=True)

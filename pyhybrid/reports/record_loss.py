"""The section of the owner's report on what a release tells about each record. Confidential."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyhybrid.privacy.leave_one_out import Refits
from pyhybrid.privacy.local_account import LocalAccount
from pyhybrid.releases.release import Release
from pyhybrid.reports.figures.accounts import plot_told
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Section, Table, picture_of

__all__ = ["told_section"]

_QUANTILES = {"median": 0.5, "90th percentile": 0.9, "99th percentile": 0.99, "largest": 1.0}


def told_section(releases: Mapping[str, Release]) -> list[Section]:
    """Figure and table of mu by record, the release last; none where it has no account, as one
    that was read from a folder or is censored."""
    accounts = {
        name: each.confidential.account
        for name, each in releases.items()
        if each.confidential.account is not None
    }
    release = list(releases.values())[-1]
    own = release.confidential.account
    if own is None or not np.isfinite(own.mu) or own.mu == 0:
        return []
    whose = "record" if release.charge.unit is None else "unit"
    near = int((own.mu_by_record > own.mu / 2).sum())
    picture = picture_of(
        plot_told({name: each.mu_by_record for name, each in accounts.items()}, charged=own.mu),
        alt=f"Mu of each {whose}, in descending order; {number_text(own.mu)} is charged.",
        caption=f"{near:,} of {own.mu_by_record.size:,} are told about at least half as much as "
        f"the {whose} that sets the charge. A line that falls off steeply at the left means that "
        "few set it, and that less weight on them would make the release cheaper.",
    )
    text = (
        f"Mu says how much one released draw tells about a {whose}: telling apart whether it was "
        "in the data is as hard as telling a normal value with mean 0 from one with mean mu. The "
        "charge is that of the largest; the others are told about less. These numbers are "
        "functions of the data and are not published by record."
    )
    if not own.limit_holds:
        text += " The check of the Gaussian limit failed here: read them as a ranking."
    section = Section(
        heading="What the release tells about each record",
        paragraphs=[[text]],
        pictures=[picture],
        tables=[_quantiles(accounts), *_possible(release)],
    )
    refits = release.confidential.refits
    return [section] if refits is None else [section, _refits(release, refits, whose)]


def _possible(release: Release) -> list[Table]:
    """Records present beside records that could have been, where a support is declared."""
    found, charge = release.confidential.possible, release.charge
    own = release.confidential.account
    if found is None or own is None:
        return []
    other, cells = found.account, ", ".join(f"{k} = {v}" for k, v in found.costliest.items())
    rows = [
        ["mu", *map(number_text, (own.mu, other.mu))],
        ["range, nats", *map(number_text, (own.loss_range, other.loss_range))],
        ["Lipschitz bound, nats", *map(number_text, (
            charge.bound if charge.bound_present is None else charge.bound_present,
            found.lipschitz_bound))],
        ["Gaussian limit holds", *("yes" if a.limit_holds else "no" for a in (own, other))],
    ]  # fmt: skip
    caption = (
        f"Records that could have been: {charge.support}; {found.n_looked_at:,} on a grid were "
        f"looked at, each added to the data. Most would be told about {cells}. The larger of both "
        "columns is charged."
    )
    return [Table(caption=caption, header=["", "present", "possible"], rows=rows, numbers=True)]


def _refits(release: Release, refits: Refits, whose: str) -> Section:
    """What fits without single records found, beside what was said before."""
    text = (
        f"The posterior was fitted once more without each {whose} named here. Loss is the log "
        "ratio of the two posteriors' densities: what releasing a draw says about whether the "
        f"{whose} was there. Its largest size over the draws of both is to stay below the range, "
        "and its deviation, like the distance between the posteriors, near mu. Where a refit says "
        "more, the larger number is charged."
    )
    text += (
        " Weights that depend on the data were made anew from fits without it, as they are charged."
    )
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
    caption = f"Refits without the {whose}s that most is told about. Confidential; from 0, smaller "
    caption += "is safer; range and loss in nats."
    table = Table(caption=caption, header=header, rows=rows, numbers=True)
    return Section(heading=f"Refits without single {whose}s", paragraphs=[[text]], tables=[table])


def _name(release: Release, place: int) -> str:
    """Label of a record; a unit has a number, in order of first appearance."""
    if release.charge.unit is not None:
        return f"{release.charge.unit} number {place + 1}"
    return str(release.confidential.labels[place])


def _quantiles(accounts: Mapping[str, LocalAccount]) -> Table:
    def row(name: str, values: np.ndarray) -> list[str]:
        found = np.quantile(values, list(_QUANTILES.values()), method="higher")
        return [name, *map(number_text, found)]

    rows = []
    for name, account in list(accounts.items())[::-1]:
        rows.append(row(f"{name}, mu", account.mu_by_record))
        rows.append(row(f"{name}, range in nats", account.loss_ranges))
    caption = "What one draw tells about the records: mu and range of the weighted log-likelihood, "
    caption += "by record. Confidential; from 0, smaller is safer."
    return Table(caption=caption, header=["", *_QUANTILES], rows=rows, numbers=True)

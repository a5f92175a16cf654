"""A page for whoever reviews a release before it goes out: what is claimed, and what to look at.

The questions are those of NIST SP 800-226 (what a claim of differential privacy must state: unit,
neighbors, parameters, composition, the algorithm's and the machine's part, what is outside), and of
a disclosure check of columns and files. Answers come from
the release itself; "to decide" marks what only a person can answer.

References
----------
NIST SP 800-226 (2025), Guidelines for evaluating differential privacy guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from pyhybrid.engines import Provenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import assumptions, not_covered
from pyhybrid.reports.page import Cell, Marked, Section, Table, render_page, sentence

_COUNTED = {
    "gaussian": "by the Gaussian limit",
    "range": "by range of the log-likelihood",
    "lipschitz": "by the papers' Lipschitz bound",
}
"""How a local epsilon was counted, by accounting."""

_FINE, _LOOK, _DECIDE = "as it should be", "LOOK", "to decide"
_LARGE = 10.0
_APPROXIMATE = "chains approximate the posterior that the charge is for"
_Row = tuple[str, str, str]


def review_checklist(release: Release, *, in_ledger: bool = False) -> str:
    """Return the reviewer's page of a release, with the decisions on its columns, as one HTML file.

    CONFIDENTIAL: neither weights nor bounds nor the seed are in it, but diagnostics are.
    """
    parts = {
        "The claim": _claim(release.charge),
        "Composition": _composition(release.charge, in_ledger),
        "Algorithm and machine": _machine(release),
        "What is not covered": _outside(release.charge),
        "Columns and disclosure": _columns(release),
        "Structure": _structure(release),
    }
    rows = {heading: list(found) for heading, found in parts.items()}
    every = [row for found in rows.values() for row in found]
    look = [name for name, _, word in every if word == _LOOK]
    verdict = sentence("checklist", "verdict", look=look, points=len(every))
    decide = sum(word == _DECIDE for *_, word in every)
    paragraph = ["", verdict, f" {decide} points are for a person to decide."]
    sections = [Section(heading="Verdict", paragraphs=[paragraph])]
    for heading, found in rows.items():
        cells: list[list[Cell]] = [
            [name, text, Marked(text="", word=word)] for name, text, word in found
        ]
        caption = sentence("checklist", heading.split()[-1].lower())
        table = Table(caption=caption, header=("point", "found", "verdict"), rows=cells)
        sections.append(Section(heading=heading, tables=[table]))
    return render_page("Review checklist", sections, confidential=True)


def _claim(charge: PrivacyCharge) -> Iterator[_Row]:
    strict = charge.kind == STRICT
    whose = "one record (row)" if charge.unit is None else f"all records of one {charge.unit}"
    yield "Unit of privacy", whose, _DECIDE if charge.unit is None else _FINE
    yield "Neighboring databases", f"{charge.relation} {whose}", _FINE
    yield "Epsilon", epsilon_text(charge.epsilon), _LOOK if charge.epsilon > _LARGE else _FINE
    yield "Delta", f"{charge.delta:g}" if charge.delta else "0 (pure)", _FINE
    kind = "holds for every database" if strict else "holds for this database, as n grows"
    yield "Kind", f"{charge.kind}: {kind}", _FINE if strict else _DECIDE
    if charge.accounting == "zcdp":
        yield "Counted", f"by zCDP of Gaussian noise, rho = {charge.rho:.4g}", _FINE
    elif strict and charge.accounting == "gaussian":
        yield "Counted", f"by Gaussian DP of Gaussian noise, mu = {charge.mu:.4g}", _FINE
    elif charge.accounting in _COUNTED and not strict:
        yield "Counted", _COUNTED[charge.accounting], _FINE


def _composition(charge: PrivacyCharge, in_ledger: bool) -> Iterator[_Row]:
    drawn, sets = charge.n_draws_released, charge.n_synthetic
    draws = f"{drawn} posterior draw{'s' * (drawn > 1)}"
    yield "Synthetic sets", f"{sets} from {draws}, all in epsilon", _FINE
    where = " in the ledger charged" if in_ledger else ": is there a ledger?"
    found = f"their epsilons add up{where}"
    yield "Other releases of these data", found, _FINE if in_ledger else _DECIDE
    yield "Choices made on the data", "model, settings, which of several was kept", _DECIDE


def _machine(release: Release) -> Iterator[_Row]:
    fits = [
        (", ".join(step.synthesized), step.diagnostics)
        for step in release.parts or (release,)
        if step.diagnostics is not None
    ]
    for place, (columns, found) in enumerate(fits, start=1):
        said = "; ".join(found.problems) or f"R-hat at most {found.max_rhat:.3f}"
        point = f"Convergence, {place}" if release.parts else "Convergence"
        yield point, f"{columns}: {said}", _FINE if found.converged else _LOOK
    if not fits:
        yield "Sampling", "exact or without a model: nothing to converge", _FINE
    elif release.charge.kind == STRICT:
        yield "Sampling", _APPROXIMATE, _DECIDE
    made_by = release.provenance
    if isinstance(made_by, Provenance):
        yield "Engine", f"{made_by.engine} {made_by.engine_version}", _FINE
        yield "Floating point", "draws are floating-point numbers, rounded to decimals", _DECIDE
    else:
        yield "Noise", f"{made_by.library} {made_by.version}, {made_by.noise}", _FINE
    seeded = "set by hand: whoever knows it can recompute the release"
    seed = seeded if release.seeded else "from the operating system"
    yield "Seed", seed, _LOOK if release.seeded else _FINE
    yield "Side channels", "run time and whether anything was released are not covered", _DECIDE


def _outside(charge: PrivacyCharge) -> Iterator[_Row]:
    for number, text in enumerate(not_covered(charge), start=1):
        yield f"Not\u00a0covered,\u00a0{number}", text, _DECIDE
    for number, text in enumerate(assumptions(charge), start=1):
        yield f"Assumed,\u00a0{number}", text, _DECIDE


def _columns(release: Release) -> Iterator[_Row]:
    decided, table = release.decisions, release.synthetic[0]
    changed = {*release.synthesized, *decided.ids, *decided.drop}
    kept = [name for name in table.columns if str(name) not in changed]
    yield "Synthesized", ", ".join(release.synthesized), _FINE
    yield "As in the data", ", ".join(map(str, kept)) or "none", _DECIDE if kept else _FINE
    yield "Left out", ", ".join(decided.drop) or "none", _FINE
    risky = _LOOK if decided.keep else _FINE
    yield "Kept although they looked risky", ", ".join(decided.keep) or "none", risky
    yield "Replaced by numbers", ", ".join(decided.ids) or "none", _FINE
    if kept:
        alone = int((~table.duplicated(subset=kept, keep=False)).sum())
        found = f"{alone} of {len(table)} records, by the unchanged columns"
        yield "Unique records", found, _LOOK if alone > 0.05 * len(table) else _FINE
    yield "Matching risk", "see pyhybrid risk on the data and this release", _DECIDE


def _structure(release: Release) -> Iterator[_Row]:
    first, n = release.synthetic[0], len(release.synthetic[0])
    alike = all(len(t) == n and t.columns.equals(first.columns) for t in release.synthetic)
    published = [name for name in first.columns if str(name) not in release.decisions.drop]
    found = f"{n} rows, {len(published)} columns in every set"
    yield "Rows and columns", found, _FINE if alike else _LOOK
    missing = int(first[list(release.synthesized)].isna().to_numpy().sum())
    yield "Missing values in synthesized columns", str(missing), _FINE
    plain = isinstance(first.index, pd.RangeIndex) or "index" in release.decisions.drop
    labels = "plain numbers" if plain else "those of the data"
    yield "Row labels", labels, _FINE if plain else _DECIDE

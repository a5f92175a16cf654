"""A page for whoever reviews a release before it goes out: what is claimed, and what to look at.

The questions are those of NIST SP 800-226 (what a claim of differential privacy must state: unit,
neighbors, parameters, composition, the algorithm's and the machine's part, what is outside), and of
a disclosure check in four parts: labelling, disclosure, structure, documentation. Answers come from
the release itself; "to decide" marks what only a person can answer.

References
----------
NIST SP 800-226 (2025), Guidelines for evaluating differential privacy guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from pyhybrid.engines import Provenance
from pyhybrid.privacy.charge import ZCDP, PrivacyCharge
from pyhybrid.privacy.conversions import STRICT, epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.page import Cell, Marked, Section, Table, render_page, sentence

COUNTED = {
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
    sections = [
        _section("The claim", _claim(release.charge)),
        _section("Composition", _composition(release.charge, in_ledger)),
        _section("Algorithm and machine", _machine(release)),
        _section("What is not covered", _outside(release.charge)),
        _section("Labelling", _labelling(release)),
        _section("Disclosure", _disclosure(release)),
        _section("Structure", _structure(release)),
        _section("Documentation", _documentation(release)),
    ]
    rows = [row for section in sections for table in section.tables for row in table.rows]
    words = [cell.word for *_, cell in rows if isinstance(cell, Marked)]
    look = [str(row[0]) for row, word in zip(rows, words, strict=True) if word == _LOOK]
    verdict = sentence("checklist", "verdict", look=look, points=len(rows))
    paragraph = ["", verdict, f" {words.count(_DECIDE)} points are for a person to decide."]
    opening = Section(heading="Verdict", paragraphs=[paragraph])
    return render_page("Review checklist", [opening, *sections], confidential=True)


def _section(heading: str, rows: Iterator[_Row]) -> Section:
    marked: list[list[Cell]] = [
        [name, found, Marked(text="", word=verdict)] for name, found, verdict in rows
    ]
    caption = sentence("checklist", heading.split()[-1].lower())
    table = Table(caption=caption, header=("point", "found", "verdict"), rows=marked)
    return Section(heading=heading, tables=[table])


def _claim(charge: PrivacyCharge) -> Iterator[_Row]:
    strict = charge.kind == STRICT
    whose = "one record (row)" if charge.unit is None else f"all records of one {charge.unit}"
    yield "Unit of privacy", whose, _DECIDE if charge.unit is None else _FINE
    yield "Neighboring databases", f"{charge.relation} {whose}", _FINE
    large = charge.epsilon > _LARGE
    yield "Epsilon", epsilon_text(charge.epsilon), _LOOK if large else _FINE
    yield "Delta", f"{charge.delta:g}" if charge.delta else "0 (pure)", _FINE
    kind = "holds for every database" if strict else "holds for this database, as n grows"
    yield "Kind", f"{charge.kind}: {kind}", _FINE if strict else _DECIDE
    if charge.accounting == ZCDP:
        yield "Counted", f"by zCDP of Gaussian noise, rho = {charge.rho:.4g}", _FINE
    if strict and charge.accounting == "gaussian":
        yield "Counted", f"by Gaussian DP of Gaussian noise, mu = {charge.mu:.4g}", _FINE
    if charge.mu is not None and not strict:
        yield "Counted", COUNTED[charge.accounting], _FINE


def _composition(charge: PrivacyCharge, in_ledger: bool) -> Iterator[_Row]:
    drawn, sets = charge.n_draws_released, charge.n_synthetic
    yield (
        "Synthetic sets",
        f"{sets} from {drawn} posterior draw{'s' * (drawn > 1)}, all in epsilon",
        _FINE,
    )
    if in_ledger:
        yield "Other releases of these data", "their epsilons add up in the ledger charged", _FINE
    else:
        yield "Other releases of these data", "their epsilons add up: is there a ledger?", _DECIDE
    yield "Choices made on the data", "model, settings, which of several was kept", _DECIDE


def _machine(release: Release) -> Iterator[_Row]:
    fits = {
        f"Convergence, {place}": (f"{', '.join(step.synthesized)}: ", step.diagnostics)
        for place, step in enumerate((s for s in release.parts if s.diagnostics is not None), 1)
    } or {"Convergence": ("", release.diagnostics)}
    for point, (whose, found) in fits.items():
        if found is not None:
            said = "; ".join(found.problems) or f"R-hat at most {found.max_rhat:.3f}"
            yield point, f"{whose}{said}", _FINE if found.converged else _LOOK
    if all(found is None for _, found in fits.values()):
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
    for number, text in enumerate(charge.not_covered, start=1):
        yield f"Not\u00a0covered,\u00a0{number}", text, _DECIDE
    for number, text in enumerate(charge.assumes, start=1):
        yield f"Assumed,\u00a0{number}", text, _DECIDE


def _labelling(release: Release) -> Iterator[_Row]:
    yield "Synthesized", ", ".join(release.synthesized), _FINE
    kept = _as_in_data(release)
    yield "As in the data", _listed(kept), _DECIDE if kept else _FINE
    yield "In the statement", "which columns were replaced, and by what", _FINE


def _disclosure(release: Release) -> Iterator[_Row]:
    decided = release.decisions
    for what, names in (("Left out", decided.drop), ("Kept although they looked risky",
                        decided.keep), ("Replaced by numbers", decided.ids)):  # fmt: skip
        risky = what.startswith("Kept") and bool(names)
        yield what, _listed(list(names)), _LOOK if risky else _FINE
    table = release.synthetic[0]
    kept = [n for n in _published(release) if str(n) in _as_in_data(release)]
    if kept:
        alone = int((~table.duplicated(subset=kept, keep=False)).sum())
        share = alone / len(table)
        found = f"{alone} of {len(table)} records, by the unchanged columns"
        yield "Unique records", found, _LOOK if share > 0.05 else _FINE
    yield "Matching risk", "see `pyhybrid risk` on the data and this release", _DECIDE


def _structure(release: Release) -> Iterator[_Row]:
    first, n = release.synthetic[0], len(release.synthetic[0])
    alike = all(
        len(t) == n and list(t.columns) == list(first.columns) for t in release.synthetic[1:]
    )
    found = f"{n} rows, {len(_published(release))} columns in every set"
    yield "Rows and columns", found, _FINE if alike else _LOOK
    missing = int(first[list(release.synthesized)].isna().to_numpy().sum())
    yield "Missing values in synthesized columns", str(missing), _FINE
    plain = isinstance(first.index, pd.RangeIndex) or "index" in release.decisions.drop
    labels = "plain numbers" if plain else "those of the data"
    yield "Row labels", labels, _FINE if plain else _DECIDE


def _documentation(release: Release) -> Iterator[_Row]:
    yield "Statement", "public/privacy_statement.md, with the charge in words", _FINE
    yield "Machine-readable", "public/charge.json, public/metadata.json, public/schema.json", _FINE
    yield "Settings", "all public ones are in the statement", _FINE
    yield (
        "For the owner alone",
        "confidential/: seed, this page, and weights and bounds if any",
        _FINE,
    )


def _published(release: Release) -> Sequence[object]:
    dropped = set(release.decisions.drop)
    return [name for name in release.synthetic[0].columns if str(name) not in dropped]


def _as_in_data(release: Release) -> list[str]:
    """Published columns with their own values: neither synthetic nor numbers in their place."""
    changed = {*release.synthesized, *release.decisions.ids}
    return [str(name) for name in _published(release) if str(name) not in changed]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"

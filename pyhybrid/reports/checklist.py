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

from typing import Any

import pandas as pd

from pyhybrid.engines import Provenance
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.release import Release
from pyhybrid.releases.statement import assumptions, not_covered
from pyhybrid.reports.page import Cell, Marked, Section, Table, render_page, rendered, sentence

_VERDICTS = {"fine": "as it should be", "LOOK": "LOOK", "decide": "to decide"}
_PARTS = {
    "claim": "The claim", "composition": "Composition", "machine": "Algorithm and machine",
    "covered": "What is not covered", "disclosure": "Columns and disclosure",
    "structure": "Structure",
}  # fmt: skip


def review_checklist(release: Release, *, in_ledger: bool = False) -> str:
    """Return the reviewer's page of a release, with the decisions on its columns, as one HTML file.

    CONFIDENTIAL: neither weights nor bounds nor the seed are in it, but diagnostics are.
    """
    facts = {**_facts(release), "in_ledger": in_ledger}
    rows = {}
    for part in _PARTS:  # point, verdict, and what was found, of the words of a part
        texts = (text.split(" | ", 2) for text in rendered(f"checklist, {part}", "row", **facts))
        rows[part] = [(point, text, word) for point, word, text in texts]
    rows["machine"] = [*_convergence(release), *rows["machine"]]
    stated = {
        "Not\u00a0covered": not_covered(release.charge),
        "Assumed": assumptions(release.charge),
    }
    rows["covered"] = [(f"{point},\u00a0{k}", text, "decide") for point, texts in stated.items()
                       for k, text in enumerate(texts, start=1)]  # fmt: skip
    words = [word for part in rows.values() for *_, word in part]
    look = [name for part in rows.values() for name, _, word in part if word == "LOOK"]
    verdict = sentence("checklist", "verdict", look=look, points=len(words))
    paragraph = ["", verdict, f" {words.count('decide')} points are for a person to decide."]
    sections = [Section(heading="Verdict", paragraphs=[paragraph])]
    for part, heading in _PARTS.items():
        cells: list[list[Cell]] = [
            [name, text, Marked(text="", word=_VERDICTS[word])] for name, text, word in rows[part]
        ]
        caption = sentence("checklist", part)
        table = Table(caption=caption, header=("point", "found", "verdict"), rows=cells)
        sections.append(Section(heading=heading, tables=[table]))
    return render_page("Review checklist", sections, confidential=True)


def _facts(release: Release) -> dict[str, Any]:
    charge, decided = release.charge, release.decisions
    first, n = release.synthetic[0], len(release.synthetic[0])
    changed = {*release.synthesized, *decided.ids, *decided.drop}
    kept = [str(name) for name in first.columns if str(name) not in changed]
    alone = int((~first.duplicated(subset=kept, keep=False)).sum()) if kept else 0
    chains = any(step.diagnostics is not None for step in release.parts or (release,))
    return {
        "release": release, "charge": charge, "strict": charge.kind == STRICT, "kept": kept,
        "whose": "one record (row)" if charge.unit is None else f"all records of one {charge.unit}",
        "alone": alone, "n": n, "chains": chains, "made": release.provenance,
        "sampled": isinstance(release.provenance, Provenance),
        "alike": all(len(t) == n and t.columns.equals(first.columns) for t in release.synthetic),
        "published": sum(str(name) not in decided.drop for name in first.columns),
        "missing": int(first[list(release.synthesized)].isna().to_numpy().sum()),
        "plain_labels": isinstance(first.index, pd.RangeIndex) or "index" in decided.drop,
    }  # fmt: skip


def _convergence(release: Release) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for step in release.parts or (release,):
        if (fit := step.diagnostics) is not None:
            found = "; ".join(fit.problems) or f"R-hat at most {fit.max_rhat:.3f}"
            point = f"Convergence, {len(rows) + 1}" if release.parts else "Convergence"
            columns = ", ".join(step.synthesized)
            rows.append((point, f"{columns}: {found}", "fine" if fit.converged else "LOOK"))
    return rows

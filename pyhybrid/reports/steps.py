"""A sequence in the owner's report: a row for each column, with charge, fit and weights."""

from __future__ import annotations

from pyhybrid.engines import Provenance
from pyhybrid.privacy.epsilon import epsilon_text
from pyhybrid.releases.release import Release
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Cell, Marked, Section, Table

__all__ = ["steps_section"]

_HEADER = ("Column", "Mechanism", "Model", "Epsilon", "Bound, nats", "Mean weight", "R-hat",
           "Effective sample", "Divergent", "Seconds")  # fmt: skip


def steps_section(release: Release) -> list[Section]:
    """The table of the steps, in their order; none of a release of one step."""
    if not release.parts:
        return []
    rows = [_row(columns, step) for columns, step in release.steps.items()]
    table = Table(
        caption="Steps, in their order. Confidential: bounds and weights. Effective sample: the "
        "smallest, for means.",
        header=_HEADER,
        rows=rows,
        numbers=True,
    )
    text = "Each step has a page of its own beside this one, report_step_1.html and so on."
    return [Section(heading="Steps of the sequence", paragraphs=[[text]], tables=[table])]


def _row(columns: str, step: Release) -> list[Cell]:
    kept, made, found = step.confidential, step.provenance, step.diagnostics
    fit: list[Cell] = ["–", "–", "–"]
    if found is not None:
        rhat = number_text(found.max_rhat)
        fit = [
            rhat if found.converged else Marked(text=rhat, word="POOR"),
            f"{found.min_ess_bulk:,.0f}",
            number_text(found.n_divergent),
        ]
    seconds = isinstance(made, Provenance) and made.seconds > 0
    return [
        columns,
        step.charge.mechanism,
        str(step.settings.get("model", "–")),
        epsilon_text(step.charge.epsilon),
        number_text(kept.lipschitz_bound),
        f"{kept.alpha.mean():.3f}" if kept.alpha.size else "–",
        *fit,
        f"{made.seconds:.2f}" if seconds and isinstance(made, Provenance) else "–",
    ]

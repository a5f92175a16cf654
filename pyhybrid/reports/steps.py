"""A sequence in the owner's report: a row for each column, with charge, fit and weights."""

from __future__ import annotations

from pyhybrid.engines import Provenance
from pyhybrid.privacy.conversions import epsilon_text
from pyhybrid.releases.record import ReleaseRecord
from pyhybrid.releases.release import Release
from pyhybrid.reports.numbers import number_text, setting_text
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
    made = Table(
        caption=f"How each step was made. The same in all: {_shared(release) or 'nothing'}.",
        header=["Column", "Formula", "Program", "Weights", "Draws", "Other settings"],
        rows=[_made(columns, step, _common(release)) for columns, step in release.steps.items()],
    )
    text = "Each step has a page of its own beside this one, report_step_1.html and so on."
    return [Section(heading="Steps of the sequence", paragraphs=[[text]], tables=[table, made])]


_OWN_COLUMNS = ("formula", "model", "mechanism")
Settings = dict[str, str]


def _settings(step: ReleaseRecord) -> Settings:
    """Settings as people write them, without those that were not given."""
    shown = {name: setting_text(value) for name, value in step.settings.items()}
    return {name: text for name, text in shown.items() if text != number_text(None)}


def _common(release: Release) -> Settings:
    """Settings that all steps have alike."""
    first, *others = (_settings(step) for step in release.steps.values())
    alike = {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}
    return {k: v for k, v in alike.items() if k not in _OWN_COLUMNS}


def _shared(release: Release) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in _common(release).items())


def _made(columns: str, step: ReleaseRecord, common: Settings) -> list[Cell]:
    made, alpha, own = step.provenance, step.confidential.alpha, _settings(step)
    program, chains = "–", "–"
    if isinstance(made, Provenance):
        program = f"{made.program}.stan" if made.program else "–"
        chains = f"{made.settings.chains} chains of {made.settings.draws:,}"
    other = {k: v for k, v in own.items() if k not in common and k not in _OWN_COLUMNS}
    return [
        columns,
        own.get("formula", "–"),
        program,
        f"{alpha.min():.3f} to {alpha.max():.3f}" if alpha.size else "–",
        chains,
        ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in other.items()) or "–",
    ]


def _row(columns: str, step: ReleaseRecord) -> list[Cell]:
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

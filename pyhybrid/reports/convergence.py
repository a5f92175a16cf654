"""Convergence of one or several fits, as a section of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyhybrid.engines import Diagnostics
from pyhybrid.reports.numbers import number_text
from pyhybrid.reports.page import Section, Table

__all__ = ["convergence_section"]

_ABOUT = {
    "max_rhat": "Largest rank-normalized split R-hat. From 1; should be at most 1.01.",
    "worst": "Quantity with the largest R-hat.",
    "min_ess_bulk": "Smallest effective sample size for means. Larger is better; 100 per chain is "
    "the usual minimum.",
    "min_ess_tail": "The same for the tails, on which the bound depends.",
    "n_elsewhere": "Chains from dispersed starts that ended in another mode of a censored "
    "posterior. Should be 0; none if not looked for.",
    "n_divergent": "Divergent transitions after warm-up. Should be 0 or very few: the sampler may "
    "have missed part of the posterior.",
    "n_max_treedepth": "Transitions that reached the largest tree depth. They cost time, not "
    "correctness.",
    "n_draws": "Draws after warm-up, all chains together.",
    "n_chains": "Independent chains.",
    "attempts": "Fits made: 2 if the first had not converged.",
}


def convergence_section(
    fits: Mapping[str, Diagnostics], *, of: str = "the released fit"
) -> Section:
    """Worst values over all scalar quantities of each fit, one column per fit.

    Parameters
    ----------
    fits : mapping of str to Diagnostics
        By the name of the mechanism or model.
    of : str
        What was fitted.
    """
    verdicts, single = [], len(fits) == 1
    well = [name for name, found in fits.items() if found.converged]
    if well:
        verdicts.append([f"The chains{'' if single else f' of {_listed(well)}'} converged."])
    for name, found in fits.items():
        if not found.converged:
            who = "The chains" if single else f"The chains of {name}"
            verdicts.append([f"{who} HAVE NOT CONVERGED."])
        verdicts += [[problem] for problem in found.problems]
    rule = next(iter(fits.values())).rule.describe()
    table = Table(
        caption=f"Worst values over all scalar quantities of {of}. Rule: {rule}.",
        header=["Diagnostic", *(["Value"] if single else fits), "What it is"],
        rows=[
            [field, *(number_text(getattr(found, field)) for found in fits.values()), about]
            for field, about in _ABOUT.items()
            if field != "n_elsewhere" or any(each.n_elsewhere is not None for each in fits.values())
        ],
    )
    return Section(heading="Convergence", paragraphs=verdicts, tables=[table])


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last

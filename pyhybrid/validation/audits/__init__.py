"""Audits of mechanisms on this machine, each with a broken mechanism it must catch.

===================== =============================================================================
enumeration           posteriors and noise on a grid, all databases of a few records: exact loss
censored_programs     the Stan programs themselves: the log density with a record and without it
noise                 noisy tables of every database of two records, and of all its neighbors; noisy
                      counts, sums, answers and choices as they run: a lower confidence bound
===================== =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.engines import Engine, resolve_engine
from pyhybrid.fitting.session import FitProgress
from pyhybrid.primitives.noise import opendp_version
from pyhybrid.running.tasks import Done, run_tasks
from pyhybrid.validation.audits.censored_programs import program_audits
from pyhybrid.validation.audits.enumeration import (
    censored_audits,
    centered_audits,
    histogram_audit,
    local_audits,
    response_audit,
    rounds_audits,
)
from pyhybrid.validation.audits.finding import AuditFinding, AuditReport
from pyhybrid.validation.audits.noise import NOISE, marginals_audits, noise_audit

__all__ = ["AuditFinding", "AuditReport", "run_audits"]

CONFIDENCE = 1 - 1e-6
"""Of each sampled lower bound: ten of them give a false alarm in one run of 100,000."""


@bar_in_notebooks
def run_audits(
    *,
    runs: int = 3000,
    engine: str | Engine = "auto",
    workers: int = 1,
    progress: FitProgress | None = None,
) -> AuditReport:
    """Check each mechanism against its stated epsilon, and a broken one beside it.

    Censored posteriors are enumerated on a grid, and so are weighted ones, whose charges are local;
    the Stan programs are evaluated with a record and without it, and mechanisms with OpenDP's noise
    are run on neighboring databases. An audit can
    refute a mechanism and cannot prove it: the losses are those of the databases that were tried.

    Parameters
    ----------
    runs : int, default 3000
        Of each noisy mechanism on each database, at least 3000 (fewer would not show the broken
        controls); slow ones make a part of them. More runs see smaller violations.
    engine : str or Engine, default "auto"
        For the fits of the frozen calibrations.
    workers : int, default 1
        Processes.
    progress : callable, optional
        See `pyhybrid.fitting.session.open_session`.

    Returns
    -------
    AuditReport

    Raises
    ------
    EngineUnavailable, SamplingError
        If no engine can run, or the one chosen fails. Without OpenDP its mechanisms are left out,
        and the report says so.

    Examples
    --------
    >>> report = run_audits()
    >>> report.passed, report.verdict
    """
    n = check_count(runs, "runs", at_least=3000)
    check_count(workers, "workers")
    resolve_engine(engine)  # an unknown one is refused before minutes of work
    steps = [*_steps(n, engine)]
    ended: dict[int, Done[_Step, list[AuditFinding]]] = {}
    for done in run_tasks(_findings, steps[::-1], workers=workers):  # longest ones first
        if progress is not None:
            progress("audits", len(ended), len(steps))
        unavailable = isinstance(done.error, EngineUnavailable) and done.task[0] != "an engine"
        if done.error is not None and not unavailable:
            raise done.error
        ended[id(done.task)] = done
    if progress is not None:
        progress("audits", len(steps), len(steps))
    in_order = [ended[id(step)] for step in steps]
    return AuditReport(
        findings=tuple(finding for done in in_order for finding in done.result or ()),
        left_out=tuple(f"{done.task[0]}: {done.error}" for done in in_order if done.error),
        confidence=CONFIDENCE,
    )


_Step = tuple[str, Callable[[], list[AuditFinding]]]
"""What an audit needs, and the audit, which any process can run."""


def _findings(step: _Step) -> list[AuditFinding]:
    return step[1]()


def _steps(runs: int, engine: str | Engine) -> Iterator[_Step]:
    yield "an engine", partial(censored_audits, {"engine": engine, "seed": 1})
    yield "an engine", partial(centered_audits, {"engine": engine, "seed": 1})
    yield "local charges by range, enumerated", local_audits
    yield "rounds of a private calibration", rounds_audits
    yield "the Stan programs at given points", program_audits
    yield "the perturbed histogram, enumerated", partial(_one, histogram_audit)
    yield "randomized_response, enumerated", partial(_one, response_audit)
    yield "the noisy marginals, enumerated", marginals_audits
    for place, case in enumerate(NOISE):
        yield f"{case.mechanism}, {case.relation}", partial(_sampled, place, runs)


def _one(audit: Callable[[], AuditFinding]) -> list[AuditFinding]:
    return [audit()]


def _sampled(place: int, runs: int) -> list[AuditFinding]:
    opendp_version()
    return [noise_audit(NOISE[place], runs=runs, confidence=CONFIDENCE)]

"""All audits in one call: of the strict mechanisms, and of local charges by range."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyhybrid.core.checks import check_count
from pyhybrid.core.errors import EngineUnavailable
from pyhybrid.engines import Engine
from pyhybrid.fitting.session import FitProgress
from pyhybrid.primitives.library import opendp_version
from pyhybrid.validation.audits.censored_programs import program_audits
from pyhybrid.validation.audits.centered import centered_audits
from pyhybrid.validation.audits.enumeration import censored_audits, histogram_audit, response_audit
from pyhybrid.validation.audits.finding import AuditFinding, AuditReport
from pyhybrid.validation.audits.local_ranges import local_audits
from pyhybrid.validation.audits.marginals import marginals_audits
from pyhybrid.validation.audits.noise import NOISE, noise_audit
from pyhybrid.validation.audits.rounds import rounds_audits

__all__ = ["run_audits"]

CONFIDENCE = 1 - 1e-6
"""Of each sampled lower bound: ten of them give a false alarm in one run of 100,000."""


def run_audits(
    *,
    runs: int = 3000,
    engine: str | Engine = "auto",
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
    progress : callable, optional
        See `pyhybrid.fitting.session.FitOptions`.

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
    steps = list(_steps(n, engine))
    findings: list[AuditFinding] = []
    left_out: list[str] = []
    for done, (label, step) in enumerate(steps, start=1):
        if progress is not None:
            progress("audits", done - 1, len(steps))
        try:
            findings += step()
        except EngineUnavailable as error:
            if label == "an engine":
                raise
            left_out.append(f"{label}: {error}")
    if progress is not None:
        progress("audits", len(steps), len(steps))
    return AuditReport(findings=tuple(findings), left_out=tuple(left_out), confidence=CONFIDENCE)


def _steps(
    runs: int, engine: str | Engine
) -> Iterator[tuple[str, Callable[[], list[AuditFinding]]]]:
    """What needs what, and the audits."""
    yield "an engine", lambda: censored_audits({"engine": engine, "seed": 1})
    yield "an engine", lambda: centered_audits({"engine": engine, "seed": 1})
    yield "local charges by range, enumerated", local_audits
    yield "rounds of a private calibration", rounds_audits
    yield "the Stan programs at given points", program_audits
    yield "the perturbed histogram, enumerated", lambda: [histogram_audit()]
    yield "randomized_response, enumerated", lambda: [response_audit()]
    yield "the noisy marginals, enumerated", marginals_audits
    for case in NOISE:

        def sampled(case=case) -> list[AuditFinding]:  # type: ignore[no-untyped-def]
            opendp_version()
            return [noise_audit(case, runs=runs, confidence=CONFIDENCE)]

        yield f"{case.mechanism}, {case.relation}", sampled

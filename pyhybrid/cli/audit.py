"""`pyhybrid audit`: the strict mechanisms against their stated epsilon, on this machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from pyhybrid.cli.console import progress_bars, show
from pyhybrid.cli.parameters import Engine
from pyhybrid.validation.audits import AuditFinding, AuditReport, run_audits

__all__ = ["audit"]


def audit(
    runs: Annotated[
        int, typer.Option(help="Runs of each noisy mechanism on each database.")
    ] = 3000,
    engine: Engine = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check each strict mechanism against its stated epsilon; exit code 1 if one fails."""
    with progress_bars() as progress:
        report = run_audits(runs=runs, engine=engine, progress=progress)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        _show(report)
    return 0 if report.passed else 1


def _show(report: AuditReport) -> None:
    show(_table(report))
    for cause in report.left_out:
        show(f"left out: {escape(cause)}")
    show(
        "exact: largest loss over all neighbors of a small domain. sampled: the loss is at least "
        f"this, with confidence {report.confidence:.6f}.",
        f"{report.verdict}.",
    )


def _table(report: AuditReport) -> Table:
    table = Table(title="Privacy loss, nats", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("mechanism", "relation", "method"):
        table.add_column(name, overflow="fold")
    for name in ("stated", "found", "control"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("broken control", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for finding in report.findings:
        table.add_row(
            finding.mechanism,
            finding.relation,
            finding.method,
            f"{finding.epsilon:g}",
            f"{finding.loss:.3f}",
            f"{finding.control_loss:.3f}",
            finding.control,
            _verdict(finding),
        )
    return table


def _verdict(finding: AuditFinding) -> str:
    if not finding.holds:
        return "[bold red]REFUTED[/bold red]"
    return "holds" if finding.control_caught else "[bold red]control missed[/bold red]"

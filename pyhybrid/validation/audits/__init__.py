"""Audits of mechanisms on this machine, each with a broken mechanism it must catch.

===================== =============================================================================
enumeration           every database of a few records on a grid of parameters: the exact loss
censored_programs     the Stan programs themselves: the log density with a record and without it
local_ranges          weighted posteriors on a grid: the loss against the range that is charged
marginals             noisy tables of every database of two records, and of all its neighbors
noise                 noisy counts, sums, answers and choices as they run: a lower confidence bound
run                   all of them, as `pyhybrid audit` shows them
===================== =============================================================================
"""

from __future__ import annotations

from pyhybrid.validation.audits.finding import AuditFinding, AuditReport
from pyhybrid.validation.audits.run import run_audits

__all__ = ["AuditFinding", "AuditReport", "run_audits"]

"""Audits of mechanisms on this machine, each with a broken mechanism it must catch.

===================== =============================================================================
enumeration           posteriors and noise on a grid, all databases of a few records: exact loss
censored_programs     the Stan programs themselves: the log density with a record and without it
marginals             noisy tables of every database of two records, and of all its neighbors
noise                 noisy counts, sums, answers and choices as they run: a lower confidence bound
run                   all of them, as `pyhybrid audit` shows them
===================== =============================================================================
"""

from __future__ import annotations

from pyhybrid.validation.audits.finding import AuditFinding, AuditReport
from pyhybrid.validation.audits.run import run_audits

__all__ = ["AuditFinding", "AuditReport", "run_audits"]

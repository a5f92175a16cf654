from __future__ import annotations

from pyhybrid.validation.agreement import Validation, validate
from pyhybrid.validation.audits import AuditFinding, AuditReport, run_audits

__all__ = [
    "AuditFinding",
    "AuditReport",
    "Validation",
    "run_audits",
    "validate",
]

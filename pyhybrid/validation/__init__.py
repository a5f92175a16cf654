from __future__ import annotations

from pyhybrid.validation.agreement import (
    Validation,
    validate,
    validate_published,
    validate_supplement,
)
from pyhybrid.validation.audits import AuditFinding, AuditReport, run_audits

__all__ = [
    "AuditFinding",
    "AuditReport",
    "Validation",
    "run_audits",
    "validate",
    "validate_published",
    "validate_supplement",
]

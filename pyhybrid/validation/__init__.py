from __future__ import annotations

from pyhybrid.validation.agreement import (
    Validation,
    validate,
    validate_published,
    validate_supplement,
)

__all__ = ["Validation", "validate", "validate_published", "validate_supplement"]

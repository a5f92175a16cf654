"""Private answers to whether an estimate from synthetic data holds in the confidential data.

An analyst who has only the synthetic sets asks one question of the data owner; the answer carries
noise and a strict charge of its own, which goes to the same ledger as the releases.
"""

from __future__ import annotations

from pyhybrid.verification.aggregate import Verification, verify
from pyhybrid.verification.queries import Coefficient, Mean, Quantile, Query, Share, read_query

__all__ = [
    "Coefficient",
    "Mean",
    "Quantile",
    "Query",
    "Share",
    "Verification",
    "read_query",
    "verify",
]

"""R from Python: the only importer of rpy2, and only inside functions.

Nothing here is active until it is called: importing pyhybrid neither starts R nor needs it. Values
are converted by `to_r` and `from_r` alone, on rpy2's low-level interface; no converter is ever
activated, so that other users of rpy2 in the same process see no change.

R's locale, its signal handler and its console are kept away from the Python process.
"""

from __future__ import annotations

from pyhybrid.rbridge.conversion import RError, from_r, to_r
from pyhybrid.rbridge.session import RStatus, call_r, collect, r_code, r_status, start_r

__all__ = [
    "RError",
    "RStatus",
    "call_r",
    "collect",
    "from_r",
    "r_code",
    "r_status",
    "start_r",
    "to_r",
]

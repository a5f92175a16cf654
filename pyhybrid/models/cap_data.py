"""What the Stan programs read of a cap."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.privacy.cap import Cap

__all__ = ["cap_data"]


def cap_data(cap: Cap | None, chosen: npt.NDArray[np.intp]) -> dict[str, Any]:
    """What stan/functions/pseudo_log_lik.stan reads of a cap, for the records `chosen` (d,)."""
    none = np.zeros(chosen.size)
    reference = none if cap is None or cap.reference is None else cap.reference[chosen]
    unit = none.astype(np.int64) if cap is None or cap.unit is None else cap.unit[chosen] + 1
    return {
        "use_cap": int(cap is not None),
        "cap_below": 0.0 if cap is None else cap.below,
        "cap_above": 0.0 if cap is None else cap.above,
        "reference": reference,
        "n_units": 0 if cap is None else cap.n_units,
        "unit": unit,
    }

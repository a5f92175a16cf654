"""Estimates that a release publishes beside its tables, with errors that count the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from pyhybrid.core.checks import FloatArray, check_fraction
from pyhybrid.core.errors import InvalidInput


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """Public estimates of d coordinates: coefficients by column, and the logarithm of a second
    parameter. Their covariance is of the sampling of records and of the noise for privacy."""

    names: tuple[str, ...]
    values: FloatArray  # (d,)
    covariance: FloatArray  # (d, d)
    covariance_without_noise: FloatArray  # (d, d)

    def frame(self, level: float = 0.95) -> pd.DataFrame:
        """Estimates as a table; see `estimates`."""
        error, alone = (
            np.sqrt(np.diag(covariance))
            for covariance in (self.covariance, self.covariance_without_noise)
        )
        half = float(ndtri((1 + level) / 2)) * error
        columns = {
            "estimate": self.values,
            "std_error": error,
            "lower": self.values - half,
            "upper": self.values + half,
            "std_error_without_noise": alone,
        }
        frame: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(self.names, name="coordinate"))
        return frame

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Estimates:
        """Inverse of `as_dict`."""
        names, *arrays = ("names", "values", "covariance", "covariance_without_noise")
        return cls(
            names=tuple(str(name) for name in fields[names]),
            **{name: np.array(fields[name], dtype=np.float64) for name in arrays},
        )


def estimates(release: Any, level: float = 0.95) -> pd.DataFrame:
    """Public estimates of a release by clipped scores, with intervals of a `level` in (0, 1) that count
    the noise: a row for each coordinate, with `estimate`, `std_error`, `lower`, `upper` and
    `std_error_without_noise`, which the sampling of records alone would have.

    Raises
    ------
    InvalidInput
        If the release has none.
    """
    check_fraction(level, "level")
    published: Estimates | None = getattr(release, "estimates", None)
    if published is None:
        raise InvalidInput("release must be by clipped scores, which alone publish estimates")
    return published.frame(level)

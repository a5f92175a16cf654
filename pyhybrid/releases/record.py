"""What a release says of itself, without its tables; what of it stays with the owner; estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from pyhybrid.core.checks import BoolArray, FloatArray, check_fraction
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Diagnostics, Provenance, SamplerSettings
from pyhybrid.fitting.reweighting import Reweighted
from pyhybrid.fitting.session import PosteriorFit
from pyhybrid.primitives.noise import NoiseProvenance
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.refits import LocalLoss
from pyhybrid.releases.column_decisions import Decisions


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """What the owner's report needs; never saved. Confidential. `without_privacy` gives estimates
    without clip and noise; `relations` has the shares of records, and of synthetic rows, that keep
    each declared relation; `drifted` names columns of a reference that are far off; `steps` are
    those of a sequence; `table` names the file."""

    data: pd.DataFrame
    without_privacy: Callable[[], Mapping[str, float]] = dict
    relations: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drifted: Sequence[str] = ()
    steps: Sequence[Origin] = ()
    table: str = ""

    def __repr__(self) -> str:
        return f"<Origin of a release: {len(self.data)} confidential records>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Confidential:
    """What must stay with the data owner: functions of the data of n records, and the seed.

    `alpha` are weights in [0, 1] and `lipschitz` by-record bounds of the released fit, nats, with
    the overall one; of shape (0,), and 0, without. `entropy` is the root of all random streams.
    `censored` says which records' weighted log-likelihood met the cap in some draw, if there is a
    cap; `loss`, not read back, what a draw tells by record, and by refits without some.
    """

    labels: pd.Index
    entropy: int
    alpha: FloatArray = field(default_factory=partial(np.empty, 0))  # (n,)
    lipschitz: FloatArray = field(default_factory=partial(np.empty, 0))  # (n,)
    lipschitz_bound: float = 0.0
    censored: BoolArray | None = None
    loss: LocalLoss | None = None

    def __repr__(self) -> str:
        return f"<Confidential record of {len(self.labels)} records>"


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
        error = np.sqrt(np.diag(self.covariance))
        alone = np.sqrt(np.diag(self.covariance_without_noise))
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
        arrays = ("values", "covariance", "covariance_without_noise")
        read = {name: np.array(fields[name], dtype=np.float64) for name in arrays}
        return cls(names=tuple(map(str, fields["names"])), **read)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseRecord:
    """A release without its tables: of a sequential synthesis, what one of its steps did.

    The tables of a sequence hold all of its columns. A step has none of its own, so that they
    cannot be written, or entered in a ledger, at the charge of one column.

    Attributes
    ----------
    diagnostics : Diagnostics or None
        Convergence of the released fit; None without a sampler. Confidential where the charge is
        strict, which does not cover it.
    settings : mapping
        Public settings of mechanism and model.
    synthesized, predictors : tuple of str
        Columns that were replaced; columns the model read and left as they are.
    provenance, requested
        What ran, with the (confidential) engine seed, or what made the noise; and the sampler
        settings that were asked for, which the statement gives: the data have a say in the others.
    confidential : Confidential
        Weights, bounds, seed. Never publish.
    exposed : mapping of str to str
        Columns that must not be published without one of `decisions`, with the reason.
    fit, reweighted, estimates
        The released fit, how re-weighting led to it, and what clipped scores publish, or None.
    """

    charge: PrivacyCharge
    diagnostics: Diagnostics | None
    settings: Mapping[str, Any]
    synthesized: tuple[str, ...]
    predictors: tuple[str, ...]
    provenance: Provenance | NoiseProvenance
    requested: SamplerSettings | None = None
    seeded: bool
    confidential: Confidential
    exposed: Mapping[str, str] = field(default_factory=dict, repr=False)
    decisions: Decisions = field(default_factory=Decisions, repr=False)
    fit: PosteriorFit | None = field(default=None, repr=False)
    reweighted: Reweighted | None = field(default=None, repr=False)
    estimates: Estimates | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """What is saved, in the types of JSON; arrays and tables aside."""
        optional = {"diagnostics": self.diagnostics, "requested": self.requested}
        return {
            "charge": self.charge.as_dict(),
            "settings": dict(self.settings),
            "synthesized": self.synthesized,
            "predictors": self.predictors,
            **{name: None if part is None else asdict(part) for name, part in optional.items()},
            "provenance": asdict(self.provenance),
            "seeded": self.seeded,
            "seed": str(self.confidential.entropy),
        }

    def __repr__(self) -> str:
        columns, charge = ", ".join(self.synthesized), self.charge
        return f"<Step of a release, {columns} by {charge.mechanism}: {charge.in_short}>"


def estimates(release: Any, level: float = 0.95) -> pd.DataFrame:
    """Public estimates of a release by clipped scores, with intervals of a `level` in (0, 1) that
    count the noise: a row for each coordinate, with `estimate`, `std_error`, `lower`, `upper` and
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

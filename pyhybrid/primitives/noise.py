"""Noise of the OpenDP library, calibrated so as never to overstep, and answers that carry it."""

from __future__ import annotations

import contextlib
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray, check_positive
from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.core.randomness import new_identifier
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import round_up

UNIT = 2**30
"""Whole units that make up 1 where numbers are summed: exact in any order, unlike floats."""
_STEPS = 64  # of one unit in the last place each; one or two are enough


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PrivateAnswer(ABC):
    """An answer with noise and its strict charge; both may be published.

    A charge below what the answer's noise costs is refused. The identifier tells it from every
    other answer, also from one that came out the same.
    """

    charge: PrivacyCharge
    identifier: str = field(default_factory=new_identifier)
    value: Any

    def __post_init__(self) -> None:
        cost = self.cost()
        # One unit of float rounding: OpenDP states costs that are rounded up in binary.
        if Fraction(self.charge.epsilon) < Fraction(cost) * (1 - Fraction(1, 2**50)):
            raise InvalidInput(
                f"epsilon of the charge must be at least what the noise costs, {round_up(cost)}: "
                f"found {self.charge.epsilon:g}"
            )

    @abstractmethod
    def cost(self) -> float:
        """Epsilon in nats, worked out from the answer's own noise."""

    def __repr__(self) -> str:
        shown = np.array2string(np.asarray(self.value), threshold=12, separator=", ")
        return f"<{type(self).__name__} {shown}: {self.charge.in_short}>"


@dataclass(frozen=True, kw_only=True)
class NoiseProvenance:
    """Library and version that made the noise of a release without chains, its distribution, and
    what counts it was added to ("histogram" or "tables")."""

    library: str
    version: str
    noise: str
    counts: str = "histogram"


def load_opendp() -> ModuleType:
    """`opendp.prelude`; EngineUnavailable if OpenDP is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise EngineUnavailable(
            f"noise comes from the OpenDP library, which cannot be imported ({error}): "
            "pip install 'pyhybrid[dp]'"
        ) from None
    dp.enable_features("contrib")
    prelude: ModuleType = dp
    return prelude


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turn what OpenDP refuses (sizes, scales, overflow) into InvalidInput."""
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException as error:
        raise InvalidInput(f"OpenDP refuses: {error.message or error.variant}") from None


@functools.lru_cache(maxsize=32)
def whole_number_noise(
    d_in: float, epsilon: float | None = None, unit: int = 1, *, rho: float | None = None
) -> tuple[Any, float]:
    """OpenDP's discrete noise on vectors of whole numbers, of which `unit` make up 1, and its scale
    in the vector's units: Laplace noise by `epsilon`, `d_in` in L1; Gaussian by `rho`, in L2. The
    scale is the least whose cost by OpenDP, which rounds up in binary (Laplace(2 / 3) costs
    3.0000000000000004 at sensitivity 2), is not above `epsilon` or `rho`."""
    dp = load_opendp()
    change, distance, then_noise = d_in * unit, dp.l1_distance(T=dp.i64), dp.m.then_laplace
    if rho is not None:
        distance, then_noise = dp.l2_distance(T=dp.f64), dp.m.then_gaussian
    cost = epsilon if rho is None else rho
    assert cost is not None
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), distance
    scale = change / (cost if rho is None else math.sqrt(2 * cost))
    for _ in range(_STEPS):
        if not math.isfinite(scale):
            break
        with refusals():
            measurement = space >> then_noise(scale=scale)
            if measurement.map(change) <= cost:
                return measurement, scale
        scale = math.nextafter(scale, math.inf)
    raise InvalidInput(
        f"epsilon must be within what OpenDP can calibrate: found {cost:g} at scale {scale:g}"
    )


DISCRETE = 1e-5
"""Relative margin of mu for noise on whole numbers in place of real ones, see `gaussian_sums`."""


def gaussian_sums(sums: Any, sensitivity: int, mu: float) -> FloatArray:
    """Whole-number sums (d,), which a neighbor changes by at most `sensitivity` in L2, with
    discrete Gaussian noise; mu-GDP [DRS22], [CKS20].

    Normal noise of deviation sensitivity / mu is mu-GDP, and stays so when rounded to whole
    numbers. Within 40 deviations the probabilities of the discrete Gaussian differ from those of
    rounded normal noise by a factor of at most exp((d + 40 sqrt(d)) mu / sensitivity). The
    sensitivity is 2^30 or more, so that this is less, up to thousands of sums, than what epsilon
    falls by as the deviation is made larger by `DISCRETE`.
    """
    if sensitivity < 2**30:
        raise InvalidInput(f"sensitivity must be at least 2^30 steps: found {sensitivity}")
    rho = (check_positive(mu, "mu") * (1 - DISCRETE)) ** 2 / 2
    measurement, _ = whole_number_noise(float(sensitivity), rho=rho)
    with refusals():
        return np.array(measurement([int(value) for value in sums]), dtype=np.float64)

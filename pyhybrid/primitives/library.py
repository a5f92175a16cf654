"""The OpenDP library: found or named in an error, and noise calibrated so as never to overstep."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from pyhybrid.core.errors import EngineUnavailable, InvalidInput

__all__ = [
    "NoiseProvenance",
    "calibrated",
    "gaussian_whole_number_noise",
    "load_opendp",
    "opendp_version",
    "refusals",
    "whole_number_noise",
]

_STEPS = 64  # of one unit in the last place each; one or two are enough


@dataclass(frozen=True, kw_only=True)
class NoiseProvenance:
    """What made the noise of a release without chains: library, its version, distribution, and
    what counts it was added to ("histogram" or "tables")."""

    library: str
    version: str
    noise: str
    counts: str = "histogram"


def load_opendp() -> ModuleType:
    """Return `opendp.prelude`, ready for use.

    Raises
    ------
    EngineUnavailable
        If OpenDP is not installed.
    """
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


@functools.lru_cache(maxsize=1)
def opendp_version() -> str:
    """Version of the installed OpenDP library."""
    from importlib.metadata import version

    return version("opendp")


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Turn what OpenDP refuses (sizes, scales, overflow) into InvalidInput."""
    from opendp.mod import OpenDPException

    try:
        yield
    except OpenDPException as error:
        raise InvalidInput(f"OpenDP refuses: {error.message or error.variant}") from None


@functools.lru_cache(maxsize=32)
def whole_number_noise(d_in: int, epsilon: float, unit: int = 1) -> tuple[Any, float]:
    """OpenDP's discrete Laplace noise on vectors of whole numbers, and its scale.

    Parameters
    ----------
    d_in : int
        Sensitivity in L1, whole numbers.
    epsilon : float
        Above 0, nats.
    unit : int, default 1
        Whole numbers that make up 1, if the vector is in finer units: the noise grows with it.

    Returns
    -------
    tuple of (measurement, float)
        From a list of whole numbers to one with noise; scale in the vector's own units.
    """
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    return calibrated(
        lambda scale: space >> dp.m.then_laplace(scale=scale),
        scale=d_in * unit / epsilon,
        d_in=d_in * unit,
        epsilon=epsilon,
    )


@functools.lru_cache(maxsize=32)
def gaussian_whole_number_noise(d_in: float, rho: float, unit: int = 1) -> tuple[Any, float]:
    """OpenDP's discrete Gaussian noise on vectors of whole numbers, and its scale.

    Parameters
    ----------
    d_in : float
        Sensitivity in L2.
    rho : float
        Of zCDP, above 0, nats.
    unit : int, default 1
        See `whole_number_noise`.

    Returns
    -------
    tuple of (measurement, float)
        As of `whole_number_noise`.
    """
    dp = load_opendp()
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=dp.f64)
    return calibrated(
        lambda scale: space >> dp.m.then_gaussian(scale=scale),
        scale=d_in * unit / math.sqrt(2 * rho),
        d_in=d_in * unit,
        epsilon=rho,
    )


def calibrated(
    measurement: Callable[[float], Any], *, scale: float, d_in: float, epsilon: float
) -> tuple[Any, float]:
    """The measurement at `scale`, or at the next larger scale whose cost is not above `epsilon`.

    OpenDP states costs rounded up in binary: Laplace(2 / 3) costs 3.0000000000000004 on counts of
    sensitivity 2. The scale grows by units in the last place until the library itself says that
    the cost is kept.

    Parameters
    ----------
    measurement : callable
        From a scale to an OpenDP measurement.
    scale : float
        That should do: sensitivity / epsilon.
    d_in : float
        Distance of neighboring inputs.
    epsilon : float
        Allowed, in nats: epsilon of pure differential privacy, rho of a zCDP measurement.

    Returns
    -------
    tuple of (measurement, float)
        The measurement and its scale.
    """
    for _ in range(_STEPS):
        if not math.isfinite(scale):
            break
        with refusals():
            made = measurement(scale)
            if made.map(d_in) <= epsilon:
                return made, scale
        scale = math.nextafter(scale, math.inf)
    raise InvalidInput(
        f"epsilon must be within what OpenDP can calibrate: found {epsilon:g} at scale {scale:g}"
    )

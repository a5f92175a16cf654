"""What an association model of the keys given the rest must do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyhybrid.core.checks import FloatArray
from pyhybrid.masking.masks import Evidence

__all__ = ["AssociationModel", "Snapshot"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """One posterior draw: parameters, and all values with the missing ones imputed. Confidential.

    Attributes
    ----------
    parameters : tuple of ndarray
        As the model lays them out.
    values : mapping of str to ndarray, shape (n,)
        Keys and incomplete predictors, complete now.
    latent : ndarray, or None
        Latent normals of a copula, shape (n, q).
    """

    parameters: tuple[FloatArray, ...]
    values: Mapping[str, npt.NDArray[Any]]
    latent: FloatArray | None = None


class AssociationModel(Protocol):
    """p(X | Z, theta) with its Gibbs sampler. Its own state is read-only: chains share it."""

    def start(self, rng: np.random.Generator) -> Any:
        """State of a new chain, dispersed."""

    def sweep(self, state: Any, rng: np.random.Generator, *, adapt: bool, impute: bool) -> None:
        """Update parameters given the true keys and, with `impute`, what is missing; in place."""

    def quantities(self, state: Any) -> dict[str, FloatArray]:
        """What must converge."""

    def n_divergent(self, state: Any) -> int:
        """Transitions after warm-up that diverged."""

    def snapshot(self, state: Any) -> Snapshot:
        """The state as a draw."""

    def resume(self, snapshot: Snapshot, rng: np.random.Generator) -> Any:
        """A state that goes on from a draw."""

    def synthesize(
        self,
        snapshot: Snapshot,
        evidence: Mapping[str, Evidence],
        rng: np.random.Generator,
        *,
        sweeps: int,
    ) -> dict[str, npt.NDArray[Any]]:
        """Draw the keys from p(X | Z, theta) p(W | X), by name; no true key is looked at."""

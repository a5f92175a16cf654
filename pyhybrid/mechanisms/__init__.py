"""Mechanisms: how record weights come from the data, one file each.

================== ================================ ==========================================
name               weights                          guarantee
================== ================================ ==========================================
Unweighted         1                                asymptotic local, usually a large epsilon
LipschitzWeighted  fall with the Lipschitz bound    asymptotic local
================== ================================ ==========================================
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhybrid.mechanisms.base import PseudoPosteriorMechanism
from pyhybrid.mechanisms.lipschitz_weighted import LipschitzWeighted
from pyhybrid.mechanisms.unweighted import Unweighted

__all__ = ["MECHANISMS", "LipschitzWeighted", "PseudoPosteriorMechanism", "Unweighted"]

MECHANISMS: Mapping[str, type[PseudoPosteriorMechanism]] = {
    "unweighted": Unweighted,
    "lipschitz": LipschitzWeighted,
}
"""Mechanisms by their name on the command line."""

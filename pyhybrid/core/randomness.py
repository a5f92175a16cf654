"""Random streams of one release: independent by construction, named by their use.

Without a seed the streams start from the operating system's entropy. With one, every stream is a
function of (seed, name), so that streams of different use never overlap and adding a stream does
not move the others. A seed lets anyone recompute a release: it belongs to the private record.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np

from pyhybrid.core.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Source of named random streams, from a seed or 128 bits of the system. Confidential."""

    entropy: int
    seeded: bool

    def __repr__(self) -> str:
        return f"Streams(entropy=<confidential>, seeded={self.seeded})"

    def generator(self, name: str) -> np.random.Generator:
        """Return the numpy generator of the stream `name`, from its start."""
        return np.random.Generator(np.random.PCG64(self._sequence(name)))

    def engine_seed(self, name: str) -> int:
        """Return a seed for a Stan engine, in 1 .. 2^31 - 2."""
        return int(self._sequence(name).generate_state(1, np.uint64)[0] % (2**31 - 2)) + 1

    def child(self, name: str) -> Streams:
        """Streams of a part of the work: none of them is a stream of the whole or of a sibling."""
        words = self._sequence(f"child/{name}").generate_state(4, np.uint32)
        return Streams(entropy=int.from_bytes(words.tobytes(), "little"), seeded=self.seeded)

    def _sequence(self, name: str) -> np.random.SeedSequence:
        digest = hashlib.sha256(name.encode()).digest()
        key = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
        return np.random.SeedSequence(self.entropy, spawn_key=tuple(key))


def streams(seed: int | None = None) -> Streams:
    """Return the streams of a release, from `seed` (a whole number >= 0) or from the system."""
    if seed is None:
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        return Streams(entropy=entropy, seeded=False)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput(f"seed must be a whole number >= 0: found {seed!r}")
    return Streams(entropy=int(seed), seeded=True)


def generator_of(rng: np.random.Generator | int | None) -> np.random.Generator:
    """A generator from a generator, a seed (a whole number >= 0), or the system."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    return np.random.default_rng(streams(rng).entropy)


def new_identifier() -> str:
    """A name no other release has, from the system, never from a seed: releases that come out alike
    by chance still cost twice."""
    return secrets.token_hex(16)

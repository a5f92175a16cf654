"""R's conditions as Python exceptions."""

from __future__ import annotations

from collections.abc import Sequence

from pyhybrid.core.errors import EngineUnavailable, InvalidInput, PyhybridError, SamplingError

__all__ = ["RError", "exception_of"]


class RError(PyhybridError, RuntimeError):
    """An error inside R, with R's own message."""


_CLASSES: dict[str, type[PyhybridError]] = {
    "pyhybrid_invalid_input": InvalidInput,
    "pyhybrid_engine_unavailable": EngineUnavailable,
    "pyhybrid_sampling_error": SamplingError,
}


def exception_of(classes: Sequence[str], message: str) -> PyhybridError:
    """The exception for an R condition of these classes: the Python error of the same meaning."""
    known = next((_CLASSES[name] for name in classes if name in _CLASSES), RError)
    return known(message.strip())

"""What a model says to those who call it as they would call one of other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyhybrid.core.checks import no_such_attribute

__all__ = ["ReleasedByMechanism"]

_RELEASED = "a mechanism fits it and releases, e.g. ph.LipschitzWeighted(model).release(df)"
_RIGHT_CALLS = dict.fromkeys(("fit", "release", "synthesize", "sample", "predict"), _RELEASED)


class ReleasedByMechanism:
    """Attributes that it does not have are answered with the right call."""

    if not TYPE_CHECKING:  # to type checkers, what is not declared stays an error

        def __getattr__(self, name: str) -> Any:
            raise no_such_attribute(self, name, _RIGHT_CALLS)

"""What a call refuses, in one line."""

from collections.abc import Callable
from typing import Any

import pytest

from pyhybrid.core.errors import InvalidInput


def refuses(message: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """`call(*args, **options)` raises InvalidInput with `message` (a pattern) in its text."""
    with pytest.raises(InvalidInput, match=message):
        call(*args, **options)

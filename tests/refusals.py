"""What a call refuses, in one line."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyhybrid.core.errors import InvalidInput


def refuses(
    message: str, call: Callable[..., Any], *args: Any, hidden: Sequence[str] = (), **options: Any
) -> str:
    """The text of the InvalidInput of a call: `message` (a pattern) is in it, none of `hidden`."""
    text = fails(InvalidInput, message, call, *args, **options)
    assert not [each for each in hidden if each in text], text
    return text


def no_space(*_: Any, **__: Any) -> None:
    """What a call on a full disk does."""
    raise OSError(28, "No space left on device")


def fails(
    error: type[BaseException], message: str, call: Callable[..., Any], *args: Any, **options: Any
) -> str:
    """The same with an error of another kind."""
    with pytest.raises(error, match=message or None) as raised:
        call(*args, **options)
    return str(raised.value)

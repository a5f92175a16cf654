"""R, started once for the whole run; what it lacks is a skip, or a failure where CI wants all."""

from collections.abc import Callable
from typing import Any

import pytest

from pyhybrid import rbridge
from tests.conftest import require


@pytest.fixture(scope="session")
def r() -> Callable[..., Any]:
    """`call_r`, if R can be used here."""
    status = rbridge.r_status()
    require(status.available, f"R cannot be used: {status}")
    return rbridge.call_r

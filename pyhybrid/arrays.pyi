"""Those of `pyhybrid.privacy`."""

from .privacy import *  # noqa: F403

__all__: list[str]

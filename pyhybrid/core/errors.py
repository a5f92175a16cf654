"""Every error that pyhybrid raises on purpose, under one base class.

A message says what must hold, what was found, where, and what to do. Messages of errors never
contain values of the confidential data beyond the label of the offending row.
"""

from __future__ import annotations


class PyhybridError(Exception):
    """Base class of all errors raised by pyhybrid."""


class InvalidInput(PyhybridError, ValueError):
    """An argument, a table or a file does not meet what the function states."""


class EngineUnavailable(PyhybridError, RuntimeError):
    """No Stan engine can run, or the one asked for cannot; names the cause and the remedy."""


class SamplingError(PyhybridError, RuntimeError):
    """An engine started and failed: a compile error, a failed chain, a killed process."""


class NotConverged(SamplingError):
    """The chains did not converge, so no bound computed from them may be stated."""


class BudgetExceeded(PyhybridError, RuntimeError):
    """A release would cost more than what is left in a ledger."""


class SaveFailed(PyhybridError, OSError):
    """A release could not be written; nothing was left behind at its destination."""


class SourceFailed(PyhybridError, RuntimeError):
    """A table in another program cannot be reached or read, or it changed while it was read."""

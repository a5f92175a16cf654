"""The stand-in for CmdStan, whose engine some faults and leaks are of."""

from tests.engines.test_cmdstan import fake

__all__ = ["fake"]

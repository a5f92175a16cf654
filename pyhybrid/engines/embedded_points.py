"""A Stan program at given points: its log density, and its generated quantities drawn anew.

What a check of a user's program needs, and what stands in for "generate quantities" of draws that
any engine made. Uses stanli, without sampling: chains of one transition of step size 1e-300, which
does not move.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.engines.base import Draws, StanProgram
from pyhybrid.engines.embedded import as_json, compiled, stanli_module
from pyhybrid.engines.messages import without_values
from pyhybrid.engines.programs import parameter_names

__all__ = ["ProgramAtPoints", "check_compiles"]

_STILL = 1e-300


def check_compiles(program: StanProgram) -> None:
    """Raise InvalidInput with the compiler's own message, line and caret included.

    EngineUnavailable if stanli cannot be imported.
    """
    stanli_module()
    try:
        compiled(program.text)
    except SamplingError as error:
        raise InvalidInput(f"program {program.name!r} must be valid Stan: {error}") from None


class ProgramAtPoints:
    """A program with its data.

    Parameters
    ----------
    program : StanProgram
    data : mapping

    Raises
    ------
    EngineUnavailable
        If stanli cannot be imported.
    InvalidInput
        If the program does not take the data.
    """

    def __init__(self, program: StanProgram, data: Mapping[str, Any]) -> None:
        stanli = stanli_module()
        self._program = program
        try:
            with warnings.catch_warnings():
                # That a part of the program runs slowly is said when it is sampled.
                warnings.filterwarnings("ignore", "stanli", RuntimeWarning)
                self._model = stanli.Model(mir=compiled(program.text), data=as_json(data))
        except (RuntimeError, ValueError) as error:
            raise InvalidInput(
                f"program {program.name!r} does not take the data: {without_values(str(error))}"
            ) from None

    @property
    def n_unconstrained(self) -> int:
        """Number of unconstrained parameters."""
        return int(self._model.n_unconstrained)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log density at unconstrained points (S, p), Jacobian included, shape (S,); -inf or NaN
        where the program rejects, or has no gradient that a sampler could follow."""
        return np.array([self._one(point) for point in points])

    def _one(self, point: FloatArray) -> float:
        try:
            value, gradient = self._model.log_prob_grad(point)
        except (RuntimeError, ValueError):
            return float("nan")
        return float(value) if np.isfinite(gradient).all() else float("nan")

    def unconstrained(self, draws: Draws) -> FloatArray:
        """The draws' parameters as unconstrained points, shape (S, p)."""
        names = parameter_names(self._program)
        flat = {name: draws.flat(name) for name in names if name in draws.variables}
        points = [
            self._model.unconstrain({name: _listed(flat, name, s) for name in names})
            for s in range(draws.n_draws)
        ]
        return np.array(points)

    def quantities(self, points: FloatArray, *, seed: int = 1) -> dict[str, FloatArray]:
        """All variables at unconstrained points (S, p), shape (S, *dims) each.

        Raises
        ------
        SamplingError
            If the program fails at a point.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one transition per chain: nothing to diagnose
            try:
                fit = self._model.sample(
                    chains=points.shape[0], warmup=0, samples=1, inits=points, step_size=_STILL,
                    adapt_engaged=False, max_depth=1, metric="unit_e", refresh=0, seed=seed,
                )  # fmt: skip
            except (RuntimeError, ValueError) as error:
                reason = without_values(str(error))
                raise SamplingError(f"program {self._program.name!r} failed: {reason}") from None
            return {name: np.asarray(fit.draws(name))[:, 0] for name in fit.variables}


def _listed(flat: Mapping[str, FloatArray], name: str, place: int) -> Any:
    """A value as stanli takes it: first index fastest; parameters of size 0 have no draws."""
    if name not in flat:
        return []
    value = flat[name][place]
    return value.T.ravel().tolist() if value.ndim else float(value)

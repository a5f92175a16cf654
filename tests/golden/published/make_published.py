"""Write the numbers that the printed R script and Stan programs give: ``python -m
tests.golden.published.make_published SCRIPT.R PROGRAM.stan [BETA.stan]``, with the supplement of
the earlier version of [V25] in hand, and for the last that of [C25].

Script and programs belong to the papers and stay where they are; what they compute from the inputs
stored beside it is in script.json, program.json and beta.json, so that every machine can hold this
package against them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import pyhybrid as ph
from pyhybrid.engines.base import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.engines.programs import modern_arrays
from pyhybrid.rbridge import call_r

FOLDER = Path(__file__).resolve().parent
CASES: tuple[dict[str, float], ...] = (
    {}, {"draw_quantile": 0.95}, {"scale": 0.8, "shift": 0.1},
    {"scale": 1.4, "shift": -0.2, "draw_quantile": 0.5},
)  # fmt: skip
N, S = 15, 24
K, POINTS = 2, 6


def of_script(script: str) -> list[dict[str, Any]]:
    """Bounds by record, weights and the weighted bound, for a log-likelihood (S, n) each."""
    rng, cases = np.random.default_rng(20250), []
    for how in CASES:
        y = rng.negative_binomial(2, 0.02, N)
        mean = rng.normal(np.log(100), 0.1, S)
        log_lik = ph.Poisson("y ~ 1").log_lik({"beta": mean[:, None]}, y * 1.0, np.ones((N, 1)), 0)
        found = call_r("run_supplement", file=script, log_lik_unweighted=log_lik, **how)
        names = ("by_record", "weights", "by_record_weighted", "bound")
        numbers = {name: np.asarray(found[name]).tolist() for name in names}
        cases.append({"how": how, "log_lik": log_lik.tolist(), **numbers})
    return cases


def of_program(program: str) -> dict[str, Any]:
    """Log density at unconstrained points (POINTS, p), up to a constant, and log_lik there."""
    rng = np.random.default_rng(20251)
    data = {
        "n": N, "K": K, "y": rng.negative_binomial(2, 0.1, N).tolist(),
        "X": np.column_stack([np.ones(N), rng.normal(size=N).round(3)]).tolist(),
        "weights": rng.uniform(0, 1, N).round(4).tolist(),
    }  # fmt: skip
    # beta, log sigma_beta, the factor's coordinate, 1 / phi, which has no log density below 0
    points = rng.normal(scale=0.5, size=(POINTS, 6))
    points[:, 0] += 2
    points[:, -1] = np.abs(points[:, -1]) + 0.1
    return _at_points(program, data, points, ("log_lik",))


def of_beta(program: str) -> dict[str, Any]:
    """The same of [C25]'s beta program, with M = 1.2: points are logit phi, log(lambda - 0.1)."""
    rng = np.random.default_rng(20252)
    data = {
        "n": N, "outcome": rng.beta(0.5, 3, N).clip(1e-6, 1).round(6).tolist(),
        "alpha": rng.uniform(0, 1, N).round(4).tolist(), "M": 1.2,
    }  # fmt: skip
    points = rng.normal(loc=(-1.5, 1.0), size=(POINTS, 2))
    return _at_points(program, data, points, ("log_lik_noM", "log_lik"))


def _at_points(
    program: str, data: dict[str, Any], points: Any, names: tuple[str, ...]
) -> dict[str, Any]:
    text = modern_arrays(Path(program).read_text("utf-8"))
    at = ProgramAtPoints(StanProgram(name="printed", text=text), data)
    quantities = at.quantities(points)
    return {
        "data": data, "points": points.tolist(), "log_density": at.log_density(points).tolist(),
        **{name: quantities[name].tolist() for name in names},
    }  # fmt: skip


if __name__ == "__main__":
    made = zip((of_script, of_program, of_beta), sys.argv[1:], strict=False)
    for make, path in made:
        numbers = make(path)
        name = make.__name__.removeprefix("of_")
        (FOLDER / f"{name}.json").write_text(json.dumps(numbers) + "\n")

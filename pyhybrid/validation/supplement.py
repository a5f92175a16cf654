"""The script and program that a supplement prints, from the user's own copy, beside ours.

The script is sourced by R as it is (`run_supplement` of the R package supplies what it leaves
undefined), on the log-likelihoods of a fit of ours; the printed program is run in the place of
the one in stan/published, and its log_lik is what the script reads then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws, Engine, StanProgram
from pyhybrid.engines.programs import declared_names, modern_arrays
from pyhybrid.models.families.published import PUBLISHED
from pyhybrid.privacy.bounds import lipschitz_bounds
from pyhybrid.privacy.weights import lipschitz_weights
from pyhybrid.rbridge import call_r
from pyhybrid.validation.comparison import ARITHMETIC, Row, compare

PART = "supplement"
_SIDES = ("printed", "ours")
_DRAWS = 200  # the script takes of order draws x records squared steps
_SETTINGS: tuple[dict[str, Any], ...] = (
    {"draw_quantile": 1.0, "scale": 1.0, "shift": 0.0},
    {"draw_quantile": 0.9, "scale": 0.8, "shift": 0.1},
)


def check_script(file: str | os.PathLike[str]) -> Path:
    """The path of a script that is there; InvalidInput for another."""
    path = Path(file)
    if not path.is_file():
        raise InvalidInput(
            f"supplement must be your copy of the printed R script: {path} is no file"
        )
    return path


def script_rows(
    file: Path, log_lik: FloatArray, weighted: FloatArray | None = None, of: str = ""
) -> Iterator[Row]:
    """The script's numbers and ours, 2 Delta first, from unweighted log-likelihoods (S, n), and the
    log_lik of a weighted fit, or else `log_lik` times the script's weights."""
    places = np.linspace(0, len(log_lik) - 1, min(_DRAWS, len(log_lik))).astype(int)
    log_lik = log_lik[places]
    weighted = None if weighted is None else weighted[places]
    given: dict[str, Any] = {} if weighted is None else {"log_lik_weighted": weighted}
    for how in _SETTINGS:
        theirs = call_r(
            "run_supplement", file=str(file), log_lik_unweighted=log_lik, **how, **given
        )
        alpha = lipschitz_weights(log_lik, scale=how["scale"], shift=how["shift"])
        after = alpha * log_lik if weighted is None else weighted
        plain = lipschitz_bounds(log_lik)
        bounds = lipschitz_bounds(after, draw_quantile=how["draw_quantile"])
        found = {
            "2 Delta_alpha,x": (2 * theirs["bound"], 2 * bounds.overall),
            "bounds by record, unweighted": (theirs["by_record"], plain.by_record),
            "weights": (theirs["weights"], alpha),
            "bounds by record, weighted": (
                theirs["by_record_weighted"], lipschitz_bounds(after).by_record,
            ),
        }  # fmt: skip
        said = ", ".join(f"{n} {how[k]:g}" for n, k in zip("cg", ("scale", "shift"), strict=True))
        part = f"{PART}: the script{of}, thresh {how['draw_quantile']:g}, {said}"
        for quantity, (printed, ours) in found.items():
            yield compare(
                part, quantity, printed, ours, tolerance=ARITHMETIC, to_largest=True, sides=_SIDES
            )


@dataclass(frozen=True, kw_only=True)
class PrintedEngine:
    """An engine that runs the user's printed text in the place of the published program."""

    engine: Engine
    program: StanProgram

    @property
    def name(self) -> str:
        """Name of the engine."""
        return self.engine.name

    def status(self) -> Any:
        """Status of the engine."""
        return self.engine.status()

    def sample(self, program: StanProgram, data: Mapping[str, Any], **how: Any) -> Draws:
        """Sample the printed text; data that it does not declare, as a cap, are left out."""
        known = declared_names(self.program, "data")
        return self.engine.sample(
            self.program, {k: v for k, v in data.items() if k in known}, **how
        )


def read_printed(path: str | os.PathLike[str]) -> tuple[str, StanProgram]:
    """Name of the published program that a printed one is, and its text, arrays as of today;
    InvalidInput for a file that cannot be read, or is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"program must be a readable Stan file: {path}: {reason}") from None
    program = StanProgram(name=Path(path).stem, text=modern_arrays(text))
    declared = {*declared_names(program, "data")} - {"M"}
    fitting = [name for name, data in PUBLISHED.items() if {*data} - {"M"} == declared]
    if "negative_binomial" in fitting:  # has the data of the Poisson program
        other = "poisson" if "phi" in text else "negative_binomial"
        fitting.remove(other)
    if not fitting:
        raise InvalidInput(
            "program must be one that the papers print, with their names of data, such as "
            f"{', '.join(PUBLISHED['negative_binomial'])}: found "
            f"{', '.join(sorted(declared)) or 'none'}"
        )
    return fitting[0], program

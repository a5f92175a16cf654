"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhybrid.models import MODELS

__all__ = [
    "COMPOSED",
    "MODEL_NAMES",
    "OWN_PROGRAM",
    "TWO_PART",
    "ZERO_INFLATED",
    "Accounting",
    "AdaptDelta",
    "Chains",
    "Data",
    "Delta",
    "Draws",
    "Engine",
    "FileFormat",
    "Formula",
    "HoldsNoReleasedRecord",
    "Model",
    "OnNotConverged",
    "OneDraw",
    "OptionalModel",
    "OptionalModels",
    "Overwrite",
    "Seed",
    "Warmup",
    "Workers",
]

TWO_PART, ZERO_INFLATED, OWN_PROGRAM, COMPOSED = "two_part", "zero_inflated", "stan", "composed"
MODEL_NAMES = (*MODELS, TWO_PART, ZERO_INFLATED, COMPOSED, OWN_PROGRAM)
"""What --model can name."""

_MODEL_HELP = (
    f"{', '.join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]}; with options as NAME:key=value,..., e.g. "
    "beta:lower=0,upper=100, bernoulli:levels=no+yes, two_part:positive=gamma, any with "
    "missing=model, or a Stan program of your own: composed:program=my.stan, or "
    "stan:program=my.stan,predict=y, which has local charges alone"
)
_CHOSEN = (
    "\\[default: negative_binomial for a column of counts, bernoulli, categorical or ordinal for "
    "levels; others must name one]"
)

Data = Annotated[Path, typer.Argument(help="Confidential records, .csv or .parquet.")]
Formula = Annotated[str, typer.Option(help="As in R, e.g. 'visits ~ age + region'.")]
Model = Annotated[str, typer.Option(help=_MODEL_HELP)]
ModelInShort = Annotated[
    str, typer.Option(help="As in `pyhybrid synthesize`: NAME or NAME:key=value,...")
]
OptionalModel = Annotated[str | None, typer.Option(help=f"{_MODEL_HELP} {_CHOSEN}")]
OptionalModels = Annotated[
    list[str] | None,
    typer.Option(help=f"{_MODEL_HELP}; once, or once per formula {_CHOSEN}"),
]
Accounting = Annotated[
    str | None,
    typer.Option(help="Accounting of epsilon: gaussian, range, lipschitz. \\[default: gaussian]"),
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="Below 1 / n: of Gaussian accounting \\[default: 1e-6], or of Gaussian noise in noisy "
        "marginals \\[default: none]."
    ),
]
OneDraw = Annotated[
    bool, typer.Option("--one-draw", help="Simulate all sets from one draw, at the cost of one.")
]
Engine = Annotated[str, typer.Option(help="auto, cmdstan, embedded or rstan.")]
Seed = Annotated[
    int | None,
    typer.Option(help="For tests and papers; a release seed must stay secret."),
]
Chains = Annotated[int | None, typer.Option(help="Number of chains. \\[default: 4]")]
Warmup = Annotated[int | None, typer.Option(help="Iterations per chain. \\[default: 1000]")]
Draws = Annotated[int | None, typer.Option(help="Iterations per chain. \\[default: 1000]")]
AdaptDelta = Annotated[float | None, typer.Option(help="Target acceptance rate. \\[default: 0.9]")]
OnNotConverged = Annotated[
    str, typer.Option(help="What to do with chains that do not converge: raise or warn.")
]
Workers = Annotated[int, typer.Option(help="Processes; the results do not depend on it.")]
FileFormat = Annotated[
    str | None, typer.Option("--format", help="csv or parquet. \\[default: that of DATA]")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds.")]
HoldsNoReleasedRecord = Annotated[
    bool,
    typer.Option(
        "--holds-no-released-record",
        help="Your word that the reference holds none of the records to be released; without it "
        "nothing is strict.",
    ),
]

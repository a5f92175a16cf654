"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Engine",
    "Model",
    "OptionalModel",
    "OptionalModels",
    "Overwrite",
    "Seed",
    "Workers",
]

Engine = Annotated[str, typer.Option(help="auto, cmdstan, embedded or rstan.")]
Seed = Annotated[
    int | None,
    typer.Option(help="For tests and papers; a release seed must stay secret."),
]
Workers = Annotated[int, typer.Option(help="Processes; the results do not depend on it.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out holds.")]


_MODEL_HELP = (
    "negative_binomial, poisson, beta, beta_regression, normal, mixture, bernoulli, "
    "categorical or stan; with options as NAME:key=value,..., e.g. beta:lower=0,upper=100, "
    "bernoulli:levels=no+yes, categorical:levels=bus+car+walk or "
    "stan:program=own.stan,predict=y_rep"
)
_CHOSEN = "[default: negative_binomial for a column of counts; others must name one]"
Model = Annotated[str, typer.Option(help=_MODEL_HELP)]


OptionalModels = Annotated[
    list[str] | None,
    typer.Option(help=f"{_MODEL_HELP}; once, or once per formula {_CHOSEN}"),
]
OptionalModel = Annotated[str | None, typer.Option(help=f"{_MODEL_HELP} {_CHOSEN}")]

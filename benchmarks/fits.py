"""(b) The demo's fits: collapsed against not collapsed, embedded against CmdStan where found."""

from __future__ import annotations

from typing import Any

import numpy as np
from statsmodels.datasets import randhie

import pyhybrid as ph
from benchmarks.measure import line
from pyhybrid.engines import SamplerSettings, engine_by_name

SHORT = SamplerSettings(chains=2, warmup=150, draws=100)


def run() -> None:
    """Negative binomial on the 20,190 outpatient visits, and on 2,000 with log_lik in Stan."""
    bound = ph.NegativeBinomial("mdvis ~ 1").bind(randhie.load_pandas().data)
    collapsed = bound.stan_data(np.ones(bound.n))
    whole = _not_collapsed(bound)
    print(f"(b) fits of the demo's data, {bound.n} records, {collapsed['n']} distinct rows")
    print(f"    2 chains x ({SHORT.warmup} + {SHORT.draws}) iterations, one seed")
    for name in ("embedded", "cmdstan"):
        engine = engine_by_name(name)
        status = engine.status()
        if not status.available:
            print(f"  {name}: skipped, {status.cause}")
            continue
        engine.sample(bound.program, collapsed, seed=1, settings=SHORT)  # compile once
        times = {}
        for label, data in (("collapsed", collapsed), ("not collapsed", whole)):
            draws = engine.sample(bound.program, data, seed=1, settings=SHORT)
            times[label] = draws.provenance.seconds
        line(f"{name}, collapsed", times["collapsed"])
        ratio = times["not collapsed"] / times["collapsed"]
        line(f"{name}, not collapsed", times["not collapsed"], f"ratio {ratio:,.0f}")


def _not_collapsed(bound: Any) -> dict[str, Any]:
    return bound.stan_data(np.ones(bound.n)) | {
        "n": bound.n,
        "y": bound.design.y.astype(int),
        "X": bound.design.X,
        "offsets": bound.design.offset,
        "frequency": np.ones(bound.n),
        "weights": np.ones(bound.n),
        "reference": np.zeros(bound.n),
        "unit": np.zeros(bound.n, dtype=int),
    }

"""`python -m benchmarks [NAME ...]`: run all benchmarks, or those named."""

from __future__ import annotations

import sys

from benchmarks import (
    bounds,
    coverage,
    everyday,
    fits,
    gauntlet,
    growth,
    guarantees,
    income_bounds,
    income_scale,
    large,
    limits,
    marginals,
    masking,
    measures,
    metrics,
    mixture,
    parallel,
    priors,
    published,
    published_bounds,
    reduce_sum,
    regressions,
    risks,
    rstan_packages,
    scale,
    second_fit,
    sizes,
    studies,
    study_c,
    study_d,
    study_e,
    study_f,
    survey,
    tables,
    tables_cart,
    weights,
)

BENCHMARKS = {
    "bounds": bounds.run,
    "coverage": coverage.run,
    "everyday": everyday.run,
    "fits": fits.run,
    "gauntlet": gauntlet.run,
    "growth": growth.run,
    "guarantees": guarantees.run,
    "income_bounds": income_bounds.run,
    "income_scale": income_scale.run,
    "large": large.run,
    "marginals": marginals.run,
    "limits": limits.run,
    "masking": masking.run,
    "measures": measures.run,
    "metrics": metrics.run,
    "mixture": mixture.run,
    "parallel": parallel.run,
    "priors": priors.run,
    "published": published.run,
    "published_bounds": published_bounds.run,
    "reduce_sum": reduce_sum.run,
    "regressions": regressions.run,
    "risks": risks.run,
    "rstan_packages": rstan_packages.run,
    "scale": scale.run,
    "second_fit": second_fit.run,
    "sizes": sizes.run,
    "studies": studies.run,
    "study_c": study_c.run,
    "study_d": study_d.run,
    "study_e": study_e.run,
    "study_f": study_f.run,
    "survey": survey.run,
    "tables": tables.run,
    "tables_cart": tables_cart.run,
    "weights": weights.run,
}


def main(names: list[str]) -> int:
    """Run benchmarks by name; all without names. The gauntlet takes options."""
    if names[:1] == ["gauntlet"]:
        return gauntlet.main(names[1:])
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"benchmarks are {', '.join(BENCHMARKS)}: found {unknown[0]}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

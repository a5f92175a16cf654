"""Which scale, shift and radius of CW bring study C's published differences [V25 sec. 2].

Counts as the study's, n = 1000; a negative binomial by maximum weighted likelihood in place of
chains, whose posterior means are within a tenth of it. For each triple the quantiles and means that
follow, less the data's, against centers of the published intervals less the data's; distances in
deviations between databases.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom

import pyhybrid as ph
from pyhybrid.studies.counts import mixture_counts

PUBLISHED = {"q15": 6.5, "q90": -4.75, "mean": 1.4, "median": 2.05}
SCALES, SHIFTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5), (-0.2, -0.1, 0, 0.05, 0.1, 0.15, 0.2, 0.3)
RADII = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35)
SHOWN = ((1.0, 0, 0.2), (1.0, 0.1, 0.2), (1.0, 0, 0.3))


def differences(y: np.ndarray, weights: np.ndarray) -> list[float]:
    """Quantiles, mean and median of the weighted fit less those of the data."""
    values, inverse = np.unique(y, return_inverse=True)
    total = np.bincount(inverse, weights)
    mean = float(total @ values / total.sum())

    def minus_log_lik(log_phi: float) -> float:
        phi = np.exp(log_phi)
        return float(-total @ nbinom.logpmf(values, phi, phi / (phi + mean)))

    phi = np.exp(minimize_scalar(minus_log_lik, bounds=(0, 6), method="bounded").x)
    at = nbinom(phi, phi / (phi + mean)).ppf
    fitted = (at(0.15), at(0.9), mean, at(0.5))
    return list(np.subtract(fitted, (np.quantile(y, 0.15), np.quantile(y, 0.9), y.mean(),
                                     np.median(y))))  # fmt: skip


def run(n_databases: int = 12) -> None:
    """Print the nearest triples, and those that the study and its notes name."""
    rng = np.random.default_rng(5)
    databases = [mixture_counts(1000, rng) for _ in range(n_databases)]
    risks = {radius: [ph.radius_risk(y, radius=radius) for y in databases] for radius in RADII}
    published, found = np.array(list(PUBLISHED.values())), []
    for scale, shift, radius in product(SCALES, SHIFTS, RADII):
        weights = [ph.count_weights(risk, scale=scale, shift=shift) for risk in risks[radius]]
        if min(each.sum() for each in weights) < 50:
            continue
        apart = np.array([differences(*each) for each in zip(databases, weights, strict=True)])
        deviation = np.maximum(apart.std(axis=0, ddof=1), 0.5)
        far = float(np.sqrt((((apart.mean(axis=0) - published) / deviation) ** 2).mean()))
        found.append((far, (scale, shift, radius), apart.mean(axis=0)))
    found.sort(key=lambda each: each[0])
    print(f"differences {', '.join(PUBLISHED)}; published {published}")
    for far, triple, means in [*found[:8], *(each for each in found if each[1] in SHOWN)]:
        print(f"  scale, shift, radius {triple}: {means.round(2)}, {far:.2f} deviations off")


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:]))

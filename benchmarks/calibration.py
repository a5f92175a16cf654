"""`python -m benchmarks.calibration [N] [MODEL ...]`: ranks of N simulated databases of each model.

Uniform ranks have chi-square p-values that are uniform, too, and an ECDF within its band; below
each model the same with the weights halved, which must be caught. About 5 CPU minutes at N = 1000
without the mixture, which takes a second per database.
"""

from __future__ import annotations

import sys
import time

from tests.models.simulation_based_calibration import MODELS, ranks, uniformity


def run(n_simulations: int = 1000, names: tuple[str, ...] = ()) -> bool:
    """Print a table; True if all ranks are uniform and all wrong programs are caught."""
    right = True
    print(f"{'model':20}{'quantity':22}{'p':>9}{'gap':>8}{'band':>8}   N = {n_simulations}")
    for name in names or tuple(MODELS):
        for wrong in (1.0, 0.5):
            started = time.process_time()
            found = ranks(MODELS[name], n_simulations=n_simulations, seed=2026, wrong=wrong)
            results = {quantity: uniformity(own) for quantity, own in found.items()}
            for quantity, own in results.items():
                line = f"{own.p_value:9.2g}{own.gap:8.3f}{own.band:8.3f}"
                print(f"{name:20}{quantity:22}{line}{'' if own.holds else '   not uniform'}")
            uniform = all(own.holds for own in results.values())
            right &= uniform == (wrong == 1.0)
            label = "right program" if wrong == 1.0 else "weights halved"
            verdict = "uniform" if uniform else "caught" if wrong != 1.0 else "NOT UNIFORM"
            print(f"  {label}: {verdict}, {time.process_time() - started:.0f} CPU s", flush=True)
    return right


if __name__ == "__main__":
    count, chosen = (int(sys.argv[1]) if len(sys.argv) > 1 else 1000), tuple(sys.argv[2:])
    sys.exit(0 if run(count, chosen) else 1)

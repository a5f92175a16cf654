"""One synthetic table by a mechanism of ours, as `with_python.py` makes one by a peer.

python -m benchmarks.peers.with_pyhybrid NAME CASE EPSILON SEED OUT.csv
"""

from __future__ import annotations

import json
import resource
import sys
import time

import pyhybrid as ph
from benchmarks.peers.tables import LARGEST, Case, cases

__all__ = ["BY_EPSILON", "OURS", "main"]

BY_EPSILON = ("pyhybrid-censored", "pyhybrid-marginals")
OURS = (*BY_EPSILON, "pyhybrid-lipschitz", "pyhybrid-unweighted")


def main() -> None:
    """Write the table, print one line of JSON."""
    name, case, epsilon, seed, out = sys.argv[1:]
    cpu = time.process_time()
    release = _release(name, cases()[case], float(epsilon), int(seed))  # noise takes no seed
    cpu = time.process_time() - cpu
    release.synthetic[0].to_csv(out, index=False)
    charge = release.charge
    print(json.dumps({
        "cpu_seconds": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "version": ph.__version__,
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "guarantee": f"{charge.kind}, {charge.relation}",
    }))  # fmt: skip


def _release(name: str, case: Case, epsilon: float, seed: int) -> ph.Release:
    if name == "pyhybrid-marginals":
        bins = tuple(float(edge) for edge in range(LARGEST + 2))
        mechanism = ph.NoisyMarginals(
            domain={case.outcome: ph.ColumnDomain(bins=bins, step=1)},
            given=case.predictors,
            epsilon=epsilon,
            most_bins=12,
            relation="remove",
        )
        return mechanism.release(case.released)
    model = ph.NegativeBinomial(case.formula)
    if name == "pyhybrid-censored":
        frozen = ph.calibrate(model, case.reference, epsilon=epsilon, seed=seed)
        return ph.Censored(calibration=frozen).release(case.released, seed=seed)
    make = ph.LipschitzWeighted if name == "pyhybrid-lipschitz" else ph.Unweighted
    return make(model).release(case.released, seed=seed)


if __name__ == "__main__":
    main()

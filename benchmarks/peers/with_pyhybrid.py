"""One synthetic table by a mechanism of ours, as `with_python.py` makes one by a peer.

python -m benchmarks.peers.with_pyhybrid NAME CASE EPSILON SEED OUT.csv
"""

from __future__ import annotations

import json
import resource
import sys
import time

import pyhybrid as ph
from benchmarks.peers.tables import LARGEST, NOMINAL, Case, cases
from pyhybrid.engines import SamplerSettings

__all__ = ["BY_EPSILON", "OURS", "WHOLE", "main"]

WHOLE = ("pyhybrid-table", "pyhybrid-table-one-by-one")
"""All columns are synthetic, from noisy marginals with Gaussian noise, as the peers have it. One by
one: the first of two sets from the mode, whose records are drawn each on its own."""
BY_EPSILON = (
    *WHOLE, "pyhybrid-censored", "pyhybrid-marginals", "pyhybrid-histogram", "pyhybrid-lipschitz",
)  # fmt: skip
_DELTA = 1e-6
OURS = (*BY_EPSILON, "pyhybrid-unweighted")
_SETTINGS = SamplerSettings(
    chains=2, warmup=300, draws=500
)  # of each fit of the search for a scale


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
    if name in (*WHOLE, "pyhybrid-marginals"):
        mechanism = _marginals(case, epsilon, whole=name in WHOLE)
        return mechanism.release(case.released, n_synthetic=2 if name == WHOLE[1] else 1)
    if name == "pyhybrid-histogram":
        drawn = ph.PerturbedHistogram(
            column=case.outcome, lower=0, upper=LARGEST, n_bins=LARGEST + 1, epsilon=epsilon,
            relation="remove",
        )  # fmt: skip
        return drawn.release(case.released)
    model = ph.NegativeBinomial(case.formula)
    if name == "pyhybrid-censored":
        frozen = ph.calibrate(
            model, case.reference, epsilon=epsilon, seed=seed, holds_no_released_record=True
        )
        return ph.Censored(calibration=frozen).release(case.released, seed=seed)
    if name == "pyhybrid-lipschitz":
        found = ph.mechanisms.meet_epsilon(
            ph.LipschitzWeighted(model), case.released, target_epsilon=epsilon, seed=seed,
            settings=_SETTINGS,
        )  # fmt: skip
        return found.mechanism.release_from(found.session, n_synthetic=1, n_draws_released=1)
    return ph.Unweighted(model).release(case.released, seed=seed)


def _marginals(case: Case, epsilon: float, *, whole: bool) -> ph.NoisyMarginals:
    """Of the outcome given the others, or of all columns, whose codes are public."""
    bins = tuple(float(edge) for edge in range(LARGEST + 2))
    domain = {case.outcome: ph.mechanisms.ColumnDomain(bins=bins, step=1)}
    codes = {
        name: ph.mechanisms.ColumnDomain(levels=case.codes[name], ordered=name not in NOMINAL)
        for name in case.predictors
    }
    return ph.NoisyMarginals(
        domain={**codes, **domain} if whole else domain,
        given=() if whole else case.predictors,
        epsilon=epsilon,
        delta=_DELTA if whole else None,
        most_bins="auto",
        relation="remove",
    )


if __name__ == "__main__":
    main()

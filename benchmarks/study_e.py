"""Study E [S22 sec. 5] on the February CE file: bounds over six pairs (c, g), timed.

`python -m benchmarks.study_e [RECORDS [COMPONENTS]]`: on a random part of the records, with fewer
components, by default 500 and 2; 0 and 5 are the whole study, an hour or more.
"""

from __future__ import annotations

import sys
import tempfile
import time

from benchmarks.measure import line
from benchmarks.mixture import FILE, incomes
from pyhybrid.studies import STUDIES, Size, run_study
from pyhybrid.studies.reproduction import reproduce


def run(n: int = 500, n_components: int = 2) -> None:
    """Print bounds beside the published ones, and whether their order is the same."""
    if incomes() is None:
        return
    study = STUDIES["E"]
    options = {**study.paper.options, "records": n, "components": n_components}
    print(f"Study E: {n or 'all'} records of the February CE file, K = {n_components}, log income")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        result = run_study(
            study,
            out=folder,
            size=Size(replicates=1, options=options),
            engine="embedded",
            data=FILE,
        )
        line("unweighted, six pairs, one scalar weight", time.perf_counter() - started)
    for label, message in result.failed.items():
        print(f"  {label} failed: {message}")
    for each in reproduce(study, result.summary):
        print(f"  {each.quantity}: published {each.published}, ours {each.ours}")


if __name__ == "__main__":
    run(*(int(value) for value in sys.argv[1:3]))

"""Studies A and B at the papers' size on two processes, timed."""

from __future__ import annotations

import tempfile
import time

from benchmarks.measure import line
from pyhybrid.studies import STUDIES, run_study


def run() -> None:
    """Print the time of each study."""
    print("Studies at the papers' size, 2 processes")
    for name in ("A", "B"):
        study = STUDIES[name]
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            run_study(study, out=folder, size="paper", engine="embedded", workers=2)
            databases = study.paper.replicates * len(study.settings)
            line(f"study {name}, {databases} databases", time.perf_counter() - started)

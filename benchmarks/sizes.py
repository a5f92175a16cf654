"""(c) n = 10^3 .. 10^6 counts released: time and peak memory, each in a process of its own."""

from __future__ import annotations

from benchmarks.measure import in_own_process, line

CODE = """
import numpy as np, pandas as pd, pyhybrid as ph
rng = np.random.default_rng(1)
table = pd.DataFrame({{"y": rng.negative_binomial(20, 20 / 120, {n})}})
release = ph.LipschitzWeighted(ph.NegativeBinomial("y ~ 1")).release(
    table, n_synthetic=1, seed=1, engine="embedded"
)
"""


def run() -> None:
    """One LipschitzWeighted release (two fits, one synthetic set) at each size."""
    print("(c) LipschitzWeighted release of n counts, import included")
    for n in (10**3, 10**4, 10**5, 10**6):
        seconds, megabytes = in_own_process(CODE.format(n=n))
        line(f"n = {n:>9,}", seconds, f"{megabytes:,.0f} MB at most")
    code = "import pyhybrid"
    bare, _ = in_own_process("pass")
    with_import, _ = in_own_process(code)
    line("import pyhybrid, beyond the interpreter's start", with_import - bare)

"""(n) Time and memory of a release against n, K and S: one figure each, slopes stated.

Each point is a release (two fits) or, for S, the bounds and weights of stored draws, in a process
of its own; CPU seconds and peak memory less those of the smallest point's imports are not taken
apart: small points show what Python costs. Writes growth.csv and growth_{n,K,S}.png.

    python -m benchmarks.growth [n] [K] [S]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
POINTS = {
    "n": (10**3, 10**4, 10**5, 10**6),
    "K": (1, 3, 10, 30, 100),
    "S": (200, 1000, 5000, 20_000),
}
_HEAD = """
import numpy as np, pandas as pd, pyhybrid as ph, resource
from pyhybrid.engines import SamplerSettings
rng = np.random.default_rng(1)
"""
CODE = {
    "n": """
table = pd.DataFrame({{"x": rng.integers(0, 5, {0}), "y": rng.negative_binomial(2, 0.4, {0})}})
mechanism = ph.LipschitzWeighted(ph.NegativeBinomial("y ~ x"), delta=1e-7)
mechanism.release(table, seed=1, engine="embedded")
""",
    "K": """
X = rng.normal(size=(1000, {0})).round(2)
table = pd.DataFrame(X, columns=[f"x{{k}}" for k in range({0})])
table["y"] = X @ rng.normal(size={0}) / {0} ** 0.5 + rng.normal(size=1000)
right = " + ".join(f"x{{k}}" for k in range({0}))
ph.LipschitzWeighted(ph.NormalRegression(f"y ~ {{right}}", prior="normal")).release(
    table, seed=1, engine="embedded", settings=SamplerSettings(warmup=300, draws=300))
""",
    "S": """
log_lik = -rng.exponential(size=({0}, 2000))
ph.lipschitz_weights(log_lik)
ph.lipschitz_bounds(log_lik)
ph.arrays.gaussian_limit(log_lik, np.ones(2000), chains=4)
""",
}
_TAIL = """
own = resource.getrusage(resource.RUSAGE_SELF)
print("GROWTH", own.ru_utime + own.ru_stime, own.ru_maxrss / 1024)
"""


def run(axes: tuple[str, ...] = tuple(POINTS)) -> None:
    """Measure, store, draw."""
    print("(n) CPU seconds and MB against n, K and S")
    found = pd.DataFrame([_point(axis, size) for axis in axes for size in POINTS[axis]])
    path = HERE / "growth.csv"
    if path.exists():
        found = pd.concat([pd.read_csv(path), found])
    found = found.drop_duplicates(["axis", "size"], keep="last")
    found.to_csv(path, index=False)
    for axis, part in found.groupby("axis"):
        _draw(str(axis), part)


def _point(axis: str, size: int) -> dict[str, object]:
    code = _HEAD + CODE[axis].format(size) + _TAIL
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, megabytes = (float(v) for v in done.stdout.split("GROWTH")[1].split())
    print(f"  {axis} = {size:>9,}{seconds:>10.2f} CPU s{megabytes:>10,.0f} MB", flush=True)
    return {"axis": axis, "size": size, "cpu_seconds": round(seconds, 2),
            "megabytes": round(megabytes)}  # fmt: skip


def _slope(size: pd.Series, value: pd.Series) -> float:
    """Of the last step, in logarithms: 1 is proportional."""
    last = np.log(size.to_numpy()[-2:]), np.log(value.to_numpy()[-2:])
    return float(np.diff(last[1])[0] / np.diff(last[0])[0])


def _draw(axis: str, part: pd.DataFrame) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    for place, (name, label) in enumerate([("cpu_seconds", "CPU s"), ("megabytes", "MB")]):
        panel = figure.add_subplot(1, 2, place + 1)
        panel.loglog(part["size"], part[name], marker="o")
        panel.set(xlabel=axis, ylabel=label)
        panel.set_title(f"slope at the end {_slope(part['size'], part[name]):.2f}")
    figure.savefig(HERE / f"growth_{axis}.png", dpi=110)


if __name__ == "__main__":
    run(tuple(name for name in sys.argv[1:] if name in POINTS) or tuple(POINTS))

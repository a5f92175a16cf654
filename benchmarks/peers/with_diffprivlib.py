"""diffprivlib's regressions, in its own environment: coefficients of several private fits.

    python with_diffprivlib.py DATA.npz OUT.npy KIND EPSILON DRAWS

DATA has X (n, K), without an intercept, and y (n,). Ranges, or the largest norm of X, are read off
the data and told to diffprivlib, so that it does not read them itself.
"""

import sys
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression

data, out, kind, epsilon, draws = sys.argv[1:]
warnings.simplefilter("ignore")
table, made = np.load(data), []
X, y = table["X"], table["y"]
for _ in range(int(draws)):
    if kind == "binomial":
        norm = float(np.sqrt((X**2).sum(axis=1)).max())
        fit = LogisticRegression(epsilon=float(epsilon), data_norm=norm, max_iter=500).fit(X, y)
        made.append(np.r_[fit.intercept_, fit.coef_[0]])
    else:
        ends = {"bounds_X": (X.min(axis=0), X.max(axis=0)), "bounds_y": (y.min(), y.max())}
        fit = LinearRegression(epsilon=float(epsilon), **ends).fit(X, y)
        made.append(np.r_[fit.intercept_, fit.coef_])
np.save(out, np.array(made))

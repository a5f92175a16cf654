"""The table and the formulas, for the stored matrices and for R itself."""

import numpy as np
import pandas as pd

FORMULAS = [
    "y ~ 1", "y ~ x", "y ~ 0 + x", "y ~ x - 1", "y ~ I(x^2)", "y ~ x + I(x^2) + I(x^3)",
    "y ~ I(x**2)", "y ~ I(2 * x^2 + z / 3 - 1)", "y ~ I(-x^2)", "y ~ I((x - z)^2)",
    "y ~ I(x * small)", "y ~ I(small - x)", "y ~ I(x > 40)", "y ~ I(x >= 40):z",
    "y ~ 0 + I(x > 40)", "y ~ I((x > 40) * z)", "y ~ I((x > 40) + (z > 2))", "y ~ I(g == 'b')",
    "y ~ I(member * 2)", "y ~ I(member + (x > 40))", "y ~ sqrt(z) + log(z) + log1p(z)",
    "y ~ log2(z) + exp(z / 10) + abs(x - 40)", "y ~ log10(x)", "y ~ log(x, 2)", "y ~ I(log(x)^2)",
    "y ~ I(scale(x)^2)", "y ~ g", "y ~ 0 + g", "y ~ h + g", "y ~ o", "y ~ member", "y ~ member + o",
    "y ~ factor(k)", "y ~ factor(k) * x", "y ~ factor(g, levels = c('c', 'a', 'b'))", "y ~ C(g)",
    "y ~ C(g, contr.sum)", "y ~ C(g, contr.helmert)", "y ~ C(g, contr.poly)", "y ~ factor(x > 40)",
    "y ~ x * g", "y ~ x:g", "y ~ x + x:g", "y ~ g * h", "y ~ g + g:h", "y ~ g / x",
    "y ~ o * member", "y ~ (x + z + g)^2", "y ~ (x + z + g)^2 - x:z", "y ~ x * z * g",
    "y ~ poly(x, 2)", "y ~ poly(x, 3)", "y ~ poly(x, 2, raw = TRUE)", "y ~ poly(log(z), 2) * g",
    "y ~ scale(x)", "y ~ scale(x, center = FALSE)", "y ~ scale(x, scale = FALSE)",
    "y ~ scale(x, center = 40, scale = 10)", "y ~ scale(log(z)) + g", "y ~ bs(x, df = 5)",
    "y ~ bs(x)", "y ~ bs(x, degree = 2, knots = c(30, 50))",
    "y ~ bs(x, knots = c(30, 50), Boundary.knots = c(10, 90))",
    "y ~ bs(x, df = 6, intercept = TRUE) - 1", "y ~ ns(x, 3)", "y ~ ns(x, df = 1)",
    "y ~ ns(x, knots = c(30, 50)) + g", "y ~ ns(x, knots = c(30, 50), Boundary.knots = c(25, 60))",
    "y ~ ns(x, df = 4, intercept = TRUE) - 1", "y ~ ns(x, 3):g", "y ~ cut(x, c(0, 30, 50, 100))",
    "y ~ `odd name` + log(`odd name` + 1)", "y ~ dotted.name + sqrt(dotted.name)", "y ~ offset(z)",
    "y ~ x + offset(log(z))", "y ~ g * x + offset(I(z^2 / 3))",
    "y ~ offset(log(z)) + h + offset(x / 10)", "y ~ 0 + h + offset(scale(x)) - 1",
    "y ~ x + offset(-member)", "y ~ offset(`odd name` * 2 + 1)",
]  # fmt: skip


def table() -> pd.DataFrame:
    """Sixty records with columns of every type that predictors can have."""
    rng = np.random.default_rng(5)
    n = 60
    x = rng.integers(18, 80, n)
    x[:2] = 18, 79
    ordered = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    return pd.DataFrame({
        "y": rng.poisson(4, n), "x": x, "small": rng.integers(0, 100, n).astype(np.uint8),
        "z": rng.gamma(2, 1.5, n).round(3), "g": pd.Categorical(rng.choice(["a", "b", "c"], n)),
        "h": rng.choice(["p", "q"], n),
        "o": pd.Series(rng.choice(["low", "middle", "high"], n)).astype(ordered),
        "k": rng.integers(1, 5, n), "member": rng.random(n) < 0.4,
        "odd name": rng.integers(0, 9, n), "dotted.name": rng.integers(0, 9, n),
    })  # fmt: skip

"""What rows of one person have in common."""

import numpy as np
import pandas as pd

from pyhybrid.reports.relations import intraclass_correlation


def test_the_intraclass_correlation_is_that_of_the_analysis_of_variance() -> None:
    """Two groups by hand, then simulated ones."""
    y, g = pd.Series([1.0, 3, 5, 7, np.nan]), pd.Series(["a", "a", "b", "b", "b"])
    between, within = 16.0, 2.0  # 2 * 4 + 2 * 4; 4 over 2
    assert intraclass_correlation(y, g) == (between - within) / (between + within)
    assert np.isnan(intraclass_correlation(y, pd.Series([*"abcde"])))
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(800), 4)
    value = pd.Series(rng.normal(0, 1, 800)[person] + rng.normal(0, 2, 3200))
    assert abs(intraclass_correlation(value, pd.Series(person)) - 0.2) < 5 * 0.02
    assert abs(intraclass_correlation(value, pd.Series(rng.permutation(person)))) < 5 * 0.012

"""Against `numpy.logaddexp`, at the ends of floating point, too."""

import numpy as np

from pyhybrid.models.families.regression import softplus


def test_both_signs_are_those_of_logaddexp() -> None:
    x = np.concatenate([np.linspace(-800, 800, 4001), [0.0, 1e-300, 1e300, np.inf, -np.inf]])
    above, below = softplus(x)
    np.testing.assert_allclose(above, np.logaddexp(0, x), rtol=1e-14)
    np.testing.assert_allclose(below, np.logaddexp(0, -x), rtol=1e-14)

"""Studies K and L: the mechanisms differ in what the question asks, and the databases drift."""

import numpy as np
import pandas as pd

from pyhybrid.core.randomness import streams
from pyhybrid.mechanisms import Censored, CountWeighted
from pyhybrid.models import Poisson
from pyhybrid.studies import STUDIES
from pyhybrid.studies.measuring import score_sets
from pyhybrid.studies.open_questions import _inside
from tests.studies.test_reproduction import NOTEBOOKS


def test_only_the_weights_within_the_censoring_differ() -> None:
    made = _inside(STUDIES["K"].settings[1], Poisson("y ~ 1"))
    assert len({(one.epsilon, one.relation) for one in made.values()}) == 1
    assert all(isinstance(one, Censored) for one in made.values())
    assert isinstance(made["Censor_cw"].inner, CountWeighted)


def test_who_meets_the_cap() -> None:
    """On the stored rows, which test_reproduction holds against today's; Censor_w has 0 or 100."""
    stored = pd.read_csv(NOTEBOOKS / "reproduction.csv").set_index("quantity")
    met = stored.loc["% of records at the cap"].set_index(["setting", "synthesizer"])["mean"]
    counts = STUDIES["K"].settings[1]
    assert met[counts, "Censor_cw"] < 5 < 20 < met[counts, "Censor_uw"]
    assert met["none", "clipped by movement"] < 5 < met["none", "clipped by size"]


def test_clipped_scores_of_a_study_repeat_with_its_seed() -> None:
    table = pd.DataFrame({"y": np.random.default_rng(4).poisson(100, 300)})
    once, again, other = (
        score_sets(Poisson("y ~ 1"), table, 7.0, streams(seed))[0].tolist() for seed in (4, 4, 5)
    )
    assert once == again != other

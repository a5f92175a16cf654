"""Studies K and L: the mechanisms differ in what the question asks, and the databases drift."""

import numpy as np
import pandas as pd
import pytest

from pyhybrid.core.randomness import streams
from pyhybrid.engines import resolve_engine
from pyhybrid.mechanisms import Censored, CountWeighted
from pyhybrid.models import Poisson
from pyhybrid.studies import STUDIES
from pyhybrid.studies.open_questions import _inside, measure_k, measure_l
from pyhybrid.studies.study import score_sets

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # chains are short
SHORT = {"engine": resolve_engine("embedded"), "warmup": 300, "draws": 300}


def test_only_the_weights_within_the_censoring_differ() -> None:
    made = _inside(STUDIES["K"].settings[1], Poisson("y ~ 1"))
    assert len({(one.epsilon, one.relation) for one in made.values()}) == 1
    assert all(isinstance(one, Censored) for one in made.values())
    assert isinstance(made["Censor_cw"].inner, CountWeighted)


@pytest.mark.samples
def test_under_count_weights_hardly_a_record_meets_the_cap() -> None:
    rows = pd.DataFrame(measure_k(STUDIES["K"].settings[1], streams(3), SHORT))
    met = rows[rows["quantity"] == "% of records at the cap"].set_index("synthesizer")["value"]
    assert met["Censor_cw"] < 5 < 20 < met["Censor_uw"], "of Censor_w it is 0 or 100"


def test_clipped_scores_of_a_study_repeat_with_its_seed() -> None:
    table = pd.DataFrame({"y": np.random.default_rng(4).poisson(100, 300)})
    once, again, other = (
        score_sets(Poisson("y ~ 1"), table, 7.0, streams(seed))[0].tolist() for seed in (4, 4, 5)
    )
    assert once == again != other


@pytest.mark.samples
def test_without_a_drift_few_records_meet_the_cap_by_movement() -> None:
    rows = pd.DataFrame(measure_l("none", streams(5), SHORT))
    met = rows[rows["quantity"] == "% of records at the cap"].set_index("synthesizer")["value"]
    assert met["clipped by movement"] < 5 < met["clipped by size"]

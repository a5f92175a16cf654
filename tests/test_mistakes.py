"""What newcomers try from Python, numbers that overflow and what fuzzers found end in one line that
says what to do; none of it samples.
"""

import pickle
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.masking import MaskedImputation
from pyhybrid.measures import utility_summary
from pyhybrid.releases.release import Release
from tests.refusals import fails, refuses

N = 60
RNG = np.random.default_rng(1)
DF = pd.DataFrame({"person": [f"p{k}" for k in range(N)], "visits": RNG.poisson(3, N)})
DF = DF.assign(age=RNG.integers(20, 60, N), sex=RNG.choice(["f", "m"], N), w=2.0)
MODEL, COUNTS = ph.Poisson("visits ~ age"), ph.Counts(upper=9)
LW = ph.LipschitzWeighted(MODEL)
LEDGER: Any = {"budget": 1, "kind": "strict", "relation": "replace"}
LOG_LIK = -RNG.gamma(2, 1, (100, 20))


def _released(formula: str, df: Any = DF) -> Any:
    return ph.LipschitzWeighted(ph.Poisson(formula)).release(df)


def _histogram(**changes: Any) -> ph.PerturbedHistogram:
    given = {"column": "visits", "lower": 0, "upper": 20, "n_bins": 5, "epsilon": 1, **changes}
    return ph.PerturbedHistogram(**given)


def _missing(column: str) -> pd.DataFrame:
    return DF.assign(**{column: DF[column].where(DF.index != 3)})


def _planted(value: float) -> pd.DataFrame:
    return DF.assign(visits=DF["visits"].astype(float).where(DF.index != 3, value))


LISTS = DF.assign(lists=[[k % 2] for k in range(N)])
GIVEN_LISTS = ph.NoisyMarginals(
    domain={"visits": ph.mechanisms.ColumnDomain(bins=(0, 1, 2, 99))}, given=["lists"], epsilon=1
)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    # names and formulas
    "outcome": (lambda: _released("visit ~ age"), r"did you mean 'visits'\?"),
    "predictor": (lambda: _released("visits ~ Age"), r"did you mean 'age'\?"),
    "no tilde": (lambda: _released("visits age"), "e.g. 'visits ~ age"),
    "two tildes": (lambda: _released("visits ~ age ~ sex"), "formula"),
    "equals sign": (lambda: _released("visits = age"), "e.g. 'visits ~ age"),
    "open bracket": (lambda: _released("visits ~ (age"), "a bracket is not closed"),
    "call of numpy": (lambda: _released("visits ~ np.log(age)"), r"did you mean 'log'\?"),
    "outcome on the right": (lambda: _released("visits ~ visits"), "not be among the predictors"),
    "identifier": (lambda: _released("visits ~ person"), "each of the 60 has a level of its own"),
    # tables
    "path": (lambda: LW.release("survey.csv"), r"pd\.read_csv"),
    "dict": (lambda: LW.release({"visits": [1]}), r"pd\.DataFrame\(data\)"),
    "array": (lambda: LW.release(DF.to_numpy()), r"pd\.DataFrame\(data, columns="),
    "series": (lambda: LW.release(DF["visits"]), r"to_frame\(\)"),
    "no rows": (lambda: LW.release(DF[:0]), "must have rows"),
    "column twice": (lambda: LW.release(pd.concat([DF, DF[["age"]]], axis=1)), "occurs more than"),
    "strings": (lambda: LW.release(DF.astype(str)), r"pd\.to_numeric"),
    "text outcome": (lambda: _released("sex ~ age"), "take a model of levels"),
    "missing outcome": (lambda: LW.release(_missing("visits")), r"row 3.*missing=True"),
    "missing predictor": (lambda: LW.release(_missing("age")), r"is\.na\(age\).*ClippedScores"),
    "infinite predictor": (lambda: LW.release(DF.assign(age=DF["age"] / 0)), "must be finite"),
    "negative count": (lambda: LW.release(DF.assign(visits=DF["visits"] - 9)), "count >= 0"),
    # mechanisms and models
    "model's class": (lambda: ph.LipschitzWeighted(ph.Poisson), r"ph\.Poisson\('y ~ x'\)"),
    "formula for model": (lambda: ph.LipschitzWeighted("y ~ x"), r"ph\.Poisson\('y ~ x'\)"),
    "names in compare": (lambda: ph.compare(["lipschitz"], DF), r"\{'LW': ph\.Lipschitz"),
    "neither cap nor epsilon": (lambda: ph.Censored(MODEL), r"ph\.Censored\(model, epsilon=1\)"),
    "calibration's path": (lambda: ph.Censored(calibration="c"), r"mechanisms\.Calibration\.load"),
    "calibrate swapped": (lambda: ph.calibrate(DF, MODEL, epsilon=1), "must come first"),
    "calibrate without": (lambda: ph.calibrate(MODEL, DF), r"ph\.calibrate\(model, last_year"),
    "settings as dict": (lambda: LW.release(DF, settings={"draws": 9}), r"SamplerSettings\("),
    "one draw": (lambda: SamplerSettings(draws=1), "draws must be a whole number >= 4"),
    "one chain": (lambda: SamplerSettings(chains=1), "chains must be a whole number >= 2"),
    "half a set": (lambda: LW.release(DF, n_synthetic=2.5), "n_synthetic must be a whole number"),
    "engine": (lambda: LW.release(DF, engine="Embedded"), r"did you mean 'embedded'\?"),
    "accounting": (lambda: ph.LipschitzWeighted(MODEL, accounting="gausian"), "'gaussian'"),
    "unit": (lambda: ph.Unweighted(MODEL, unit="persn").release(DF), r"did you mean 'person'\?"),
    "design": (lambda: ph.Unweighted(MODEL, design="weight").release(DF), "weights 'weight'"),
    "raw weights": (lambda: ph.Unweighted(MODEL, design="w").release(DF), r"members .* \(N / n\)"),
    # epsilon
    "epsilon as text": (lambda: _histogram(epsilon="1"), "epsilon must be a finite number"),
    "epsilon 0": (lambda: _histogram(epsilon=0), "epsilon must be above 0"),
    "epsilon negative": (lambda: ph.Censored(MODEL, epsilon=-1), "epsilon must be above 0"),
    "epsilon in a list": (lambda: _histogram(epsilon=[1]), "epsilon must be a finite number"),
    "no bounds": (lambda: ph.PerturbedHistogram(column="visits", epsilon=1), "give them"),
    "histogram's column": (lambda: _histogram(column="visit").release(DF), "did you mean 'visits'"),
    # arrays
    "too few weights": (lambda: ph.lipschitz_bounds(LOG_LIK, [0.5, 1]), "must have 20 elements"),
    "weights above 1": (lambda: ph.lipschitz_bounds(LOG_LIK, np.full(20, 2)), r"lie in \[0, 1\]"),
    "one draw's log_lik": (lambda: ph.lipschitz_weights(LOG_LIK[0]), r"shape \(S draws, n"),
    "chains' axis": (lambda: ph.lipschitz_weights(LOG_LIK.reshape(4, 25, 20)), r"shape \(S draws"),
    # whole tables, measures, files
    "types": (lambda: ph.synthesize_table(DF, epsilon=1, types=dict.fromkeys(("visit", 1), COUNTS)),
              r"did you mean 'visits'\?"),
    "a table without types": (lambda: ph.synthesize_table(DF, epsilon=1), r"give types="),
    "release for sets": (lambda: utility_summary(DF, _release()), r"release\.synthetic"),
    "ledger takes no number": (lambda: ph.Ledger("l", **LEDGER).add(0.5), "give the whole Release"),
    "key of a mask": (lambda: MaskedImputation(keys=["agee"]).release(DF), r"did you mean 'age'\?"),
    "masks": (lambda: MaskedImputation(keys=["age"], masks=None).release(DF), "masks must be a m"),
    "types of masks": (lambda: MaskedImputation(keys=["age"], types=None).release(DF),
                       "types must be a mapping by"),
    "lists as keys": (lambda: ph.measures.matching_risk(LISTS, LISTS, keys=["lists", "age"]),
                      "'lists' must hold numbers"),
    "lists given": (lambda: GIVEN_LISTS.release(LISTS),
                    "'lists' must hold texts, logicals, categories or numbers"),
    # numbers that overflow
    "1e300 as a count": (lambda: MODEL.bind(_planted(1e300)), "at most 2147483647"),
    "2^31 as a count": (lambda: MODEL.bind(_planted(2.0**31)), "at most 2147483647"),
    "a denormal count": (lambda: MODEL.bind(_planted(5e-324)), "a whole number"),
    "a real": (lambda: ph.NormalRegression("visits ~ 1").bind(_planted(1e300)), "in size"),
    "a predictor": (lambda: ph.Poisson("age ~ visits").bind(_planted(1e300)), "enough to square"),
    "bins": (lambda: _histogram(upper=1e300), "at most 9007199254740992 steps"),
    "a range": (lambda: _histogram(lower=-1e308, upper=1e308), "upper - lower must be finite"),
    "a sum": (lambda: ph.primitives.laplace_sum([1.0], lower=-1.7e308, upper=1.7e308, epsilon=1),
              "upper - lower must be finite"),
    "bounds": (lambda: ph.Beta("y ~ 1", lower=-1e308, upper=1e308), "lower must be finite"),
}  # fmt: skip


def _release() -> Release:
    return _histogram().release(DF)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_that_says_what_to_do(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, said = MISTAKES[name]
    with pytest.raises(InvalidInput, match=said) as raised:
        call()
    assert "\n" not in str(raised.value)
    own = [f for f in traceback.extract_tb(raised.tb) if "/pyhybrid/" in f.filename]
    assert len(own) <= 10, "not deeper than needed"


def test_unknown_names_and_attributes_say_the_right_call(tmp_path: Any) -> None:
    release = _release()
    for owner, name, said in (
        (ph, "LipschitzWeigthed", r"did you mean 'LipschitzWeighted'\?"),
        (ph, "synthesize", r"ph\.LipschitzWeighted\(.*\)\.release\(df\)"),
    ):
        fails(AttributeError, said, getattr, owner, name)
        assert not hasattr(owner, "no_such_thing")
    release.save(tmp_path / "out", drop=["person"])
    refuses("overwrite=True", release.save, tmp_path / "out", drop=["person"])
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL

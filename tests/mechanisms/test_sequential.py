"""Several columns in sequence: what is read, what is drawn, what it costs, what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, NotConverged
from pyhybrid.engines import ConvergenceRule, SamplerSettings
from pyhybrid.mechanisms import sequential
from pyhybrid.models.families.regression import BoundRegression
from pyhybrid.releases.column_decisions import Decisions
from pyhybrid.releases.statement import not_covered
from tests.fuzzing.engine import RANDOM_DRAWS
from tests.refusals import fails, refuses

SHORT = SamplerSettings(chains=4, warmup=300, draws=400)
FIRST, SECOND = ph.Poisson("a ~ x"), ph.Poisson("b ~ a + x")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """b is about exp(0.3 a) and depends on x through a only."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, 400)
    a = rng.poisson(np.where(x == 1, 4.0, 2.0))
    b = rng.poisson(np.exp(0.3 * a))
    return pd.DataFrame({"b": b, "keep": rng.normal(size=400).round(2), "x": x, "a": a})


@pytest.fixture(scope="module")
def released(table: pd.DataFrame) -> ph.Release:
    steps = [ph.LipschitzWeighted(FIRST), ph.Unweighted(SECOND)]
    return ph.SequentialSynthesis(steps).release(table, n_synthetic=3, seed=5, engine="embedded",
                                                 settings=SHORT)  # fmt: skip


@pytest.mark.samples
def test_all_columns_are_replaced_and_others_kept(
    released: ph.Release, table: pd.DataFrame
) -> None:
    for synthetic in released.synthetic:
        assert list(synthetic.columns) == list(table.columns)
        pd.testing.assert_frame_equal(synthetic[["keep", "x"]], table[["keep", "x"]])
        assert (synthetic["a"] != table["a"]).any()
        assert (synthetic["b"] != table["b"]).any()
        assert synthetic.dtypes.equals(table.dtypes)
    assert released.synthesized == ("a", "b")
    assert released.predictors == ("x",)


@pytest.mark.samples
def test_later_columns_read_the_synthetic_earlier_ones(
    released: ph.Release, table: pd.DataFrame
) -> None:
    """Given the synthetic a, the true a tells nothing of the synthetic b: partial correlations."""
    for synthetic in released.synthetic:
        assert np.corrcoef(synthetic["a"], synthetic["b"])[0, 1] > 0.4
        residual = synthetic["b"] - np.exp(0.3 * synthetic["a"])
        scaled = residual / np.exp(0.15 * synthetic["a"])
        within = [np.corrcoef(scaled[table["x"] == x], table["a"][table["x"] == x])[0, 1]
                  for x in (0, 1)]  # fmt: skip
        assert np.abs(within).max() < 5 / np.sqrt(180)


@pytest.mark.samples
def test_epsilons_and_bounds_add(released: ph.Release) -> None:
    first, second = (part.charge for part in released.parts)
    whole = released.charge
    for accounting in ("range", "lipschitz"):
        parts = [each.epsilon_by(accounting) for each in (first, second)]
        assert whole.epsilon_by(accounting) == pytest.approx(sum(parts), abs=0.0201)
    assert (whole.accounting, whole.delta) == ("lipschitz", 0.0)
    assert whole.mu == pytest.approx(np.sqrt(3) * np.hypot(first.mu, second.mu))  # of 3 draws
    assert whole.epsilon_by("gaussian", delta=1e-6) <= sum(
        each.epsilon_by("gaussian", delta=1e-6) for each in (first, second)
    )
    assert whole.epsilon_published == pytest.approx(
        first.epsilon_published + second.epsilon_published
    )
    assert whole.mechanism == "SequentialSynthesis"
    left_open = [s for s in not_covered(whole) if s.startswith("Columns other than")]
    assert left_open == ["Columns other than a, b, if there are any, are published unchanged."]
    assert "Step 1: a by LipschitzWeighted" in released.statement
    assert f"epsilon = {second.epsilon:g}" in released.statement


@pytest.mark.samples
def test_saved_and_loaded(released: ph.Release, tmp_path: Path) -> None:
    released.save(tmp_path / "out", report=False)
    loaded = ph.Release.load(tmp_path / "out")
    assert loaded.charge == released.charge
    assert [part.charge for part in loaded.parts] == [part.charge for part in released.parts]
    alpha, kept = (own.parts[0].confidential.alpha for own in (loaded, released))
    np.testing.assert_array_equal(alpha, kept)
    pd.testing.assert_frame_equal(loaded.synthetic[2], released.synthetic[2])
    assert loaded.statement == released.statement
    step = tmp_path / "out" / "confidential" / "step_2"
    assert step.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in step.iterdir()} == {0o600}
    assert sorted(p.name for p in (tmp_path / "out" / "public").iterdir()) == [
        "charge.json", "metadata.json", "privacy_statement.md", "schema.json", "synthetic_1.csv",
        "synthetic_2.csv", "synthetic_3.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(("steps", "message"), [
    ([], "at least one mechanism"), ([FIRST], "step 1 must be a mechanism"),
    ([ph.Unweighted(SECOND), ph.Unweighted(FIRST)], "must not read 'a', which is synthesized"),
    ([ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("a ~ 1"))], "'a' is in steps 1 and 2"),
    ([ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("c ~ 1"))], "step 2: outcome 'c'"),
    ([ph.Unweighted(FIRST), ph.Unweighted(SECOND, relation="replace")], "one relation"),
    ([ph.Unweighted(FIRST), ph.Censored(SECOND, epsilon=5, inner=ph.Unweighted(SECOND))],
        "step 2 is strict, step 1 is not"),
    ([ph.Censored(own, epsilon=5, inner=ph.Unweighted(own)) for own in (FIRST, SECOND)],
        "step 2 must have a normal prior"),
])  # fmt: skip
def test_what_is_refused(steps: list[Any], message: str, table: pd.DataFrame) -> None:
    refuses(message, lambda: ph.SequentialSynthesis(steps).release(table, engine="embedded"))


@pytest.mark.samples
def test_predictors_that_a_synthetic_value_does_not_fit(table: pd.DataFrame) -> None:
    """log(a) exists for the data without zeros; a synthetic 0 has none."""
    positive = table[table["a"] > 0].reset_index(drop=True)
    steps = [ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("b ~ log(a)"))]
    with pytest.raises(InvalidInput, match="must be finite"):
        ph.SequentialSynthesis(steps).release(positive, seed=1, engine="embedded", settings=SHORT,
                                              n_synthetic=4)  # fmt: skip
    coded = [ph.Unweighted(FIRST), ph.Unweighted(ph.Poisson("b ~ C(few)"))]
    few = table.assign(few=table["a"].clip(upper=1), a=table["a"].clip(upper=1))
    release = ph.SequentialSynthesis([coded[0], coded[1]]).release(few, seed=1, engine="embedded",
                                                                   settings=SHORT)  # fmt: skip
    assert release.synthesized == ("a", "b")
    coded[1] = ph.Unweighted(ph.Poisson("b ~ C(a)"))
    with pytest.raises(InvalidInput, match="must have one of its levels"):
        ph.SequentialSynthesis(coded).release(few, seed=1, engine="embedded", settings=SHORT)


@pytest.mark.samples
def test_no_step_sees_true_values_of_later_columns(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[pd.DataFrame] = []
    replicate = BoundRegression.replicate

    def watched(self: Any, draws: Any, draw: int, rng: Any, given: Any = None) -> pd.DataFrame:
        seen.append(given)
        return replicate(self, draws, draw, rng, given)

    monkeypatch.setattr(BoundRegression, "replicate", watched)
    release = ph.SequentialSynthesis([ph.Unweighted(FIRST), ph.Unweighted(SECOND)]).release(
        table, n_synthetic=2, seed=1, engine="embedded", settings=SHORT
    )
    assert all("b" not in given.columns for given in seen[:2])
    for given, released in zip(seen[2:], release.synthetic, strict=True):
        pd.testing.assert_series_equal(given["a"], released["a"])
        assert not given["a"].equals(table["a"])
    for released in release.synthetic:
        assert list(released.columns) == list(table.columns)
        assert released.index.equals(table.index)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.samples
def test_from_the_command_line(table: pd.DataFrame, tmp_path: Path, run: Any, refused: Any) -> None:
    table.to_csv(tmp_path / "d.csv", index=False)
    common = ("synthesize", "d.csv", "--model", "poisson", "--fit",
              "engine=embedded,seed=3,warmup=300,draws=400,on_not_converged=warn",
              "--formula", "a ~ x", "--formula", "b ~ a + x")  # fmt: skip
    code, shown, _ = run(*common, "--mechanism", "lipschitz", "--n-synthetic", "2", "--out", "out")
    assert code == 0
    assert "all columns" in shown
    loaded = ph.Release.load(tmp_path / "out")
    assert [part.charge.mechanism for part in loaded.parts] == ["LipschitzWeighted"] * 2
    names = {path.name for path in (tmp_path / "out" / "confidential").iterdir()}
    assert {"report.html", "report_step_1.html", "report_step_2.html"} <= names
    three = ["--mechanism", "unweighted"] * 3
    assert "once per --formula: found 3 for 2" in refused(*common, *three, "--out", "other")
    unlike = ["--mechanism", "censored:epsilon=4,inner=unweighted", "--mechanism", "unweighted"]
    assert "allow_unlike=True states the" in refused(*common, *unlike, "--out", "other")


def test_a_pattern_that_is_synthesized_later_is_refused(table: pd.DataFrame) -> None:
    """Its true values would make weights of a step that the release of it does not pay for."""
    steps = [ph.CountWeighted(FIRST, pattern=("b",)), ph.Unweighted(SECOND)]
    with pytest.raises(InvalidInput, match="step 1 must not take 'b' as pattern, which is synth"):
        ph.SequentialSynthesis(steps).release(table, engine="embedded", settings=SHORT)
    inside = [ph.Truncated(FIRST, cap=3, inner=steps[0]), steps[1]]
    with pytest.raises(InvalidInput, match="step 1 must not take 'b' as pattern"):
        ph.SequentialSynthesis(inside).release(table, engine="embedded", settings=SHORT)


HISTOGRAM = ph.PerturbedHistogram(column="a", lower=0, upper=30, n_bins=31, epsilon=50.0,
                                  relation="remove")  # fmt: skip
CENSORED = ph.Censored(
    ph.Poisson("b ~ a", prior="normal"), epsilon=1.5, center={"beta": [0.0, 0.3]},
    inner=ph.Unweighted(ph.Poisson("b ~ a", prior="normal")), check_modes=False,
)  # fmt: skip


@pytest.mark.samples
def test_a_histogram_may_stand_before_a_model_that_reads_its_column(table: pd.DataFrame) -> None:
    steps = [HISTOGRAM, CENSORED]
    release = ph.SequentialSynthesis(steps).release(
        table, seed=5, engine="embedded", settings=SHORT, on_not_converged="warn"
    )
    assert (release.charge.kind, release.charge.epsilon) == ("strict", 51.5)
    assert [part.charge.epsilon for part in release.parts] == [50.0, 1.5]
    made = release.synthetic[0]
    assert abs(made["a"].mean() - table["a"].mean()) < 5 * table["a"].std() * np.sqrt(2 / 400)
    assert np.corrcoef(made["a"], made["b"])[0, 1] > 0.4
    assert "Step 1: a by PerturbedHistogram" in release.statement


@pytest.mark.samples
def test_what_did_not_converge_makes_the_whole_local_and_is_named(table: pd.DataFrame) -> None:
    """Not an error after all fits; with a histogram, which is strict by itself."""
    steps, hard = [HISTOGRAM, CENSORED], ConvergenceRule(ess_per_chain=1e6)  # no chains meet it
    settings = replace(SHORT, warmup=100, draws=100, max_draws=100)
    options: dict[str, Any] = {"seed": 5, "engine": "embedded", "settings": settings}
    sequence = ph.SequentialSynthesis(steps)
    lost = "asymptotic local, not strict: chains of b did not converge"
    with pytest.warns(UserWarning, match=lost), pytest.warns(UserWarning, match="fit did not"):
        release = sequence.release(table, rule=hard, on_not_converged="warn", **options)
    assert release.charge.kind == "asymptotic local"
    assert [part.charge.kind for part in release.parts] == ["strict", "asymptotic local"]
    fails(NotConverged, "", sequence.release, table, rule=hard, **options)


def test_a_sequence_of_histograms_needs_no_engine(table: pd.DataFrame, tmp_path: Path) -> None:
    second = replace(HISTOGRAM, column="b", upper=400, n_bins=20)
    release = ph.SequentialSynthesis([HISTOGRAM, second]).release(table, engine="embedded")
    assert release.synthesized == ("a", "b")
    release.save(tmp_path / "out", report=False)
    assert ph.Release.load(tmp_path / "out").charge.epsilon == 100.0


def test_a_histogram_of_another_relation_is_refused() -> None:
    with pytest.raises(InvalidInput, match="one relation: found remove and replace"):
        ph.SequentialSynthesis([replace(HISTOGRAM, relation="replace"), CENSORED])


@pytest.mark.samples
def test_columns_fitted_in_two_processes_are_those_fitted_in_one(table: pd.DataFrame) -> None:
    both = ph.SequentialSynthesis([ph.LipschitzWeighted(FIRST), ph.Unweighted(SECOND)])
    options: dict[str, Any] = {"seed": 5, "engine": "embedded", "settings": SHORT}
    made = [both.release(table, **options, workers=workers) for workers in (1, 2)]
    pd.testing.assert_frame_equal(made[0].synthetic[0], made[1].synthetic[0])
    assert made[0].charge == made[1].charge


@pytest.mark.long
def test_the_error_of_a_column_fitted_apart_comes_back(table: pd.DataFrame) -> None:
    own = {"delta": 0.5, "accounting": "gaussian"}
    steps = [ph.Unweighted(FIRST, **own), ph.Unweighted(SECOND, **own)]
    with pytest.raises(InvalidInput, match="delta must"):
        ph.SequentialSynthesis(steps).release(table, engine="embedded", settings=SHORT, workers=2)


def _levels(dtype: Any) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {"g": pd.Series(rng.choice(["a", "b"], 60)).astype(dtype), "y": rng.poisson(2, 60)}
    )


_HISTOGRAMS = {
    "g": ph.PerturbedHistogram(column="g", levels=("a", "b", "c"), epsilon=1, relation="remove"),
    "x": ph.PerturbedHistogram(column="x", lower=0, upper=4, n_bins=4, epsilon=1,
                               relation="remove"),
}  # fmt: skip


def _strict_after(formula: str, table: pd.DataFrame, **options: Any) -> ph.Release:
    own = ph.Poisson(formula, prior="normal")
    last = ph.Censored(own, epsilon=1, inner=ph.Unweighted(own), check_modes=False)
    before = [step for name, step in _HISTOGRAMS.items() if name in formula]
    return ph.SequentialSynthesis([*before, last]).release(table, **options)


_READS_LEVELS = [
    "factor(x)", "factor(0 + x)", "factor(abs(x))", "C(1 * x)", "factor(3 < x)", "C(x)",
    "z:factor(x)", "z + z:C(x, contr.sum)", "factor(-x)", "factor(log1p(x))",
    "factor( 0+`x`)", "factor(z + x)", "factor(g)", "z:factor(g)",
]  # fmt: skip


def _with_numbers() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return _levels("object").assign(x=rng.integers(0, 4, 60), z=rng.normal(size=60))


@pytest.mark.parametrize("term", _READS_LEVELS)
def test_levels_of_a_synthesized_predictor_are_declared_under_a_strict_charge(term: str) -> None:
    """Read from its true values they depend on all records, and no step pays for them."""
    refuses(r"levels of '\w' must be declared: step", _strict_after, f"y ~ {term}", _with_numbers())


@pytest.mark.parametrize(
    "term", ["scale(x)", "poly(x, 2)", "ns(z + x, df=4)", "bs(z * x, df=5)", "cut(x, 3)"]
)
def test_means_knots_and_ranges_of_a_predictor_make_a_step_not_strict(term: str) -> None:
    with pytest.raises(InvalidInput, match="charges must be of one kind: step 1 is strict, step 2"):
        _strict_after(f"y ~ {term}", _with_numbers())


@pytest.mark.samples
@pytest.mark.parametrize(
    "term",
    ["x", "I(x > 2)", "I(3 < x)", "factor(x, levels=c(0, 1, 2, 3, 4))",
     "scale(x, center=2, scale=1)", "g", "C(g)", "x:g", "I(g == 'a')"],
)  # fmt: skip
def test_declared_levels_and_constants_are_strict(term: str) -> None:
    """Text has the levels that its own step declares, the third of which no record has."""
    settings = replace(SHORT, warmup=100, draws=50, max_draws=50)
    release = _strict_after(
        f"y ~ {term}", _with_numbers(), seed=1, engine="embedded", settings=settings,
        rule=ConvergenceRule(rhat=9, ess_per_chain=1, divergent_share=1),
    )  # fmt: skip
    assert release.charge.kind == "strict"
    assert set(release.synthetic[0]["g"]) <= {"a", "b", "c"}


def test_categories_are_no_declaration_of_a_predictors_levels() -> None:
    """`astype("category")` takes them from the records: those of the predictor's step are taken."""
    seen = []
    for table in (_levels("category"), _levels(pd.CategoricalDtype(["b", "a", "z"]))):
        own = ph.Poisson("y ~ g", prior="normal")
        steps = [_HISTOGRAMS["g"], ph.Censored(own, epsilon=1, inner=ph.Unweighted(own))]
        bounds = [step.bind(table) if place == 0 else step.model.bind(table)
                  for place, step in enumerate(steps)]  # fmt: skip
        declared = sequential._declared_levels(steps[0], table)
        bound = sequential._with_levels_declared(steps[1], bounds, 2, declared, table)
        seen.append(bound.design_columns)
        assert bounds[1].design_columns != bound.design_columns, "the control"
    assert seen == [("Intercept", "g[T.b]", "g[T.c]")] * 2


@pytest.mark.parametrize("calibrated", [False, True])
def test_a_declared_level_that_no_record_has_changes_no_step(calibrated: bool) -> None:
    """Seen: codes with one text among them were levels, and numbers, or refused, without it; a
    calibration that knows the text was refused, too, and so was a rule that the last record met.
    The controls: the model alone, and a calibration of other levels, refused for both."""
    own, one = ph.Poisson("y ~ g", prior="normal"), np.ones(59)
    tables = [
        _levels("object").assign(g=[1, 2] * 29 + [2, last], y=np.append(one, last == "x"))
        for last in (1, "x")
    ]
    frozen = [
        ph.Censored(check_modes=False, calibration=ph.calibrate(
            own, tables[0].assign(g=pd.Categorical(["1", "2"] * 30, levels)), epsilon=1,
            holds_no_released_record=True, **RANDOM_DRAWS))
        for levels in (["1", "2", "x"], ["1", "2"])
    ]  # fmt: skip
    last_step = ph.Censored(own, epsilon=1, inner=ph.Unweighted(own), check_modes=False)
    first = replace(_HISTOGRAMS["g"], levels=("1", "2", "x"))
    steps = [first, frozen[0] if calibrated else last_step]
    for table in tables:
        made = ph.SequentialSynthesis(steps).release(table, **RANDOM_DRAWS)
        assert made.charge.kind == "strict"
        session = made.origin.steps[1].session  # type: ignore[union-attr]
        assert session.bound.design_columns == ("Intercept", "g[T.2]", "g[T.x]")
        with pytest.raises(InvalidInput, match="'g' must be those of the calibration of step 2"):
            ph.SequentialSynthesis([first, frozen[1]]).release(table, **RANDOM_DRAWS)
    assert own.bind(tables[0]).design_columns == ("Intercept", "g")


@pytest.mark.parametrize(("first", "other"), [
    (ph.Poisson("x ~ 1", prior="normal"), "1"), (ph.Bernoulli("x ~ 1", levels=(False, True)), 1),
])  # fmt: skip
def test_an_entry_that_its_own_step_reads_is_refused_by_no_later_one(
    first: Any, other: Any
) -> None:
    """The control: the model of the later step alone."""
    own, known = ph.Poisson("y ~ x", prior="normal"), getattr(first, "levels", (0, 1))
    steps = [ph.Censored(m, epsilon=1, inner=ph.Unweighted(m), check_modes=False)
             for m in (first, own)]  # fmt: skip
    tables = [pd.DataFrame({"x": [*known * 9, x], "y": range(19)}) for x in (known[1], other)]
    sets = [ph.SequentialSynthesis(steps).release(table, seed=1, **RANDOM_DRAWS).synthetic[0]
            for table in tables]  # fmt: skip
    pd.testing.assert_frame_equal(*sets)
    refuses("predictor 'x' must be numbers, text, logicals or cat", own.bind, tables[1])


@pytest.mark.samples
def test_columns_that_shaped_a_release_and_are_left_out_are_named(table: pd.DataFrame) -> None:
    """A predictor reads true values: the statement says so where they are not shown."""
    steps = [ph.Unweighted(ph.Poisson("a ~ x")), ph.Unweighted(ph.Poisson("b ~ keep"))]
    release = ph.SequentialSynthesis(steps).release(
        table, seed=1, engine="embedded", settings=SHORT
    )
    assert release.predictors == ("x", "keep")
    assert "and may disclose them" not in release.statement
    hidden = release.with_decisions(Decisions.of(drop=["keep", "x"]))
    assert "True values of keep, x: the released table does not hold them" in hidden.statement

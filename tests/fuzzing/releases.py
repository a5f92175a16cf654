"""Releases: every mechanism with every model on any table, and sequences of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.core.errors import PyhybridError
from pyhybrid.engines import ConvergenceRule
from pyhybrid.models import MODELS, NegativeBinomial, Poisson, TwoPart, WithMissing, ZeroInflated
from tests.fuzzing.engine import RandomDraws
from tests.fuzzing.outcomes import attempted, nothing_partial, scratch_folder
from tests.fuzzing.tables import OFTEN, Recipe, formulas, recipes

SETTINGS = ph.engines.SamplerSettings(chains=2, warmup=1, draws=8)
RULE = ConvergenceRule(rhat=10.0, ess_per_chain=0.1, divergent_share=1.0)
WRONG: list[Any] = [0, -1, 1e-300, 1e300, float("nan"), float("inf"), None, "1", True, [1], 2.5]


def _mostly(*right: Any) -> st.SearchStrategy[Any]:
    """One of the values that are right, three times in four."""
    return st.sampled_from([*right * (3 * len(WRONG) // len(right)), *WRONG])


_number = _mostly(0.5, 1.0, 0.1, 2.0)
_share = _mostly(0.5, 0.9, 1.0)
_models = {
    "negative_binomial": {},
    "poisson": {},
    "bernoulli": {"levels": st.sampled_from([None, (0, 1), ("a", "b"), (1,), "ab", 3])},
    "beta_binomial": {"lower": _mostly(0, 1), "upper": _mostly(1, 300)},
    "categorical": {"levels": st.sampled_from([None, (0, 1), ("a", "b", "c"), (1,), "ab", 3])},
    "ordinal": {"levels": st.sampled_from([None, (0, 1), ("a", "b", "c"), (1,), "ab", 3])},
    "beta": {"lower": _mostly(0, -1e6), "upper": _mostly(1, 1e9), "edge": _mostly(1e-10, 1e-3)},
    "beta_regression": {"lower": _mostly(0, -10), "upper": _mostly(1, 300)},
    "normal": {
        "transform": st.sampled_from(["identity", "log", "signed_log", "asinh", "sqrt", 1]),
        "unit": _number, "min_sd": _number,
    },
    "mixture": {
        "n_components": _mostly(1, 2, 5), "unit": _number,
        "transform": st.sampled_from(["identity", "log", "asinh"]),
    },
    "gamma": {"lower": _mostly(0, 0.5), "upper": _mostly(300, 1e6), "unit": _number},
    "lognormal": {"lower": _mostly(0, 0.5), "upper": _mostly(300, 1e6), "decimals": _mostly(0, 2)},
    "two_part": {}, "zero_inflated": {}, "with_missing": {},
}  # fmt: skip
_BUILT: dict[str, Any] = {
    **MODELS, "two_part": TwoPart.of_formula,
    "zero_inflated": lambda formula: ZeroInflated(NegativeBinomial(formula)),
    "with_missing": lambda formula: WithMissing(Poisson(formula)),
}  # fmt: skip
_step = ph.mechanisms.Reweighting
_shared = {
    "draw_quantile": _share, "relation": _mostly("remove", "replace"),
    "safety_factor": _mostly(1, 1.05),
    "reweighting": _mostly(True, False, _step(k=0.9, recursive=False), _step.published(k=0.9)),
}  # fmt: skip
_map = {"scale": _number, "shift": _mostly(0.0, -0.2)}
MECHANISMS: dict[str, dict[str, Any]] = {
    "Unweighted": {},
    "BudgetWeighted": {"epsilon": _number, "n_draws": _mostly(1, 2)},
    "LipschitzWeighted": {
        **_map, "threshold": _number,
        "transform": st.sampled_from(
            ["linear", "reciprocal", "threshold", "logistic", "softmax", "cubic"]
        ),
    },
    "CountWeighted": {
        **_map, "radius": _number, "kind": st.sampled_from(["relative", "absolute", "both"]),
        "pattern": st.sampled_from([(), ("x",), ("x", "g"), ("y",), "x", ("nothing",), (1,), None]),
        "pairwise": st.booleans(),
    },
    "ScalarWeighted": {"target_epsilon": _number, "target_bound": _number},
    "Truncated": {"cap": _number, "epsilon": _number},
    "Censored": {"cap": _number, "epsilon": _number, "check_modes": st.booleans()},
    "GivenWeights": {"alpha": st.one_of(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=6), st.sampled_from(WRONG)
    )},
}  # fmt: skip
_COUNTS = (
    "negative_binomial", "poisson", "normal", "mixture", "two_part", "zero_inflated",
    "with_missing",
)  # fmt: skip
_UNIT = ("beta", "beta_regression", "normal", "mixture")
_FITTING = {
    **dict.fromkeys(("counts", "skewed counts", "int8", "uint8", "nullable counts",
                     "whole floats"), _COUNTS),
    "zeros and ones": (*_COUNTS, "bernoulli", "categorical", "ordinal"),
    **dict.fromkeys(("float32", "unit interval", "unit interval with its ends"), _UNIT),
    **dict.fromkeys(("normal", "skewed"), ("normal", "mixture")),
}  # fmt: skip
_NEEDS = {
    "BudgetWeighted": {"epsilon": 1e9}, "ScalarWeighted": {"target_epsilon": 4.0},
    "Truncated": {"epsilon": 6.0}, "Censored": {"epsilon": 4.0, "check_modes": False},
    "GivenWeights": {"alpha": [1.0, 0.5]},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReleaseCase:
    """One call of `.release` and `.save`."""

    recipe: Recipe
    mechanism: str
    options: dict[str, Any]
    model: str
    model_options: dict[str, Any]
    formula: str
    arguments: dict[str, Any]
    spread: float
    file_format: str

    def built(self) -> Any:
        """The mechanism; errors as its constructor raises them."""
        model: Any = _BUILT[self.model]
        return getattr(ph, self.mechanism)(
            model(self.formula, **self.model_options), **self.options
        )


def _some(draw: Any, known: dict[str, Any], most: int) -> dict[str, Any]:
    """Values for some of the options."""
    chosen = (
        draw(st.lists(st.sampled_from(sorted(known)), unique=True, max_size=most)) if known else []
    )
    return {name: draw(known[name]) for name in chosen}


@st.composite
def release_cases(draw: Any, mechanism: str, *, plain: bool = False) -> ReleaseCase:
    """Cases of one mechanism: half of them with nothing wrong but the table and the formula."""
    calm = plain or draw(OFTEN)
    options = {} if calm else _some(draw, {**MECHANISMS[mechanism], **_shared}, 3)
    if calm or mechanism == "GivenWeights" or draw(OFTEN):
        options = {**_NEEDS.get(mechanism, {}), **options}
    arguments = {} if calm else _some(draw, _ARGUMENTS, 2)
    recipe = draw(recipes(plain=plain))
    fitting = _FITTING.get(recipe.kinds[0], ()) if calm and recipe.kinds else ()
    model = draw(st.sampled_from(fitting or sorted(_models)))
    if mechanism == "GivenWeights" and calm:
        options = {"alpha": np.linspace(0.2, 1, max(1, recipe.n)).tolist()}
    return ReleaseCase(
        recipe=recipe, mechanism=mechanism, options=options, model=model,
        model_options={} if calm else _some(draw, _models[model], 2),
        formula=draw(st.sampled_from(["y ~ 1", "y ~ x"]) if plain else formulas()),
        arguments={"n_synthetic": draw(st.integers(1, 3)), **arguments},
        spread=draw(st.sampled_from([0.3, 0.3, 3.0, 300.0])),
        file_format=draw(st.sampled_from(["csv", "parquet"])),
    )  # fmt: skip


_ARGUMENTS = {
    "n_synthetic": _mostly(1, 2, 17), "n_draws_released": _mostly(1, 2), "seed": _mostly(1, 2**70),
    "on_not_converged": _mostly("raise", "warn"),
}  # fmt: skip


def check_release_case(
    case: ReleaseCase, *, engine: Any = None, settings: Any = SETTINGS, rule: Any = RULE
) -> bool:
    """Release and save; True if there was a release. Anything but a typed error is raised."""
    df = case.recipe.table()
    before = df.copy(deep=True)
    options = {"engine": engine or RandomDraws(case.spread), "settings": settings, "rule": rule}
    release = attempted(lambda: case.built().release(df, **{**options, **case.arguments}))
    pd.testing.assert_frame_equal(df, before)
    return _valid(release, df, case.file_format)


def _valid(release: Any, df: pd.DataFrame, file_format: str) -> bool:
    """Whether it is a release, checked and saved, and not an error."""
    if isinstance(release, PyhybridError):
        return False
    check_release(release, df)
    check_saved(release, file_format)
    return True


@st.composite
def counted_cases(draw: Any) -> ReleaseCase:
    """Cases of what is fitted to distinct rows, or refused there."""
    mechanism = draw(st.sampled_from(["Unweighted", "BudgetWeighted", "Censored"]))
    case: ReleaseCase = draw(release_cases(mechanism, plain=draw(OFTEN)))
    return case


def check_counted_case(case: ReleaseCase) -> bool:
    """As `check_release_case`, of Parquet in parts: as many rows; an error leaves nothing."""
    df = case.recipe.table()
    with scratch_folder() as folder:
        (folder / "rows").mkdir()
        try:
            df.to_parquet(folder / "rows" / "part.parquet", index=False)
        except Exception:  # no such file to begin with
            return False
        options = {"engine": RandomDraws(case.spread), "settings": SETTINGS, "rule": RULE}

        def call() -> Any:
            built = case.built()
            if isinstance(built, ph.Censored):
                built = replace(built, inner=ph.Unweighted(built.model))
            return ph.sources.synthesize_by_formula(
                str(folder / "rows"), built, out=folder / "out", rows_per_part=5,
                file_format=case.file_format, **{**options, **case.arguments},
            )  # fmt: skip

        release = attempted(call)
        if isinstance(release, PyhybridError):
            assert [path.name for path in folder.iterdir()] == ["rows"]
            return False
        nothing_partial(folder)
        assert np.isfinite(release.charge.epsilon)
        assert str(release.entropy) not in release.statement + repr(release)
        others = [name for name in release.sample(1) if name not in release.synthesized]
        for place in range(1, release.charge.n_synthetic + 1):
            made = release.sample(10**6, synthetic=place)
            assert len(made) == len(df) == release.n_records
            assert made[[*release.synthesized]].notna().all(axis=None)
            if others and case.file_format == "parquet":
                counts = (own.groupby(others, dropna=False).size() for own in (made, df))
                assert sorted(next(counts)) == sorted(next(counts))
        return True


def check_form(release: ph.Release, df: pd.DataFrame) -> None:
    """m tables in the form of the data, less the columns that were decided to go; only synthesized
    and numbered columns changed; a finite charge."""
    assert len(release.synthetic) == release.charge.n_synthetic
    left = [column not in release.decisions.drop for column in map(str, df.columns)]
    changed = {*release.synthesized, *release.decisions.ids}
    for table in release.synthetic:
        expected = df.loc[:, left]
        assert list(table.columns) == list(expected.columns)
        same = [column not in changed for column in map(str, expected.columns)]
        pd.testing.assert_frame_equal(table.loc[:, same], expected.loc[:, same])
    assert np.isfinite(release.charge.epsilon)
    assert "epsilon" in release.statement


def check_release(release: ph.Release, df: pd.DataFrame) -> None:
    """The form, values that are finite or missing as in the data, and no seed told."""
    check_form(release, df)
    for table in release.synthetic:
        numbers = [c for c in release.synthesized if pd.api.types.is_numeric_dtype(df[c])]
        for column in numbers:
            values = table[column].to_numpy(dtype=float)
            may_miss = df[column].isna().any() or "WithMissing" in str(release.settings)
            assert (np.isfinite(values) | (may_miss & np.isnan(values))).all()
    assert release.charge.epsilon >= 0
    if release.confidential.entropy > 10**6:
        assert str(release.confidential.entropy) not in release.statement + repr(release)


def check_saved(release: ph.Release | ph.masking.MaskedRelease, file_format: str) -> None:
    """Saved whole, and read again; or a typed error with nothing left."""
    with scratch_folder() as folder:
        out = folder / "out"
        own: dict[str, Any] = {}
        if isinstance(release, ph.masking.MaskedRelease):
            own["keep"] = [str(c) for c in release.synthetic[0] if str(c) not in release.keys]
        error = attempted(lambda: release.save(out, file_format=file_format, report=False, **own))
        nothing_partial(folder)
        if isinstance(error, PyhybridError):
            assert list(folder.iterdir()) == []
            return
        again = type(release).load(out)
        assert len(again.synthetic) == len(release.synthetic)
        if isinstance(again, ph.Release):
            assert again.charge == release.charge
            assert again.synthetic[0].shape == release.synthetic[0].shape


@st.composite
def sequences(draw: Any) -> tuple[ReleaseCase, ...]:
    """Two or three mechanisms; the formulas of the later ones read the earlier columns."""
    if draw(OFTEN):
        return _sound_sequence(draw)
    first = draw(release_cases("LipschitzWeighted", plain=draw(st.booleans())))
    steps = [first]
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(["Unweighted", "CountWeighted", "Censored"]))
        step = draw(release_cases(name, plain=True))
        formula = draw(st.sampled_from(["x ~ y", "x ~ 1", "g ~ y + x", "x ~ g", "y ~ 1", "g ~ 1"]))
        steps.append(replace(step, formula=formula))
    return tuple(steps)


def _sound_sequence(draw: Any) -> tuple[ReleaseCase, ...]:
    """Counts given categories, then numbers given counts, of a table that both models take."""
    kinds = (
        draw(st.sampled_from(["counts", "nullable counts", "arrow integers", "uint8"])),
        draw(st.sampled_from(["normal", "float32", "counts", "whole floats"])),
        draw(st.sampled_from(["text", "ordered category", "bool", "string dtype", "category"])),
    )
    recipe = replace(draw(recipes(sizes=(20, 24))), kinds=kinds, names=("y", "x", "g"), poison=())
    first = replace(
        draw(release_cases(draw(st.sampled_from(["LipschitzWeighted", "Unweighted"])), plain=True)),
        recipe=recipe, model=draw(st.sampled_from(["poisson", "negative_binomial"])),
        formula=draw(st.sampled_from(["y ~ 1", "y ~ g"])),
    )  # fmt: skip
    second = replace(
        draw(release_cases(draw(st.sampled_from(["CountWeighted", "Unweighted"])), plain=True)),
        model="normal", formula=draw(st.sampled_from(["x ~ y", "x ~ y + g", "x ~ 1"])),
    )  # fmt: skip
    return first, second


def check_sequence(cases: tuple[ReleaseCase, ...]) -> bool:
    """As `check_release_case`, of a sequential synthesis."""
    df, first = cases[0].recipe.table(), cases[0]
    options = {"engine": RandomDraws(first.spread), "settings": SETTINGS, "rule": RULE}

    def call() -> ph.Release:
        steps = [case.built() for case in cases]
        whole = ph.SequentialSynthesis(steps, allow_unlike=True)
        return whole.release(df, **{**options, **first.arguments})

    return _valid(attempted(call), df, first.file_format)


@st.composite
def histograms(draw: Any) -> tuple[Recipe, dict[str, Any], dict[str, Any]]:
    """A table, a perturbed histogram's parameters, and arguments of its release."""
    parameters = {
        "column": draw(_mostly("y", "y", "y", "x", "nothing")),
        "lower": draw(_mostly(0, 0, -(10**6), 0.5)), "upper": draw(_mostly(300, 300, 10**6, 1)),
        "n_bins": draw(_mostly(2, 7, 10**4)), "epsilon": draw(_number),
    }  # fmt: skip
    arguments = {} if draw(OFTEN) else _some(draw, _ARGUMENTS, 1)
    return draw(recipes()), parameters, arguments


def check_histogram(case: tuple[Recipe, dict[str, Any], dict[str, Any]]) -> bool:
    """As `check_release_case`, of a perturbed histogram."""
    recipe, parameters, arguments = case
    df = recipe.table()
    arguments = {k: v for k, v in arguments.items() if k != "on_not_converged"}
    release = attempted(lambda: ph.PerturbedHistogram(**parameters).release(df, **arguments))
    return _valid(release, df, "csv")

"""Whole tables at one charge: what comes back, what it costs, what is refused."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput, SamplingError
from pyhybrid.mechanisms.accounting.charge import OWNERS_WORD
from pyhybrid.models.composite.steps import designs_of
from pyhybrid.privacy.composition import rho_of_strict
from pyhybrid.tables import steps
from pyhybrid.tables.plan import Plan
from pyhybrid.tables.table_spec import in_form_of_data, working_table
from tests.fits import fit_options
from tests.refusals import fails, refuses
from tests.tables.conftest import TYPES, survey_of

SHORT = fit_options(chains=2, warmup=150, draws=200, on_not_converged="warn")
pytestmark = pytest.mark.usefixtures("opendp")


@pytest.fixture(scope="module")
def released(survey: pd.DataFrame, reference: pd.DataFrame) -> Iterator[Any]:
    table = ph.Table(
        survey, sensitive=["voted", "visits", "region"], id="person", drop=["name"], types=TYPES,
        rules=["region == 'east' -> voted == 'no'"], order=["region", "voted", "visits"],
    )  # fmt: skip
    plan = table.plan()
    plan = plan.with_column("region", model="perturbed_histogram",
                            options={"levels": TYPES["region"].levels})  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short chains
        yield ph.synthesize_table(plan, epsilon=60, reference=reference, seed=7,
                                  holds_no_released_record=True, **SHORT)  # fmt: skip


def test_the_table_comes_back_with_its_form(released: Any, survey: pd.DataFrame) -> None:
    (made,) = released.synthetic
    own = survey.drop(columns="name")
    assert list(made.columns) == list(own.columns)
    assert made.index.equals(own.index)
    forms = {"voted": "category", "region": "category", "visits": "int64"}  # as declared
    assert {name: str(made[name].dtype) for name in forms} == forms
    pd.testing.assert_frame_equal(made[["age", "sex", "wage"]], own[["age", "sex", "wage"]])
    assert set(made["person"]) == set(range(1, 301))
    for name in ("voted", "visits", "region"):
        assert (made[name] != own[name]).any()


def test_one_charge_and_parts_for_the_record(released: Any, tmp_path: Path) -> None:
    assert released.charge.epsilon == 60
    assert [part.charge.epsilon for part in released.parts] == [20.0] * 3
    assert released.synthesized == ("region", "voted", "visits")
    released.save(tmp_path / "out", report=False)
    assert ph.Release.load(tmp_path / "out").charge.epsilon == 60


def test_what_columns_tell_of_each_other_is_kept(released: Any, survey: pd.DataFrame) -> None:
    """visits rise with age, in the data by a rank correlation of about .5."""
    (made,) = released.synthetic
    assert survey["visits"].corr(survey["age"], method="spearman") > 0.4
    assert made["visits"].corr(made["age"], method="spearman") > 0.4 - 5 / np.sqrt(300)


def test_structural_zeros_hold_in_every_row(released: Any, survey: pd.DataFrame) -> None:
    (made,) = released.synthetic
    assert (made["voted"][made["region"] == "east"] == "no").all()
    assert (survey["voted"][survey["region"] == "east"] == "yes").any(), "the control"


def histograms(survey: pd.DataFrame, **changes: Any) -> Any:
    """A plan without engines: wage and income from noisy counts."""
    types = {name: TYPES[name] for name in ("wage", "income")}
    table = ph.Table(survey[["age", "wage", "income"]], sensitive=["wage", "income"], types=types,
                     **changes)  # fmt: skip
    plan = table.plan()
    for name, upper in (("wage", 160), ("income", 400)):
        bins = {"lower": 0, "upper": upper, "n_bins": 8}
        plan = plan.with_column(name, model="perturbed_histogram", options=bins)
    return plan


def test_a_reference_needs_its_owners_word(survey: pd.DataFrame, reference: pd.DataFrame) -> None:
    """Of centers and tables, of types, and of calibrations; the message says what to write."""
    said = {"holds_no_released_record": True}
    word = r"confirmation of the reference that .* come from: .*--holds-no-released-record"
    own = survey[["age", "region"]]
    of_types = ph.Table(own, sensitive=["region"], reference=reference)
    declared = ph.Table(own, sensitive=["region"], types={"region": TYPES["region"]})
    for mechanism in ("censored", "marginals"):
        for table, options in ((of_types, {}), (declared, {"reference": reference})):
            with pytest.raises(InvalidInput, match=word):
                ph.synthesize_table(table.plan(), epsilon=1, mechanism=mechanism, **options)
    plan = replace(of_types, **said).plan()
    kept = plan.as_dict()
    again = Plan.from_dict(kept, own)
    assert again.table.holds_no_released_record
    for each in (plan, again):
        made = ph.synthesize_table(each, epsilon=1, mechanism="marginals")
        assert made.charge.kind == "strict"
    del kept["holds_no_released_record"], kept["of_reference"]  # as version 0.2 stored it
    refuses(word, ph.synthesize_table, Plan.from_dict(kept, own), epsilon=1, mechanism="marginals")
    told = ph.synthesize_table(declared.plan(), epsilon=1, mechanism="marginals",
                               reference=reference, **said)  # fmt: skip
    assert OWNERS_WORD in told.charge.assumes


def test_rules_are_met_by_drawing_again(survey: pd.DataFrame) -> None:
    free = ph.synthesize_table(histograms(survey), epsilon=8).synthetic[0]
    assert (free["wage"] > free["income"]).any(), "the control: without the rule"
    ruled = ph.synthesize_table(histograms(survey, rules=["wage <= income"]), epsilon=8)
    made = ruled.synthetic[0]
    assert (made["wage"] <= made["income"]).all()
    assert ruled.charge.epsilon == 8


@pytest.mark.long
def test_a_rule_that_the_model_cannot_meet_is_named(survey: pd.DataFrame) -> None:
    """Two in three rows have an age at which no wage in the range meets the rule."""
    table = ph.Table(
        survey[["age", "wage"]], sensitive=["wage"], types={"wage": TYPES["wage"]},
        rules=["wage > age * 3"],
    )  # fmt: skip
    range_ = {"lower": 0, "upper": 160, "n_bins": 2}
    plan = table.plan().with_column("wage", model="perturbed_histogram", options=range_)
    said = r"rule 'wage > age \* 3' cannot be met: the model of wage"
    fails(SamplingError, said, ph.synthesize_table, plan, epsilon=1)


def test_histograms_need_an_epsilon(survey: pd.DataFrame) -> None:
    with pytest.raises(InvalidInput, match="epsilon must be given: wage, income come from noisy"):
        ph.synthesize_table(histograms(survey), mechanism="unweighted")


def test_a_strict_charge_needs_declared_types_and_a_center(
    survey: pd.DataFrame, reference: pd.DataFrame
) -> None:
    table = ph.Table(survey, sensitive=["voted", "visits"], id="person", drop=["name"])
    said = r"needs types .*: those of voted, visits come from the con"
    refuses(said, ph.synthesize_table, table.plan(), epsilon=1)
    declared = ph.Table(
        survey, sensitive=["voted"], id="person", drop=["name"], types={"voted": TYPES["voted"]}
    ).plan()
    refuses("epsilon must be given to mechanism 'censored'", ph.synthesize_table, declared)
    with pytest.raises(InvalidInput, match="calibration must have the column 'voted'"):
        ph.synthesize_table(declared, epsilon=1, calibration={})
    with pytest.raises(InvalidInput, match="reference must have the plan's columns: 'sex'"):
        ph.tables.calibrate_table(declared, reference.drop(columns="sex"), epsilon=1)


def test_columns_that_look_like_names_need_a_decision(survey: pd.DataFrame) -> None:
    plan = ph.Table(survey, sensitive=["voted"], types={"voted": TYPES["voted"]}).plan()
    refuses("'person': it looks like an identifier", ph.synthesize_table, plan, epsilon=1)


SMALL = {name: TYPES[name] for name in ("voted", "region")}


def small(survey: pd.DataFrame, **changes: Any) -> Any:
    return ph.Table(survey[["age", "voted", "region"]], sensitive=list(SMALL), types=SMALL,
                    **changes)  # fmt: skip


def test_marginals_go_by_the_plan_at_one_price_for_all_sets(survey: pd.DataFrame) -> None:
    release = ph.synthesize_table(small(survey).plan(), epsilon=5, mechanism="marginals",
                                  n_synthetic=3)  # fmt: skip
    assert (release.charge.epsilon, release.charge.kind) == (5, "strict")
    assert release.charge.relation == "remove"
    assert len(release.synthetic) == 3
    assert release.synthesized == ("voted", "region")
    private = ph.synthesize_table(small(survey).plan(), epsilon=5, mechanism="marginals",
                                  select="private", delta=1e-6)  # fmt: skip
    chosen = private.settings["chosen"]
    assert set(chosen["region"]) <= {"age", "voted"}
    assert chosen["voted"] or chosen["region"]
    assert (private.charge.epsilon, private.charge.delta) == (5, 1e-6)
    with pytest.raises(InvalidInput, match="select is read by mechanism 'marginals' only"):
        ph.synthesize_table(small(survey).plan(), epsilon=5, select="private")
    ruled = small(survey, rules=["region == 'east' -> voted == 'no'"]).plan()
    refuses("draw by no rule", ph.synthesize_table, ruled, epsilon=5, mechanism="marginals")
    numbers = ph.Table(survey[["age", "wage"]], sensitive=["wage"],
                       types={"wage": ph.Real(unit=10, decimals=1)})  # fmt: skip
    with pytest.raises(InvalidInput, match="'wage' must have a range for noisy marginals"):
        ph.synthesize_table(numbers.plan(), epsilon=5, mechanism="marginals")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_centers_are_bought_where_there_is_no_reference(survey: pd.DataFrame) -> None:
    """Epsilon of the whole is split between the noisy tables and the columns, and all is stated."""

    def of(epsilon: float, **options: Any) -> ph.Release:
        return ph.synthesize_table(
            small(survey).plan(), epsilon=epsilon, n_synthetic=3, seed=3, **options, **SHORT
        )

    release = of(80, center_share=0.25)
    assert (release.charge.kind, release.charge.epsilon) == ("strict", 80)  # of rounded shares
    once, rho = (rho_of_strict(c.public()) for c in (release.parts[0].charge, release.charge))
    assert once == pytest.approx(20**2 / 2), "measured once for 3 draws"
    assert rho >= (20**2 / 2 + 2 * 3 * (30 / 3) ** 2 / 8) * (1 - 1e-6)
    assert [part.charge.epsilon for part in release.parts] == pytest.approx([20, 30, 30])
    assert release.parts[0].charge.mechanism == "NoisyMarginals"
    assert "centers of clipping come from noisy two-way tables" in release.statement
    release.check_seal()
    with pytest.raises(InvalidInput, match="center_share must lie"):
        of(8, center_share=1.5)
    few = of(0.4)
    assert (few.charge.kind, few.charge.epsilon) == ("strict", 0.4)
    few.check_seal()


def test_columns_may_come_from_noisy_marginals_before_the_models(
    survey: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen by hand, or as their share of epsilon is too small for chains; all others are given
    them, and a rule that no model draws by is refused before anything is read."""
    order = ["region", "voted", "visits"]
    table = ph.Table(
        survey[["age", *order]], sensitive=order, order=order, types={n: TYPES[n] for n in order},
        rules=["visits > 3 -> voted == 'yes'"],
    )  # fmt: skip
    plan = table.plan().with_column("visits", model="noisy_marginals")
    assert [column.name for column in plan.columns] == ["visits", "region", "voted"]
    assert "visits" in plan["voted"].predictors
    assert Plan.from_dict(plan.as_dict(), table.df).columns == plan.columns
    written = table.plan().as_dict()
    written["columns"][-1] |= {"model": "noisy_marginals", "options": {}, "predictors": []}
    assert [c.name for c in Plan.from_dict(written, table.df).columns] == [
        "visits",
        "region",
        "voted",
    ]
    said: dict[str, Any] = {"reference": survey_of(300, 3), "holds_no_released_record": True}
    release = ph.synthesize_table(plan, epsilon=60, n_synthetic=2, seed=3, **said, **SHORT)
    assert [part.charge.mechanism for part in release.parts] == [
        "NoisyMarginals",
        *["Censored"] * 2,
    ]
    assert [part.charge.epsilon for part in release.parts] == pytest.approx([20] * 3)
    assert release.charge.kind == "strict"
    for made in release.synthetic:
        assert (made["voted"][made["visits"] > 3] == "yes").all()
        assert abs(made["visits"].mean() - survey["visits"].mean()) < 1
    with pytest.raises(InvalidInput, match="draw by no rule, and step 1 makes all columns of"):
        ph.synthesize_table(plan.with_column("voted", model="noisy_marginals"), epsilon=60, **said)
    refuses("takes neither options nor predictors", plan.with_column, "voted",
            model="noisy_marginals", predictors=["age"])  # fmt: skip
    monkeypatch.setattr(steps, "_CLIPPED", -1.0)
    monkeypatch.setattr(steps, "_rehearsed", lambda *_, **__: False)
    with pytest.warns(UserWarning, match="in place of their models: region .its share of epsilon"):
        release = ph.synthesize_table(replace(table, rules=[]).plan(), epsilon=3, **said, **SHORT)
    assert [part.charge.mechanism for part in release.parts] == ["NoisyMarginals"]
    assert (release.charge.kind, release.charge.epsilon) == ("strict", pytest.approx(3))
    statement = " ".join(release.statement.split())
    assert "took the place of the models of region, voted, visits: the reference" in statement


def test_public_predictors_of_noisy_marginals_are_synthesized_by_no_step(
    survey: pd.DataFrame,
) -> None:
    """Their true values would be read as public ones."""
    levels = ph.mechanisms.ColumnDomain(levels=("no", "yes"))
    region = ph.PerturbedHistogram(column="region", levels=TYPES["region"].levels, epsilon=1)
    voted = ph.NoisyMarginals(domain={"voted": levels}, given=["region"], epsilon=1)
    with pytest.raises(InvalidInput, match="must not take 'region' as public predictor"):
        ph.SequentialSynthesis([region, voted]).release(survey)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_missing_values_stay_missing_in_the_declared_form(survey: pd.DataFrame) -> None:
    """A third of voted is missing, and an outcome given it is synthesized after it."""
    gone = np.random.default_rng(4).random(300) < 1 / 3
    own = survey[["age", "voted", "region"]].assign(voted=survey["voted"].mask(gone))
    types = {**SMALL, "voted": ph.Nominal(levels=("no", "yes"), missing=True)}
    table = ph.Table(own, sensitive=list(types), types=types)
    release = ph.synthesize_table(table.plan(), epsilon=40, reference=own.iloc[::-1].reset_index(
        drop=True), seed=3, public=True, holds_no_released_record=True, **SHORT)  # fmt: skip
    made = release.synthetic[0]["voted"]
    assert made.dtype == pd.CategoricalDtype(["no", "yes"])
    assert abs(made.isna().mean() - gone.mean()) < 5 * np.sqrt(2 * 0.22 / 300)
    assert set(made.dropna()) == {"no", "yes"}
    assert release.synthetic[0]["region"].notna().all()


def test_one_missing_value_changes_no_coding(survey: pd.DataFrame) -> None:
    """Seen: plans read from the true values of synthesized predictors whether any is missing; with
    one empty cell, or none, in a column that is declared missing=True a release was refused."""
    types = {**SMALL, "voted": ph.Nominal(levels=("no", "yes"), missing=True),
             "visits": ph.Counts(lower=0, upper=40, missing=True)}  # fmt: skip
    whole = survey[["age", *types]].astype({"visits": float})
    found, read = [], []
    gap = whole.copy()
    gap.loc[gap.index[7], ["voted", "visits"]] = None
    for own in (whole, gap):
        plan = ph.Table(own, sensitive=list(types), types=types).plan()
        models = [column.model_of(plan.kinds) for column in plan.columns]
        table = working_table(own, plan.kinds, list(own.columns))
        bound = [model.bind(table) for model in models]
        found.append([own.columns for each in bound for own in designs_of(each)])
        unsaid = [replace(m, marked=None) if m.name == "WithMissing" else m for m in models]
        read.append([own.columns for m in unsaid for own in designs_of(m.bind(table))])
    assert found[0] == found[1]
    assert read[0] != read[1], "the control"


def test_a_declared_level_that_no_record_has_can_be_drawn() -> None:
    """Categories read from the data lack it: it must not come back as a missing value."""
    like = pd.Series(pd.Categorical(["a", "b", "a"]), name="g")
    made = pd.Series(pd.Categorical(["c", "a", "b"], categories=["a", "b", "c"]), name="g")
    assert in_form_of_data(made, like).tolist() == ["c", "a", "b"]
    known = pd.Series(pd.Categorical(["a", "b", "a"], categories=["c", "b", "a"]), name="g")
    assert in_form_of_data(made, known).dtype == known.dtype

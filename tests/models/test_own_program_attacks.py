"""Whole programs and functions of a user's that would publish the outcome (`pyhybrid.StanModel`).

Charges are local; composed programs are in `test_composed_attacks.py`. Each attack must be refused;
beside it stands an honest program that must pass. What no check can see, a reading in rare draws,
is held by how replicates are made: from data without the outcome.
"""

import functools
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings, StanProgram
from pyhybrid.engines.embedded import EmbeddedEngine, ProgramAtPoints
from pyhybrid.models.stan_program.stan_model import BoundStanModel
from pyhybrid.models.stan_program.text_rules import check_decides_nothing
from tests.refusals import refuses

pytestmark = pytest.mark.normal_draws
POINTS = np.random.default_rng(1).uniform(-1, 1, (3, 3))
SHORT = SamplerSettings(chains=4, warmup=300, draws=500, adapt_delta=0.95)
RUN: dict[str, Any] = {"seed": 1, "engine": "embedded", "settings": SHORT}
REP = "exp(normal_rng(mu + slope * rooms[i], sigma))"
PROGRAM = """
data {
  int<lower=1> n;
  vector[n] y;
  vector[n] rooms;
  vector<lower=0, upper=1>[n] weights;
  int<lower=0, upper=1> use_cap;
  real<lower=0> cap;
}
parameters {
  real mu;
  real slope;
  real<lower=0> sigma;
}
model {
  mu ~ normal(6, 1);
  slope ~ normal(0, 1);
  sigma ~ normal(0, 1);
  for (i in 1:n) {
    real f = weights[i] * normal_lpdf(y[i] | mu + slope * rooms[i], sigma);
    target += use_cap == 1 ? fmax(-cap, fmin(cap, f)) : f;
  }
}
generated quantities {
  vector[n] log_lik;
  vector[n] rent_rep;
  for (i in 1:n) {
    log_lik[i] = normal_lpdf(y[i] | mu + slope * rooms[i], sigma);
    rent_rep[i] = exp(normal_rng(mu + slope * rooms[i], sigma));
  }
}
"""


@cache
def homes(n: int = 40, seed: int = 11) -> pd.DataFrame:
    """Simulated rents, all different if few, and rooms."""
    rng = np.random.default_rng(seed)
    rooms = rng.integers(1, 6, n)
    rent = np.exp(6 + 0.1 * rooms + rng.normal(0, 0.3, n)).round(1)
    income = (1500 + rent + rng.normal(0, 300, n)).round()
    return pd.DataFrame({"rent": rent, "rooms": rooms, "income": income})


def of_table(df: pd.DataFrame) -> dict[str, Any]:
    """The data block of the honest model."""
    return {"y": np.log(df["rent"]), "rooms": df["rooms"] - 3}


def replicate(expression: str) -> str:
    """The program with other replicates."""
    return PROGRAM.replace(REP, expression)


def with_secret(prior: str) -> str:
    """The program with one parameter and one statement more."""
    return PROGRAM.replace("real mu;", "real mu; real secret;").replace(
        "mu ~ normal(6, 1);", "mu ~ normal(6, 1); " + prior
    )


def model(program: str = PROGRAM, **options: Any) -> ph.StanModel:
    """A whole program with its data."""
    given: dict[str, Any] = {
        "outcome": "rent", "predict": "rent_rep", "data": of_table, "predictors": ("rooms",),
        "decimals": 1,
    }  # fmt: skip
    return ph.StanModel(program, **{**given, **options})


def released(own: ph.StanModel, df: pd.DataFrame | None = None) -> ph.Release:
    """A censored release."""
    mechanism = ph.Censored(own, epsilon=4, inner=ph.Unweighted(own), check_modes=False)
    return mechanism.release(homes() if df is None else df, **RUN)


def test_an_honest_program_has_a_local_charge_and_the_charge_says_why() -> None:
    release = released(model())
    assert release.charge.kind == "asymptotic local"
    assert release.charge.epsilon == 4
    assert "no charge of it is strict" in " ".join(release.charge.assumes)
    assert model().bind(homes()).data_dependent == ("the data of the Stan program",)


def test_who_asks_for_a_strict_charge_is_shown_the_composed_program() -> None:
    """What the error of 0.2's by_record=True shows is a composed program that binds."""
    said = refuses("by_record=True asks for a strict charge", model, by_record=True)
    text = said.partition("made of yours:\n")[2]
    table = homes().assign(log_rent=np.log(homes()["rent"])).drop(columns="rent")
    composed = ph.ComposedModel(text, outcome="log_rent", decimals=1)
    log_lik = [
        ProgramAtPoints(bound.program, bound.stan_data(np.ones(40))).quantities(POINTS)["log_lik"]
        for bound in (
            composed.bind(table),
            model().bind(homes().assign(rooms=homes()["rooms"] + 3)),
        )
    ]
    np.testing.assert_allclose(*log_lik, rtol=1e-12)


HONEST: dict[str, dict[str, Any]] = {
    "a mapping without predictors": {
        "program": PROGRAM.replace("vector[n] rooms;", "").replace(" + slope * rooms[i]", ""),
        "data": {"y": np.log(homes()["rent"])}, "predictors": (),
    },
    "constants declared public": {
        "program": PROGRAM.replace("vector[n] rooms;", "real at;").replace("rooms[i]", "at"),
        "data": {"y": np.log(homes()["rent"]), "at": 0.3}, "public": ("at",), "predictors": (),
    },
    "a transform of the outcome in the program": {
        "program": PROGRAM.replace("parameters {", "transformed data { vector[n] z = log(y); }\n"
                                   "parameters {", 1).replace("lpdf(y[i]", "lpdf(z[i]"),
        "data": lambda df: {"y": df["rent"], "rooms": df["rooms"]},
    },
    "outcomes within declared bounds": {
        "program": PROGRAM.replace("vector[n] y;", "vector<lower=0, upper=20>[n] y;"),
    },
    "a constant of the outcome's own term that is not weighted": {
        "program": PROGRAM.replace("mu ~ normal(6, 1);", "mu ~ normal(6, 1); target += sum(y);"),
    },
    "a step that replicates skip": {"program": replicate("rooms[i] > 0 ? " + REP + " : exp(mu)")},
    "a prior of how many there are": {"program": with_secret("secret ~ normal(n / 1e3, .001);")},
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_honest_programs_are_bound_and_checked(case: str) -> None:
    assert model(**HONEST[case]).bind(homes()).checked


MAPPING = {"y": np.log(homes()["rent"]).to_numpy(), "rooms": (homes()["rooms"] - 3).to_numpy()}
READING = {
    "the outcome back from its log": "exp(y[i])", "in order": "exp(sort_asc(y)[i])",
    "its largest value": "exp(max(y)) + normal_rng(mu, sigma)",
    "scaled": "(y[i] - min(y)) / (max(y) - min(y))", "the mean": "exp(normal_rng(mean(y), sigma))",
    "ranks": "rank(y, i) + normal_rng(mu, sigma)",
    "one record": "i == 17 ? exp(y[17]) : exp(normal_rng(mu, sigma))", "log_lik": "log_lik[i]",
    "a digit": "exp(normal_rng(mu, sigma)) + 1e-9 * y[i]",
    "where a draw says so": "uniform_rng(0, 1) < 0.5 ? exp(y[i]) : exp(normal_rng(mu, sigma))",
}  # fmt: skip


@pytest.mark.parametrize("data", [of_table, MAPPING], ids=["function", "mapping"])
@pytest.mark.parametrize("case", READING)
def test_replicates_that_read_the_outcome_are_refused(case: str, data: Any) -> None:
    program = replicate(READING[case])
    if isinstance(data, Mapping):  # without predictors, which a mapping cannot hold
        program = program.replace("vector[n] rooms;", "").replace(" + slope * rooms[i]", "")
        data = {"y": data["y"]}
    with pytest.raises(InvalidInput, match="must not read the confidential outcome"):
        released(model(program, data=data, predictors=("rooms",) if callable(data) else ()))


def extra(value: Any) -> Any:
    """A function of the table with one more entry, `s`."""
    return lambda df: {**of_table(df), "s": value(df["rent"])}


ENTRIES: dict[str, tuple[str, str, Any]] = {
    "ranks": ("vector[n] s;", "s[i]", lambda r: r.rank()),
    "centered": ("vector[n] s;", "s[i]", lambda r: r - r.mean()),
    "a sum": ("real s;", REP + " + s", lambda r: r.sum()),
    "a count of levels": ("int s;", REP + " + s", lambda r: r.nunique()),
    "a category": ("array[n] int s;", REP + " * s[i]", lambda r: (r > r.median()).astype(int)),
    "one-hot": ("matrix[n, 3] s;", REP + " + s[i, 2]",
                lambda r: np.eye(3)[pd.qcut(r, 3, labels=False)]),
    "whole numbers": ("array[n] int s;", "s[i]", lambda r: (r * 10).round().astype(int)),
    "other moments": ("vector[2] s;", REP + " + s[2]", lambda r: [r.mean(), r.std()]),
}  # fmt: skip


@pytest.mark.parametrize("case", ENTRIES)
def test_entries_computed_from_the_outcome_are_refused_in_replicates(case: str) -> None:
    declared, expression, value = ENTRIES[case]
    program = replicate(expression).replace("vector[n] y;", "vector[n] y; " + declared)
    said = r"must not read the confidential outcome|was not checked"
    refuses(said, released, model(program, data=extra(value)))
    if declared == "vector[n] s;" or "array" in declared or "matrix" in declared:
        given = {"y": MAPPING["y"], "s": np.asarray(value(homes()["rent"]))}
        program = program.replace("vector[n] rooms;", "").replace(" + slope * rooms[i]", "")
        refuses(said, released, model(program, data=given, predictors=()))


OTHER_WAYS: dict[str, tuple[str, ph.StanModel]] = {
    "weights in replicates": (
        "must not read the weights", model(replicate("weights[i] * " + REP)),
    ),
    "one parameter for each large value": (
        r"parameters of program .* must not read",
        model(PROGRAM.replace("vector[n] y;", "vector[n] y; int s;")
              .replace("real mu;", "real mu; vector[s] free;")
              .replace("mu ~ normal(6, 1);", "mu ~ normal(6, 1); free ~ std_normal();"),
              data=extra(lambda r: int((r > 500).sum()))),
    ),
    "bounds of parameters": (
        "must not read the confidential outcome",
        model(replicate("exp(own[i])").replace("real mu;", "real mu; vector<lower=y>[n] own;")
              .replace("mu ~ normal(6, 1);", "mu ~ normal(6, 1); own - y ~ exponential(1e6);")),
    ),
    "centered data": (
        "must not read the outcome of other records",
        model(data=lambda df: of_table(df) | {"y": np.log(df["rent"] / df["rent"].mean())}),
    ),
    "one number of the outcome in a mapping": (
        "public",
        model(PROGRAM.replace("vector[n] rooms;", "real s;").replace("* rooms[i]", "* s"),
              data={"y": MAPPING["y"], "s": float(MAPPING["y"].mean())}, predictors=()),
    ),
    "columns that are not declared": (
        "'rooms', which is not among its predictors", model(predictors=()),
    ),
    "values in the text": (
        "returns the confidential outcome",
        model(replicate("written[i]").replace("parameters {", "transformed data { vector[n] written"
              f" = {homes()['rent'].tolist()}'; }}\nparameters {{", 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_WAYS)
def test_other_ways_to_the_outcome_are_refused(case: str) -> None:
    message, own = OTHER_WAYS[case]
    refuses(message, own.bind, homes())


def test_what_a_program_rejects_is_refused_and_not_called_checked() -> None:
    first = float(MAPPING["y"][0])
    only = f'transformed data {{ if (abs(y[1] - {first!r}) > 1e-9) reject("no"); }}\nparameters {{'
    program = replicate("exp(y[i])").replace("parameters {", only, 1)
    refuses(r"was not checked.*if_unchecked", released, model(program))
    honest = PROGRAM.replace("parameters {", only, 1)
    own = model(honest, if_unchecked="local")
    said = own.bind(homes()).data_dependent
    assert said[0] == "what the Stan program reads, which was not checked"
    release = released(own)
    assert release.charge.kind == "asymptotic local"
    assert "NOT CHECKED" in " ".join(release.charge.assumes)
    refuses("if_unchecked must be one of", model, if_unchecked="strict")


PRIORS = {
    "one record's value": "secret ~ normal(y[8] / 1000, .001);",
    "its value, faintly": "secret ~ normal(y[8] * 1e-6, 1e-6);",
    "the mean": "secret ~ normal(mean(y), 1);",
    "the largest": "secret ~ normal(max(y), 1);",
    "the number of large ones": "{ real k = 0; for (i in 1:n) if (y[i] > 6.2) k += 1; "
    "secret ~ normal(k, 1); }",
}


@pytest.mark.parametrize("case", PRIORS)
def test_priors_that_read_the_outcome_are_refused(case: str) -> None:
    refuses(r"prior of program .* must not read", released, model(with_secret(PRIORS[case])))


OTHERS = {
    "the record before": "y[i] + (i > 1 ? 0.01 * y[i - 1] : 0)",
    "one record": "y[i] + (i == 3 ? 0.01 * y[8] : 0)",
    "the mean": "y[i] - mean(y)",
    "the range": "(y[i] - min(y)) / (max(y) - min(y))",
}


@pytest.mark.parametrize("case", OTHERS)
def test_likelihoods_that_read_other_outcomes_are_refused(case: str) -> None:
    program = PROGRAM.replace("lpdf(y[i] |", f"lpdf({OTHERS[case]} |")
    refuses("must not read the outcome of other records", released, model(program))


@pytest.mark.parametrize(("program", "message"), [
    (replicate("exp(y[550])"), "rent_rep.* must not read the confidential outcome"),
    (replicate("i == 550 ? exp(y[i]) : " + REP), "rent_rep.* must not read the confidential"),
    (PROGRAM.replace("mu ~ normal(6, 1);", "mu ~ normal(n > 500 ? y[8] : 6, 1);"), "prior of"),
    (PROGRAM.replace("lpdf(y[i] |", "lpdf(y[i] + (i == 3 ? y[8] : 0) |"), "other records"),
    (replicate(REP + " + weights[i]"), "must not read the weights"),
])  # fmt: skip
def test_programs_with_many_records_are_checked_on_a_part_and_on_all(
    program: str, message: str
) -> None:
    """More than are tried pair by pair: a part of them is, then all at once."""
    many = homes(600, 12)
    assert model().bind(many).checked
    refuses(message, model(program).bind, many)


def steps(second: ph.StanModel) -> ph.SequentialSynthesis:
    """Income after rent."""
    first = ph.StanModel(
        PROGRAM, outcome="rent", predict="rent_rep", data=of_table, predictors=("rooms",),
        decimals=1,
    )  # fmt: skip
    return ph.SequentialSynthesis([
        ph.Censored(own, epsilon=4, inner=ph.Unweighted(own), check_modes=False)
        for own in (first, second)
    ])  # fmt: skip


COPY = replicate("1000 * x[i] + 0 * normal_rng(mu, sigma)").replace(
    "vector[n] rooms;", "vector[n] rooms; vector[n] x;"
)


def of_incomes(df: pd.DataFrame) -> dict[str, Any]:
    """The second step's data: the income, given the rent."""
    return {"y": np.log(df["income"]), "rooms": df["rooms"] - 3, "x": df["rent"] / 1000}


def test_a_second_step_reads_the_synthetic_first_column() -> None:
    """Its replicates are copies of what it reads: they must be the synthetic column."""
    second = model(COPY, outcome="income", data=of_incomes, predictors=("rooms", "rent"))
    release = steps(second).release(homes(), **RUN)
    made = release.synthetic[0]
    np.testing.assert_allclose(made["income"], made["rent"], atol=0.51)
    assert abs(np.corrcoef(made["rent"], homes()["rent"])[0, 1]) < 0.8
    assert not np.isin(made["rent"], homes()["rent"]).all()


@pytest.mark.parametrize("public", [(), ("x",), ("x", "rooms")])
def test_a_second_step_with_the_true_first_column_is_refused(public: tuple[str, ...]) -> None:
    given = {k: np.asarray(v) for k, v in of_incomes(homes()).items()}
    second = model(COPY, outcome="income", data=given, predictors=(), public=public)
    refuses(r"function of the table", steps(second).release, homes(), **RUN)


def test_a_second_step_that_holds_the_true_first_column_is_refused() -> None:
    table = homes()
    closing = lambda df: {**of_incomes(df), "x": table["rent"] / 1000}  # noqa: E731
    second = model(COPY, outcome="income", data=closing, predictors=("rooms",))
    refuses("'table'", steps(second).release, homes(), **RUN)


def test_columns_beside_those_of_a_formula_are_declared() -> None:
    program = PROGRAM.replace("vector[n] rooms;", "vector[n] rooms; int K; matrix[n, K] X;")
    program = program.replace("real slope;", "real slope; vector[K] beta;")
    program = program.replace("mu ~ normal(6, 1);", "mu ~ normal(6, 1); beta ~ std_normal();")
    program = program.replace("mu + slope", "X[i] * beta + slope")
    bound = model(program, formula="rent ~ income", predictors=("rooms",)).bind(homes())
    assert bound.predictors == ("income", "rooms")


def honest_predict(parameters: Any, df: pd.DataFrame, rng: np.random.Generator) -> Any:
    """What the program's own replicates do."""
    mean = parameters["mu"] + parameters["slope"] * (df["rooms"] - 3)
    return np.exp(rng.normal(mean, parameters["sigma"]))


def _holding(table: pd.DataFrame) -> dict[str, Any]:
    values = table["rent"].to_numpy()
    lookup = dict(enumerate(values))

    class Kept:
        def __init__(self) -> None:
            self.rows = values

        def __call__(self, parameters: Any, df: pd.DataFrame, rng: Any) -> Any:
            return self.rows

        def method(self, parameters: Any, df: pd.DataFrame, rng: Any) -> Any:
            return self.rows + rng.normal(0, 1, len(df))

    def nested(parameters: Any, df: pd.DataFrame, rng: Any) -> Any:
        return inner(len(df))

    def inner(k: int) -> Any:
        return values[:k]

    def by_default(parameters: Any, df: pd.DataFrame, rng: Any, kept: Any = values) -> Any:
        return kept

    def partial(kept: Any, parameters: Any, df: pd.DataFrame, rng: Any) -> Any:
        return kept

    return {
        "a table": lambda p, df, rng: table["rent"],
        "an array": lambda p, df, rng: values + rng.normal(0, 1e-6, len(df)),
        "a dictionary": lambda p, df, rng: [lookup[i] for i in range(len(df))],
        "a longer array": (lambda kept: lambda p, df, rng: kept[: len(df)])(np.append(values, 0.0)),
        "a transposed array": (lambda kept: lambda p, df, rng: kept[0])(values[None]),
        "an instance": Kept(), "a method": Kept().method, "a function in a function": nested,
        "a default": by_default, "a partial": functools.partial(partial, values),
    }  # fmt: skip


@pytest.mark.parametrize("case", _holding(homes()))
def test_predictors_that_hold_the_table_are_refused(case: str) -> None:
    with pytest.raises(InvalidInput, match="must not hold one value per record"):
        model(predict=_holding(homes())[case]).bind(homes())


def test_an_honest_predictor_in_python_is_released() -> None:
    assert released(model(predict=honest_predict)).charge.epsilon == 4


def test_predictors_get_parameters_that_were_computed_without_the_outcome() -> None:
    """A transformed parameter may read the outcome; what a predictor gets of it does not."""
    program = PROGRAM.replace("model {", "transformed parameters { vector[n] c = y; }\nmodel {", 1)

    def copies(parameters: Any, df: pd.DataFrame, rng: np.random.Generator) -> Any:
        return np.exp(parameters["c"])

    refuses("must not read the confidential outcome", model(program, predict=copies).bind, homes())
    assert model(program, predict=honest_predict).bind(homes()).checked


def test_predictors_that_read_a_file_of_the_records_are_refused(tmp_path: Any) -> None:
    """Nothing is held, but what is returned are the confidential values, whatever the draw."""
    homes().to_csv(tmp_path / "homes.csv", index=False)
    path = str(tmp_path / "homes.csv")
    with pytest.raises(InvalidInput, match="returns the confidential outcome"):
        model(predict=lambda p, df, rng: pd.read_csv(path)["rent"]).bind(homes())
    other = model(data=lambda df: {**of_table(df), "rooms": np.log(pd.read_csv(path)["rent"])})
    refuses("must follow the rows of the table", other.bind, homes())


def test_labels_of_rows_are_not_handed_over() -> None:
    seen: list[pd.Index] = []

    def data(df: pd.DataFrame) -> dict[str, Any]:
        seen.append(df.index)
        return of_table(df)

    def predict(parameters: Any, df: pd.DataFrame, rng: np.random.Generator) -> Any:
        seen.append(df.index)
        return honest_predict(parameters, df, rng)

    table = homes().set_index(homes()["rent"].astype(str).rename("label"))
    table.attrs["note"] = "secret"
    model(data=data, predict=predict).bind(table)
    assert all(index.equals(pd.RangeIndex(40)) for index in seen)


# --- by construction: what no check sees -------------------------------------------------------

RARE = {
    "at one row and in one draw of a thousand": "i == 5 && fabs(fmod(mu * 1e5, 1)) < .001 ? "
    "exp(y[i]) : " + REP,
    "every draw": "exp(y[i])", "in order": "exp(sort_asc(y)[i])", "weights": "weights[i]",
}  # fmt: skip


@pytest.mark.parametrize("case", RARE)
def test_replicates_are_made_from_data_without_the_outcome(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the checks switched off, programs that read the outcome give none of it away: the same
    draws give the same replicates for two tables whose outcomes differ."""
    import pyhybrid.models.stan_program.stan_model as module

    monkeypatch.setattr(module, "check_bound", lambda bound: bound)
    monkeypatch.setattr(BoundStanModel, "check_draws", lambda *_: None)
    own = model(replicate(RARE[case].replace("fabs", "abs")))
    other = homes().assign(rent=homes()["rent"].sample(frac=1, random_state=1).to_numpy() + 0.1)
    other = other.round(1)
    one, two = own.bind(homes()), own.bind(other)
    draws = EmbeddedEngine().sample(one.program, one.stan_data(np.ones(40)), seed=2, settings=SHORT)
    for draw in range(3):
        made = [
            each.replicate(draws, draw, np.random.default_rng(draw))["rent"].to_numpy()
            for each in (one, two)
        ]
        np.testing.assert_array_equal(*made)
        assert not np.isin(made[0], homes()["rent"]).mean() > 0.2


def test_what_only_the_posterior_reaches_is_checked_at_its_draws() -> None:
    """A prior that reads the outcome where random points do not come, but the posterior lies."""
    far = "secret ~ normal(0, 1); if (mu > 3) secret ~ normal(y[8] / 10, 1);"
    own = model(with_secret(far))
    assert own.bind(homes()).checked, "random points do not see it"
    refuses(r"prior of program .* must not read", released, own)


# --- what a program does at some weights and caps alone ------------------------------------------

READ_OFF = "target += -1e4 * square(mu - y[1] / 10);"
DECIDING = {
    "the cap's size": f"if (use_cap == 1 && cap < 0.6) {READ_OFF}",
    "the smallest weight": f"if (min(weights) == 1) {READ_OFF}",
    "a variable of weights": f"{{ real w = min(weights); real v = w; if (v == 1) {READ_OFF} }}",
    "a ternary": "target += weights[2] == 1 ? -1e4 * square(mu - y[1] / 10) : 0;",
    "a comparison": "target += (cap < 0.6) * -1e4 * square(mu - y[1] / 10);",
    "a step": "target += step(0.6 - cap) * -1e4 * square(mu - y[1] / 10);",
    "a steep curve": "target += inv_logit(1e9 * (0.6 - cap)) * -1e4 * square(mu - y[1] / 10);",
    "a high power": "target += weights[1]^1000 * -1e4 * square(mu - y[1] / 10);",
    "a maximum": "target += fmax(0, 0.6 - cap) * -1e6 * square(mu - y[1] / 10);",
    "a loop": f"while (cap < 0.6) {{ {READ_OFF} break; }}",
    "the flag and a parameter": f"if (use_cap == 1 && mu > 0) {READ_OFF}",
    "a function": f"if (tells(cap)) {READ_OFF}",
}


def deciding(case: str) -> str:
    """The honest program with one statement more."""
    text = PROGRAM.replace("mu ~ normal(6, 1);", "mu ~ normal(6, 1); " + DECIDING[case])
    return "functions { int tells(real m) { return m < 0.6; } }" + text


@pytest.mark.parametrize("case", DECIDING)
def test_what_decides_by_weights_or_cap_is_refused(case: str) -> None:
    refuses("must do the same at all weights and caps", model, deciding(case))
    check_decides_nothing(StanProgram(name="honest", text=PROGRAM))


@pytest.mark.parametrize(("case", "make"), [
    ("the cap's size", lambda own: ph.Censored(own, epsilon=1, inner=ph.Unweighted(own))),
    ("the smallest weight", ph.Unweighted),
])  # fmt: skip
def test_the_weights_and_the_cap_of_a_fit_are_tried(
    case: str, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were the text not read, and random weights and caps tried alone, as in 0.2: the very ones of
    the release are tried, too. The control: the same programs pass when they are bound."""
    import pyhybrid.models.stan_program.stan_model as module

    monkeypatch.setattr(module, "check_decides_nothing", lambda _: None)
    own = model(deciding(case))
    bound = own.bind(homes())
    bound.stan_data(np.full(40, 0.5), cap=5.0)
    with pytest.raises(InvalidInput, match=r"must not read the confidential outcome|must multiply"):
        make(own).release(homes(), **RUN)

"""Composed programs that would tell more of a record than a cap: out of scope, or not strict.

The form keeps the outcome where the cap acts, so that little has to be tried: each attack is
refused for what it says, whatever the data. What a likelihood can do within its scope is held by
enumeration of all neighbors of small databases, with the broken program beside it.
"""

import itertools
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyhybrid as ph
from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints, check_compiles
from pyhybrid.models.stan_program.composed_model import BoundComposedModel
from pyhybrid.models.stan_program.composed_text import ComposedText
from pyhybrid.models.stan_program.stan_text import blocks_of, tokens_of
from pyhybrid.privacy.censoring import Cap
from tests.models.test_own_program_attacks import homes
from tests.refusals import refuses

PROGRAM = """
functions {
  real middle(real rooms, real mu, real slope) { return mu + slope * (rooms - 3); }
}
data { real<lower=0> spread; }
record {
  real<lower=0> rent;
  real rooms;
}
parameters {
  real mu;
  real slope;
  real<lower=0> sigma;
}
transformed parameters { real twice = 2 * mu; }
prior {
  mu ~ normal(6, spread);
  slope ~ normal(0, 1);
  sigma ~ normal(0, 1);
}
log_lik {
  return normal_lpdf(log(rent) | middle(rooms, mu, slope), sigma);
}
replicate { return exp(normal_rng(middle(rooms, mu, slope), sigma)); }
generated quantities { real thrice = 3 * mu; }
"""


def model(program: str = PROGRAM, **options: Any) -> ph.ComposedModel:
    given: dict[str, Any] = {"outcome": "rent", "data": {"spread": 1.0}, "decimals": 1}
    return ph.ComposedModel(program, **{**given, **options})


def with_(block: str, text: str) -> str:
    """The honest program with more text at the beginning of a block."""
    assert f"\n{block} {{" in PROGRAM
    return PROGRAM.replace(f"\n{block} {{", f"\n{block} {{ {text}", 1)


def with_functions(text: str) -> str:
    return PROGRAM.replace("functions {", f"functions {{ {text}", 1)


def saying(text: str, program: str = PROGRAM) -> str:
    """With more text at the beginning of log_lik."""
    return program.replace("return normal_lpdf(log", f"{text} return normal_lpdf(log")


def test_the_honest_program_is_strict_by_its_form() -> None:
    bound = model().bind(homes())
    assert (bound.never_strict, bound.data_dependent, bound.decimals_given) == ((), (), True)
    assert bound.predictors == ("rooms",)


READ_OFF = "target += -1e4 * square(mu - {} / 10);"
OUT_OF_SCOPE = {
    "the prior": ("prior", READ_OFF.format("rent")),
    "the prior, another entry": ("prior", READ_OFF.format("rooms")),
    "the prior, indexed": ("prior", READ_OFF.format("rent[1]")),
    "a local block of the prior": ("prior", "{ real secret = rent; " + READ_OFF.format("secret") + "}"),  # noqa: E501
    "transformed parameters": ("transformed parameters", "real secret = rent;"),
    "bounds of parameters": ("parameters", "real<lower=rent> secret;"),
    "sizes of parameters": ("parameters", "vector[rooms] secret;"),
    "bounds of constants": ("data", "real<lower=rent> other;"),
    "generated quantities": ("generated quantities", "real secret = rent;"),
    "the replicate": ("replicate", "if (1) return rent;"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUT_OF_SCOPE)
def test_the_outcome_is_in_scope_in_log_lik_alone(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named out of scope it is refused in plain words, before the compiler would refuse it."""
    program = with_(*OUT_OF_SCOPE[case])
    refuses(r"must not name '(rent|rooms)', line \d+: .* not in scope", model, program)
    monkeypatch.setattr(ComposedText, "check_scope", lambda *_: None)
    data = {"spread": 1.0, **({"other": 1.0} if "other" in program else {})}
    refuses(r"must be valid Stan|needs to be", model(program, data=data).bind, homes())


@pytest.mark.parametrize("text", [
    "if (use_cap == 1 && cap < 0.6) " + READ_OFF.format("y[1]"),
    "if (min(weights) == 1) " + READ_OFF.format("y[1]"),
    "{ real secret = n; " + READ_OFF.format("secret") + "}",
])  # fmt: skip
@pytest.mark.parametrize("block", ["prior", "transformed parameters", "log_lik", "replicate"])
def test_weights_cap_and_records_are_in_scope_nowhere(block: str, text: str) -> None:
    """The programs of the attack on version 0.2, in the blocks of the composed form."""
    refuses("must be valid Stan", model(with_(block, text)).bind, homes())


@pytest.mark.parametrize("block", ["prior", "log_lik", "transformed parameters", "replicate"])
@pytest.mark.parametrize("name", ["pyhybrid_rent[1]", "pyhybrid_weights[1]", "pyhybrid_cap_above"])
def test_names_of_the_program_around_are_refused(block: str, name: str) -> None:
    refuses("must not begin with 'pyhybrid_'", model, with_(block, f"{{ real secret = {name}; }}"))
    whole = model().text.program().text
    assert name.partition("[")[0] in whole  # the control: such names there are


BREAKING = {
    "a brace too many": "mu ~ normal(6, 1); } model { target += 1; ",
    "two braces": "} } generated quantities { real secret = 1; ",
    "another block": "} transformed data { real secret = 1; ",
    "the same block again": "} prior { mu ~ normal(0, 1); ",
    "a bracket of another kind": "mu ~ normal(6, 1]; ",
    "an open comment": "/* ", "an open comment after a closed one": "/* */ /* ",
    "an old comment": "# secret } model {\n", "a file": '#include "/etc/passwd"\n',
    "a string": 'reject("}");', "a brace in a string": '{ profile("}") { } }',
    "a character beyond ASCII": "real ｍ = 1;", "a backslash": "real a = mu \\ mu;",
}  # fmt: skip


@pytest.mark.parametrize("case", BREAKING)
@pytest.mark.parametrize("block", ["prior", "log_lik", "replicate", "functions", "parameters"])
def test_text_does_not_break_out_of_its_block(block: str, case: str) -> None:
    words = r"must hold the blocks|brackets that match|must be Stan"
    refuses(words, model, with_(block, BREAKING[case]))


PIECES = [
    *"{}()[];#?:<>=^,|'.\"\\\n", "/*", "*/", "//", "model", "prior", "log_lik", "data", "rent",
    "if (", "int k", "array[", "for (", "target +=", "functions {", "weights", "cap",
]  # fmt: skip
BLOCKS = (
    "functions", "data", "parameters", "transformed parameters", "model", "generated quantities",
)  # fmt: skip
PLACES, OVER = st.integers(0, len(PROGRAM)), st.sampled_from((0, 1, 5, 20))
EDITS = st.lists(st.tuples(PLACES, st.sampled_from(PIECES), OVER), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(EDITS)
def test_whatever_is_written_the_program_around_keeps_its_blocks(edits: Any) -> None:
    """Pieces put anywhere, over what was there: refused, or a program of the same blocks, in which
    the records are named in the lines of pyhybrid's alone."""
    text = PROGRAM
    for place, piece, over in edits:
        text = f"{text[:place]} {piece} {text[place + over :]}"
    try:
        own = ComposedText("edited", text)
        own.check_scope("rent")
    except InvalidInput:
        return
    assert isinstance(own.why_not_total, tuple)
    for program, there in ((own.program(), True), (own.replicates("rent"), False)):
        blocks = blocks_of(tokens_of(program.text, "edited"), "edited", BLOCKS)
        assert ("model" in blocks) == there
        for name in ("parameters", "transformed parameters"):
            assert not any(t.text.startswith("pyhybrid_") for t in blocks.get(name, ()))


@pytest.mark.parametrize(
    "comment", ["// } model {\n", "/* } model { */", "/* // */", "// /*\n", '/* " # */']
)
def test_comments_are_read_as_stan_reads_them_and_left_out(comment: str) -> None:
    own = model(with_("prior", comment))
    assert own.text.program().text == model().text.program().text
    assert "model" not in own.text.blocks


@pytest.mark.parametrize("block", ["prior", "log_lik", "replicate", "functions"])
@pytest.mark.parametrize(("word", "message"), [
    ("reject(mu);", "ends an evaluation as a density of 0 does"),
    ("fatal_error(mu);", "ends an evaluation as a density of 0 does"),
    ("print(mu);", "shows values of records"), ("get_lp();", "a name of the program around"),
])  # fmt: skip
def test_what_ends_or_shows_an_evaluation_is_refused(block: str, word: str, message: str) -> None:
    refuses(message, model, with_(block, word))


@pytest.mark.parametrize("function", [
    "real fmin(int a, real b) { return b; }",
    "real normal_lpdf(real y, vector a, vector b) { return 0; }",
    "int is_nan(row_vector x) { return 0; }", "real log1p(vector x) { return 0; }",
])  # fmt: skip
def test_functions_of_stans_get_no_second_meaning(function: str) -> None:
    """One would clip in another way, or be taken for a density that does not fail."""
    refuses("must not have names of Stan's own", model, with_("functions", function))
    model(with_("functions", function.replace(" ", " my_", 1)))


@pytest.mark.parametrize("body", [
    "target += rent; return 0;", "mu ~ normal(rent, 1); return 0;", "adds_lp(rent); return 0;",
    "return normal_rng(rent, 1);", "rent = mu; return 0;", "sigma = rent; return 0;",
    "return rent[1];",
])  # fmt: skip
def test_log_lik_is_a_function_of_its_own_record_without_effects(body: str) -> None:
    program = saying(body, with_functions("void adds_lp(real x) { target += x; }"))
    check_compiles(model(program.replace(body, "")).text.program())  # the control
    refuses("must be valid Stan", model(program).bind, homes())


def test_one_entry_alone_is_the_outcome() -> None:
    """Under another name the outcome would be in scope where replicates are drawn."""
    copies = with_("record", "real copy;").replace("{ return exp", "{ return copy + exp")
    with pytest.raises(InvalidInput, match="must have one entry of the outcome 'rent': it has 2"):
        model(copies, columns={"copy": "rent"})
    with pytest.raises(InvalidInput, match="must not hold the confidential outcome"):
        model(copies, rows={"copy": homes()["rent"].rank()}).bind(homes())
    own = model(copies, rows={"copy": np.zeros(40)}).bind(homes())
    assert own.data_dependent == ("rows= of the program, which are not said to be by record",)
    said = model(copies, rows={"copy": np.zeros(40)}, by_record=True)
    assert not said.bind(homes()).data_dependent


def test_replicates_come_from_a_program_without_the_outcome() -> None:
    """So that the same draw gives the same replicate for any outcomes."""
    text = model().text.replicates("rent").text
    assert "rent" not in text
    assert "pyhybrid_rooms" in text
    other = homes().assign(rent=homes()["rent"].to_numpy()[::-1] + 0.5)
    at = ProgramAtPoints(model().text.replicates("rent"), replicate_data(homes()))
    draws = frozen(at.quantities(np.zeros((1, 3)) + 0.1))
    made = [
        model().bind(table).replicate(draws, 0, np.random.default_rng(3))["rent"].to_numpy()
        for table in (homes(), other)
    ]
    np.testing.assert_array_equal(*made)
    later = homes().assign(rooms=homes()["rooms"] + 2)
    moved = model().bind(homes()).replicate(draws, 0, np.random.default_rng(3), later)
    assert (moved["rent"] >= made[0]).all(), "entries are read from the table of a sequence"
    assert (moved["rent"] > made[0]).any()


def test_rows_do_not_follow_a_column_that_was_synthesized() -> None:
    own = model(with_("record", "real size;"), rows={"size": homes()["rooms"] / 2}).bind(homes())
    at = ProgramAtPoints(own.model.text.replicates("rent"),
                         replicate_data(homes()) | {"pyhybrid_size": np.ones(40)})  # fmt: skip
    draws = frozen(at.quantities(np.zeros((1, 3))))
    own.replicate(draws, 0, np.random.default_rng(1))
    with pytest.raises(InvalidInput, match="'rooms' is synthesized before"):
        own.replicate(draws, 0, np.random.default_rng(1), homes().assign(rooms=3))


def replicate_data(table: pd.DataFrame) -> dict[str, Any]:
    return {"pyhybrid_n": len(table), "spread": 1.0, "pyhybrid_rooms": table["rooms"]}


def frozen(values: dict[str, FloatArray]) -> Any:
    from pyhybrid.fitting.exact import frozen_draws

    own: Any = None
    return frozen_draws({name: values[name] for name in ("mu", "slope", "sigma")}, own)


# --- errors of Stan's are no constraints ---------------------------------------------------------

FAILING = {
    "a branch by a parameter": "if (mu < rent) return -1; return 0;",
    "a ternary": "return mu < rent ? -1 : 0;",
    "a loop": "real x = mu; while (x < rent) x += 1; return 0;",
    "a comparison": "return -1e9 * (mu < rent);",
    "a step": "return step(mu - rent);",
    "an index": "{ vector[2] x; return x[1 + (mu < rent)]; }",
    "a matrix without a root": "return cholesky_decompose([[mu - rent]])[1, 1];",
    "a probability above 1": "return inv_Phi(mu / rent);",
    "an unknown density": "return uniform_lpdf(rent | mu, 1e9);",
    "a function that decides": "return decides(rent, mu);",
    "a name used for two": "{ int k = 1; } { real k = mu - rent; if (k > 0) return 0; } return 1;",
    "a name that runs over values": "for (k in {mu, rent}) if (k > 6) return 0; return 1;",
    "the second of two names": "{ int k = 1; } { real a, k; k = mu - rent; if (k > 0) return 0; }",
    "a complex number": "{ int k = 1; } { complex k = mu - rent; if (abs(k) > 1) return 0; }",
    "a name of a function": "real e = mu - rent; if (e > 0) return 0;",
    "a power of a matrix": "matrix[1, 1] A = [[1 / (mu - rent)]]; return (A ^ 2)[1, 1];",
    "a power in a function": "return raised(1 / (mu - rent));",
    "division by a matrix": "return ([mu] / [[mu - rent]])[1];",
}


@pytest.mark.parametrize("case", FAILING)
def test_what_parameters_and_a_record_can_end_together_is_not_strict(case: str) -> None:
    """Seen: `^` of a matrix that is not finite is an error; names were taken for data that are."""
    program = with_functions(
        "real decides(real y, real mu) { if (mu > y) return 0; return 1; } "
        "real raised(real x) { return (2 * [[x]]'^2)[1, 1]; }"
    )
    own = model(saying(FAILING[case], program))
    check_compiles(own.text.program())
    broken, control = (
        BoundComposedModel(model=each, table=homes(), design=None, guarded=True).never_strict
        for each in (own, model(program))
    )
    assert len(broken) == 1
    assert not control, "the functions alone do no harm"


LARGE = "int large(data real y) { return y > 3 ? 1 : 0; }"
HONEST = {
    "data decide": "if (rent > 3 && rooms < 2) return 0;",
    "a constant decides": "real x = spread > 1 ? mu : slope;",
    "a function of data": "if (large(rent)) return 0;",
    "a loop": "vector[3] x; for (k in 1:3) x[k] = mu * k; if (rooms == 1) return sum(x);",
    "a whole number": "int k = rooms > 2; if (k) return log_sum_exp(mu, slope);",
    "powers of numbers": "vector[2] v = [mu, slope]'; return (rent - mu)^2 + v[1]^-2 + "
    "sum(v .^ 2) + fmax(mu, 1)^rooms - -mu^2^0.5 + ([[mu]]')[1, 1]^2;",
    "division by numbers": "return sum([mu, slope] / sigma^2) / (1 + exp(-mu)) / -[mu, slope][2];",
    "numbers that may be none": "return log(mu) + sqrt(slope) + log1p(mu) + log1m(mu);",
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_likelihoods_have_a_value_everywhere(case: str) -> None:
    bound = model(saying(HONEST[case], with_functions(LARGE))).bind(homes())
    compares = ("log_lik compares outside of an if",)
    assert bound.never_strict == (compares if case == "a whole number" else ())


@pytest.mark.parametrize("body", [
    "vector[3] x = rep_vector(level, 3); return x[1 + y];", "int k = 5 %/% y; return level * k;",
    "return dot_product(rep_vector(level, 2), rep_vector(1, 1 + y));",
])  # fmt: skip
def test_what_a_record_ends_alone_is_ended_at_every_parameter(body: str) -> None:
    """So that it sets no constraint: nothing is drawn, for a value that no index or size takes."""
    for y in SUPPORT:
        bound = level(body, (y,))
        assert not bound.never_strict
        with suppress(InvalidInput):  # it has no value anywhere
            at = ProgramAtPoints(bound.program, bound.data_of_ones())
            assert len({np.isfinite(_value(at, point)) for point in POINTS}) == 1


def test_a_function_gets_parameters_only_where_it_decides_nothing() -> None:
    """The compiler holds what the word data says."""
    program = saying("if (large(mu)) return 0;", with_functions(LARGE))
    refuses("must be valid Stan", model(program).bind, homes())


def test_densities_of_vectors_are_local_and_say_why() -> None:
    vectors = PROGRAM.replace("normal_lpdf(log(rent) |", "normal_lpdf([log(rent)]' |")
    bound = model(vectors).bind(homes())
    assert bound.never_strict == ("log_lik calls densities of several numbers, which can fail",)
    assert "The charge is not strict" in " ".join(bound.assumptions)


SUPPORT = (0, 1, 4, 40)
POINTS = np.linspace(-4, 4, 81)[:, None]
M = 0.5
LEVEL = """
record {{ int<lower=0> y; }}
parameters {{ real level; }}
prior {{ level ~ normal(0, 2); }}
log_lik {{ {body} }}
replicate {{ return level; }}
"""
BODIES = {
    "Poisson": "return poisson_log_lpmf(y | level);",
    "a density that is an error": "return normal_lpdf(0 | 0, level - 0.05 * y);",
    "huge": "return -1e4 * square(level - y / 10.0);",
    "no number": "return sqrt(level - 0.05 * y);",
    "infinite": "return log(fmax(0, level - 0.05 * y));",
    "minus infinity and infinity": "return inv(0) * (level - 0.05 * y);",
}


def level(body: str, y: tuple[int, ...]) -> BoundComposedModel:
    own = ph.ComposedModel(LEVEL.format(body=body), outcome="y", decimals=0)
    table = pd.DataFrame({"y": np.array(y, dtype=np.int64)})
    return BoundComposedModel(model=own, table=table, design=None, guarded=True)


def losses(body: str, broken: Any = None, center: bool = False) -> tuple[float, float]:
    """Largest log ratio of posteriors on a grid: a record removed, and one replaced."""

    def posterior(y: tuple[int, ...]) -> FloatArray:
        bound = level(body, y)
        reference = 0.1 * np.array(y) if center else None
        program = bound.program if broken is None else broken(bound.program)
        data = bound.stan_data(np.ones(len(y)), cap=Cap(below=M, above=M, reference=reference))
        at = ProgramAtPoints(program, data)
        values = np.array([_value(at, point) for point in POINTS])
        return np.asarray(values - np.logaddexp.reduce(values))

    found = {y: posterior(y) for k in (2, 3)
             for y in itertools.combinations_with_replacement(SUPPORT, k)}  # fmt: skip
    removed = [loss(p, found[y[:i] + y[i + 1 :]]) for y, p in found.items() if len(y) == 3
               for i in range(3)]  # fmt: skip
    replaced = [
        loss(p, q) for y, p in found.items() for z, q in found.items()
        if len(y) == len(z) == 3 and (Counter(y) - Counter(z)).total() == 1
    ]  # fmt: skip
    return max(removed), max(replaced)


def _value(at: ProgramAtPoints, point: FloatArray) -> float:
    """The log density, -inf where the program fails: its value, whatever its gradient."""
    try:
        return float(at._model.log_prob_grad(point)[0])
    except (RuntimeError, ValueError):
        return -np.inf


def loss(p: FloatArray, q: FloatArray) -> float:
    """Largest absolute log ratio; infinite where one alone is 0."""
    one = np.isneginf(p) != np.isneginf(q)
    both = np.isfinite(p) & np.isfinite(q)
    return float("inf") if one.any() else float(np.abs(p[both] - q[both]).max())


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("case", BODIES)
def test_no_likelihood_tells_more_than_the_cap(case: str, center: bool) -> None:
    removed, replaced = losses(BODIES[case], center=center)
    assert removed <= 2 * M + 1e-9
    assert replaced <= 4 * M + 1e-9
    assert removed > 0.3 * M, "the records are read"


@pytest.mark.parametrize(("case", "old", "new"), [
    ("Poisson", "fmax(-cap_below, fmin(cap_above, g[i] + excess))", "g[i]"),
    ("Poisson", "fmin(cap_above, g[i] + excess)", "fmin(20 * cap_above, g[i] + 9)"),
    ("a density that is an error", "pyhybrid_total_normal_lpdf(0", "normal_lpdf(0"),
    ("no number", "is_nan(pyhybrid_f) ? negative_infinity() :", "is_nan(pyhybrid_f) ? -1e9 :"),
])  # fmt: skip
def test_a_program_that_clips_less_is_caught(case: str, old: str, new: str) -> None:
    """The controls: without the clip, with a wider one, without the density that does not fail. The
    last is none: what takes the place of no number is clipped, whatever it is."""

    def broken(program: StanProgram) -> StanProgram:
        assert old in program.text
        return StanProgram(name="broken", text=program.text.replace(old, new))

    removed, _ = losses(BODIES[case], broken)
    assert (removed > 2 * M + 1e-9) == (case != "no number")

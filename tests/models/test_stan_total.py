"""Functions that a strict likelihood may call: none raises an error, whatever it is given."""

import itertools

import numpy as np
import pytest
from scipy import stats

from pyhybrid.engines import StanProgram
from pyhybrid.engines.embedded import ProgramAtPoints
from pyhybrid.models.stan_program.stan_text import tokens_of
from pyhybrid.models.stan_program.text_rules import RELIED_ON, guarded, guards

ODD = (
    "{not_a_number(), negative_infinity(), positive_infinity(), -9e9, -1, -0.5, 0, 0.5, 1, 2, 9e9}"
)
ONE = (
    "abs asinh atan cbrt ceil cos cosh erf erfc exp exp2 expm1 floor inv inv_cloglog inv_logit "
    "inv_sqrt inv_square lgamma log log10 log1m_exp log1m_inv_logit log1p_exp log2 log_inv_logit "
    "logit round sin sinh sqrt square tan tanh trunc log1p log1m Phi"
)
TWO = "atan2 fdim fmax fmin hypot lmultiply log_diff_exp log_sum_exp pow"
VECTOR = "cumulative_sum log_softmax log_sum_exp max mean min reverse softmax sum dot_self exp log"
SCALAR = {"log_sum_exp", "max", "mean", "min", "sum", "dot_self"}
DENSITIES = sorted(
    name for name in RELIED_ON if name.endswith(("_lpdf", "_lpmf", "_lcdf", "_lccdf"))
)


def quantities(text: str, functions: str = "") -> dict[str, np.ndarray]:
    program = StanProgram(
        name="odd",
        text=f"functions {{\n{functions}}}\nparameters {{ real free; }}\ngenerated quantities {{\n"
        f"  array[11] real odd = {ODD};\n  real total = 0;\n  real done;\n{text}  done = 1;\n}}\n",
    )
    return ProgramAtPoints(program, {}).quantities(np.zeros((1, 1)))


def calls(text: str) -> tuple[str, str]:
    """A text as likelihoods get it, and the functions that it needs."""
    tokens = tokens_of(text, "odd")
    return "".join(t.space + t.text for t in guarded(tokens, ())), guards(tokens, ())


def test_functions_of_numbers_take_every_number() -> None:
    assert set(f"{ONE} {TWO} {VECTOR}".split()) <= RELIED_ON
    text = "".join(f"  for (i in 1:11) {{ total += {name}(odd[i]); }}\n" for name in ONE.split())
    text += "".join(
        f"  for (i in 1:11) {{ for (j in 1:11) {{ total += {name}(odd[i], odd[j]); }} }}\n"
        for name in TWO.split()
    )
    body, functions = calls(text)
    assert quantities(body, functions)["done"] == 1
    failed = quantities("  for (i in 1:11) { total += inv_Phi(odd[i]); }\n")
    assert failed["done"] != 1, "the control: an error ends the generated quantities"


def test_functions_of_vectors_take_every_number() -> None:
    text = "".join(
        "  for (i in 1:11) { for (j in 1:11) { vector[2] x = [odd[i], odd[j]]';\n"
        f"    total += {name}(x){'' if name in SCALAR else '[1]'}; }} }}\n"
        for name in VECTOR.split()
    )
    assert quantities(text)["done"] == 1


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_return_minus_infinity_in_the_place_of_errors(name: str) -> None:
    """Beside it Stan's own, which fails for some and agrees where it does not."""
    signature = guards(tokens_of(f"{name}(", "odd"), ()).partition("(")[2].partition(")")[0]
    types = [each.split()[0] for each in signature.split(",")]
    values = {"real": [np.nan, -np.inf, np.inf, -1.0, 0.0, 0.5, 1.0, 3.0], "int": [-1, 0, 1, 2, 3]}
    cases = list(itertools.product(*(values.get(t, values["real"]) for t in types)))
    declared = "".join(
        f"array[{len(cases)}] {'int' if t == 'int' else 'real'} a{k}; " for k, t in enumerate(types)
    )
    given = [f"[a{k}[i], 0.3]'" if t == "vector" else f"a{k}[i]" for k, t in enumerate(types)]
    call, functions = calls(f" {name}({given[0]} | {', '.join(given[1:])})")
    text = (
        f"functions {{\n{functions}}}\ndata {{ {declared} }}\nparameters {{ real free; }}\n"
        f"generated quantities {{ array[{len(cases)}] real f;\n"
        f"  for (i in 1:{len(cases)}) f[i] = {call};\n}}\n"
    )
    data = {f"a{k}": list(column) for k, column in enumerate(zip(*cases, strict=True))}
    at = ProgramAtPoints(StanProgram(name="odd", text=text), data)
    found = at.quantities(np.zeros((1, 1)))["f"][0]
    good = np.isfinite(found)
    assert np.isneginf(found).any()
    assert good.any(), "an error would leave none"
    text = text.replace(call, f" {name}({given[0]} | {', '.join(given[1:])})")
    plain = StanProgram(name="odd", text=text)
    ended = ProgramAtPoints(plain, data).quantities(np.zeros((1, 1)))["f"][0]
    assert not np.array_equal(found, ended, equal_nan=True), "the control: Stan's own fails"
    kept = {k: [v for v, ok in zip(own, good, strict=True) if ok] for k, own in data.items()}
    program = StanProgram(name="odd", text=text.replace(str(len(cases)), str(int(good.sum()))))
    again = ProgramAtPoints(program, kept).quantities(np.zeros((1, 1)))["f"][0]
    np.testing.assert_array_equal(found[good], again)


def test_a_density_is_what_it_was() -> None:
    body, functions = calls("  real f = normal_lpdf(0.3 | 1, 2) + poisson_log_lpmf(3 | 0.5);\n")
    assert "pyhybrid_total_normal_lpdf" in body
    expected = stats.norm.logpdf(0.3, 1, 2) + stats.poisson.logpmf(3, np.exp(0.5))
    assert quantities(body, functions)["f"][0] == pytest.approx(expected, rel=1e-13)

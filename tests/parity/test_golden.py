"""Every golden case: Python and live R against the brute-force value, and so against each other;
masks, of which no value is stored, at random arguments."""

import json
import re
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyhybrid as ph
from pyhybrid.arrays import PrivacyCharge
from pyhybrid.privacy.charge import Spent
from pyhybrid.privacy.conversions import round_up
from pyhybrid.privacy.scores import ScoringDesign
from tests.golden.measures.make_measures import FILE, measures
from tests.refusals import fails, refuses

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden"
_ARRAYS = ("scores", "precision", "whitening", "theta", "noisy_sum", "prior_gradient", "w", "x")
_NUMBERS = {"Inf": np.inf, "-Inf": -np.inf, "NaN": np.nan}


def decoded(value: Any) -> Any:
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        return {name: decoded(item) for name, item in value.items()}
    return value


def cases(wrong: bool) -> list[Any]:
    """Every (function, case) of every file that is, or is not, to be refused."""
    files = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [
        pytest.param(file["function"], case, id=f"{file['function']}: {case['name']}")
        for file in files
        for case in file["cases"]
        if ("error" in case) == wrong
    ]


def in_python(function: str, args: dict[str, Any]) -> Any:
    """The value of pyhybrid's function; a record as the dict of its fields."""
    args = dict(decoded(args))
    if "charges" in args:
        args["charges"] = [_charge(**charge) for charge in args["charges"]]
    if "design" in args:
        args["design"] = ScoringDesign(**{k: np.array(v) for k, v in args["design"].items()})
    args = {k: np.array(v) if k in _ARRAYS else v for k, v in args.items()}
    rooms = (ph, ph.arrays, ph.measures, ph.masking)
    room: Any = next((room for room in rooms if hasattr(room, function)), None)
    value = round_up(**args) if room is None else getattr(room, function)(**args)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def in_r(r: Any, function: str, args: dict[str, Any]) -> Any:
    """The value of R's function of the same name."""
    return r(function, **{name: _for_r(name, value) for name, value in decoded(args).items()})


def assert_same(found: Any, expected: Any, *, relative: float = 1e-12) -> None:
    """Equal to `relative`, with a floor of 1e-15 for differences from 1; records field by field."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_same(found[name], value, relative=relative)
        return
    left, right = np.atleast_1d(np.squeeze(found)), np.atleast_1d(np.squeeze(expected))
    assert left.shape == right.shape
    if right.dtype.kind in "UO":
        assert left.tolist() == right.tolist()
        return
    np.testing.assert_allclose(
        left.astype(float), right.astype(float), rtol=relative, atol=1e-15, equal_nan=True
    )


def message_part(case: dict[str, Any], *, first: int) -> str:
    """The part of an error message, records counted from `first`, which is 1 in R's words."""
    text = str(case["error"])
    if first == 1:  # R has vectors of length n, not of shape (n,)
        text = re.sub(r"(?:shape )?\((\w+),\)", r"length \1", text)
    return re.sub(r"\{record (\d+)\}", lambda hit: f"record {int(hit[1]) + first}", text)


def _charge(epsilon: float, kind: str, relation: str) -> PrivacyCharge:
    account = Spent(pure=epsilon, rho_of_pure=None)
    return PrivacyCharge(
        mechanism="Unweighted", kind=kind, relation=relation, n_synthetic=1, n_draws_released=1,
        accounts={"pure": account}, accounting="pure",
    )  # fmt: skip


def _for_r(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _for_r(key, part) for key, part in value.items()}
    if name == "charges" or not isinstance(value, list):
        return value
    if name == "pattern" and value and isinstance(value[0], list):
        return np.array(value, dtype=str).astype(object)
    array = np.array(value)
    return array.astype(object) if array.dtype.kind == "U" else array


@pytest.mark.parametrize(("function", "case"), cases(wrong=False))
def test_python_gives_the_golden_value(function: str, case: dict[str, Any]) -> None:
    assert_same(in_python(function, case["args"]), decoded(case["expected"]))


@pytest.mark.parametrize(("function", "case"), cases(wrong=False))
def test_r_gives_the_value_of_python(function: str, case: dict[str, Any], r: Any) -> None:
    from_r = in_r(r, function, case["args"])
    assert_same(from_r, decoded(case["expected"]))
    from_python = in_python(function, case["args"])
    shared = from_python.keys() & from_r.keys() if isinstance(from_python, dict) else None
    if shared is not None:
        from_python = {name: from_python[name] for name in shared}
        assert len(shared) >= 4
    assert_same(from_r, from_python)


@pytest.mark.parametrize(("function", "case"), cases(wrong=True))
def test_python_refuses_in_these_words(function: str, case: dict[str, Any]) -> None:
    assert message_part(case, first=0) in refuses("", in_python, function, case["args"])


@pytest.mark.parametrize(("function", "case"), cases(wrong=True))
def test_r_refuses_in_the_same_words(function: str, case: dict[str, Any], r: Any) -> None:
    assert message_part(case, first=1) in refuses("", in_r, r, function, case["args"])


def test_the_comparison_catches_a_wrong_number() -> None:
    for found, expected in ((1 + 1e-11, 1.0), ([1, 2], [1, 3]), ([1.0], [1.0, 1.0]), ("a", "b")):
        fails(AssertionError, "", assert_same, found, expected)


def masks_at_random(rng: np.random.Generator) -> list[tuple[str, dict[str, Any]]]:
    n, levels = 12, 4
    x, w = rng.normal(size=n), rng.normal(size=(n, 3))
    codes, seen = (rng.integers(0, levels, n).astype(float) for _ in range(2))
    matrix, prior = rng.dirichlet(np.ones(levels), levels), rng.dirichlet(np.ones(levels), n)
    nominal, logs = rng.normal(size=(n, levels)), rng.normal(0, 3, (n, levels))
    return [
        ("gaussian_mask_log_density", {"w": w, "x": x, "variance": 0.7}),
        ("mixture_mask_log_density", {"w": x, "x": codes, "separation": 2.5}),
        ("mixture_mask_log_density", {"w": nominal, "x": codes, "separation": 2.5}),
        ("misclassification_log_density", {"w": seen, "x": codes, "matrix": matrix}),
        ("masked_normal", {"mean": x, "variance": rng.gamma(2, size=n), "w": w,
                           "mask_variance": 0.7}),
        ("masked_level_probabilities", {"prior": prior, "log_density": logs}),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_masks_have_the_same_numbers_in_both_languages(seed: int, r: Any) -> None:
    for function, args in masks_at_random(np.random.default_rng(seed)):
        assert_same(r(function, **args), in_python(function, args))


def test_every_function_of_both_languages_is_compared() -> None:
    exported = re.findall(r"export\((\w+)\)", (ROOT / "NAMESPACE").read_text())
    public = {*ph.__all__, *(n for room in ph.ROOMS for n in getattr(ph, room).__all__)}
    compared = {json.loads(path.read_text())["function"] for path in FOLDER.glob("*.json")}
    compared |= {function for function, _ in masks_at_random(np.random.default_rng(0))}
    compared |= {"compare", "pool", "sole_informants"}  # of tables: tests/golden/measures
    compared |= {"leave_one_out_loss"}  # smoothed by ArviZ and by loo: each held to exact ones
    assert {name for name in exported if name in public} <= compared


def test_the_stored_numbers_of_measures_are_pythons() -> None:
    stored, today = json.loads(FILE.read_text()), json.loads(json.dumps(measures()))
    assert stored.keys() == today.keys()
    assert_same(today, stored, relative=1e-9)

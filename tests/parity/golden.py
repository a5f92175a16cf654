"""Reading tests/golden and comparing what two languages make of a case."""

import json
import re
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.arrays import PrivacyCharge
from pyhybrid.privacy.charge import Spent
from pyhybrid.privacy.scores import ScoringDesign
from pyhybrid.validation import arrays

FOLDER = Path(__file__).resolve().parent.parent / "golden"
_ARRAYS = ("scores", "precision", "whitening", "theta", "noisy_sum", "prior_gradient")
_NUMBERS = {"Inf": np.inf, "-Inf": -np.inf, "NaN": np.nan}


def golden_cases() -> list[tuple[str, dict[str, Any]]]:
    """Every (function, case) of every file."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        found += [(content["function"], case) for case in content["cases"]]
    return found


def label(function: str, case: dict[str, Any]) -> str:
    return f"{function}: {case['name']}"


def decoded(value: Any) -> Any:
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        return {name: decoded(item) for name, item in value.items()}
    return value


def arguments(case: dict[str, Any]) -> dict[str, Any]:
    return dict(decoded(case["args"]))


def in_python(function: str, args: dict[str, Any]) -> Any:
    """The value of pyhybrid's function; a record as the dict of its fields."""
    args = dict(args)
    if "charges" in args:
        args["charges"] = [_charge(**charge) for charge in args["charges"]]
    if "design" in args:
        args["design"] = ScoringDesign(**{k: np.array(v) for k, v in args["design"].items()})
    args = {k: np.array(v) if k in _ARRAYS else v for k, v in args.items()}
    value = arrays.in_python(function)(**args)
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def in_r(r: Any, function: str, args: dict[str, Any]) -> Any:
    """The value of R's function of the same name."""
    return r(function, **{name: _for_r(name, value) for name, value in args.items()})


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

"""`python -m benchmarks.mutation [--every K] [MODULE ...]`: are the tests of the array core worth
their names?

One change at a time is made to a module's source (a comparison, a sign, a constant, a condition, a
lost statement), and the module's tests run in a fork whose import of that module gets the changed
source. A mutant that no test notices survives and is printed. Nothing on disk is touched. With
`--every K` each K-th mutant is tried, a sample without chance.

An own runner, as the modules live in a package with data outside of it and their tests are in
`tests`, which mutmut and cosmic-ray copy or rewrite on disk; hypothesis is held to 40 examples.

Survivors that are left do not change what is computed; `EXPLAINED` says why, line by line.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.util
import itertools
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_GOLDEN = [
    f"tests/parity/test_golden.py::test_python_{name}"
    for name in ("gives_the_golden_value", "refuses_in_these_words")
]
_CHARGES = [
    *(f"tests/privacy/test_{name}.py" for name in ("conversions", "charge", "composition")),
    "tests/mechanisms/test_charge_of_fit.py", "tests/privacy/test_local_account.py",
    "tests/releases/test_seals.py", "tests/releases/test_gaussian_spending.py",
]  # fmt: skip
MODULES = {
    "privacy.conversions": [*_CHARGES[:3], *_GOLDEN],
    "privacy.charge": _CHARGES,
    "privacy.composition": [*_CHARGES[:3], *_GOLDEN],
    "privacy.weights": [
        "tests/privacy/test_weights.py", "tests/privacy/test_risk_weights.py", *_GOLDEN,
    ],
    "privacy.bounds": ["tests/privacy/test_bounds.py", *_GOLDEN],
    "privacy.count_risk": ["tests/privacy/test_bounds.py", *_GOLDEN],
    **{f"privacy.{name}": [f"tests/privacy/test_{name}.py", *_GOLDEN] for name in (
        "censoring", "diagnostics", "gaussian_limit", "histogram", "hypothetical_records",
        "leave_one_out", "local_account", "log_lik", "weight_sensitivity",
    )},
    "mechanisms.censored.censored": ["tests/mechanisms/test_censored.py"],
    "mechanisms.accounting.charge": ["tests/mechanisms/test_charge_of_fit.py"],
    "mechanisms.censored.calibration": ["tests/mechanisms/test_censored.py"],
}  # fmt: skip
_LIMIT = 180  # seconds for a mutant, also on a loaded machine
_EXAMPLES = 40
_OPTIONS = [
    "-x",
    "-q",
    "--hypothesis-profile=mutants",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
]
_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_PAIRS = (
    ("max", "min"),
    ("maximum", "minimum"),
    ("any", "all"),
    ("ceil", "floor"),
    ("zeros", "ones"),
)
_NAMES = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])}

_QUICKER = "q = 1 by way of quantiles gives the same draws and bounds, later"
EXPLAINED: dict[str, dict[tuple[str, str], str]] = {
    "privacy.weights": {
        ("comparison", "if quantile < 1:"): _QUICKER,
        ("constant", "if quantile < 1:"): _QUICKER,
        **dict.fromkeys(
            (
                (kind, "spread = (block - block[0]).std(axis=0, ddof=1, dtype=np.float64)")
                for kind in ("operator", "constant")
            ),
            "a shift by any row keeps digits and changes no deviation",
        ),
        (
            "constant",
            "raised = np.where(weights > 0, 1.0, 0.0)  # a record without any bound to meet goes "
            "to 1",
        ): "2 is clipped to 1",
        (
            "comparison",
            "where = (lipschitz > 0) & (weights > 0)",
        ): "0 times the overall bound over a bound above 0 is 0",
    },
    "privacy.bounds": {
        ("constant", "if quantile == 1:"): _QUICKER,
        ("comparison", "if draw_quantile < 1:"): _QUICKER,
        ("constant", "if draw_quantile < 1:"): _QUICKER,
        (
            "constant",
            "top = np.zeros(int(row_of.max()) + 1)",
        ): "one more element, which no row is read from",
        ("constant", "n_draws, largest = 0, []"): "the first block sets it, and there is one",
    },
    "privacy.count_risk": {
        ("operator", "here + 1,"): "a search from further down ends at the same place",
        (
            "operator",
            "edges = np.bincount(balls.low, minlength=d + 1) - np.bincount(balls.high, "
            "minlength=d + 1)",
        ): "the ball of the largest value ends at d, so that the second count is as long already",
        ("name", "code = np.zeros(n, dtype=np.intp)"): "one code for all, whichever",
        ("constant", "for column in columns.reshape(n, -1).T:"): "numpy takes any negative number",
        (
            "operator",
            "code = np.unique(code * len(levels) + level, return_inverse=True)[1]",
        ): "minus keeps codes apart as well (division does not, and is killed)",
    },
    "mechanisms.censored.calibration": {
        ("constant", "censored=0.0,"): "replaced at the end",
        (
            "constant",
            "np.greater(alpha * np.where(alpha > 0, f, 0), self.cap, out=met)",
        ): "a weight of 0 makes 0 of 1, too (weights above 1, which none has, are killed)",
        ("name", "met = np.zeros(f.size, dtype=bool)"): "overwritten by the comparison",
        (
            "statement",
            "raise InvalidInput(",
        ): "draws of another shape: held by tests/fuzzing/test_found.py",
    },
    "mechanisms.censored.censored": {
        ("constant", "warnings.warn(message, stacklevel=2)"): "whose line the warning shows",
    },
}
"""By module, from the kind of change and its source line to why it changes nothing."""


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """What may be put in the place of `node`, with a word for it."""
    if isinstance(node, ast.Compare):
        for place, op in enumerate(node.ops):
            if type(op) in _COMPARED:
                new = copy.deepcopy(node)
                new.ops[place] = _COMPARED[type(op)]()
                yield "comparison", new
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        new = copy.deepcopy(node)
        new.op = _COMPUTED[type(node.op)]()
        yield "operator", new
    elif isinstance(node, ast.BoolOp):
        new = copy.deepcopy(node)
        new.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield "and/or", new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield "constant", ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
        yield "name", ast.Name(_NAMES[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield "name", ast.Attribute(copy.deepcopy(node.value), _NAMES[node.attr], node.ctx)
    elif isinstance(node, (ast.Expr, ast.Raise)) and not (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ):
        yield "statement", ast.Pass()
    elif isinstance(node, ast.IfExp):
        yield "condition", ast.IfExp(node.test, node.orelse, node.body)


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind of change, and source of each mutant; annotations and messages stay."""
    tree = ast.parse(source)
    for path in _paths(tree):
        node = _at(tree, path)
        for kind, new in changes(node):
            whole = copy.deepcopy(tree)
            holder = _at(whole, path[:-1])
            field, place = path[-1]
            if place is None:
                setattr(holder, field, new)
            else:
                getattr(holder, field)[place] = new
            yield getattr(node, "lineno", 0), kind, ast.unparse(ast.fix_missing_locations(whole))


def _at(tree: ast.AST, path: tuple[tuple[str, int | None], ...]) -> Any:
    node: Any = tree
    for field, place in path:
        node = getattr(node, field) if place is None else getattr(node, field)[place]
    return node


def _paths(
    node: ast.AST, path: tuple[tuple[str, int | None], ...] = ()
) -> Iterator[tuple[tuple[str, int | None], ...]]:
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "exc", "msg"):
            continue
        if isinstance(value, ast.AST) and not isinstance(value, ast.JoinedStr):
            yield (*path, (field, None))
            yield from _paths(value, (*path, (field, None)))
        elif isinstance(value, list):
            for place, each in enumerate(value):
                if isinstance(each, ast.AST) and not isinstance(each, ast.JoinedStr):
                    yield (*path, (field, place))
                    yield from _paths(each, (*path, (field, place)))


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from the source given."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        file = _file(name)
        return importlib.util.spec_from_file_location(name, file, loader=self)  # type: ignore[arg-type]

    def get_source(self, fullname: str) -> str:
        return self.source


def _file(name: str) -> Path:
    return ROOT.joinpath(*name.split(".")).with_suffix(".py")


def survives(module: str, source: str, tests: list[str]) -> bool:
    """Whether all tests pass with `source` in the place of the module."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(_LIMIT)
        sys.meta_path.insert(0, _Changed(f"pyhybrid.{module}", source))
        import hypothesis
        import pytest

        hypothesis.settings.register_profile(
            "mutants", max_examples=_EXAMPLES, derandomize=True, database=None, deadline=None
        )
        code = 1
        try:
            code = pytest.main([*_OPTIONS, *tests])
        finally:
            os._exit(int(code))
    return os.waitpid(child, 0)[1] == 0


def run(module: str, every: int = 1) -> list[tuple[int, str, str]]:
    """Print and return the survivors of one module: line, kind, source line."""
    source, known = _file(f"pyhybrid.{module}").read_text(), EXPLAINED.get(module, {})
    lines, started = source.splitlines(), time.perf_counter()
    tests = [path for path in MODULES[module] if (ROOT / path.partition("::")[0]).exists()]
    if not survives(module, source, tests):
        raise SystemExit(f"the tests of {module} must pass before it is changed: they do not")
    made, left = 0, []
    for line, kind, changed in itertools.islice(mutants(source), 0, None, every):
        made += 1
        if survives(module, changed, tests):
            left.append((line, kind, lines[line - 1].strip()))
            why = known.get(left[-1][1:], "SURVIVES")
            print(
                f"  {module}.py:{line} {kind}: {lines[line - 1].strip()}\n      {why}", flush=True
            )
    explained = sum(each[1:] in known for each in left)
    print(
        f"{module}: {made} mutants, {made - len(left)} killed, {explained} explained, "
        f"{len(left) - explained} survive, {time.perf_counter() - started:.0f} s",
        flush=True,
    )
    return left


def main(names: list[str]) -> int:
    """Exit code 1 if a survivor is not explained."""
    import numpy  # noqa: F401  (shared by all forks)
    import pandas  # noqa: F401
    import pytest  # noqa: F401
    import scipy.special
    import scipy.stats  # noqa: F401

    os.chdir(ROOT)
    every = int(names.pop(1)) if names[:1] == ["--every"] else 1
    names = names[1:] if names[:1] == ["--every"] else names
    chosen = names or list(MODULES)
    survivors = [(name, each[1:]) for name in chosen for each in run(name, every)]
    return int(any(change not in EXPLAINED.get(name, {}) for name, change in survivors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

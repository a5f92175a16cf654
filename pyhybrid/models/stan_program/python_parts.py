"""Functions in Python that come with a user's Stan program: what they must not hold or return.

A function of the table is handed a table without the confidential outcome, or with other values in
its place. It could still reach the records by another way: a variable of its module, a closure, a
default, a file. Objects with one value per record are looked for in what it holds, and what it
returns is held against the outcome.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pyhybrid.core.checks import FloatArray
from pyhybrid.core.errors import InvalidInput

__all__ = ["check_follows_rows", "check_holds_no_records", "check_no_copy", "is_copy"]

_MOST_OBJECTS, _DEEPEST = 20_000, 6
_FEWEST = 5  # records that show an order
_NO_CODE = (str, bytes, int, float, complex, bool, type(None), type)


def check_holds_no_records(
    function: Any, name: str, outcome: FloatArray, public: tuple[str, ...]
) -> None:
    """Raise InvalidInput if `function` can reach an object with one value per record.

    Parameters
    ----------
    function : callable
    name : str
        Its name in messages.
    outcome : ndarray, shape (n,)
    public : tuple of str
        Names of objects that the user declares public.
    """
    seen: set[int] = set()
    queue: list[tuple[str, Any, int]] = [(name, function, 0)]
    while queue and len(seen) < _MOST_OBJECTS:
        said, thing, depth = queue.pop()
        if isinstance(thing, _NO_CODE) or id(thing) in seen or said in public:
            continue
        seen.add(id(thing))
        if _has_records(thing, outcome):
            raise InvalidInput(
                f"{name} must not hold one value per record: it reaches {said!r}, which has "
                f"{outcome.size} of them or the outcome's values; read columns from the table "
                f"that the function is given, or name it in public=({said!r},) if it is public"
            )
        if depth < _DEEPEST:
            queue += [(inner, each, depth + 1) for inner, each in _reached(thing, said)]


def check_follows_rows(
    data_of: Callable[[pd.DataFrame], Mapping[str, Any]],
    table: pd.DataFrame,
    public: tuple[str, ...] = (),
) -> None:
    """Raise InvalidInput if an entry of `data_of(table)` has a value per record that stays where
    it is when the rows change places: it then comes from elsewhere."""
    order = np.random.default_rng(20220101).permutation(len(table))
    moved = data_of(table.iloc[order].reset_index(drop=True))
    for name, value in data_of(table).items():
        here, there = np.asarray(value), np.asarray(moved.get(name))
        if (
            name in public
            or here.ndim == 0
            or here.shape[0] != len(table)
            or here.shape != there.shape
        ):
            continue
        if np.array_equal(here, there) and not np.array_equal(here[order], here):
            raise InvalidInput(
                f"data must follow the rows of the table: entry {name!r} has one value per record "
                "and stays as it is when the rows change places; compute it from the columns"
            )


def check_no_copy(made: FloatArray, outcome: FloatArray, name: str) -> None:
    """Raise InvalidInput if replicates are the outcome, or a function of it, whatever the draw.

    Parameters
    ----------
    made : ndarray, shape (R, n)
        Replicates of several parameters and seeds.
    outcome : ndarray, shape (n,)
    name : str
    """
    values, counts = np.unique(outcome, return_counts=True)
    alone = np.isin(outcome, values[counts == 1])
    same = np.isclose(made, outcome, rtol=1e-12, atol=0).all(axis=0)
    still = np.flatnonzero((made == made[0]).all(axis=0))
    if (alone & same).any() or is_copy(made[0, still], outcome[still]):
        raise InvalidInput(
            f"{name} returns the confidential outcome or a function of it: its values stay the "
            "same whatever the parameters and the random numbers; draw them from the parameters"
        )


def is_copy(made: FloatArray, outcome: FloatArray) -> bool:
    """True if `made` (n,) rises, or falls, with the outcome (n,): a function of it."""
    if np.unique(made).size < _FEWEST or np.unique(outcome).size < _FEWEST:
        return False
    steps = np.diff(made[np.lexsort((made, outcome))])
    back = np.diff(made[np.lexsort((-made, outcome))])
    return bool((steps >= 0).all() or (back <= 0).all())


def _has_records(thing: Any, outcome: FloatArray) -> bool:
    """True for a table, array or collection with n rows, or with all values of the outcome."""
    n = outcome.size
    if isinstance(thing, (pd.DataFrame, pd.Series, pd.Index)):
        if len(thing) == n:
            return True
        columns = thing.to_frame() if not isinstance(thing, pd.DataFrame) else thing
        return any(_contains(column.to_numpy(), outcome) for _, column in columns.items())
    if isinstance(thing, np.ndarray):
        return n in thing.shape or _contains(thing, outcome)
    if isinstance(thing, Mapping):
        return len(thing) == n or _contains(_array(list(thing.values())), outcome)
    if isinstance(thing, (list, tuple, set, frozenset)):
        return len(thing) == n or _contains(_array(list(thing)), outcome)
    return False


def _array(values: list[Any]) -> npt.NDArray[Any]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _contains(values: npt.NDArray[Any], outcome: FloatArray) -> bool:
    """True if every value of the outcome occurs in `values`, as often as in the outcome."""
    if values.size < outcome.size or values.dtype.kind not in "fiu":
        return False
    own, often = np.unique(outcome, return_counts=True)
    found, counts = np.unique(values, return_counts=True)
    place = np.searchsorted(found, own).clip(0, found.size - 1)
    return bool(((found[place] == own) & (counts[place] >= often)).all())


def _reached(thing: Any, said: str) -> Iterator[tuple[str, Any]]:
    """What an object leads to: names of a function's code, attributes, elements."""
    if isinstance(thing, functools.partial):
        yield from [(said, each) for each in (thing.func, *thing.args)]
        yield from thing.keywords.items()
    elif isinstance(thing, types.MethodType):
        yield from ((said, thing.__func__), (said, thing.__self__))
    elif isinstance(thing, types.FunctionType):
        if not _is_library(thing):
            yield from _of_function(thing, said)
    elif isinstance(thing, Mapping):
        yield from [(said, each) for each in thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from [(said, each) for each in thing]
    elif not isinstance(thing, (types.ModuleType, pd.DataFrame, pd.Series, np.ndarray)):
        yield from getattr(thing, "__dict__", {}).items()
        called = vars(type(thing)).get("__call__")
        if isinstance(called, types.FunctionType):
            yield said, called


def _of_function(function: types.FunctionType, said: str) -> Iterator[tuple[str, Any]]:
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        yield from [(said, each) for each in code.co_consts if isinstance(each, (tuple, frozenset))]
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        yield name, value
        if isinstance(value, types.ModuleType) and not _is_library(value):
            yield from [(inner, getattr(value, inner)) for inner in names if hasattr(value, inner)]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable that has no value yet
            continue
    yield from [(said, each) for each in function.__defaults__ or ()]
    yield from (function.__kwdefaults__ or {}).items()
    yield from [(name, each) for name, each in vars(function).items() if name != "__wrapped__"]
    if hasattr(function, "__wrapped__"):
        yield said, function.__wrapped__


def _is_library(thing: Any) -> bool:
    """True for code that was installed, not written by the user."""
    where = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
    module = sys.modules.get(str(where))
    path = str(getattr(module, "__file__", "") or "")
    root = str(where).partition(".")[0]
    own = sys.stdlib_module_names - {"__main__"} | {"pyhybrid"}
    return root in own or "site-packages" in path

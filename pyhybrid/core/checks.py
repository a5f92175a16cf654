"""Checks of arguments, each raising `InvalidInput` with what was found and where.

Array functions call these once at their public face; private functions compute.
"""

from __future__ import annotations

import difflib
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pyhybrid.core.errors import InvalidInput

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


def check_finite(value: Any, name: str) -> float:
    """Return `value` as a float; it must be one finite number."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not real:
        raise InvalidInput(f"{name} must be a finite number: found {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be a finite number: found {number}")
    return number


def check_positive(value: Any, name: str) -> float:
    """Return `value` as a float; it must be finite and above 0."""
    number = check_finite(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} must be above 0: found {number:g}")
    return number


def check_nonnegative(value: Any, name: str) -> float:
    """Return `value` as a float; it must be finite and not below 0."""
    number = check_finite(value, name)
    if number < 0:
        raise InvalidInput(f"{name} must be >= 0: found {number:g}")
    return number


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float; it must lie in (0, 1]."""
    number = check_finite(value, name)
    if not 0 < number <= 1:
        raise InvalidInput(f"{name} must lie in (0, 1]: found {number:g}")
    return number


def check_count(value: Any, name: str, *, at_least: int = 1) -> int:
    """Return `value` as an int; it must be a whole number of at least `at_least`."""
    number = check_finite(value, name)
    if number != int(number) or number < at_least:
        raise InvalidInput(f"{name} must be a whole number >= {at_least}: found {value!r}")
    return int(number)


def check_flag(value: Any, name: str) -> bool:
    """Return `value` as a bool; it must be True or False, and not what stands for it."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} must be True or False: found {value!r}")
    return bool(value)


def check_draws_released(value: Any, n_synthetic: int) -> int:
    """Return how many draws m sets are simulated from: m (also for None) or 1."""
    draws = n_synthetic if value is None else check_count(value, "n_draws_released")
    if draws not in (1, n_synthetic):
        raise InvalidInput(
            f"n_draws_released must be 1 or n_synthetic = {n_synthetic}: found {draws}"
        )
    return draws


def check_choice(value: Any, name: str, known: Iterable[str]) -> str:
    """Return `value`; it must be one of `known`, which the message lists."""
    options = list(known)
    if not isinstance(value, str) or value not in options:
        raise InvalidInput(
            f"{name} must be one of {', '.join(options)}: found {value!r}"
            f"{did_you_mean(str(value), options)}"
        )
    return value


def check_vector(values: Any, name: str, *, length: int | None = None) -> FloatArray:
    """Return `values` as a 1-d float array of at least one element, NaN and inf allowed."""
    vector = check_numeric(values, name)
    if vector.ndim != 1 or vector.size == 0:
        raise InvalidInput(f"{name} must be a vector of shape (n,), n >= 1: found {vector.shape}")
    if length is not None and vector.size != length:
        raise InvalidInput(f"{name} must have {length} elements: found {vector.size}")
    return vector


def check_nonnegative_vector(values: Any, name: str, *, length: int | None = None) -> FloatArray:
    """Return `values` as a vector without NaN or negative elements; infinity is allowed."""
    vector = check_vector(values, name, length=length)
    check_each(vector >= 0, name + " must be >= 0 and not NaN: record {} is not")
    return vector


def check_names(columns: Iterable[Any], labels: Iterable[Any] = ()) -> None:
    """Refuse columns, and names of row labels, of which two are one text: either of them could be
    published in place of the other."""
    names = [str(name) for name in columns]
    texts = [*names, *(str(name) for name in labels if name is not None)]
    alike = next((text for text, times in Counter(texts).items() if times > 1), None)
    if alike is not None and names.count(alike) == 1:
        raise InvalidInput(
            f"row labels must not have the name of a column: found {alike!r}; leave them out "
            "(reset_index(drop=True)) or rename them"
        )
    if alike is not None:
        raise InvalidInput(f"column names must be unique: {alike!r} occurs more than once")


def check_each(holds: Any, message: str) -> None:
    """Raise the message with the number, in place of {}, of the first record that does not hold."""
    if not np.all(holds):
        raise InvalidInput(message.replace("{}", str(np.argmin(holds)), 1))


def check_alpha(alpha: Any, n: int) -> FloatArray:
    """Return record weights as an array of shape (n,); each must lie in [0, 1]."""
    vector = check_vector(alpha, "alpha", length=n)
    within = (vector >= 0) & (vector <= 1)
    check_each(within, "alpha must lie in [0, 1]: record {} has another weight")
    return vector


def check_log_lik(log_lik: Any) -> FloatArray:
    """A log-likelihood matrix (S draws, n records), S, n >= 1."""
    matrix = check_numeric(log_lik, "log_lik")
    if matrix.ndim != 2 or matrix.size == 0:
        raise InvalidInput(
            "log_lik must have shape (S draws, n records) with S >= 1 and n >= 1: "
            f"found {matrix.shape}"
        )
    return matrix


def check_numeric(values: Any, name: str) -> FloatArray:
    """Return `values` as an array of floats; text that could be read as numbers is refused, too."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError
        if array.dtype.kind in "USO" and any(isinstance(v, (str, bytes)) for v in array.flat):
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:  # whole numbers of hundreds of digits
        rows = ", with rows of one length" if "inhomogeneous" in str(error) else ""
        raise InvalidInput(f"{name} must be numeric{rows}: found {type(values).__name__}") from None


def check_output_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Refuse an output folder that exists and is not empty, unless `overwrite`."""
    path = os.fspath(folder)
    if os.path.exists(path) and not os.path.isdir(path):
        raise InvalidInput(f"output {path} must be a folder: it is a file")
    if os.path.isdir(path) and os.listdir(path) and not overwrite:
        raise InvalidInput(
            f"output folder {path} must be empty or new: give overwrite=True, or another"
        )


_READ_FIRST: Mapping[str, str] = {
    **dict.fromkeys(("str", "PosixPath"), "; read it first: pd.read_csv, pd.read_parquet"),
    "dict": "; make one of it: pd.DataFrame(data)",
    "ndarray": "; make one of it: pd.DataFrame(data, columns=[...])",
    "Series": "; make one of it: data.to_frame()",
}


def not_a_frame(data: Any, name: str = "data") -> InvalidInput:
    """The error for data that are no data frame, with what makes one of them."""
    kind = type(data).__name__
    return InvalidInput(
        f"{name} must be a pandas DataFrame: found {kind}{_READ_FIRST.get(kind, '')}"
    )


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """The end of a message on a name that is not known: the nearest one, or nothing."""
    names = {str(name_).lower(): str(name_) for name_ in known}
    near = difflib.get_close_matches(str(name).lower(), list(names), n=1, cutoff=0.65)
    return f" (did you mean {names[near[0]]!r}?)" if near else ""


def number_of(n: int, thing: str) -> str:
    """A number and the thing that is counted, as "1 set" or "20 sets"."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"

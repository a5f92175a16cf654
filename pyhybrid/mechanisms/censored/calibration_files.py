"""Calibrations on disk: one folder of readable files.

================= ===========================================================================
calibration.json  model, extremes, scale, shift, cap, center, relation, levels, program hash,
                  provenance
draws.csv         reference draws of the likelihood's parameters, one column per scalar
frozen.csv        rows of the reference, of which the excess and the region are made
reference.csv     digests of the reference's records, under the key in calibration.json
================= ===========================================================================
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import FloatArray, check_choice, check_finite, check_flag, check_positive
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Draws, Provenance, SamplerSettings
from pyhybrid.mechanisms.censored.frozen_files import frozen_table, read_frozen
from pyhybrid.mechanisms.censored.reference_records import ReferenceRecords
from pyhybrid.models import Model
from pyhybrid.models.registry import described_model
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.epsilon import RELATIONS
from pyhybrid.privacy.frozen_rows import FrozenTerms
from pyhybrid.releases.parts import read_names
from pyhybrid.running.files import folder_aside, whole_only

__all__ = ["frozen_draws", "load_fields", "save_fields"]

_VERSION = 1
_KEY_BYTES = 16
_NUMBERS = ("lowest", "highest", "scale", "shift", "cap", "relation", "censored", "program_sha256")


def save_fields(
    calibration: Mapping[str, Any], folder: str | os.PathLike[str], *, overwrite: bool
) -> None:
    """Write the fields of a `Calibration`; see `Calibration.save`."""
    draws, reference = calibration["draws"], calibration["reference"]
    center, bought = calibration["center"], calibration["bought"]
    content = {
        "format": _VERSION,
        "model": calibration["model"].describe(),
        **{name: calibration[name] for name in _NUMBERS},
        "levels": dict(calibration["levels"]),
        "columns": calibration["columns"],
        "shapes": {n: v.shape[2:] for n, v in draws.variables.items()},
        "provenance": draws.provenance and asdict(draws.provenance),
        "center": None if center is None else center.as_dict(),
        "frozen_rows": center is not None and center.frozen is not None,
        "epsilon": calibration["epsilon"],
        "holds_no_released_record": calibration["holds_no_released_record"],
        "bought": None if bought is None else {**bought.as_dict(), "seal": bought.seal},
        "reference": None
        if reference is None
        else {"key": reference.key, "columns": reference.columns},
    }
    columns = {
        f"{name}.{place}": column
        for name in draws.variables
        for place, column in enumerate(_columns(draws.flat(name)))
    }
    with folder_aside(folder, overwrite=overwrite, private=True) as aside:
        text = json.dumps(content, indent=2) + "\n"
        (aside / "calibration.json").write_text(text, encoding="utf-8")
        pd.DataFrame(columns).to_csv(aside / "draws.csv", index=False)
        if center is not None and center.frozen is not None:
            frozen_table(center.frozen).to_csv(aside / "frozen.csv", index=False)
        if reference is not None:
            digests = {"of_model": reference.of_model, "of_row": reference.of_row}
            pd.DataFrame(digests).to_csv(aside / "reference.csv", index=False)


def load_fields(folder: str | os.PathLike[str], model: Model | None = None) -> dict[str, Any]:
    """Read the fields of a `Calibration`; see `Calibration.load`."""
    root = Path(folder)
    with whole_only(folder, "calibration"):
        content = json.loads((root / "calibration.json").read_text(encoding="utf-8"))
        table = pd.read_csv(root / "draws.csv", dtype=str).astype(float)  # exact, unlike C parsing
        if content["format"] != _VERSION:
            raise InvalidInput(
                f"{folder} must hold a calibration of format {_VERSION}: found {content['format']}"
            )
        made = content["provenance"]
        provenance: Any = made and Provenance(
            **{
                **made,
                "settings": SamplerSettings(**made["settings"]),
                "notes": tuple(made["notes"]),
            }
        )
        draws = {
            name: _variable(table, name, tuple(shape)) for name, shape in content["shapes"].items()
        }
        scalars = sum(values[0].size for values in draws.values())  # no draw: IndexError
        if scalars != table.shape[1] or not np.isfinite(table.to_numpy()).all():
            raise ValueError("draws")
        return {
            "model": _model(content["model"], model),
            "draws": frozen_draws(draws, provenance),
            "levels": {name: list(own) for name, own in content["levels"].items()},
            "columns": read_names(content, "columns"),
            "center": content.get("center"),
            "frozen": _frozen(root / "frozen.csv", content),
            "epsilon": _epsilon(content.get("epsilon")),
            "holds_no_released_record": check_flag(
                content.get("holds_no_released_record", False), "holds_no_released_record"
            ),
            "bought": _bought(content.get("bought")),
            "reference": _reference(root / "reference.csv", content.get("reference")),
            **_numbers(content),
        }


def _frozen(path: Path, content: Mapping[str, Any]) -> FrozenTerms | None:
    """The frozen rows of a center, which one that was given, or of a user's program, has not."""
    if content.get("center") is None or not content.get("frozen_rows", True):
        return None
    return read_frozen(pd.read_csv(path, dtype=str), content["columns"])  # exact, unlike C parsing


def _bought(fields: Mapping[str, Any] | None) -> PrivacyCharge | None:
    """What the center cost, as it was made."""
    if fields is None:
        return None
    charge = PrivacyCharge.from_dict(dict(fields))
    if not charge.is_sealed:
        raise ValueError("bought")
    return charge


def _epsilon(value: Any) -> float | None:
    return None if value is None else check_positive(value, "epsilon")


def _reference(path: Path, fields: Mapping[str, Any] | None) -> ReferenceRecords | None:
    """The digests of the reference, if the calibration has them."""
    if fields is None:
        return None
    table = pd.read_csv(path, dtype=str)
    digests = {name: np.array([int(each) for each in table[name]], dtype=np.uint64)
               for name in ("of_model", "of_row")}  # fmt: skip
    if not table.size or len(bytes.fromhex(fields["key"])) != _KEY_BYTES:
        raise ValueError("reference")
    return ReferenceRecords(key=fields["key"], columns=read_names(fields, "columns"), **digests)


def _numbers(content: dict[str, Any]) -> dict[str, Any]:
    """What weights and charge are made of, checked as `calibrate` checks it."""
    for name in ("lowest", "highest", "scale", "shift", "censored"):
        check_finite(content[name], name)
    check_positive(content["cap"], "cap")
    check_choice(content["relation"], "relation", RELATIONS)
    return {name: content[name] for name in _NUMBERS}


def _columns(values: FloatArray) -> FloatArray:
    return np.asarray(values.reshape(values.shape[0], -1).T)


def _variable(table: pd.DataFrame, name: str, shape: tuple[int, ...]) -> FloatArray:
    width = math.prod(shape)
    if not 0 < width <= table.shape[1]:
        raise ValueError(name)
    names = [f"{name}.{place}" for place in range(width)]
    values = np.asarray(table[names], dtype=np.float64)
    return np.asarray(values.reshape(len(table), *shape))


def _model(settings: dict[str, Any], given: Model | None) -> Model:
    """The model given, if it is the one that was stored, or the built-in one it names."""
    if given is not None:
        own = json.loads(json.dumps(given.describe()))
        other = [name for name in {**settings, **own} if settings.get(name) != own.get(name)]
        if other:
            raise InvalidInput(
                f"model must be the one that the calibration was made with: {other[0]} was "
                f"{settings.get(other[0])!r}, found {own.get(other[0])!r}"
            )
        return given
    return described_model(settings)


def frozen_draws(values: Mapping[str, FloatArray], provenance: Provenance) -> Draws:
    """Draws (S, *dims) by name as a `Draws` of one chain without sampler statistics."""
    n_draws = len(next(iter(values.values())))
    return Draws(
        variables={name: own[None] for name, own in values.items()},
        divergent=np.zeros((1, n_draws), dtype=bool),
        treedepth=np.zeros((1, n_draws), dtype=np.int64),
        energy=np.zeros((1, n_draws)),
        step_size=np.ones(1),
        inv_metric=None,
        parameters=tuple(values),
        provenance=provenance,
    )

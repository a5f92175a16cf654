"""Masked releases on disk, laid out as other releases are; see `pyhybrid.releases.folder`.

==================================== ==========================================================
public/synthetic_1.csv ...           the synthetic tables, imputation by imputation
public/risk_statement.md             NOT differentially private, and what that means
public/statement.json                the same in fields; the combining rule
public/schema.json                   dtypes and category levels
confidential/run.json                seed, diagnostics, settings
confidential/records.csv             label and risk subgroup, where masks differ by it
==================================== ==========================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import Diagnostics
from pyhybrid.masking.statement import NESTED, PARTIAL
from pyhybrid.releases.parts import (
    read_diagnostics,
    read_json,
    read_names,
    read_records,
    read_released,
    table_schema,
    write_json,
    write_table,
)
from pyhybrid.releases.published import published
from pyhybrid.running.files import folder_aside, make_private

__all__ = ["MaskedFolder", "load_masked", "save_masked"]

_VERSION = 1
_KIND = "masked"


@dataclass(frozen=True, kw_only=True, eq=False)
class MaskedFolder:
    """What the folder of a masked release holds.

    Attributes
    ----------
    tables : list of DataFrame
    statement : mapping
        Fields of the risk statement.
    statement_text : str
        The same in words.
    settings : mapping
    diagnostics : Diagnostics or None
    seeded : bool
    identifier : str
    labels : Index, length n
    subgroups : ndarray of str, shape (n,), or None
        Risk subgroup of each record.
    entropy : int
        The seed.
    """

    tables: list[pd.DataFrame]
    statement: Mapping[str, Any]
    statement_text: str
    settings: Mapping[str, Any]
    diagnostics: Diagnostics | None
    seeded: bool
    identifier: str
    labels: pd.Index
    subgroups: npt.NDArray[np.str_] | None
    entropy: int


def save_masked(
    content: MaskedFolder,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool,
    file_format: str,
    attachments: Mapping[str, str | bytes],
) -> None:
    """Write a masked release; see `MaskedRelease.save`."""
    with folder_aside(folder, overwrite=overwrite, private=False) as aside:
        _write_public(content, aside / "public", file_format)
        _write_confidential(content, aside / "confidential", attachments)


def load_masked(folder: str | os.PathLike[str]) -> MaskedFolder:
    """Read what `save_masked` wrote; see `MaskedRelease.load`."""
    root = Path(folder)
    run = read_json(root / "confidential" / "run.json")
    if run.get("format") != _VERSION or run.get("kind") != _KIND:
        raise InvalidInput(
            f"{root} must hold a masked release of format {_VERSION}: found "
            f"{run.get('kind', 'another kind')!r} of format {run.get('format')!r}; this is "
            f"pyhybrid {pyhybrid.__version__}"
        )
    public = root / "public"
    schema = read_json(public / "schema.json")
    statement = _statement(read_json(public / "statement.json"))
    tables = [
        read_released(public / f"synthetic_{place}.{schema['file_format']}", schema)
        for place in range(1, statement["n_sets"] + 1)
    ]
    records = root / "confidential" / "records.csv"
    groups = read_records(records)["subgroup"].to_numpy(dtype=str) if records.exists() else None
    return MaskedFolder(
        tables=tables,
        statement=statement,
        statement_text=(public / "risk_statement.md").read_text(encoding="utf-8"),
        settings=run["settings"],
        diagnostics=read_diagnostics(run["diagnostics"]),
        seeded=run["seeded"],
        identifier=run["identifier"],
        labels=tables[0].index,
        subgroups=groups,
        entropy=int(run["seed"]),
    )


def _statement(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a statement; those of earlier versions lack the unchanged shares."""
    del fields["differentially_private"]
    fields |= {"keys": read_names(fields, "keys"), "masks": dict(fields["masks"])}
    fields["unchanged"] = dict(fields.get("unchanged", {}))
    for key, share in fields["unchanged"].items():
        if not (share is None or (isinstance(share, (int, float)) and 0 <= share <= 1)):
            raise TypeError(key)
    check_choice(fields["rule"], "rule", (PARTIAL, NESTED))
    return fields


def _write_public(content: MaskedFolder, folder: Path, file_format: str) -> None:
    folder.mkdir(mode=0o755)
    tables = [published(table, content.statement["keys"]) for table in content.tables]
    for place, table in enumerate(tables, start=1):
        write_table(table, folder / f"synthetic_{place}.{file_format}")
    (folder / "risk_statement.md").write_text(content.statement_text, encoding="utf-8")
    write_json(folder / "statement.json", content.statement)
    write_json(folder / "schema.json", table_schema(tables[0], file_format))


def _write_confidential(
    content: MaskedFolder, folder: Path, attachments: Mapping[str, str | bytes]
) -> None:
    folder.mkdir(mode=0o700)
    run: dict[str, Any] = {
        "kind": _KIND,
        "format": _VERSION,
        "pyhybrid": pyhybrid.__version__,
        "identifier": content.identifier,
        "settings": dict(content.settings),
        "diagnostics": None if content.diagnostics is None else asdict(content.diagnostics),
        "seeded": content.seeded,
        "seed": str(content.entropy),
    }
    write_json(folder / "run.json", run)
    if content.subgroups is not None:
        records = pd.DataFrame({"label": content.labels.to_numpy(), "subgroup": content.subgroups})
        records.to_csv(folder / "records.csv", index=False)
    for name, text in attachments.items():
        data = text.encode() if isinstance(text, str) else text
        (folder / name).write_bytes(data)
    make_private(folder)

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

import pyhybrid
from pyhybrid.checks import check_choice
from pyhybrid.errors import InvalidInput
from pyhybrid.masking.release import (
    NESTED,
    PARTIAL,
    MaskedConfidential,
    MaskedRelease,
    RiskStatement,
)
from pyhybrid.releases.folder import FORMATS, folder_aside, whole_only
from pyhybrid.releases.parts import (
    read_diagnostics,
    read_json,
    read_names,
    read_records,
    read_table,
    table_schema,
    write_json,
    write_table,
)

__all__ = ["load_masked", "save_masked"]

_VERSION = 1
_KIND = "masked"


def save_masked(
    release: MaskedRelease,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool,
    file_format: str,
    attachments: Mapping[str, str | bytes],
) -> None:
    """Write `release`; see `MaskedRelease.save`."""
    check_choice(file_format, "file_format", FORMATS)
    with folder_aside(folder, overwrite=overwrite, mode=0o755) as aside:
        _write_public(release, aside / "public", file_format)
        _write_confidential(release, aside / "confidential", attachments)


def load_masked(folder: str | os.PathLike[str]) -> MaskedRelease:
    """Read a release; see `MaskedRelease.load`."""
    root = Path(folder)
    with whole_only(root, "masked release"):
        return _load(root)


def _load(root: Path) -> MaskedRelease:
    run = read_json(root / "confidential" / "run.json")
    if run.get("format") != _VERSION or run.get("kind") != _KIND:
        raise InvalidInput(
            f"{root} must hold a masked release of format {_VERSION}: found "
            f"{run.get('kind', 'another kind')!r} of format {run.get('format')!r}; this is "
            f"pyhybrid {pyhybrid.__version__}"
        )
    public = root / "public"
    schema, fields = read_json(public / "schema.json"), read_json(public / "statement.json")
    del fields["differentially_private"]
    fields |= {"keys": read_names(fields, "keys"), "masks": dict(fields["masks"])}
    check_choice(fields["rule"], "rule", (PARTIAL, NESTED))
    statement = RiskStatement(**fields)
    tables = [
        read_table(public / f"synthetic_{place}.{schema['file_format']}", schema)
        for place in range(1, statement.n_sets + 1)
    ]
    records = root / "confidential" / "records.csv"
    groups = read_records(records)["subgroup"].to_numpy(dtype=str) if records.exists() else None
    return MaskedRelease(
        synthetic=tables,
        n_imputations=statement.n_imputations,
        n_per_imputation=statement.n_sets // statement.n_imputations,
        rule=statement.rule,
        statement=statement,
        diagnostics=read_diagnostics(run["diagnostics"]),
        settings=run["settings"],
        seeded=run["seeded"],
        identifier=run["identifier"],
        confidential=MaskedConfidential(
            labels=tables[0].index, subgroups=groups, entropy=int(run["seed"])
        ),
    )


def _write_public(release: MaskedRelease, folder: Path, file_format: str) -> None:
    folder.mkdir(mode=0o755)
    for place, table in enumerate(release.synthetic, start=1):
        write_table(table, folder / f"synthetic_{place}.{file_format}")
    (folder / "risk_statement.md").write_text(release.statement.text, encoding="utf-8")
    write_json(folder / "statement.json", asdict(release.statement))
    write_json(folder / "schema.json", table_schema(release.synthetic[0], file_format))


def _write_confidential(
    release: MaskedRelease, folder: Path, attachments: Mapping[str, str | bytes]
) -> None:
    folder.mkdir(mode=0o700)
    kept = release.confidential
    run: dict[str, Any] = {
        "kind": _KIND,
        "format": _VERSION,
        "pyhybrid": pyhybrid.__version__,
        "identifier": release.identifier,
        "settings": dict(release.settings),
        "diagnostics": None if release.diagnostics is None else asdict(release.diagnostics),
        "seeded": release.seeded,
        "seed": str(kept.entropy),
    }
    write_json(folder / "run.json", run)
    if kept.subgroups is not None:
        records = pd.DataFrame({"label": kept.labels.to_numpy(), "subgroup": kept.subgroups})
        records.to_csv(folder / "records.csv", index=False)
    for name, content in attachments.items():
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
    for path in folder.iterdir():
        path.chmod(0o600)

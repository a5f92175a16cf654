"""What a catalog or a reader's program needs to know of a public file: variables and protection.

A plain JSON form of what the Data Documentation Initiative (DDI-Codebook 2.5) calls study, file and
variable descriptions, under its names. It says nothing that the tables, the charge and the
statement do not say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

import pyhybrid
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.postprocess import afterwards_of, afterwards_sentences

__all__ = ["public_metadata"]


def public_metadata(
    charge: PrivacyCharge,
    synthesized: Collection[str],
    settings: Mapping[str, Any],
    tables: Sequence[pd.DataFrame],
    file_format: str,
) -> dict[str, Any]:
    """Metadata of the synthetic tables, which share their columns.

    Parameters
    ----------
    charge : PrivacyCharge
    synthesized : collection of str
    settings : mapping
        Public settings of the mechanism.
    tables : sequence of DataFrame
        As they are published.
    file_format : str
    """
    first = tables[0]
    return {
        "standard": "DDI-Codebook 2.5 names, as JSON",
        "stdyDscr": {
            "dataKind": "partially synthetic microdata",
            "method": str(settings.get("mechanism", charge.mechanism)),
            "software": {"name": "pyhybrid", "version": pyhybrid.__version__},
            "privacy": charge.public(),
            "cleanOps": afterwards_sentences(settings),
        },
        "fileDscr": [
            {
                "fileName": f"synthetic_{place}.{file_format}",
                "caseQnty": len(table),
                "varQnty": table.shape[1],
            }
            for place, table in enumerate(tables, start=1)
        ],
        "dataDscr": [
            _variable(str(name), first[name], synthesized, _derived(settings))
            for name in first.columns
        ],
    }


def _derived(settings: Mapping[str, Any]) -> set[str]:
    """Columns that hold sums of synthetic values."""
    done = (own for each in afterwards_of(settings) for own in each.values())
    return {name for own in done for name in own.get("sums", {})}


def _variable(
    name: str, values: pd.Series, synthesized: Collection[str], derived: Collection[str]
) -> dict[str, Any]:
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    continuous = numeric and not pd.api.types.is_bool_dtype(values.dtype)
    source = "drawn from the model" if name in synthesized else "as in the confidential data"
    return {
        "name": name,
        "intrvl": "contin" if continuous else "discrete",
        "varFormat": str(values.dtype),
        "synthesized": name in synthesized,
        "source": "summed from drawn values" if name in derived else source,
    }

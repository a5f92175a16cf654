"""`synthesize` of a table that stays where it is: a database, or files of any size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyhybrid.cli.console import note, progress_bars, show
from pyhybrid.cli.options import CLIPPED, Named, build_mechanism, build_model, named
from pyhybrid.cli.released import open_ledger
from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.types_files import read_after, read_types
from pyhybrid.sources.opening import is_source, open_source
from pyhybrid.tables.in_parts import release_in_parts
from pyhybrid.tables.synthesis import kinds_of, table_mechanism, types_stated

_LOCAL_ONLY = ("unit", "reference", "fit", "id", "overwrite")


def source_of(data: Path) -> str | None:
    """Name of a table that is more than a file; None of a file."""
    name = str(data)
    database = re.fullmatch(r"duckdb:/(.+)(::.+)", name)  # a path keeps one slash of several
    if database:
        file, table = database.groups()
        name = f"duckdb://{file if Path(file).is_file() else '/' + file}{table}"
    return name if is_source(name) else None


def release_source(request: Any, name: str) -> None:
    """Release the table in parts, by clipped scores of a formula or by noisy marginals."""
    request.refuse(_LOCAL_ONLY, "a table that stays where it is is released strictly, in parts")
    types = {} if request.types is None else read_types(request.types)
    source = open_source(name, [*types, *(outcome for _, outcome, *_ in request.steps())])
    n, decided = source.count(), request.decided(source.columns)
    delta = request.delta_for(n)
    settings: dict[str, Any] = named("".join(request.mechanism[:1])).settings
    stated = False
    if len(request.formula) == 1 and request.model:
        model = build_model(request.model[0], request.formula[0])
        asked = Named(CLIPPED, {"epsilon": request.epsilon or 1.0, **settings})
        mechanism: Any = build_mechanism(asked, model, delta=delta)
    elif request.formula or request.types is None or request.epsilon is None:
        raise InvalidInput(
            "a table that stays where it is needs --types, a file of the types of its columns, and "
            "--epsilon; or one --formula 'visits ~ age' and its --model poisson"
        )
    else:
        if read_after(request.types):
            raise InvalidInput(
                '"after" must be left out of the types of a table that stays where it is: derive '
                "columns of its parts when they are read"
            )
        stated, kinds = types_stated(types, False), kinds_of(types)
        kinds = {column: kind for column, kind in kinds.items() if column in source.columns}
        mechanism = table_mechanism(kinds, {}, epsilon=request.epsilon, delta=delta, **settings)
        left = [c for c in source.columns if c not in kinds and c not in decided.drop]
        if left:
            raise InvalidInput(
                f"every column must have a type, or be left out: {left[0]!r} has none; add it to "
                f"the types, or give --drop {left[0]}"
            )
    ledger = open_ledger(request.ledger, mechanism.relation, mechanism.delta, mechanism.epsilon)
    with progress_bars() as progress:
        charge = release_in_parts(
            mechanism, source, request.out, n_synthetic=request.n_synthetic, drop=decided.drop,
            keep=decided.keep, types_are_public=stated, ledger=ledger, progress=progress,
        )  # fmt: skip
    note(f"{n:,} records; parts are in {request.out / 'public'}")
    show(f"privacy loss {charge.in_short}")

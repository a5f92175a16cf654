"""A strict release of a table that stays where it is, written part by part.

What is estimated is stored, and its charge entered in the ledger, before the first row is drawn.
Rows are then drawn part by part, from random numbers of each part's own; no part looks at a
confidential value. A release that was stopped goes on where it stopped, without new noise and
without a new charge: until it is whole, its estimate and its parts stand in `.NAME.parts` beside
the folder, where only its owner can read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.core.checks import check_count, check_output_folder
from pyhybrid.core.errors import InvalidInput, PyhybridError, SaveFailed, SourceFailed
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import new_identifier, streams
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.replicates import joined
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms.clipped_scores import ClippedScores, ScoredEstimate
from pyhybrid.mechanisms.marginals.noisy_marginals import EstimatedTable, NoisyMarginals
from pyhybrid.models.formula.terms import parse_formula
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.folder import table_schema, write_beside, write_json
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.record import Origin
from pyhybrid.releases.release import Release, report_pages
from pyhybrid.releases.statement import privacy_statement
from pyhybrid.running.files import file_aside, put_in_place
from pyhybrid.running.tasks import in_threads
from pyhybrid.sources.opening import open_source
from pyhybrid.sources.source import Source

_ROWS = 250_000  # of a part without public columns; a few are drawn at once
_SHOWN = 20_000  # records of the owner's report
_STATE = "estimate.json"


Estimate = ScoredEstimate | EstimatedTable
"""What a mechanism knows after its last look at confidential values."""


@bar_in_notebooks
def release_in_parts(
    mechanism: ClippedScores | NoisyMarginals,
    table: Any,
    folder: str | os.PathLike[str],
    *,
    n_synthetic: int = 1,
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    types_are_public: bool = False,
    ledger: Ledger | None = None,
    progress: FitProgress | None = None,
) -> PrivacyCharge:
    """Release a table that stays where it is, of any size, strictly.

    Parameters
    ----------
    mechanism : ClippedScores or NoisyMarginals
        Without `unit=`, `weights=`, `given=` and `reference=`.
    table
        What `open_source` takes.
    folder : path
        New. Called again after it was stopped, with the same arguments, it goes on.
    n_synthetic : int, default 1
        m, the number of sets, at the price of one.
    drop, keep : str or sequence of str
        Public columns to leave out, and to publish as they are although they look like names,
        identifiers or free text.
    types_are_public : bool, default False
        True if the owner of the data states that what the mechanism declares of columns is public;
        the statement says so.
    ledger : Ledger, optional
        Takes the charge before the first row is drawn.
    progress : callable, optional
        Called with what is done, parts done and parts in all.

    Raises
    ------
    InvalidInput
        For what a mechanism or a table does not meet.
    SourceFailed
        If the table cannot be read, or changes while it is read; nothing is charged before the
        estimate is whole.
    BudgetExceeded
        If the charge is more than what is left in the ledger; nothing is written.

    Examples
    --------
    >>> df[["age", "visits"]].to_parquet("visits.parquet")
    >>> mechanism = ph.ClippedScores(ph.Poisson("visits ~ age"))
    >>> charge = ph.release_in_parts(mechanism, "*.parquet", "released")
    """
    check_count(n_synthetic, "n_synthetic")
    check_output_folder(folder, overwrite=False)
    source, decisions = open_source(table, mechanism.synthesizes), Decisions.of(drop, keep)
    if isinstance(mechanism, ClippedScores):  # coded and drawn from as numbers, if they are such
        formula = parse_formula(mechanism.model.formula, source.columns)
        source = source.with_numbers([*formula.predictors])
    columns = [
        name for name in source.columns if name not in (*mechanism.synthesizes, *decisions.drop)
    ]
    exposed = exposed_columns(source.sample(columns, _SHOWN), ()) if columns else {}
    left_out = Decisions.of((), decisions.keep)
    check_decided(exposed, left_out, source.columns, mechanism.synthesizes)
    target = Path(folder).absolute()
    asked = {"format": 3, "columns": columns, "n_synthetic": n_synthetic}
    asked["settings"] = mechanism.describe()
    with _folder_of_parts(target) as aside:
        state = _stored(aside, json.loads(json.dumps(asked, default=str)))
        if state is None:
            estimate: Estimate = mechanism.estimate(source, n_synthetic)
            state = {**asked, "identifier": new_identifier(), "estimate": estimate.state()}
        else:
            estimate = mechanism.estimate_of(state["estimate"], source)
        release = _shown(estimate, source, columns, state["identifier"])
        if types_are_public:
            release = release.with_facts(types_stated=True)
        with file_aside(aside / _STATE, private=True) as path:  # before the ledger: what was
            path.write_text(json.dumps(state, default=str), encoding="utf-8")  # charged can go on
        try:
            entry = None if ledger is None else ledger.add(release)
        except PyhybridError:
            (aside / _STATE).unlink()
            raise
        n_records = _write_parts(estimate, source, columns, n_synthetic, aside / "public", progress)
        decided = replace(release, decisions=decisions)
        pages = report_pages(release, ledger is not None)
        shutil.rmtree(aside / "confidential", ignore_errors=True)  # of an end that failed
        schema = table_schema(release.synthetic[0], "parquet", decided.synthesized)
        write_json(aside / "public" / "schema.json", schema)
        statement = privacy_statement(decided, n_records=n_records)
        notes = release.notes(entry)
        write_beside(aside, decided, statement=statement, notes=notes, attachments=pages)
        (aside / _STATE).unlink()  # until here what was charged can go on
        put_in_place(aside, target)
    return release.charge


@contextlib.contextmanager
def _folder_of_parts(target: Path) -> Iterator[Path]:
    """The folder `.NAME.parts` of this user alone, new or left by a release that was stopped; one
    that another user could have made, or a link, is refused."""
    aside = target.parent / f".{target.name}.parts"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            aside.mkdir(mode=0o700)
        status = aside.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or stat.S_IMODE(status.st_mode) != 0o700
            or (hasattr(os, "getuid") and status.st_uid != os.getuid())
        ):
            raise InvalidInput(
                f"{aside} must be a folder that you alone can read and write, as a release that "
                "was stopped leaves it: it is not; look at it, and remove it"
            )
        yield aside
    except OSError as error:
        if isinstance(error, SaveFailed):
            raise
        raise SaveFailed(
            f"{target} could not be written: {error.strerror or error}; the same call goes on "
            "where it stopped"
        ) from None
    finally:
        if aside.is_dir() and not (aside / _STATE).exists():
            shutil.rmtree(aside, ignore_errors=True)


def _stored(aside: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The stored estimate of a release that was stopped, which must be of the same arguments."""
    if not (aside / _STATE).exists():
        return None
    state: dict[str, Any] = json.loads((aside / _STATE).read_text(encoding="utf-8"))
    if any(state.get(name) != value for name, value in asked.items()):
        raise InvalidInput(
            f"{aside} must be of the same mechanism, columns and sets: it is of others; finish "
            "that release with its arguments, or remove the folder, whose charge is spent"
        )
    return state


def _shown(estimate: Estimate, source: Source, columns: Sequence[str], identifier: str) -> Release:
    """A release of a sample of the records, for the ledger and the owner's report."""
    synthesized = [*estimate.record.synthesized]
    data = source.sample([*columns, *synthesized], _SHOWN).reset_index(drop=True)
    random = streams(estimate.record.confidential.entropy)
    tables = [
        joined(data, estimate.rows(data[[*columns]], place, random.child(f"report {place}")))
        for place in range(1, estimate.record.charge.n_synthetic + 1)
    ]
    return Release.of(
        estimate.record,
        tables,
        identifier=identifier,
        origin=Origin(data=data, table=f"a sample of {len(data):,} records of the table"),
    )


def _write_parts(
    estimate: Estimate,
    source: Source,
    columns: Sequence[str],
    n_synthetic: int,
    public: Path,
    progress: FitProgress | None,
) -> int:
    """All parts that are not there yet; returns the number of records."""
    random, total, n_records = streams(estimate.record.confidential.entropy), source.count(), 0
    order = [name for name in source.columns if name in (*columns, *estimate.record.synthesized)]

    def write(place: int, numbered: tuple[int, pd.DataFrame]) -> int:
        number, known = numbered
        part = public / f"synthetic_{place}" / f"part-{number:05d}.parquet"
        if not _is_there(part, known):
            rows = estimate.rows(known, place, random.child(f"set {place}, part {number}"))
            whole = pd.concat([known, rows.set_axis(known.index)], axis=1)[order]
            with file_aside(part, private=False) as path:
                whole.to_parquet(path, index=False)
        return len(known)

    for place in range(1, n_synthetic + 1):
        (public / f"synthetic_{place}").mkdir(parents=True, exist_ok=True)
        parts, n_records = enumerate(_batches(source, columns, total), start=1), 0
        for n_of_part in in_threads(partial(write, place), parts):
            n_records += n_of_part
            if progress is not None:
                done = (place - 1) * total + n_records
                progress("synthetic records", done, n_synthetic * total)
    if n_records != total:
        raise SourceFailed("the table must not change while it is read: it did")
    return n_records


def _batches(source: Source, columns: Sequence[str], n: int) -> Iterator[pd.DataFrame]:
    """Public columns of all records in parts, or parts without columns."""
    if columns:
        yield from source.batches(columns)
        return
    for first in range(0, n, _ROWS):
        yield pd.DataFrame(index=pd.RangeIndex(min(_ROWS, n - first)))


def _is_there(part: Path, known: pd.DataFrame) -> bool:
    """True if the part was written of these public values: a database may change its order."""
    if not part.exists():
        return False
    written = pd.read_parquet(part)
    return len(written) == len(known) and written[[*known.columns]].equals(
        known.reset_index(drop=True)
    )

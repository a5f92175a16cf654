"""Runs a study, one task per database, and survives interruption.

Every finished database is a small Parquet file in parts/, renamed into place, so that a folder of
results is whole at any moment; study.json says what the parts belong to, results.parquet has all
rows once every database is finished, and failed.json the messages of tasks that raised. A rerun
does only what is missing. Each database's random numbers are named by its setting and number: the
results do not depend on workers, on their order or on interruptions.

The reproduction table sets results beside published numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.special import stdtrit

import pyhybrid
from pyhybrid.core.checks import check_choice, check_count, number_of
from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import Streams, streams
from pyhybrid.engines import resolve_engine
from pyhybrid.releases.words import environment
from pyhybrid.running.files import file_aside, whole_only, write_files
from pyhybrid.running.tasks import Progress, run_tasks
from pyhybrid.studies.claims import row_of, summarize
from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.counts import STUDY_A, STUDY_B, STUDY_C, STUDY_D
from pyhybrid.studies.income import STUDY_E
from pyhybrid.studies.masked import STUDY_I
from pyhybrid.studies.open_questions import STUDY_K, STUDY_L
from pyhybrid.studies.registry import STUDY_J
from pyhybrid.studies.strict import STUDY_F, STUDY_G, STUDY_H
from pyhybrid.studies.study import FEWEST, LESS, NOTES, Claim, Measured, Published, Size, Study

_COLUMNS = ["setting", "replicate", *Measured._fields]
_ALL = (
    STUDY_A, STUDY_B, STUDY_C, STUDY_D, STUDY_E, STUDY_F, STUDY_G, STUDY_H, STUDY_I, STUDY_J,
    STUDY_K, STUDY_L,
)  # fmt: skip
STUDIES = {study.name: study for study in _ALL}
"""Studies by name."""

VERDICTS = ("agrees", "differs, with experiment", "differs, unexplained", "no evidence")


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyResult:
    """A finished study: rows of setting, replicate, synthesizer, quantity and value, in the order
    of the tasks; databases whose task raised, "setting / replicate" to the message, which the next
    run into the same folder tries again; and what the results belong to."""

    study: str
    rows: pd.DataFrame
    failed: Mapping[str, str]
    header: Mapping[str, Any]

    @property
    def summary(self) -> pd.DataFrame:
        """Means over databases with Monte Carlo standard errors; see `summarize`."""
        compared = STUDIES[self.study].compared if self.study in STUDIES else None
        return summarize(self.rows, compared)


@dataclass(frozen=True, kw_only=True)
class _Database:
    """One task, and the file of its rows."""

    measure: Callable[[str, Streams, Mapping[str, Any]], list[Measured]]
    setting: str
    replicate: int
    label: str
    streams: Streams
    options: Mapping[str, Any]
    part: Path


@bar_in_notebooks
def run_study(
    study: Study,
    *,
    out: str | os.PathLike[str],
    size: str | Size = "quick",
    replicates: int | None = None,
    seed: int = 1,
    engine: str = "auto",
    data: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> StudyResult:
    """Run what is missing of `study` in the folder `out` and return all its rows.

    Parameters
    ----------
    study : Study
        One of `pyhybrid.studies.STUDIES`, or your own.
    out : path
        New, empty, or of an earlier run of the same study with the same size, seed and version; one
        with fewer replicates is gone on with.
    size : {"quick", "paper"} or Size
    replicates : int, optional
        Databases per setting; that of `size` if omitted.
    seed : int, default 1
        Root of all random numbers: simulated data need no secret.
    engine : str, default "auto"
        See `pyhybrid.engines.resolve_engine`; part of what the results belong to.
    data : path, optional
        File of records for a study that takes one (D, E, G), or cannot be run without (J). The
        results belong to its content, are as confidential, and only their owner can read the
        folder.
    workers : int, default 1
        Processes; does not change a digit of the results.
    progress : callable, optional
        Called with (label, databases finished, databases in all).

    Raises
    ------
    InvalidInput
        For zero replicates, an unknown size, data that the study does not take, needs or cannot
        read, or a folder of another study, size, seed or version.
    SaveFailed
        If the folder cannot be written.
    """
    if not isinstance(size, Size):
        known = {"quick": study.quick, "paper": study.paper}
        size = known[check_choice(size, "size", known)]
    found = resolve_engine(engine).name
    options = {**size.options, "engine": found, **_data_hash(study, data)}
    count = check_count(size.replicates if replicates is None else replicates, "replicates")
    check_count(workers, "workers")
    source, folder = streams(seed), Path(out)
    path = None if data is None else os.fspath(Path(data).absolute())
    settings = (study.data_setting,) if data and study.data_setting else study.settings
    tasks = []
    for place, setting in enumerate(settings):
        for replicate in range(count):
            label = f"{setting} / {replicate}"
            tasks.append(_Database(
                measure=study.measure, setting=setting, replicate=replicate, label=label,
                streams=source.child(f"study {study.name} / {label}"),
                options={**options, "data": path},
                part=folder / "parts" / f"{place:02d}-{replicate:06d}.parquet",
            ))  # fmt: skip
    header = {
        "pyhybrid": pyhybrid.__version__, "study": study.name, "settings": [*settings],
        "options": options, "seed": seed,
    }  # fmt: skip
    _begin(folder, header)
    if data is not None:
        folder.chmod(0o700)
    failed = _run_missing(tasks, f"study {study.name}", workers, progress)
    rows = _collected(task.part for task in tasks)
    write_files({folder / "failed.json": _json(failed)}, private=True)
    _write_parquet(rows, folder / "results.parquet")
    return StudyResult(study=study.name, rows=rows, failed=failed, header=header)


def load_study(folder: str | os.PathLike[str]) -> StudyResult:
    """Read what a run has finished so far, also one that was interrupted, or of another version of
    pyhybrid; InvalidInput if the folder holds no study."""
    root = Path(folder)
    failed = root / "failed.json"
    with whole_only(folder, "study"):
        header = dict(json.loads((root / "study.json").read_text("utf-8")))
        rows = _collected(sorted((root / "parts").glob("*.parquet")))
        if rows.empty:
            raise InvalidInput(f"{folder} must hold at least one finished database: it has none")
        return StudyResult(
            study=str(header["study"]),
            rows=rows,
            failed=dict(json.loads(failed.read_text())) if failed.exists() else {},
            header=header,
        )


# --- Tasks ----------------------------------------------------------------------------------------


def _measured(task: _Database) -> list[Measured]:
    """Runs in any process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not converged, unequal bounds: thousands
        return task.measure(task.setting, task.streams, task.options)


def _run_missing(
    tasks: Sequence[_Database], label: str, workers: int, progress: Progress | None
) -> dict[str, str]:
    """Do what has no part yet; returns the messages of those that failed."""
    missing, failed = [task for task in tasks if not task.part.exists()], {}
    show = progress or (lambda *_: None)
    before = len(tasks) - len(missing)
    show(label, before, len(tasks))
    for done, ended in enumerate(run_tasks(_measured, missing, workers=workers), before + 1):
        task = ended.task
        if ended.result is None:
            failed[task.label] = f"{type(ended.error).__name__}: {ended.error}"
        else:
            rows: pd.DataFrame = pd.DataFrame(ended.result, columns=_COLUMNS[2:])
            rows = rows.assign(setting=task.setting, replicate=task.replicate)
            _write_parquet(rows[_COLUMNS].astype({"value": float}), task.part)
        show(label, done, len(tasks))
    return failed


def _data_hash(study: Study, data: str | os.PathLike[str] | None) -> dict[str, str]:
    """SHA-256 of the file of records, if there is one, once it is known that the study takes it."""
    if data is None:
        if study.needs_data:
            raise InvalidInput(f"study {study.name} needs data: {study.needs_data}; give data")
        return {}
    if study.read_data is None:
        raise InvalidInput(f"study {study.name} simulates its data: give no data")
    study.read_data(data)
    return {"data_sha256": hashlib.sha256(Path(data).read_bytes()).hexdigest()}


# --- The folder -----------------------------------------------------------------------------------


def _collected(paths: Iterable[Path]) -> pd.DataFrame:
    """The rows of those parts that are there."""
    parts = [pd.DataFrame(columns=_COLUMNS)]
    for path in paths:
        try:
            parts += [pd.read_parquet(path)] if path.exists() else []
        except (OSError, ValueError):
            message = f"{path} must be a part of a study: remove it and run again"
            raise InvalidInput(message) from None
    rows: pd.DataFrame = pd.concat(parts[1:] or parts, ignore_index=True)
    return rows


def _begin(folder: Path, header: Mapping[str, Any]) -> None:
    """Begin the folder, or make sure that it belongs to this very study."""
    begun = folder / "study.json"
    if folder.is_dir() and not begun.exists() and {*folder.iterdir()} - {folder / "parts"}:
        raise InvalidInput(f"{folder} must be new, empty or of this study: it is neither")
    try:
        (folder / "parts").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveFailed(f"{folder} cannot be written: {error}") from None
    if not begun.exists():
        write_files({begun: _json(header)}, private=True)
        return
    with whole_only(folder, "study"):
        earlier = dict(json.loads(begun.read_text("utf-8")))
    for name, value in header.items():
        if earlier.get(name) != value:
            raise InvalidInput(
                f"{folder} holds results of {name} {earlier.get(name)!r}, not {value!r}: results "
                "are not mixed; give another folder"
            )


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    with file_aside(path, private=True) as aside:
        table.to_parquet(aside, index=False)


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"


# --- Published numbers beside ours ----------------------------------------------------------------

LINE = ["study", "quantity", "published", "ours", "threshold", "verdict", "why"]
"""Columns of a reproduction: our number with its Monte Carlo error, or in words, one of `VERDICTS`
by the threshold, and why: notes and what was tried."""


def reproduce(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """Published numbers and claims of a study beside its `StudyResult.summary`, columns `LINE`."""
    n, lines = int(summary["n"].max()), list[tuple[str, ...]]()
    real = study.data_setting in set(summary["setting"])
    for number in study.published:
        if (number.setting == study.data_setting) == real:
            quantity = f"{number.synthesizer}, {number.quantity} ({number.setting})"
            ours, limit, holds = _beside(number, summary)
            holds = None if _is_raw(number, study) else holds
            line = (quantity, number.shown, ours, limit)
            lines.append((*line, *_verdict(number, line, holds)))
    for claim in study.claims:
        if real:  # what was tried, and noted, is of simulated records
            claim = replace(claim, note="", experiment="")
        ours, holds = claim.check(summary)
        holds = holds if n >= claim.fewest else None
        line = (claim.text, claim.by, ours, claim.threshold)
        lines.append((*line, *_verdict(claim, line, holds)))
    table: pd.DataFrame = pd.DataFrame(lines, columns=LINE[1:])
    table.insert(0, "study", study.name)
    return table


def _is_raw(number: Published, study: Study) -> bool:
    """Whether it tells of the paper's data, not of a synthesizer: of data that are not ours, of the
    data, or an end of an interval whose center is judged less the data's."""
    statistic, _, end = number.quantity.rpartition(" ")
    pairs = {(other.synthesizer, other.quantity) for other in study.published}
    judged = end in ("lower", "upper") and (number.synthesizer, f"{statistic} {LESS}") in pairs
    return number.other_data or number.synthesizer == DATA or judged


def _verdict(of: Published | Claim, line: tuple[str, ...], holds: bool | None) -> tuple[str, str]:
    """Verdict and why, of a line of quantity, published number, ours and threshold."""
    agrees, tried, unexplained, no_evidence = VERDICTS
    verdict = agrees if holds else tried if of.experiment else unexplained
    shown = f"{line[0]} {line[2]}"
    notes = (NOTES[name] for name in NOTES if re.search(rf"\b{name}\b", shown))
    why = "; ".join(filter(None, (of.note, *notes, of.experiment)))
    return no_evidence if holds is None else verdict, why


def _beside(published: Published, summary: pd.DataFrame) -> tuple[str, str, bool | None]:
    """Our mean in words, how near it must be, and whether it is."""
    row = row_of(summary, published.setting, published.synthesizer, published.quantity)
    if math.isnan(row["n"]):
        return "not run", "", None
    mean, error, n = row["mean"], row["mc_error"], int(row["n"])
    if n == 1:
        return f"{mean:.4g} (1 database)", "", None
    of_theirs = error * math.sqrt(n) if published.one_database else published.error
    reach = stdtrit(n - 1, 0.975) * math.hypot(error, of_theirs)
    ours = f"{mean:.4g} ± {error:.2g} ({n} databases)"
    ends = sorted({published.low, published.high})
    threshold = f"{' to '.join(f'{end:.4g}' for end in ends)} ± {reach:.2g}"
    agrees = published.low - reach <= mean <= published.high + reach
    null = 1.0 if published.quantity.endswith("over the data's") else 0.0
    from_null = abs(published.low - null)
    vacuous = agrees and published.one_database and 0 < from_null < reach
    return ours, threshold, None if n < FEWEST or vacuous else bool(agrees)


def made_with(results: Sequence[StudyResult]) -> str:
    """Version (of most, and by study where another), engine and seed of several results."""
    headers = [result.header for result in results]
    seeds = sorted({str(header["seed"]) for header in headers})
    if len(seeds) > 1:
        raise InvalidInput(f"studies must agree in seed: found {', '.join(seeds)}")
    versions = [str(header["pyhybrid"]) for header in headers]
    most = max(versions, key=versions.count)
    rest = ", ".join(f"{h['study']}: {h['pyhybrid']}" for h in headers if h["pyhybrid"] != most)
    engines = ", ".join(sorted({header["options"]["engine"] for header in headers}))
    return f"pyhybrid {most}{f' ({rest})' if rest else ''}, engine {engines}, seed {seeds[0]}"


def _sizes(study: Study, summary: pd.DataFrame) -> str:
    """Databases of each setting, and where they are fewer than size "paper" makes."""
    per_setting = summary.groupby("setting")["n"].max()
    fewest, most = int(per_setting.min()), int(per_setting.max())
    text = (f"{fewest} to " if fewest < most else "") + number_of(most, "database")
    if len(per_setting) > 1:
        text += f" of each of {len(per_setting)} kinds"
    paper = study.paper.replicates
    return f"{text} (size 'paper' makes {paper})" if fewest < paper else text


def reproduction_page(
    studies: Mapping[str, Study], summaries: Mapping[str, pd.DataFrame], made_with: str
) -> str:
    """The page as Markdown; `summaries` by name."""
    run = {name: studies[name] for name in summaries}
    lines = pd.concat([reproduce(study, summaries[name]) for name, study in run.items()])
    parts = [(study, _sizes(study, summaries[name])) for name, study in run.items()]
    template = files("pyhybrid.studies").joinpath("reproduction.md.jinja").read_text("utf-8")
    page = environment(autoescape=False).from_string(template)
    return page.render(
        made_with=made_with, lines=list(lines.itertuples()), parts=parts, verdicts=VERDICTS,
        fewest=FEWEST, counts=_counts(lines),
    )  # fmt: skip


_PAPERS = "ABCDEFGHI"


def _counts(lines: pd.DataFrame) -> dict[str, list[int]]:
    """Lines by verdict of each study, of A to I together, and of the others: our own lines of A to
    I, J, whose lines are nearly half, and K and L, whose questions are ours."""
    ours = (lines["published"] == "ours") & lines["study"].isin([*_PAPERS])
    named = lines["study"].where(~ours, "A to I, ours")
    counts = pd.crosstab(named, lines["verdict"]).reindex(columns=VERDICTS, fill_value=0)
    papers = counts[[name in _PAPERS for name in counts.index]]
    if len(papers):
        rest = counts.drop(papers.index)
        counts = pd.concat([papers, papers.sum().to_frame("A to I").T, rest])
    return {str(name): row.tolist() for name, row in counts.iterrows()}

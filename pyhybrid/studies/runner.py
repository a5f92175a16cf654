"""Runs a study, one task per database, and survives interruption.

Every finished database is a small Parquet file of its own, renamed into place, so that a folder
of results is whole at any moment and can be read with ``pandas.read_parquet(folder / "parts")``. A
rerun does only what is missing. Each database's random numbers are named by its setting and number:
the results do not depend on workers, on their order or on interruptions.

======================= =================================================================
study.json              name, settings, options, seed, versions: what the parts belong to
parts/*.parquet         one file per database
results.parquet         all rows in order, once every database is finished
failed.json             databases whose task raised, with the message
times.csv               CPU seconds of each finished database; nothing that is measured
======================= =================================================================

The reproduction table sets results beside published numbers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pandas as pd

import pyhybrid
from pyhybrid.core.checks import check_choice, check_count
from pyhybrid.core.errors import InvalidInput, SaveFailed
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import streams
from pyhybrid.engines import resolve_engine
from pyhybrid.models.families.published import PROGRAMS
from pyhybrid.running.files import file_aside, lock, whole_only, write_files
from pyhybrid.running.tasks import Progress, run_tasks
from pyhybrid.studies.comparing.comparison import DATA
from pyhybrid.studies.study import Measured, Published, Size, Study, summarize

_FORMAT = 1
_ERRORS, _DEVIATIONS = 2.0, 3.0  # all numbers of one published database err together


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyResult:
    """A finished study.

    Attributes
    ----------
    study : str
        Its name.
    rows : DataFrame
        Columns setting, replicate, synthesizer, quantity, value; in the order of the tasks.
    failed : dict of str to str
        Databases whose task raised, "setting / replicate" to the message. They are not in `rows`
        and are tried again by the next run into the same folder.
    header : dict
        What the results belong to: pyhybrid's version, study, settings, options, seed.
    cpu_seconds : float or None
        Of all databases of `rows` together; None unless the times of all are known.
    """

    study: str
    rows: pd.DataFrame
    failed: Mapping[str, str]
    header: Mapping[str, Any]
    cpu_seconds: float | None = None

    @property
    def label(self) -> str:
        """The study's name, with the program that it ran where that is not pyhybrid's."""
        program = self.header["options"].get("program")
        return self.study if program is None else f"{self.study}, {program}"

    @property
    def summary(self) -> pd.DataFrame:
        """Means over databases with Monte Carlo standard errors; see `summarize`."""
        return summarize(self.rows)


@dataclass(frozen=True, kw_only=True)
class _Database:
    """One task."""

    study: Study
    setting: str
    replicate: int
    seed: int
    options: tuple[tuple[str, Any], ...]

    @property
    def label(self) -> str:
        return f"{self.setting} / {self.replicate}"

    @property
    def file_name(self) -> str:
        setting = self.study.settings.index(self.setting)
        return f"{setting:02d}-{self.replicate:06d}.parquet"


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
    program: str = "default",
    workers: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run what is missing of `study` in the folder `out` and return all its rows.

    Parameters
    ----------
    study : Study
        One of `pyhybrid.studies.STUDIES`, or your own.
    out : path
        New, empty, or of an earlier run of the same study with the same size, seed and version.
        A run with more replicates goes on from one with fewer.
    size : {"quick", "paper"} or Size
    replicates : int, optional
        Databases per setting; that of `size` if omitted.
    seed : int, default 1
        Root of all random numbers: simulated data need no secret.
    engine : str, default "auto"
        See `pyhybrid.engines.resolve_engine`; part of what the results belong to.
    data : path, optional
        File of records for a study that takes one (E: the February CE file), or that cannot be
        run without (J: the pseudo registry of [J22]'s supplement). The results belong to its
        content; they are as confidential as it is, and only their owner can read the folder.
    program : {"default", "published"}
        Stan program of the study's model: pyhybrid's, or that which the paper prints, for a study
        that takes one (A to E); same posterior, part of what the results belong to.
    workers : int, default 1
        Processes; does not change a digit of the results.
    executor : Executor, optional
        In place of `workers`.
    progress : callable, optional
        Called with (label, databases finished, databases in all).

    Raises
    ------
    InvalidInput
        For zero replicates, an unknown size, data that the study does not take, needs or cannot
        read, or a folder of another study, size, seed or version.
    SaveFailed
        If the folder cannot be written, or another run is using it.
    """
    chosen = _checked_size(study, size)
    if data is not None and not study.takes_data:
        raise InvalidInput(f"study {study.name} simulates its data: give no data")
    if data is None and study.needs_data:
        raise InvalidInput(f"study {study.name} needs data: {study.needs_data}; give --data FILE")
    if data is not None and study.read_data is not None:
        study.read_data(data)
    if check_choice(program, "program", PROGRAMS) != "default" and not study.takes_program:
        raise InvalidInput(f"study {study.name} runs pyhybrid's own programs: give no program")
    made_by = resolve_engine(engine)
    of_program = {} if program == "default" else {"program": program}
    belongs = {"engine": made_by.name, **_data_hash(data), **of_program}
    chosen = replace(chosen, options={**chosen.options, **belongs})
    count = check_count(chosen.replicates if replicates is None else replicates, "replicates")
    check_count(workers, "workers")
    streams(seed)
    folder = Path(out)
    given = {**chosen.options, "data": None if data is None else os.fspath(Path(data).absolute())}
    tasks = [
        _Database(
            study=study,
            setting=setting,
            replicate=replicate,
            seed=seed,
            options=tuple(sorted(given.items())),
        )
        for setting in study.settings
        for replicate in range(count)
    ]
    header = _header(study, chosen, seed)
    with _claimed(folder, header):
        if data is not None:
            folder.chmod(0o700)
        failed = _run_missing(tasks, folder, workers, executor, progress)
        rows = _collected(tasks, folder)
        _write_json(folder / "failed.json", failed)
        _write_parquet(rows, folder / "results.parquet")
    return StudyResult(
        study=study.name, rows=rows, failed=failed, header=header,
        cpu_seconds=_cpu_seconds(folder, rows),
    )  # fmt: skip


def load_study(folder: str | os.PathLike[str]) -> StudyResult:
    """Read what a run has finished so far, also one that was interrupted.

    Raises
    ------
    InvalidInput
        If the folder holds no study, or one of another format. Results of another version of
        pyhybrid are read, and never added to.
    """
    root = Path(folder)
    header = _read_header(root)
    if header is None:
        raise InvalidInput(f"{folder} must hold results of `pyhybrid study run`: it does not")
    _check_version(header, root, "format")
    with whole_only(folder, "study"):
        parts = [_read_part(path) for path in sorted((root / "parts").glob("*.parquet"))]
    if not parts:
        raise InvalidInput(f"{folder} must hold at least one finished database: it has none")
    failed, rows = root / "failed.json", pd.concat(parts, ignore_index=True)
    with whole_only(folder, "study"):
        return StudyResult(
            study=str(header["study"]),
            rows=rows,
            failed=dict(json.loads(failed.read_text())) if failed.exists() else {},
            header=header,
            cpu_seconds=_cpu_seconds(root, rows),
        )


class _Timed(NamedTuple):
    rows: list[Measured]
    cpu_seconds: float


def _measured(task: _Database) -> _Timed:
    """Runs in any process."""
    started = _clock()
    task_streams = streams(task.seed).child(f"study {task.study.name} / {task.label}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not converged, unequal bounds: thousands
        rows = task.study.measure(task.setting, task_streams, dict(task.options))
    return _Timed(rows, _clock() - started)


def _clock() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def _run_missing(
    tasks: Sequence[_Database],
    folder: Path,
    workers: int,
    executor: Executor | None,
    progress: Progress | None,
) -> dict[str, str]:
    """Do what has no part yet; returns the messages of those that failed."""
    parts = folder / "parts"
    missing = [task for task in tasks if not (parts / task.file_name).exists()]
    done, failed = len(tasks) - len(missing), {}
    label = f"study {tasks[0].study.name}"
    if progress is not None:
        progress(label, done, len(tasks))
    for ended in run_tasks(_measured, missing, workers=workers, executor=executor):
        task = ended.task
        if ended.result is None:
            failed[task.label] = f"{type(ended.error).__name__}: {ended.error}"
        else:
            _write_parquet(_table(task, ended.result.rows), parts / task.file_name)
            try:
                with open(folder / "times.csv", "a", encoding="utf-8") as times:
                    times.write(f"{task.label},{ended.result.cpu_seconds:.3f}\n")
            except OSError as error:
                raise SaveFailed(f"{folder}/times.csv cannot be written: {error}") from None
            done += 1
        if progress is not None:
            progress(label, done + len(failed), len(tasks))
    return failed


def _table(task: _Database, measured: Sequence[Measured]) -> pd.DataFrame:
    table: pd.DataFrame = pd.DataFrame(measured, columns=list(Measured._fields))
    table.insert(0, "setting", task.setting)
    table.insert(1, "replicate", task.replicate)
    table["value"] = table["value"].astype(float)
    return table


def _collected(tasks: Sequence[_Database], folder: Path) -> pd.DataFrame:
    paths = [folder / "parts" / task.file_name for task in tasks]
    parts = [_read_part(path) for path in paths if path.exists()]
    return pd.concat(parts, ignore_index=True) if parts else _table(tasks[0], [])


def _cpu_seconds(folder: Path, rows: pd.DataFrame) -> float | None:
    """The last time of each database, summed; None where one has none."""
    path = folder / "times.csv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    known = dict(line.rsplit(",", 1) for line in lines if "," in line)
    databases = rows[["setting", "replicate"]].drop_duplicates().itertuples(index=False)
    try:
        return sum(float(known[f"{setting} / {replicate}"]) for setting, replicate in databases)
    except (KeyError, ValueError):  # of an earlier version, or torn
        return None


def _read_part(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{path} must be a part of a study: {str(error).splitlines()[0]}; remove it and run "
            "again"
        ) from None


def _checked_size(study: Study, size: str | Size) -> Size:
    if isinstance(size, Size):
        return size
    if size not in ("quick", "paper"):
        raise InvalidInput(f"size must be quick or paper: found {size!r}")
    return study.quick if size == "quick" else study.paper


def _data_hash(data: str | os.PathLike[str] | None) -> dict[str, str]:
    if data is None:
        return {}
    try:
        return {"data_sha256": hashlib.sha256(Path(data).read_bytes()).hexdigest()}
    except OSError as error:
        raise InvalidInput(f"data {data} cannot be read: {error}") from None


def _header(study: Study, size: Size, seed: int) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "pyhybrid": pyhybrid.__version__,
        "study": study.name,
        "settings": list(study.settings),
        "options": dict(size.options),
        "seed": seed,
    }


def _read_header(folder: Path) -> dict[str, Any] | None:
    try:
        header = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{folder}/study.json cannot be read: {error}") from None
    if not isinstance(header, dict) or "format" not in header:
        raise InvalidInput(f"{folder}/study.json must describe a study: it does not")
    return header


def _check_version(header: Mapping[str, Any], folder: Path, *names: str) -> None:
    current = {"format": _FORMAT, "pyhybrid": pyhybrid.__version__}
    for name, value in current.items():
        if name in (names or current) and header.get(name) != value:
            raise InvalidInput(
                f"{folder} holds results of {name} {header.get(name)}, this is {value}: results "
                "are not mixed; give another folder"
            )


@contextlib.contextmanager
def _claimed(folder: Path, header: Mapping[str, Any]) -> Iterator[None]:
    """Begin the folder, or make sure that it belongs to this very study; one run at a time."""
    begun = (folder / "study.json").exists()
    leftovers = {
        folder / "parts",
        folder / ".lock",
    }  # all that a run killed at its very start leaves
    if folder.is_dir() and not begun and set(folder.rglob("*")) - leftovers:
        raise InvalidInput(f"{folder} must be new, empty or of this study: it is neither")
    try:
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        held = open(folder / ".lock", "w")  # noqa: SIM115
    except OSError as error:
        raise SaveFailed(f"{folder} cannot be written: {error}") from None
    with held:
        if not lock(held.fileno()):
            raise SaveFailed(f"{folder} is in use by another run")
        found = _read_header(folder)
        if found is None:
            _write_json(folder / "study.json", header)
        else:
            _check_version(found, folder)
            for name, value in header.items():
                if found.get(name) != value:
                    raise InvalidInput(
                        f"{folder} holds results of {name} {found.get(name)!r}, not {value!r}: "
                        "results are not mixed; give another folder"
                    )
        for torn in (folder / "parts").glob("*.tmp"):
            torn.unlink()
        yield


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    with file_aside(path, private=True) as aside:
        table.to_parquet(aside, index=False)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_files({path: json.dumps(content, indent=2) + "\n"}, private=True)


# --- Published numbers beside ours ----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A line of the table: `ours` with its Monte Carlo error, or in words, and `why` it differs."""

    study: str
    source: str
    quantity: str
    published: str
    ours: str
    agrees: bool
    why: str


def reproduce(study: Study, summary: pd.DataFrame) -> list[Reproduced]:
    """Lines of one study, from its `StudyResult.summary`."""
    lines = [_number(study, summary, published) for published in study.published]
    for claim in study.claims:
        found, holds = claim.check(summary)
        lines.append(
            Reproduced(
                study=study.name, source=study.source, quantity=claim.text, published="stated",
                ours=found, agrees=bool(holds), why=claim.note,
            )
        )  # fmt: skip
    return lines


def made_with(results: Sequence[StudyResult]) -> str:
    """Version, engine, seed and CPU times of several results, in words."""
    first = results[0].header
    for result in results:
        for name in ("pyhybrid", "seed"):
            if result.header[name] != first[name]:
                raise InvalidInput(
                    f"studies must agree in {name}: {result.study} has {result.header[name]}, "
                    f"{results[0].study} {first[name]}"
                )
    engines = sorted({result.header["options"]["engine"] for result in results})
    made = f"pyhybrid {first['pyhybrid']}, engine {', '.join(engines)}, seed {first['seed']}"
    times = [
        f"{result.label} {result.cpu_seconds / 60:.3g}"
        for result in results
        if result.cpu_seconds is not None
    ]
    return f"{made}, CPU minutes {', '.join(times)}" if times else made


def stacked(summaries: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Summaries of several studies in one table, with a column `study`."""
    parts = [table.assign(study=name) for name, table in summaries.items()]
    whole: pd.DataFrame = pd.concat(parts, ignore_index=True)
    whole.insert(0, "study", whole.pop("study"))
    return whole


def _title(row: Any) -> str:
    return f"{row.synthesizer}, {row.quantity} ({row.setting})"


def _number(study: Study, summary: pd.DataFrame, published: Published) -> Reproduced:
    row = summary[
        (summary["setting"] == published.setting)
        & (summary["synthesizer"] == published.synthesizer)
        & (summary["quantity"] == published.quantity)
    ]
    quantity = _title(published)
    if row.empty:
        ours, agrees = "not run", False
    else:
        mean, error, n = (row[name].iloc[0] for name in ("mean", "mc_error", "n"))
        error = 0.0 if math.isnan(error) else error
        reach = _DEVIATIONS * error * math.sqrt(n) if published.one_database else _ERRORS * error
        agrees = published.low - reach <= mean <= published.high + reach
        ours = f"{mean:.4g} ± {error:.2g} ({n} databases)" if n > 1 else f"{mean:.4g} (1 database)"
    return Reproduced(
        study=study.name,
        source=study.source,
        quantity=quantity,
        published=published.shown,
        ours=ours,
        agrees=bool(agrees),
        why=published.note,
    )


def _sizes(study: Study, summary: pd.DataFrame) -> str:
    """Databases of each setting, and where they are fewer than `--size paper` makes."""
    found = _databases(summary)
    fewer = summary.groupby("setting")["n"].max().min() < study.paper.replicates
    return f"{found} (`--size paper` makes {study.paper.replicates})" if fewer else found


def _databases(summary: pd.DataFrame) -> str:
    """How many, of how many kinds."""
    per_setting = summary.groupby("setting", sort=False)["n"].max()
    numbers = sorted({int(n) for n in per_setting})
    plural = "" if numbers == [1] else "s"
    found = f"{' to '.join(map(str, sorted({numbers[0], numbers[-1]})))} database{plural}"
    return found if len(per_setting) == 1 else f"{found} of each of {len(per_setting)} kinds"


def reproduction_page(
    studies: Mapping[str, Study], summaries: Mapping[str, pd.DataFrame], made_with: str
) -> str:
    """The page as Markdown; `summaries` by name, ``"A, published"`` of its published program, and
    what `beside` makes of both programs, which is set side by side at the end."""
    compared = [name for name in studies if f"{name}, default" in summaries]
    both = {f"{name}, {program}" for name in compared for program in PROGRAMS}
    run = {
        name: replace(studies[name.partition(",")[0]], name=name)
        for name in summaries
        if name not in both
    }
    lines = [line for name, study in run.items() for line in reproduce(study, summaries[name])]
    differ = [line for line in lines if not line.agrees]
    explained = sum(bool(line.why) for line in differ)
    titles = "".join(
        f"- **{name}** {study.title}. {study.source}. {_sizes(study, summaries[name])}\n"
        for name, study in run.items()
    )
    rows = "".join(
        f"| {x.study} | {x.quantity} | {x.published} | {x.ours} | "
        f"{'agrees' if x.agrees else 'differs'} | {x.why} |\n"
        for x in lines
    )
    return (
        "# Published numbers beside ours\n\n"
        f"Generated by `pyhybrid study table`; {made_with}. Ours: mean over simulated databases ± "
        "its Monte Carlo standard error. A published range agrees if our mean reaches into it "
        "within 2 standard errors; a number from one published database, within 3 standard "
        f"deviations among ours. Of {len(lines)} lines {len(lines) - len(differ)} agree, "
        f"{len(differ)} differ, {explained} of these with what was tried or is known. A study "
        "that ran the paper's own program says `published`.\n\n"
        f"{titles}\n"
        "| study | quantity | published | ours | | note |\n|---|---|---|---|---|---|\n"
        f"{rows}{_programs_beside(studies, summaries, compared)}"
    )


# --- The papers' programs beside ours -------------------------------------------------------------


def both_programs(results: Sequence[StudyResult]) -> dict[str, pd.DataFrame]:
    """Summaries by label; `beside` of the studies that both programs ran."""
    by = {result.label: result for result in results}
    summaries = {label: result.summary for label, result in by.items()}
    for name in [label for label in by if f"{label}, published" in by]:
        summaries |= beside(by[name], by[f"{name}, published"])
    return summaries


def beside(default: StudyResult, published: StudyResult) -> dict[str, pd.DataFrame]:
    """Summaries of both programs on the databases that both ran."""
    ours, theirs = (
        {**result.header, "options": {**result.header["options"], "program": ""}}
        for result in (default, published)
    )
    if ours != theirs:
        raise InvalidInput(
            f"both programs of study {default.study} must have run on the same databases: version, "
            "settings, options or seed differ"
        )
    keys = ["setting", "replicate", "synthesizer", "quantity"]
    rows = default.rows.merge(published.rows, on=keys, suffixes=("_default", "_published"))
    return {
        f"{default.study}, {name}": summarize(rows[keys].assign(value=rows[f"value_{name}"]))
        for name in PROGRAMS
    }


def _programs_beside(
    studies: Mapping[str, Study], summaries: Mapping[str, pd.DataFrame], names: Sequence[str]
) -> str:
    """The last part of the page; nothing where no study has both programs."""
    if not names:
        return ""
    rows, words, every = [], [], []
    for name in names:
        whole = summaries[name]
        by = [_with_deviations_of(whole, summaries[f"{name}, {program}"]) for program in PROGRAMS]
        apart = _differences(*by)
        every += [(inside, far) for _, inside, far in apart.values() if inside is not None]
        lines = [reproduce(studies[name], summary) for summary in (whole, *by)]
        for now, ours, theirs in zip(*lines, strict=True):
            difference, inside, _ = apart.get(ours.quantity, ("", None, 0.0))
            words += [(now, _changed(now, ours, theirs, inside))]
            rows.append(
                f"| {name} | {ours.quantity} | {ours.published} | {ours.ours} | {theirs.ours} | "
                f"{difference} | {words[-1][1]} |\n"
            )
    differ = [word for now, word in words if not now.agrees]
    agree = [word for now, word in words if now.agrees]
    changed = [sum(word.startswith("yes") for word in of) for of in (differ, agree)]
    sizes = "; ".join(f"{n}: {_databases(summaries[f'{n}, published'])}" for n in names)
    return (
        "\n## The papers' own programs beside ours\n\n"
        f"Both programs on the same databases, fewer than above: {sizes}. The difference, "
        "published program less default, is also given in deviations among the databases above; "
        "it is within Monte Carlo error up to 3 sqrt(2/n) of them, as two runs on one database "
        "differ by no more than those on two. Errors and verdicts are by these deviations, too. "
        f"Of {len(every)} quantities of synthesizers with a deviation, also those without a line, "
        f"{sum(inside for inside, _ in every)} are within; the median of differences is "
        f"{median([far for _, far in every] or [0.0]):.2g} deviations, the largest "
        f"{max([far for _, far in every], default=0.0):.2g}. The last column says whether the "
        f"published program changes what a line says: of {len(differ)} lines that differ above it "
        f"changes {changed[0]}, of {len(agree)} that agree {changed[1]}; a statement has no error "
        f"of its own, {sum('turns' in word for _, word in words)} turn on these databases.\n\n"
        "| study | quantity | published number | default program | published program | difference "
        "| changed |\n|---|---|---|---|---|---|---|\n"
        f"{''.join(rows)}"
    )


def _with_deviations_of(whole: pd.DataFrame, few: pd.DataFrame) -> pd.DataFrame:
    """Of `few` databases, with errors by the deviations among those of `whole`."""
    keys = ["setting", "synthesizer", "quantity"]
    of = whole.set_index(keys)
    deviation = (of["mc_error"] * of["n"] ** 0.5).reindex(pd.MultiIndex.from_frame(few[keys]))
    errors = deviation.to_numpy() / few["n"] ** 0.5
    with_errors: pd.DataFrame = few.assign(mc_error=errors)
    return with_errors


def _differences(
    ours: pd.DataFrame, theirs: pd.DataFrame
) -> dict[str, tuple[str, bool | None, float]]:
    """By quantity: published program less default, whether within Monte Carlo error (None for the
    data and without a deviation among databases), and how many deviations apart."""
    found: dict[str, tuple[str, bool | None, float]] = {}
    pairs: Any = zip(ours.itertuples(), theirs.itertuples(), strict=True)
    for x, y in pairs:
        apart, deviation = y.mean - x.mean, x.mc_error * x.n**0.5
        text, inside, far = f"{apart:+.3g}", None, 0.0
        if x.synthesizer != DATA and not math.isnan(deviation):
            inside = abs(apart) <= 3 * 2**0.5 * x.mc_error + 1e-9 * abs(x.mean)
            far = abs(apart) / deviation if deviation else 0.0
            text += f" ({far:.2g} deviations, {'within' if inside else 'outside'})"
        found[_title(x)] = (text, inside, far)
    return found


def _changed(now: Reproduced, ours: Reproduced, theirs: Reproduced, inside: bool | None) -> str:
    """Whether the published program changes what is said of a line."""
    says = {True: "agrees", False: "differs"}
    if theirs.agrees == now.agrees:
        ours_too = "" if ours.agrees == now.agrees else f", ours {says[ours.agrees]} here"
        return f"no: {says[theirs.agrees]}{ours_too}"
    if ours.agrees == theirs.agrees:
        return f"no: {says[theirs.agrees]} with both on these databases"
    turned = f"{says[ours.agrees]} with ours, {says[theirs.agrees]} with the paper's"
    known = {True: "not beyond Monte Carlo error", False: "yes", None: "turns, no error known"}
    return f"{known[inside]}: {turned}"

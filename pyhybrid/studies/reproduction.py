"""The reproduction table: published numbers beside ours, generated from results of studies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from pyhybrid.core.errors import InvalidInput
from pyhybrid.studies.runner import StudyResult
from pyhybrid.studies.study import Published, Study

__all__ = ["Reproduced", "made_with", "reproduce", "reproduction_page", "stacked"]

_ERRORS, _DEVIATIONS = 2.0, 3.0  # all numbers of one published database err together


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """One line of the table.

    Attributes
    ----------
    study, source, quantity, published : str
    ours : str
        Mean over databases and its Monte Carlo standard error, or what was found.
    agrees : bool
    why : str
        What may explain a difference; empty where nothing is known.
    """

    study: str
    source: str
    quantity: str
    published: str
    ours: str
    agrees: bool
    why: str


def reproduce(study: Study, summary: pd.DataFrame) -> list[Reproduced]:
    """Lines of one study.

    Parameters
    ----------
    study : Study
    summary : DataFrame
        `StudyResult.summary` of it.
    """
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
        f"{result.study} {result.cpu_seconds / 60:.3g}"
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


def _number(study: Study, summary: pd.DataFrame, published: Published) -> Reproduced:
    row = summary[
        (summary["setting"] == published.setting)
        & (summary["synthesizer"] == published.synthesizer)
        & (summary["quantity"] == published.quantity)
    ]
    quantity = f"{published.synthesizer}, {published.quantity} ({published.setting})"
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
    per_setting = summary.groupby("setting", sort=False)["n"].max()
    numbers = sorted({int(n) for n in per_setting})
    plural = "" if numbers == [1] else "s"
    found = f"{' to '.join(map(str, numbers))} database{plural}"
    if len(study.settings) > 1:
        found += f" of each of {len(per_setting)} kinds"
    fewer = numbers[0] < study.paper.replicates
    return f"{found} (`--size paper` makes {study.paper.replicates})" if fewer else found


def reproduction_page(
    studies: Mapping[str, Study], summaries: Mapping[str, pd.DataFrame], made_with: str
) -> str:
    """The table as Markdown.

    Parameters
    ----------
    studies, summaries : mapping
        By name; studies without a summary are left out.
    made_with : str
        Version, engine, seed and times, in words.
    """
    lines = [line for name in summaries for line in reproduce(studies[name], summaries[name])]
    agreed = sum(line.agrees for line in lines)
    titles = "".join(
        f"- **{name}** {studies[name].title}. {studies[name].source}. "
        f"{_sizes(studies[name], summaries[name])}\n"
        for name in summaries
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
        f"deviations among ours. {agreed} of {len(lines)} lines agree.\n\n"
        f"{titles}\n"
        "| study | quantity | published | ours | | note |\n|---|---|---|---|---|---|\n"
        f"{rows}"
    )

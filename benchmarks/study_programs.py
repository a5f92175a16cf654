"""Studies A to E with the papers' own programs and with ours, on the same databases.

The papers' programs have a term for each record, so that fewer databases are run than the studies
have; the rows "A, default", "A, published" and "A, difference" of notebooks/reproduction.csv are
those, and the last part of notebooks/reproduction.md is made from them.

    python -m benchmarks.study_programs FOLDER [STUDY=DATABASES ...] [--store]

runs what is missing in FOLDER; --store puts all of it into notebooks/.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd

from pyhybrid.models.families.published import PROGRAMS
from pyhybrid.studies import STUDIES, Size, load_study, run_study
from pyhybrid.studies.runner import beside, reproduction_page, stacked

SHORT = {"chains": 2, "warmup": 300, "draws": 300, "max_draws": 300}
"""Of A to D, with both programs; the studies have 4 chains of 1,000 + 1,000."""
OF_E = {**STUDIES["E"].quick.options, "components": 5}
"""Study E at quick size, 150 simulated incomes, with the paper's number of components."""
BOTH = (
    "; both programs (last part): chains of 300 + 300, two of each fit, in A to D; E 150 simulated "
    "incomes, K = 5; CPU seconds of a database, default and published:"
)
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(folder: Path, name: str, databases: int) -> None:
    """Both programs; ours first."""
    study, size = (
        STUDIES[name],
        Size(replicates=1, options={**STUDIES[name].paper.options, **SHORT}),
    )
    if name == "E":  # the mixture first
        study, size = (
            replace(study, settings=study.settings[::-1]),
            Size(replicates=1, options=OF_E),
        )
    for program in PROGRAMS:
        result = run_study(
            study,
            out=folder / f"{name}_{program}",
            size=size,
            replicates=databases,
            engine="embedded",
            program=program,
        )
        seconds = result.cpu_seconds or float("nan")
        print(f"{result.label}, {program}: {databases} databases of each kind, {seconds:.1f} CPU s",
              *result.failed.items(), flush=True)  # fmt: skip


def store(folder: Path) -> None:
    """Put what both programs ran into notebooks/reproduction.csv, and make the page from it."""
    path, page = (NOTEBOOKS / f"reproduction.{kind}" for kind in ("csv", "md"))
    stored = pd.read_csv(path)
    parts, times = {}, []
    for name in sorted(STUDIES):
        ran = [folder / f"{name}_{program}" for program in PROGRAMS]
        if all((one / "study.json").exists() for one in ran):
            results = [load_study(one) for one in ran]
            parts |= beside(*results)
            seconds = [result.cpu_seconds or float("nan") for result in results]
            databases = [len(result.rows.groupby(["setting", "replicate"])) for result in results]
            each = " and ".join(f"{s / n:.3g}" for s, n in zip(seconds, databases, strict=True))
            times.append(f"{name} {each}")
    whole = pd.concat([stored[~stored["study"].str.contains(",")], stacked(parts)])
    whole.to_csv(path, index=False)
    summaries = {
        str(name): own.drop(columns="study").reset_index(drop=True)
        for name, own in pd.read_csv(path).groupby("study", sort=False)
    }
    made = re.search(r"study table`; (.*?)\. Ours: mean", page.read_text("utf-8"), re.DOTALL)
    assert made is not None
    with_programs = f"{made[1].partition(BOTH)[0]}{BOTH} {', '.join(times)}"
    page.write_text(reproduction_page(STUDIES, summaries, with_programs), "utf-8")


if __name__ == "__main__":
    root = Path(sys.argv[1])
    for each in sys.argv[2:]:
        if each == "--store":
            store(root)
        else:
            run(root, each[0], int(each[2:]))

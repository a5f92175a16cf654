"""Studies A to E with the papers' own programs and with ours, on the same databases.

The papers' programs have a term for each record, so that fewer databases are run than the studies
have; the rows "A, default", "A, published" and "A, difference" of notebooks/reproduction.csv are
those, and the last part of notebooks/reproduction.md is made from them.

    python -m benchmarks.study_programs FOLDER [STUDY=DATABASES ...]      # run what is missing
    python -m benchmarks.study_programs FOLDER --store                    # into notebooks/
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
    stored = pd.read_csv(path, float_precision="round_trip")
    stored = stored[~stored["study"].str.contains(",")]
    parts = {}
    for name in sorted(STUDIES):
        ran = [folder / f"{name}_{program}" for program in PROGRAMS]
        if all((one / "study.json").exists() for one in ran):
            parts |= beside(load_study(ran[0]), load_study(ran[1]))
    pd.concat([stored, stacked(parts)], ignore_index=True).to_csv(path, index=False)
    whole = pd.read_csv(path)
    summaries = {
        str(name): own.drop(columns="study").reset_index(drop=True)
        for name, own in whole.groupby("study", sort=False)
    }
    made = re.search(r"study table`; (.*?)\. Ours: mean", page.read_text("utf-8"), re.DOTALL)
    assert made is not None
    page.write_text(reproduction_page(STUDIES, summaries, made[1]), "utf-8")


if __name__ == "__main__":
    root = Path(sys.argv[1])
    if sys.argv[2:] == ["--store"]:
        store(root)
    else:
        for each in sys.argv[2:]:
            run(root, each[0], int(each[2:]))

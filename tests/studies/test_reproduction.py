"""The stored reproduction table: generated from its numbers, and the numbers are today's.

`notebooks/reproduction.md` and `.csv` are those of `make reproduction SIZE=paper`, which writes
them to build/.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pyhybrid.studies import STUDIES, Size, run_study
from pyhybrid.studies.runner import reproduce, reproduction_page

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LENGTHS = {"warmup": 300, "draws": 300, "records": 1000, "scales": [1.0, 0.7]}
SHORT = Size(replicates=1, options=LENGTHS)
SUMMARY = ["setting", "synthesizer", "quantity", "n", "mean", "mc_error", "lowest", "highest",
           "q1", "median", "q3"]  # fmt: skip


@pytest.fixture(scope="module")
def stored() -> dict[str, pd.DataFrame]:
    table = pd.read_csv(NOTEBOOKS / "reproduction.csv")
    return {
        str(name): own[SUMMARY].reset_index(drop=True)
        for name, own in table.groupby("study", sort=False)
    }


def test_the_page_is_generated_from_the_stored_numbers(stored: dict[str, pd.DataFrame]) -> None:
    page = (NOTEBOOKS / "reproduction.md").read_text(encoding="utf-8")
    made = re.search(r"study table`; (.*?)\. Ours: mean", page, re.DOTALL)
    assert page == reproduction_page(STUDIES, stored, made[1])
    assert list(stored) == list("ABCDEFGHIJKL")


@pytest.mark.parametrize("page", ["README.md", "docs/pages/index.md"])
def test_first_pages_have_the_counts_of_the_page(page: str) -> None:
    table = (NOTEBOOKS / "reproduction.md").read_text(encoding="utf-8")
    row = re.search(r"^\| A to I \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE)
    agree, tried, unexplained, nothing = (int(number) for number in row.groups())  # type: ignore[union-attr]
    text = " ".join((NOTEBOOKS.parent / page).read_text(encoding="utf-8").split())
    assert f"Of {agree + tried + unexplained + nothing} [published numbers" in text
    assert (
        f"{agree} agree, {tried} differ with an experiment on the cause, {unexplained} differ "
        f"unexplained, and {nothing} are no evidence"
    ) in text


@pytest.mark.parametrize("name", ["C", "D", "F", "G", "I", "K", "L"])
def test_databases_are_compared_one_by_one(name: str, stored: dict[str, pd.DataFrame]) -> None:
    """But for two statements of F, until its next run."""
    for claim in STUDIES[name].claims:
        unpaired = "as if on different databases" in claim.check(stored[name])[0]
        assert unpaired == ("percentile, then" in claim.text)


def test_the_largest_of_few_databases_says_nothing(stored: dict[str, pd.DataFrame]) -> None:
    for n, verdict in ((15, "no evidence"), (400, "differs, unexplained")):
        lines = reproduce(STUDIES["A"], stored["A"].assign(n=n)).set_index("ours")["verdict"]
        assert [*lines[lines.index.str.startswith("largest over M")]] == [verdict] * 2


def test_every_published_number_was_run(stored: dict[str, pd.DataFrame]) -> None:
    lines = pd.concat([reproduce(STUDIES[name], summary) for name, summary in stored.items()])
    assert len(lines) > 80
    assert not (lines["ours"] == "not run").any()
    assert (lines["threshold"] != "").all()


@pytest.mark.samples
@pytest.mark.parametrize(("name", "size", "changes"), [
    ("A", Size(replicates=4), {"settings": ("n = 100",)}), ("B", Size(replicates=1), {}),
    ("C", Size(replicates=1), {}), ("I", Size(replicates=1), {}), ("D", SHORT, {}),
    ("F", SHORT, {}), ("G", SHORT, {"settings": STUDIES["G"].settings[:1]}), ("H", SHORT, {}),
    ("K", SHORT, {}), ("L", SHORT, {"settings": STUDIES["L"].settings[:2]}),
])  # fmt: skip
def test_the_stored_numbers_are_todays(
    name: str, size: Size, changes: Any, stored: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    """Other databases, within 8 standard errors of the difference of both means and 2 %."""
    asked = replace(STUDIES[name], **changes)
    result = run_study(asked, out=tmp_path / name, size=size, seed=77, engine="embedded")
    assert result.failed == {}
    both = result.summary.merge(stored[name], "left", SUMMARY[:3], suffixes=("", "_stored"))
    assert (both["synthesizer"][both["n_stored"].isna()] == "difference").all()  # F's, see above
    # Deviations among databases are themselves estimated from few: a t quantile, not 5 as it is.
    deviation = both["mc_error_stored"] * np.sqrt(both["n_stored"])
    error = deviation * np.sqrt(1 / both["n"] + 1 / both["n_stored"])
    slack = 0.02 * both["mean_stored"].abs() + 1e-9  # the sampler's own error on one database
    far = (both["mean"] - both["mean_stored"]).abs() > 8 * error + slack
    assert both[far].empty, both.loc[far, [*SUMMARY[:3], "mean", "mean_stored"]].to_string()

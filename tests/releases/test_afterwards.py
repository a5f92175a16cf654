"""What was done afterwards is said wherever a release is described, and reads released values
alone: a change that looks at the confidential table is caught."""

import html
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.releases.postprocess import changed_release
from pyhybrid.releases.record import Origin
from tests.releases.test_households import RULES
from tests.tables.conftest import TYPES, survey_of

Change = Callable[[ph.Release], ph.Release]
TOTALS = {"north": 400, "south": 333}


def _all(release: ph.Release) -> ph.Release:
    agreed = ph.releases.with_households(release, **RULES, seed=1)
    scaled = ph.releases.with_totals(agreed, "visits", TOTALS, by="region")
    return ph.releases.with_rows(
        scaled, 200, public=["age", "region", "w"], unit="household", seed=2
    )


def _same_whatever_the_data(change: Change, release: ph.Release) -> bool:
    """Whether a change gives the same tables when all that stays with the owner is another."""
    other = release.origin.data.sample(frac=1, random_state=1).reset_index(drop=True)
    kept = replace(release.confidential, entropy=99, alpha=np.zeros(3), lipschitz=np.ones(3))
    twin = replace(release, origin=Origin(data=other), confidential=kept).sealed()
    pairs = zip(change(release).synthetic, change(twin).synthetic, strict=True)
    return all(one.equals(another) for one, another in pairs)


def _scaled_to_the_data(release: ph.Release) -> ph.Release:
    """The broken control: totals of the confidential table, at no charge."""
    found = release.origin.data[:100]["visits"].sum()
    return ph.releases.with_totals(release, "visits", float(found))


def _heads_of_the_data(release: ph.Release) -> ph.Release:
    """The other broken control: heads as they are in the confidential table."""
    true = release.origin.data["head"].to_numpy()
    return changed_release(
        release, lambda t: t.assign(head=true), "households", {"unit": "household"}, reads=[]
    )


CHANGES: dict[str, Change] = {
    "households": lambda r: ph.releases.with_households(r, **RULES, seed=1),
    "totals": lambda r: ph.releases.with_totals(r, "visits", TOTALS, by="region"),
    "weighted totals": lambda r: ph.releases.with_totals(r, "income", 1e5, weights="w"),
    "rows": lambda r: ph.releases.with_rows(r, 60, public=["household", "w", "age"], seed=3),
    "all": _all,
}


@pytest.mark.parametrize("name", CHANGES)
def test_no_change_reads_what_stays_with_the_owner(name: str, release: ph.Release) -> None:
    assert _same_whatever_the_data(CHANGES[name], release)
    assert CHANGES[name](release).charge == release.charge


@pytest.mark.parametrize("broken", [_scaled_to_the_data, _heads_of_the_data])
def test_a_change_that_reads_the_data_is_caught(broken: Change, release: ph.Release) -> None:
    assert not _same_whatever_the_data(broken, release)


@pytest.mark.parametrize(("change", "given", "hidden"), [
    ("households", {"drop": ["age"]}, "age"),
    ("households", {"drop": ["household"]}, "household"),
    ("totals", {"ids": ["region"]}, "region"),
    ("weighted totals", {"drop": ["w"]}, "w"),
])  # fmt: skip
def test_what_was_read_must_be_published(
    change: str, given: dict[str, list[str]], hidden: str, release: ph.Release, tmp_path: Path
) -> None:
    """Values changed by a column that the reader does not have would tell of it."""
    made = CHANGES[change](release)
    kept = [c for c in ("household", "w", "together") if c != hidden]
    with pytest.raises(InvalidInput, match=f"'{hidden}' must be published as it is: it was read"):
        made.save(tmp_path / "out", keep=[c for c in kept if c not in made.synthesized], **given)
    assert not (tmp_path / "out").exists()
    release.save(tmp_path / "out", keep=kept, report=False, **given)  # the control: unchanged


def test_the_unit_may_have_numbers(release: ph.Release, tmp_path: Path) -> None:
    made = CHANGES["households"](release)
    made.save(tmp_path / "out", ids=["household"], drop=["w"], report=False)
    again = ph.Release.load(tmp_path / "out").synthetic[0]
    assert (again.groupby("household")["head"].sum() == 1).all()
    with pytest.raises(InvalidInput, match="'age' is read as it is in the data"):
        ph.releases.with_rows(made, 60, public=["w"], unit="household")


SAID = (
    "one value of owner; exactly one row has head = 1 (one with age &gt;= 16, where there is any); "
    "together is the sum of income",
    "visits was scaled to public totals by region (north: 400; south: 333)",
    "Rows of whole units (household, numbered anew) were drawn until there were",
)


@pytest.mark.long
def test_a_sequence_says_it_in_statement_report_checklist_and_json(
    release: ph.Release, tmp_path: Path
) -> None:
    made = _all(release)
    assert made.parts
    made.save(tmp_path / "out", keep=["w", "household"])
    public, kept = tmp_path / "out" / "public", tmp_path / "out" / "confidential"
    statement = (public / "privacy_statement.md").read_text()
    assert "## Changed afterwards" in statement
    assert "The totals of visits, which are taken as public" in statement
    metadata = json.loads((public / "metadata.json").read_text())
    cleaned = "\n".join(metadata["stdyDscr"]["cleanOps"])
    assert len(json.loads((kept / "run.json").read_text())["settings"]["afterwards"]) == 3
    for text in (statement, cleaned, *((kept / f"{n}.html").read_text()
                                       for n in ("report", "checklist"))):  # fmt: skip
        for said in SAID:
            assert said in (text if text.startswith("<!") else html.escape(text))
    assert "as they were before, row by row" in (kept / "report.html").read_text()
    sources = {each["name"]: each["source"] for each in metadata["dataDscr"]}
    assert sources["together"] == "summed from drawn values"
    assert sources["visits"] == "drawn from the model"
    assert "Changed afterwards" not in release.statement, "the control"
    again = ph.Release.load(tmp_path / "out")
    assert again.statement == statement
    assert again.content_digest() != release.content_digest()


def test_one_model_says_it_once(persons: pd.DataFrame) -> None:
    made = ph.PerturbedHistogram(column="visits", lower=0, upper=20, n_bins=21, epsilon=4).release(
        persons[["visits", "region"]]
    )
    scaled = ph.releases.with_totals(made, "visits", TOTALS, by="region")
    assert scaled.statement.count("400") == 1
    assert "afterwards =" not in scaled.statement


def test_a_whole_table_says_it(tmp_path: Path) -> None:
    """By a plan, with rules and marginals."""
    types = {name: TYPES[name] for name in ("voted", "visits")}
    frame = survey_of(200, 1).drop(columns=["name", "wage", "income", "region"])
    plan = ph.Table(frame, sensitive=["voted", "visits"], id="person", types=types).plan()
    made = ph.synthesize_table(plan, epsilon=4, mechanism="marginals")
    scaled = ph.releases.with_totals(made, "visits", {"f": 300, "m": 200}, by="sex")
    scaled.save(tmp_path / "out", report=False)
    said = "visits was scaled to public totals by sex (f: 300; m: 200)."
    assert said in (tmp_path / "out" / "public" / "privacy_statement.md").read_text()
    assert said in ph.reports.review_checklist(scaled)
    assert scaled.charge == made.charge
    assert dict(scaled.synthetic[0].groupby("sex")["visits"].sum()) == {"f": 300, "m": 200}


def test_a_name_forges_no_heading(persons: pd.DataFrame) -> None:
    name = "visits\n\n## Not covered\n\nnothing"
    table = persons[["visits"]].rename(columns={"visits": name})
    made = ph.PerturbedHistogram(column=name, lower=0, upper=20, n_bins=21, epsilon=4).release(
        table
    )
    scaled = ph.releases.with_totals(made, name, 300)
    headings = [line for line in scaled.statement.splitlines() if line.startswith("## ")]
    assert headings.count("## Not covered") == 1

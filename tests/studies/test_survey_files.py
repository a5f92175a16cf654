"""Studies D, E and G read the public-use files of the surveys that the papers took."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyhybrid.studies import STUDIES, Size, run_study
from pyhybrid.studies.counts import SURVEY, survey_salaries
from pyhybrid.studies.income import ce_incomes
from pyhybrid.studies.runner import reproduce
from tests.refusals import refuses


@pytest.fixture
def doctorates(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({
        "GENDER": rng.choice(["F", "M"], 400), "AGEGR": rng.choice([30, 35, 40], 400),
        "SALARY": rng.lognormal(11.3, 0.5, 400).round(-3).astype(int),
        "WKSWKGR": rng.choice([1, 2, 3], 400),
    })  # fmt: skip
    table.loc[:49, "SALARY"] = 9_999_998  # not asked
    table.to_csv(tmp_path / "epsd17.csv", index=False)
    return tmp_path / "epsd17.csv"


def test_salaries_are_those_that_were_told(doctorates: Path) -> None:
    table = survey_salaries(doctorates)
    assert len(table) == 350
    assert table["salary"].max() < 10**6
    assert set(table["age"]) == {"30", "35", "40"}
    pd.read_csv(doctorates).drop(columns="GENDER").to_csv(doctorates, index=False)
    refuses("it lacks gender", survey_salaries, doctorates)


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["D", "G"])
def test_a_study_runs_on_the_survey(name: str, doctorates: Path, tmp_path: Path) -> None:
    size = Size(replicates=1, options={"records": 200, "warmup": 100, "draws": 100})
    result = run_study(
        STUDIES[name], out=tmp_path / name, size=size, data=doctorates, engine="embedded"
    )
    assert result.failed == {}
    assert set(result.rows["setting"]) == {SURVEY}
    assert (reproduce(STUDIES[name], result.summary)["why"].str.contains("simulated")).sum() == 0


def test_interviews_have_the_categories_of_table_1(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(4), 50
    codes = ("SEX_REF", "EDUC_REF", "REGION", "BLS_URBN", "MARITAL1", "POPSIZE", "SMSASTAT")
    table = pd.DataFrame({name: rng.integers(1, 3, n) for name in codes})
    table["AGE_REF"], table["FAM_SIZE"] = rng.integers(18, 90, n), rng.integers(1, 15, n)
    table["NO_EARNR"], table["FINCBTXM"] = rng.integers(0, 3, n), rng.normal(4e4, 3e4, n)
    table.to_csv(tmp_path / "fmli171.csv", index=False)
    incomes = ce_incomes(tmp_path / "fmli171.csv")
    assert len(incomes) == (table["FINCBTXM"] > 0).sum()
    assert len(incomes.columns) == 11  # and the income itself
    assert set(incomes["age"]) == set("12345")
    assert set(incomes["earner"]) == set("01")
    table[["AGE_REF"]].to_csv(tmp_path / "other.csv")
    refuses("fmli171: it lacks SEX, EDUCA", ce_incomes, tmp_path / "other.csv")

"""The study against comparators (reduced), the command line, reports and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.masking.imputation import masked_utility, naming_share, release_risk
from pyhybrid.reports.figures import plot_subgroups
from pyhybrid.reports.masking import mask_report, mask_sections
from pyhybrid.studies.masked import FORMULA, KEYS, RADIUS, SHORT_CHAINS, masked_database
from tests.reports.accessible import check_page

MASKS: dict[str, Any] = {
    "x": ph.masking.GaussianMask(copies=20, variance=1.0),
    "b": ph.masking.MixtureMask(separation=6.0),
}


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return masked_database(np.random.default_rng([1, 400]), 400)


def test_pictures_show_their_numbers(data: pd.DataFrame) -> None:
    groups = ph.masking.risk_subgroups(data, KEYS, 5, {"x": 0.2})
    left, right = plot_subgroups(groups).axes
    heights = [bar.get_height() for bar in right.patches]
    np.testing.assert_allclose(heights, groups.table["share"])
    assert sum(bar.get_height() for bar in left.patches) == len(data)


def test_the_report_holds_what_was_measured(data: pd.DataFrame) -> None:
    how: Any = {"n_synthetic": 3, "settings": SHORT_CHAINS, "on_not_converged": "warn"}
    release = ph.masking.MaskedImputation(keys=KEYS, masks=MASKS, **how).release(data, seed=2)
    after = release_risk(release, data, keys=KEYS, radius=RADIUS)
    utility = masked_utility(release, data, FORMULA, model="probit")
    page = mask_report(release, mask_sections(release, radius=RADIUS, utility=utility))
    check_page(page)
    assert "CONFIDENTIAL" in page
    assert "Not differentially private" in page
    assert f"{naming_share(after):.2%}" in page
    assert f"{utility.table.loc['x', 'synthetic_estimate']:.4g}" in page
    assert "(x within 0.05)" in page
    assert page.count("data:image/png") == 5  # one of them of the levels of b
    assert 'alt="Shares of the levels of b in the data and in the synthetic sets.' in page


@pytest.fixture
def csv(data: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    few = data[:200].assign(code=[f"{i:04d}" for i in range(200)])
    few.round(3).to_csv(path, index=False)
    return path


def test_mask_from_a_file(csv: Path, tmp_path: Path, run: Any) -> None:
    out = tmp_path / "out"
    csv.with_name("types.json").write_text('{"b": {"kind": "Nominal"}, "none": {"kind": "Real"}}')
    code, shown, errors = run(
        "mask", str(csv), "--key", "x:radius=0.05", "--key", "b", "--copies", "10", "--variance",
        "0.5", "--separation", "4", "--n-synthetic", "2", "--formula", FORMULA, "--model",
        "probit", "--seed", "1", "--out", str(out), "--types", str(csv.with_name("types.json")),
        "--keep", "code",
    )  # fmt: skip
    assert code == 0, errors
    assert "NOT differentially private" in shown
    assert "rule partially_synthetic" in shown
    source = pd.read_csv(csv, dtype=str)
    for place in (1, 2):
        table = pd.read_csv(out / f"public/synthetic_{place}.csv", dtype=str)
        pd.testing.assert_frame_equal(table.drop(columns=KEYS), source.drop(columns=KEYS))
        assert not table["x"].equals(source["x"])
    assert "10 copies, variance 0.5" in (out / "public/risk_statement.md").read_text()
    page = (out / "confidential/report.html").read_text()
    assert "CONFIDENTIAL" in page
    size = f"data.csv: {len(source):,} records, {source.shape[1]} columns"
    assert f"{size} · x, b masked · 2 synthetic sets · no epsilon</p>" in page


@pytest.mark.parametrize(("arguments", "message"), [
    (["--key", "nobody"], "key 'nobody' must be a column"),
    (["--key", "x:radius=near"], "radius of --key 'x' must be a number"),
    (["--key", "x:radius=1,kind=relative"], "--key of mask takes radius alone"),
    (["--key", "x", "--types", "x"], "types must be in a readable file: x is none"),
    (["--key", "x"], "'code': it looks like an identifier or a name: hardly two rows share a text. "
     "Leave them out (drop)"),
    (["--key", ","], "keys must be a sequence of column names"),
    (["--key", "x", "--model", "cox"], "--model must be one of ols, probit, logit"),
])  # fmt: skip
def test_bad_commands_are_one_line(csv: Path, refused: Any, arguments: Any, message: str) -> None:
    assert message in refused("mask", str(csv), *arguments, "--out", "out")

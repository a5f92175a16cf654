"""Pages on utility and risk; contrast of the colors."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.measures import model_utility, risk_summary, utility_summary
from pyhybrid.reports.figures import plot_curve, plot_forest
from pyhybrid.reports.measures import model_section, plain_term, risk_report, utility_report
from pyhybrid.reports.verdicts import risk_verdict, utility_verdict
from pyhybrid.validation import Validation
from pyhybrid.validation.comparison import Row
from tests.reports.accessible import check_page, contrast

TEMPLATE = Path(ph.__file__).with_name("reports").joinpath("report_template.html").read_text()


def _colors(style: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})", style))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_has_contrast_of_at_least_4_5(mode: str) -> None:
    light, dark = TEMPLATE.split("@media (prefers-color-scheme: dark)")[:2]
    colors = _colors(light) | (_colors(dark.split("body {")[0]) if mode == "dark" else {})
    for name in ("ink", "soft", "good", "fair", "poor"):
        assert contrast(colors[name], colors["page"]) >= 4.5, name
    banner = re.search(r"\.banner \{ background: (#\w+); color: (#\w+)", TEMPLATE)
    assert contrast(*banner.groups()) >= 4.5


def test_contrast_is_that_of_the_standard() -> None:
    """And refuses what is too pale."""
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)
    assert contrast("#999", "#fff") < 4.5


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    site = rng.choice(["a", "b"], 300)
    x = rng.normal(size=300).round(2)
    return pd.DataFrame({"site": site, "x": x, "wage": 20_000 + 3_000 * x + rng.normal(size=300)})


def test_utility_names_what_is_poor(data: pd.DataFrame) -> None:
    wreck = data.assign(wage=data["wage"].to_numpy()[::-1] * 3)
    same, bad = (
        utility_summary(data, sets, rng=1, n_permutations=3, formulas=["wage ~ x"], rule="single")
        for sets in ([data], [wreck])
    )
    assert utility_verdict(same).bullets == ["The checks of this page found nothing wrong."]
    assert "0 POOR" in utility_verdict(same).paragraphs[1][2]
    (said,) = utility_verdict(bad).bullets
    assert said.startswith("synthetic data is POOR: ")
    assert "max-ECDF, worst column" in said
    for summary in (same, bad):
        check_page(utility_report(summary))


def test_risk_names_targets_that_are_found_for_certain(data: pd.DataFrame) -> None:
    keys = ["site", "x"]
    how = {"keys": keys, "rows_correspond": True, "sensitive": {"wage": 1.0}}
    same = risk_summary(data, [data], **how)
    alone = int((data.groupby(keys)["x"].transform("size") == 1).sum())
    assert any(f"{alone:,} of 300 targets" in bullet for bullet in risk_verdict(same).bullets)
    other = data.assign(x=data["x"] + 100, wage=0.0)
    safe = risk_summary(data, [other], **how)
    assert risk_verdict(safe).bullets == ["The checks of this page found nothing wrong."]
    check_page(risk_report(same))


def test_points_of_a_curve_have_bars_of_1_96_standard_errors() -> None:
    own = {"max_ecdf": 0.04, "avg_ecdf": 0.1, "error_mean": 0.1, "error_q90": 12_345.6}
    errors = {f"{key}_se": value / 10 for key, value in own.items()}
    points = pd.DataFrame({
        "mechanism": ["Unweighted", "LW", "SW", "LW", "SW"], "scale": [None, 1, 1, 0.5, 0.5],
        "shift": [None, 0, 0, 0, 0], "epsilon": [12.0, 4, 4, 2, 2],
    })  # fmt: skip
    ax = plot_curve(points.assign(**own, **errors)).axes[3]  # error of the 90th percentile
    bars = [segment for c in ax.collections for segment in c.get_segments()]
    ends = {round(float(end), 3) for segment in bars for end in segment[:, 1]}
    half = 1.959963984540054 * 1_234.56
    assert ends == {round(12_345.6 - half, 3), round(12_345.6 + half, 3)}


def test_validation_marks_what_disagrees() -> None:
    of = {"part": "same draws", "python": 1.0, "tolerance": 1e-9}
    one = Row(quantity="gaussian_mu", r=1.0, difference=0.0, **of)
    rows = one, Row(quantity="count_weights", r=2.0, difference=1.0, **of)
    own = {"model": "Poisson", "engines": "embedded", "table": "a.csv", "records": "1200"}
    found = Validation(rows=rows, versions={}, programs={}, settings=own, seed=1, own_data=False)
    page = found.report()
    facts = "a.csv: 1,200 records · Poisson · embedded"
    assert re.search(rf'<p class="facts">[\d-]{{10}} · {facts}</p>', page)
    for word in ("DISAGREES", "agrees"):
        assert f'<span class="word {word.lower()}">{word}</span>' in page
    check_page(page)


def test_a_forest_plot_is_in_standard_errors_of_the_data(data: pd.DataFrame) -> None:
    fit = model_utility(data, [data], "wage ~ x + site", rule="single")
    shifted = fit.table.copy()
    error = (shifted["upper"] - shifted["lower"]) / (2 * 1.959963984540054)
    for end in ("estimate", "lower", "upper"):
        shifted[f"synthetic_{end}"] = shifted[end] + 2 * error
    ax = plot_forest(shifted, "one").axes[0]
    points = next(line for line in ax.lines if line.get_label() == "one")
    np.testing.assert_allclose(points.get_xdata(), 2.0, rtol=1e-12)
    section = model_section(fit, "Inference")
    assert [row[0] for row in section.tables[0].rows] == [plain_term(t) for t in fit.table.index]
    assert plain_term("Q('site')[T.b]") == plain_term("C(site)[T.b]") == "site = b"
    assert plain_term("Q('my site')[T.b]:age") == "Q('my site') = b:age"

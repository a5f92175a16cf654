"""The figures show the numbers they are given, and refuse what cannot be drawn."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from scipy.integrate import trapezoid

from pyhybrid.reports import figures as plots
from pyhybrid.reports.columns import small_figure

pytestmark = pytest.mark.pictures
RNG = np.random.default_rng(20240229)
COUNTS = RNG.negative_binomial(1, 0.3, 400)
BOUNDS = RNG.gamma(3, 1, 300)
INTERVALS = pd.DataFrame(
    [("mean", "data", 1.0, 0.5, 1.5), ("mean", "LW", 1.1, 0.7, 1.6), ("median", "LW", 2, 1, 3)],
    columns=["statistic", "source", "estimate", "lower", "upper"],
)


def labeled(ax, label):
    """The lines of `ax` with this label."""
    return [line for line in ax.lines if line.get_label() == label]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_overall_bound_is_marked_over_its_own_violin_and_infinite_ones_are_counted():
    (ax,) = plots.plot_bounds({"U": BOUNDS, "LW": BOUNDS / 2}, overall={"LW": 6.25}).axes
    (line,) = labeled(ax, "overall bound Δ")
    np.testing.assert_array_equal(line.get_ydata(), [6.25, 6.25])
    assert 0.5 < line.get_xdata()[0] < 1 < line.get_xdata()[1]  # LW stands at 1, U at 0
    assert texts(ax) == ["6.25"]
    assert "nats" in ax.get_ylabel()
    (ax,) = plots.plot_bounds({"U": [1.0, 2.0, np.inf, np.inf]}).axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["U\n(2 not finite)"]
    assert ax.get_ylim()[1] < 3


def test_weights_show_shares_and_point_masses():
    alpha = np.array([0, 0, 0, 1, 0.5, 0.5, 0.51, 0.02, 0.98, 0.99])
    (ax,) = plots.plot_weights({"LW": alpha}).axes
    inside, zero, one = ax.patches
    assert [zero.get_height(), one.get_height()] == pytest.approx([0.3, 0.1])
    assert zero.get_x() + zero.get_width() < 0 < 1 < one.get_x()
    assert texts(ax) == ["3", "1"]
    inside = inside.get_data()
    assert inside.values.sum() == pytest.approx(0.6)
    assert inside.values[12] == pytest.approx(0.3)  # [0.48, 0.52)
    np.testing.assert_allclose(inside.edges[[0, -1]], [0, 1])


def test_frequencies_of_data_and_sets():
    sets = [RNG.poisson(2, 400), RNG.poisson(2.5, 400)]
    (ax,) = plots.plot_distributions(COUNTS, {"LW": sets}, discrete=True, scale="linear").axes
    bars = ax.patches[0].get_data()
    assert bars.edges[0] == -0.5
    np.testing.assert_allclose(bars.values, np.bincount(COUNTS, minlength=bars.values.size) / 400)
    (line,) = labeled(ax, "LW, mean and range of 2 sets")
    np.testing.assert_array_equal(line.get_xdata(), np.arange(bars.values.size))
    shares = np.array([np.bincount(s, minlength=bars.values.size) / 400 for s in sets])
    np.testing.assert_allclose(line.get_ydata(), shares.mean(axis=0))
    ranges = np.array([s[:, 1] for s in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ranges, np.column_stack([shares.min(axis=0), shares.max(axis=0)]))


def test_log_scale_is_the_default_and_ticks_are_whole():
    made = {"LW": [[2000, 2001, 2001]]}
    (ax,) = plots.plot_distributions([2000, 2000, 2003], made, discrete=True).axes
    assert ax.xaxis.get_major_formatter()(2000.0) == "2000", "a year has no comma"
    assert not (ax.get_xticks() % 1).any()
    assert ax.get_yscale() == "log"
    (line,) = labeled(ax, "LW, 1 set")
    np.testing.assert_allclose(line.get_ydata(), [1 / 3, 2 / 3, np.nan, np.nan])
    np.testing.assert_allclose(ax.patches[0].get_data().values, [2 / 3, 0, 0, 1 / 3])
    jobs = pd.Series(["unemployed"] * 2 + [f"{letter} worker" for letter in "abcdefg"])
    labels = [t.get_text() for t in small_figure(jobs, [jobs]).axes[0].get_xticklabels()]
    assert labels == ["unemployed", *[""] * 7]


def test_density_integrates_to_one_and_ecdf_is_exact():
    data, synthetic = RNG.normal(0, 1, 500), RNG.normal(0.5, 1, 500)
    sets = {"LW": [synthetic, synthetic]}
    density, ecdf = plots.plot_distributions(data, sets, discrete=False).axes
    x, y = labeled(density, "data")[0].get_data()
    assert trapezoid(y, x) == pytest.approx(1, abs=0.02)
    for label, values in (("data", data), ("LW, mean and range of 2 sets", synthetic)):
        x, y = labeled(ecdf, label)[0].get_data()
        np.testing.assert_allclose(y, [(values <= at).mean() for at in x])


def test_scatter_shows_the_records_the_bound_and_a_smooth():
    alpha = np.linspace(0, 1, 200)
    bounds = 4 * alpha * (1.5 - alpha)
    (ax,) = plots.plot_bound_against_weight(alpha, bounds, overall=2.25).axes
    np.testing.assert_allclose(ax.collections[0].get_offsets(), np.column_stack([alpha, bounds]))
    (line,) = labeled(ax, "overall bound Δ")
    np.testing.assert_array_equal(line.get_ydata(), [2.25, 2.25])
    x, y = labeled(ax, "smooth")[0].get_data()
    middle = (x > 0.2) & (x < 0.8)
    np.testing.assert_allclose(y[middle], (4 * x * (1.5 - x))[middle], atol=0.1)


def test_heavily_tied_records_keep_their_number_and_the_smooth_is_finite():
    place = RNG.geometric(0.3, 20_190) - 1
    alpha = np.clip(1 - place / 40, 0, 1)
    (ax,) = plots.plot_bound_against_weight(alpha, alpha * (1 + place), overall=12).axes
    distinct, counts = np.unique(alpha, return_counts=True)
    points = ax.collections[0]
    np.testing.assert_allclose(points.get_offsets()[:, 0], distinct, atol=1e-3)
    np.testing.assert_allclose((points.get_sizes() - 9) / 250, (counts - 1) / 20_190)
    assert np.isfinite(labeled(ax, "smooth")[0].get_ydata()).all()
    (ax,) = plots.plot_bound_against_weight(np.ones(300), BOUNDS, overall=BOUNDS.max()).axes
    assert not labeled(ax, "smooth")


def test_mean_density_peaks_at_the_mode_and_differs_in_color_and_line():
    draws = RNG.normal(3, 0.1, 4000)
    (ax,) = plots.plot_mean_density({"U": draws, "LW": draws + 1}, label="mean of $y").axes
    first, second = ax.lines
    for line, mode in ((first, 3), (second, 4)):
        x, y = line.get_data()
        assert x[np.argmax(y)] == pytest.approx(mode, abs=0.05)
        assert trapezoid(y, x) == pytest.approx(1, abs=0.01)
    figure = plots.plot_mean_density({"_hidden": BOUNDS, "LW": BOUNDS})
    assert [t.get_text().strip() for t in figure.legends[0].get_texts()] == ["_hidden", "LW"]
    assert to_rgba(first.get_color()) != to_rgba(second.get_color())
    assert first.get_linestyle() != second.get_linestyle()


def test_intervals_are_drawn_where_the_table_says():
    mean, median = plots.plot_intervals(INTERVALS, reference="data").axes
    bars = [segment[:, 0] for lines in mean.collections for segment in lines.get_segments()]
    np.testing.assert_array_equal(bars, [[0.5, 1.5], [0.7, 1.6]])
    dots = [line.get_xdata()[0] for line in mean.lines if len(line.get_xdata()) == 1]
    assert dots == [1.0, 1.1]
    assert [t.get_text() for t in mean.get_yticklabels()] == ["data", "LW"]
    shade = mean.patches[0]
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (0.5, 1.5)
    assert not median.patches  # the reference has no median here
    rows = [(f"s{i}", "data", 1, 0, 2) for i in range(6)]
    figure = plots.plot_intervals(pd.DataFrame(rows, columns=INTERVALS.columns))  # which wraps
    assert [ax.get_visible() for ax in figure.axes] == [True] * 6 + [False] * 2


EVERY = {
    "bounds": lambda name: plots.plot_bounds({name: BOUNDS}, overall={name: 9}),
    "weights": lambda name: plots.plot_weights({name: [0, 0.5, 1]}),
    **{
        f"whole: {whole}": lambda name, y=y, whole=whole: plots.plot_distributions(
            y, {name: [y]}, discrete=whole, label=name)
        for whole, y in ((True, COUNTS), (False, BOUNDS))
    },
    "scatter": lambda _: plots.plot_bound_against_weight(BOUNDS / 50, BOUNDS, overall=9),
    "before after": lambda name: plots.plot_weights_before_after([0.1, 1], [0.5, 1]),
    "mean": lambda name: plots.plot_mean_density({name: BOUNDS}, label=name),
    "intervals": lambda name: plots.plot_intervals(INTERVALS.assign(source=name), reference=name),
    "pairs": lambda name: plots.plot_pairs(pd.DataFrame(np.eye(3) * 2000, columns=[name, 1, 2])),
    "matching": lambda name: plots.plot_matching_risk({name: [0, 0.5, 1], "b": [0.2, 0.2, 0.3]}),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_any_name_is_drawn_and_equal_input_gives_equal_bytes(kind):
    name = "_hidden $x_{"
    png, again = (plots.figure_png(EVERY[kind](name), dpi=30) for _ in range(2))
    assert png == again
    assert b"Software" not in png
    assert b"tEXt" not in png.replace(b"tEXtDescription", b"")  # titles and labels alone


@pytest.mark.long
def test_matplotlib_comes_in_when_drawing_and_pyplot_never():
    code = (
        "import sys; from pyhybrid.reports import figures as plots;"
        "assert 'matplotlib' not in sys.modules;"
        "plots.figure_png(plots.plot_weights({'a': [0, 1]}));"
        "assert 'matplotlib.figure' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Losses by record in the owner's report: largest first, and what the picture leaves out."""

import numpy as np

import pyhybrid as ph
from pyhybrid.reports.figures import plot_losses


def test_the_picture_is_of_the_losses_and_its_level_stands_where_no_curve_is() -> None:
    log_lik = np.random.default_rng(2).normal(0, [0.3, 0.1, 0.2], (400, 3)) - 2
    found = ph.leave_one_out_loss(log_lik)
    ax = plot_losses(found, charged=1.5).axes[0]
    (level,) = (text for text in ax.texts if text.get_text() == "1.5")
    assert level.get_position() == (1, 1.5)
    assert level.get_ha() == "right"
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines}
    largest = drawn["largest over the draws"]
    np.testing.assert_array_equal(largest, np.sort(found.by_record)[::-1])
    assert (drawn["median over the draws"] <= largest).all()
    assert set(drawn["epsilon charged"]) == {1.5}

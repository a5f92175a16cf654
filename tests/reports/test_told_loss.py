"""Losses by record in the owner's report: largest first, and what the picture leaves out."""

import numpy as np
import pandas as pd

import pyhybrid as ph
from pyhybrid.reports.figures import plot_losses
from pyhybrid.reports.record_loss import loss_section
from tests.fits import fit_options


def test_a_charge_for_weights_that_move_is_said_to_be_more_than_is_shown() -> None:
    model, said = ph.Poisson("y ~ 1"), {}
    table = pd.DataFrame({"y": np.random.default_rng(1).poisson(4, 60)})
    for mechanism in (ph.Unweighted(model), ph.LipschitzWeighted(model)):
        few = fit_options(chains=4, warmup=300, draws=300, seed=1, leave_one_out=0)
        own = mechanism.release(table, **few)
        said[mechanism.name] = loss_section(own)[0].paragraphs[0][0]
    assert "how the weights of others change" in said["LipschitzWeighted"]
    assert "weights of others" not in said["Unweighted"]  # the control: nothing moves there


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

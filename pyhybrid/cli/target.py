"""`--target-epsilon` of `pyhybrid synthesize`: any mechanism by budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pyhybrid.cli.console import note
from pyhybrid.core.errors import BudgetExceeded, InvalidInput
from pyhybrid.mechanisms.epsilon_search import WITH_EPSILON, meet_epsilon, with_epsilon
from pyhybrid.mechanisms.mechanism import Mechanism
from pyhybrid.mechanisms.perturbed_histogram import PerturbedHistogram
from pyhybrid.releases.release import Release

__all__ = ["check_target", "release_within"]


def check_target(
    target: float | None, formulas: Sequence[str], calibration: Path | None, scale: float | None
) -> None:
    """Refuse what --target-epsilon cannot be combined with, before anything is read."""
    if target is None:
        return
    if len(formulas) > 1:
        raise InvalidInput(
            "--target-epsilon is for one formula: how several columns share it is not known; give "
            "each its own settings"
        )
    if calibration is not None:
        raise InvalidInput(
            "--target-epsilon cannot be met by a calibration, which holds the cap: give --epsilon "
            "to pyhybrid calibrate"
        )
    if scale is not None:
        raise InvalidInput("--target-epsilon finds the scale: give no --scale")


def release_within(
    mechanism: Mechanism,
    df: pd.DataFrame,
    target: float | None,
    *,
    n_synthetic: int,
    n_draws_released: int | None,
    leave_one_out: int | None,
    **fitting: Any,
) -> Release:
    """A release, of at most `target` if there is one, from the fit that was found.

    Raises
    ------
    BudgetExceeded
        If refits without single records raised what the fit that was found costs.
    """
    m, wanted = n_synthetic, n_draws_released
    releasing: dict[str, Any] = {
        "n_synthetic": m, "n_draws_released": wanted, "leave_one_out": leave_one_out
    }  # fmt: skip
    if target is None:
        return mechanism.release(df, **releasing, **fitting)
    if isinstance(mechanism, WITH_EPSILON):
        # A histogram is drawn once, whatever m is, if it is not told otherwise.
        draws = 1 if isinstance(mechanism, PerturbedHistogram) else wanted or m
        chosen: Mechanism = with_epsilon(mechanism, target_epsilon=target, n_draws_released=draws)
        return chosen.release(df, **releasing, **fitting)
    draws = wanted or m
    found = meet_epsilon(
        mechanism,  # type: ignore[arg-type]
        df,
        target_epsilon=target,
        n_draws_released=draws,
        **fitting,
    )
    note(f"--target-epsilon: {len(found.steps)} settings were tried")
    release = found.mechanism.release_from(
        found.session,
        n_synthetic=m,
        n_draws_released=draws,
        leave_one_out=leave_one_out,
    )
    if release.charge.epsilon > target:
        raise BudgetExceeded(
            f"a release must cost at most --target-epsilon {target:g}: refits without single "
            f"records raised it to {release.charge.epsilon:g}; give a lower target"
        )
    return release

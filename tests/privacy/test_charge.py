"""One charge: what it shows, and the first wrong field."""

import dataclasses

import pytest

from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.privacy.conversions import bound_of_epsilon, epsilon_of_bound, round_up
from tests.privacy.test_conversions import charge
from tests.refusals import refuses


@pytest.mark.parametrize(("changes", "message"), [
    ({"kind": "loose", "n_draws": None}, "kind must"),
    ({"relation": "swap", "draw_quantile": 2.0}, "relation must"),
    ({"draw_quantile": 0.0}, "draw_quantile must"), ({"n_synthetic": -1}, "n_synthetic must"),
    ({"n_draws_released": 0, "n_draws": 0}, "n_draws_released must"),
    ({"unit": 7, "n_synthetic": -1}, "unit must be the name of a column or None: found 7"),
    ({"accounting": "renyi"}, "accounting must"), ({"loss_range": -0.1}, "loss_range must"),
    ({"bound": -1.0}, "bound must"),
    ({"accounting": "gaussian", "mu": 1.0, "delta": 2.0}, "delta must"),
])  # fmt: skip
def test_the_first_wrong_field_is_named(changes: dict, message: str) -> None:
    refuses(message, charge, **changes)
    assert charge(unit="home").unit == "home"
    refuses("kind must", round_up, 1.0, kind="loose")


@pytest.mark.parametrize(("options", "bound"), [
    ({}, 2.5), ({"relation": "replace"}, 2.5), ({"density_above_one": True}, 2.5),
    ({"relation": "replace", "density_above_one": True}, 1.25), ({"safety_factor": 1.25}, 2.0),
    ({"relation": "replace", "density_above_one": True, "safety_factor": 1.25}, 1.0),
])  # fmt: skip
def test_bound_of_epsilon_by_hand_and_back(options: dict, bound: float) -> None:
    assert bound_of_epsilon(5.0, **options) == bound
    assert epsilon_of_bound(bound, **options) == 5.0


def test_what_a_charge_does_not_show_is_what_it_does_not_publish() -> None:
    hidden = {field.name for field in dataclasses.fields(PrivacyCharge) if not field.repr}
    assert hidden == {
        "bound", "loss_range", "range_failing", "bound_present", "loss_range_present"
    }  # fmt: skip
    assert not hidden & set(charge().public())
    assert "bound" not in repr(charge())
    assert "epsilon=15.0" in repr(charge())

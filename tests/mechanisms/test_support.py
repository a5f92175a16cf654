"""Records that could have been: the larger number is charged; which weights keep it finite."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pyhybrid as ph
from pyhybrid.core.errors import InvalidInput
from pyhybrid.fitting.session import FitSession, open_session
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.reports.release import release_report
from tests.conftest import Run
from tests.fits import session_fixture
from tests.mechanisms.test_accounting import OPTIONS
from tests.refusals import refuses

pytestmark = pytest.mark.samples
MODEL = ph.NegativeBinomial("y ~ 1")


def visits(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"y": rng.negative_binomial(1, 0.25, n), "x": rng.integers(0, 3, n),
         "g": rng.choice(["a", "b"], n)}
    )  # fmt: skip


session = session_fixture(lambda: MODEL.bind(visits()), **OPTIONS)


def charge(session: FitSession, mechanism: Any) -> PrivacyCharge:
    path = mechanism.fit(session)
    return mechanism.charge_of(  # type: ignore[no-any-return]
        session, path, n_synthetic=1, n_draws_released=1
    )


def test_unweighted_grows_with_the_support_and_present_numbers_stay(session: FitSession) -> None:
    """Against scipy: the deviation of the added record's own term."""
    plain = charge(session, ph.Unweighted(MODEL, accounting="range"))
    draws = ph.Unweighted(MODEL).fit(session).fit.draws
    mean, phi = np.exp(draws.flat("beta")[:, 0]), draws.flat("phi")
    seen = []
    for top in (60, 600, 6000):
        found = charge(session, ph.Unweighted(MODEL, support={"y": (0, top)}, accounting="range"))
        assert (found.mu_present, found.loss_range_present) == (plain.mu, plain.loss_range)
        assert found.bound_present == plain.bound
        assert found.epsilon_present == plain.epsilon_by(found.accounting, delta=1e-6)
        terms = stats.nbinom.logpmf(top, phi, phi / (phi + mean))
        assert found.mu >= 0.999 * terms.std()  # type: ignore[operator]
        assert found.loss_range == pytest.approx(np.ptp(terms), rel=1e-6)
        assert found.bound == pytest.approx(np.abs(terms).max(), rel=1e-6)
        seen.append(found.loss_range)
    assert seen[2] > 5 * seen[1] > 25 * seen[0]  # type: ignore[operator]


@pytest.mark.parametrize("mechanism", [
    ph.LipschitzWeighted(MODEL, transform="reciprocal"),
    ph.LipschitzWeighted(MODEL, transform="threshold", threshold=6),
    ph.Truncated(MODEL, cap=6, inner=ph.Unweighted(MODEL)),
])  # fmt: skip
def test_weights_of_the_own_record_that_fall_with_its_term_keep_it_finite(
    mechanism: Any, session: FitSession
) -> None:
    def largest(top: int) -> PrivacyCharge:
        return charge(
            session, type(mechanism)(**{**_fields(mechanism), "support": {"y": (0, top)}})
        )

    near, far = largest(6000), largest(60_000)  # unweighted it is ten times as much
    assert far.loss_range < 1.5 * near.loss_range  # type: ignore[operator]  # 1.06 at ten seeds


def _fields(mechanism: Any) -> dict[str, Any]:
    return {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__
            if name != "starts_from_unweighted"}  # fmt: skip


def test_weights_scaled_by_the_largest_record_move_all_others_when_a_larger_one_comes(
    session: FitSession,
) -> None:
    """Linear LW is finite, too, but not small: against the map and sums written out, with all risks
    at their standardized extreme of the posterior with the record."""
    top = 600
    weighted = ph.LipschitzWeighted(MODEL, support={"y": (0, top)}, accounting="range")
    found = charge(session, weighted)
    base = session.unweighted().draws
    fit = ph.LipschitzWeighted(MODEL).fit(session).fit
    y = visits()["y"].to_numpy()

    def log_lik(draws: Any, values: Any) -> np.ndarray:
        mean, phi = np.exp(draws.flat("beta")), draws.flat("phi")[:, None]
        return np.asarray(stats.nbinom.logpmf(values, phi, phi / (phi + mean)))

    everyone = np.append(y, top)
    before = ph.lipschitz_weights(log_lik(base, y))
    terms = log_lik(base, everyone)
    with_it = np.exp(terms[:, -1] - terms[:, -1].max())
    mean, risk = terms.mean(axis=0), np.abs(terms).max(axis=0)
    moved = with_it @ terms / with_it.sum()
    spread = np.sqrt(with_it @ (terms - moved) ** 2 / with_it.sum()) / terms.std(axis=0)
    risk = np.maximum(np.sign(mean) * moved + (risk - np.abs(mean)) * spread, 0)
    after = ph.arrays.weights_from_lipschitz(risk)
    change = log_lik(fit.draws, everyone) @ (after - np.append(before, 0.0))
    assert found.loss_range == pytest.approx(np.ptp(change), rel=1e-6)
    assert found.loss_range > 5 * found.loss_range_present  # type: ignore[operator]
    assert found.bound_present == pytest.approx(found.bound)


@pytest.mark.parametrize("mechanism", [
    ph.ScalarWeighted(MODEL, target_epsilon=8, support={"y": (0, 30)}),
    ph.CountWeighted(MODEL, support={"y": (0, 30)}),
    ph.GivenWeights(MODEL, alpha=np.full(600, 0.5), support={"y": (0, 30)}),
    ph.LipschitzWeighted(MODEL, transform="softmax", support={"y": (0, 30)}),
])  # fmt: skip
def test_every_mechanism_takes_a_support(mechanism: Any, session: FitSession) -> None:
    found = charge(session, mechanism)
    assert found.support == "y from 0 to 30"
    assert found.mu >= found.mu_present > 0  # type: ignore[operator]
    assert found.bound >= found.bound_present > 0  # type: ignore[operator]


def test_predictors_are_declared_or_those_of_the_data() -> None:
    model = ph.Poisson("y ~ x + g")
    session = open_session(model.bind(visits()), **OPTIONS)
    own = charge(session, ph.Unweighted(model, support={"y": (0, 40)}))
    wide = charge(session, ph.Unweighted(model, support={"y": (0, 40), "x": (0, 9), "g": ["b"]}))
    assert wide.loss_range > 1.5 * own.loss_range  # type: ignore[operator]
    assert wide.support == "y from 0 to 40; x from 0 to 9; g one of b"
    draws = ph.Unweighted(model).fit(session).fit.draws
    eta = draws.flat("beta") @ np.array([1.0, 9.0, 1.0])
    assert wide.loss_range >= 0.999 * np.ptp(stats.poisson.logpmf(40, np.exp(eta)))


def test_what_cannot_be_declared(session: FitSession) -> None:
    for support, said in (
        ({"x": (0, 3)}, "support must declare the outcome 'y'"),
        ({"y": (0, 9), "x": (0, 3)}, "columns that the model reads: 'x' is not"),
        ({"y": (-3, 9)}, "count >= 0"),
    ):
        refuses(said, charge, session, ph.Unweighted(MODEL, support=support))
    for wrong in ({}, {"y": (3, 1)}, {"y": 3}, {"y": (0, 1, 2)}, [1]):
        refuses("support", ph.Unweighted, MODEL, support=wrong)
    with pytest.raises(InvalidInput, match="which holds for every record that could have been"):
        ph.Censored(MODEL, epsilon=2, support={"y": (0, 9)})
    with pytest.raises(InvalidInput, match="re-weighted ones are not"):
        charge(session, ph.Unweighted(MODEL, reweighting=True, support={"y": (0, 9)}))
    with pytest.raises(InvalidInput, match="give no unit"):
        charge(session.by_unit("g"), ph.Unweighted(MODEL, unit="g", support={"y": (0, 9)}))
    with pytest.raises(InvalidInput, match="CountWeighted is none under these settings"):
        charge(session, ph.CountWeighted(MODEL, pairwise=True, support={"y": (0, 9)}))


def test_it_is_quoted_published_and_reported(run: Run, tmp_path: Path, session: FitSession) -> None:
    mechanism = ph.Unweighted(MODEL, support={"y": (0, 100)})
    release = mechanism.release_from(session, n_synthetic=1, n_draws_released=1)
    kept = release.charge
    assert "from a declared support (y from 0 to 100)" in release.statement
    assert f"of those present alone epsilon is {kept.epsilon_present:g}" in release.statement
    assert "not other possible records" not in release.statement
    public = kept.public()
    assert public["mu_present"] == kept.mu_present
    assert not {"bound", "loss_range", "bound_present", "loss_range_present"} & public.keys()
    assert PrivacyCharge.from_dict(kept.as_dict()) == kept
    release.save(tmp_path / "kept")
    assert ph.Release.load(tmp_path / "kept").charge == kept
    assert "The riskiest is y = 100" in release_report(release, visits())
    visits()[["y"]].to_csv(tmp_path / "data.csv", index=False)
    code, _, problem = run(
        "synthesize", "data.csv", "--formula", "y ~ 1", "--mechanism", "unweighted", "--out", "out",
        "--support", "y=0..100", "--engine", "embedded", "--seed", "5", "--draws", "300",
    )  # fmt: skip
    assert code == 0, problem
    statement = (tmp_path / "out" / "public" / "privacy_statement.md").read_text(encoding="utf-8")
    assert "declared support (y from 0 to 100)" in statement
    code, _, problem = run(
        "synthesize",
        "data.csv",
        "--formula",
        "y ~ 1",
        "--mechanism",
        "unweighted",
        "--out",
        "o2",
        "--support",
        "y:0..1",
    )
    assert "--support must be COLUMN=LOWEST..HIGHEST" in problem

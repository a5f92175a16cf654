"""The public part of a strict release: requested settings, and nothing that a fit had a say in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.fitting import session as sessions
from tests.fits import ANY_DRAWS, fit_options
from tests.refusals import refuses

MODEL = ph.Poisson("y ~ x")
OPTIONS = fit_options(chains=2, warmup=150, draws=60, rule=ANY_DRAWS)
STRICT = ph.Censored(MODEL, epsilon=6, inner=ph.Unweighted(MODEL))
MODES = "pyhybrid.mechanisms.censored.censored.look_for_modes"


def people(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"y": rng.poisson(4, 50), "x": rng.integers(0, 3, 50)})


@pytest.fixture(autouse=True)
def _no_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODES, lambda *_: np.zeros(8, dtype=bool))


def failing_at_first(monkeypatch: Any, times: int = 1, rhat: float = 1.234, **changes: Any) -> None:
    """Chains that fail the rule `times` times, whatever they did, and then show other numbers. At
    an R-hat of 1.234 they are made anew, at 1.05 they go on."""
    diagnose, failed = sessions.diagnose, []

    def told(*given: Any) -> Any:
        found = replace(diagnose(*given), problems=(), **changes)
        if len(failed) < times:
            failed.append(1)
            said = f"R-hat of beta[1] is {rhat}, must be at most 1.01"
            return replace(found, problems=(said,), max_rhat=rhat)
        return found

    monkeypatch.setattr(sessions, "diagnose", told)


def public(release: ph.Release, folder: Path) -> dict[str, bytes]:
    release.save(folder, report=False)
    names = ("charge.json", "privacy_statement.md", "schema.json")
    return {name: (folder / "public" / name).read_bytes() for name in names}


def made(table: pd.DataFrame, mechanism: Any = STRICT, **options: Any) -> ph.Release:
    how = {**OPTIONS, "refits": 0, **options}
    release: ph.Release = mechanism.release(table, n_synthetic=2, **how)
    return release


@pytest.mark.parametrize("failing", [1.05, 1.234])
@pytest.mark.parametrize("neighbor", [False, True])
def test_a_strict_public_part_is_the_same_whatever_the_fit_went_through(
    neighbor: bool, failing: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, table = made(people()), people()
    if neighbor:
        table.loc[7, ["y", "x"]] = [11, 0]
    failing_at_first(monkeypatch, rhat=failing, max_rhat=1.004, min_ess_bulk=512.0, n_divergent=3)
    other = made(table)
    assert one.charge.kind == other.charge.kind == "strict"
    assert (one.diagnostics.attempts, other.diagnostics.attempts) == (1, 1 + (failing > 1.1))
    assert one.diagnostics.n_draws < other.diagnostics.n_draws
    assert one.provenance != other.provenance
    assert public(one, tmp_path / "one") == public(other, tmp_path / "two")
    assert other.charge == one.charge
    assert "2 chains of 150 warm-up and 60 kept iterations" in other.statement
    loaded = ph.Release.load(tmp_path / "two")
    assert (loaded.statement, loaded.requested) == (other.statement, OPTIONS["settings"])


def test_the_check_sees_what_a_fit_went_through(tmp_path: Path, monkeypatch: Any) -> None:
    """A local charge has the draws that ran; a statement once had the settings that ran."""
    unweighted = ph.Unweighted(MODEL)
    one, strict = made(people(), unweighted, seed=1), made(people())
    failing_at_first(monkeypatch)
    other = made(people(), unweighted, seed=1)
    assert one.charge.n_draws != other.charge.n_draws
    assert public(one, tmp_path / "one") != public(other, tmp_path / "two")
    failing_at_first(monkeypatch)
    again = made(people())
    as_once = [replace(own, requested=own.provenance.settings).statement for own in (strict, again)]
    assert as_once[0] != as_once[1]


def test_the_statement_says_that_a_release_is_an_answer() -> None:
    histogram = ph.PerturbedHistogram(column="y", lower=0, upper=50, n_bins=5, epsilon=1)
    for release in (made(people()), histogram.release(people())):
        assert release.charge.kind == "strict"
        assert "Whether anything was released" in release.statement
        assert "is itself an answer" in release.statement


@pytest.mark.filterwarnings("ignore:.*did not converge", "ignore:.*ended in another mode")
@pytest.mark.parametrize("another_mode", [False, True])
def test_what_breaks_the_posterior_takes_strictness_away(
    another_mode: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if another_mode:
        monkeypatch.setattr(MODES, lambda *_: np.arange(8) == 1)
    else:
        failing_at_first(monkeypatch, times=9)
    release = made(people(), on_not_converged="warn")
    assert release.charge.kind == "asymptotic local"
    assert "local and asymptotic" in release.statement
    assert "NOT CONVERGED" in release.statement
    assert ("ended in another mode" in release.statement) == another_mode
    ledger = ph.Ledger(tmp_path / "l", budget=99, kind="strict", relation="remove")
    says = "must be strict, remove: found asymptotic local"
    refuses(says, release.save, tmp_path / "out", ledger=ledger, report=False)
    assert not (tmp_path / "out").exists()


def test_a_strict_ledger_takes_what_converged_alone(tmp_path: Path) -> None:
    """And no charge that claims both, as releases of an earlier version do."""
    release = made(people(), on_not_converged="warn")
    ledger = ph.Ledger(tmp_path / "l", budget=99, kind="strict", relation="remove")
    for change in ({"converged": False}, {"draw_quantile": 0.99}):
        charge = replace(release.charge, **change)
        claims = replace(release, charge=charge)
        refuses("must be of chains that have converged", ledger.add, claims)
    release.save(tmp_path / "out", ledger=ledger)
    assert ledger.spent == 12

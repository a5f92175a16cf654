"""What is in `make test` and what is left to `make test-rest`; fixtures that more than one test
module uses, and skips that CI does not allow.

`make test` runs what needs no sampler, no R and no long study, and the short fits of SHORT_FITS. A
test outside it says why, by a marker (pyproject.toml): `samples`, `needs_r` (given to users of
R_FIXTURES) or `long` (given to three of four cases of EVERY_FOURTH). One without marker that
reaches a sampler or R fails, wherever it runs. `pictures` are drawn where a test looks at them.
`normal_draws` has the embedded engine's place taken by `tests/normal_draws.py`.
"""

import base64
import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# One thread of BLAS per process: two processes with two each wait for one another on two cores.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # ArviZ announces its next version once a day: to one test
    import arviz  # noqa: F401

from pyhybrid import cli, rbridge
from pyhybrid.cli.console import progress_lines
from pyhybrid.engines import engine_by_name
from pyhybrid.engines.base import Run
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.engines.rstan import RStanEngine
from pyhybrid.mechanisms import accounting
from pyhybrid.mechanisms.mechanism import REFITS
from pyhybrid.rbridge import session
from tests.normal_draws import normal_draws

# No deadline per example: a loaded machine is not a failure.
hypothesis.settings.register_profile("pyhybrid", deadline=None)
hypothesis.settings.load_profile("pyhybrid")


def require(available: bool, reason: str) -> None:
    """Skip with `reason` unless `available`; under PYHYBRID_REQUIRE_ALL=1 fail instead."""
    if available:
        return
    if os.environ.get("PYHYBRID_REQUIRE_ALL") == "1":
        pytest.fail(f"PYHYBRID_REQUIRE_ALL=1 and {reason}")
    pytest.skip(reason)


def require_opendp() -> None:
    """Skip or fail, as `require` says, without OpenDP."""
    require(find_spec("opendp") is not None, "opendp must be installed")


@pytest.fixture
def opendp() -> None:
    require_opendp()


@pytest.fixture(scope="session")
def r() -> Callable[..., Any]:
    """`call_r`, if R can be used here."""
    status = rbridge.r_status()
    require(status.available, f"R cannot be used: {status}")
    return rbridge.call_r


@pytest.fixture(scope="session")
def rstan(r: Callable[..., Any]) -> RStanEngine:
    """R's engine, if it can be used here."""
    status = RStanEngine().status()
    require(status.available, f"rstan cannot be used: {status.cause}")
    return RStanEngine()


SLOWEST = (
    "studies/test_reproduction.py", "docs/test_snippets.py", "parity/test_models.py",
    "comparing/test_curve.py", "reports/test_moving_from_r.py", "security/test_faults.py",
    "docs/test_gauntlet.py", "audits/test_noise.py",
    "models/test_stan_model.py", "mechanisms/test_target.py", "tests/test_r_package.py",
    "tests/test_distribution.py", "parity/test_synthesize.py",
    "mechanisms/test_sequential.py", "security/test_leaks.py",
    "mechanisms/test_accounting.py", "mechanisms/test_reference_records.py",
    "security/test_load.py",
)  # fmt: skip
"""They start first, so that two processes end together."""
LEFT_OUT = ("samples", "needs_r", "long")
R_FIXTURES = frozenset({"r", "rstan", "in_r", "tarball"})
ROOMS_OF_NORMAL_DRAWS = (
    "releases", "reports", "cli", "security", "tables", "comparing",
)  # fmt: skip
"""Rooms in which a test that says nothing else gets normal draws."""
SHORT_FITS = frozenset((
    "tests/fitting/test_sampling.py::test_short_chains_go_on_and_are_not_started_anew",
    "tests/fitting/test_sampling.py::test_standardized_parameters_are_sampled_with_long_steps",
    "tests/mechanisms/test_censored.py::test_the_cap_holds_in_every_draw",
    "tests/mechanisms/test_centered.py::test_chains_agree_with_the_grid",
    "tests/mechanisms/test_mechanisms.py::test_weighted_posterior_agrees_with_quadrature",
    "tests/mechanisms/test_reference_records.py::test_on_other_records_it_is_strict",
    "tests/mechanisms/test_sequential.py::test_all_columns_are_replaced_and_others_kept",
    "tests/mechanisms/test_units.py::test_a_censored_release_by_person_is_strict",
    "tests/models/test_stan_model.py::test_the_posterior_is_the_conjugate_one",
))  # fmt: skip
"""Tests that sample in `make test`: the main jobs."""
EVERY_FOURTH = frozenset((
    "tests/audits/test_enumeration.py::test_censored_likelihood_is_strict",
    "tests/audits/test_programs.py::test_programs_keep_to_their_cap",
    "tests/cli/test_whole_table.py::test_a_reference_stands_for_types",
    "tests/cli/test_whole_table.py::test_one_cell_changes_how_no_other_is_read",
    "tests/mechanisms/test_clipped_scores.py"
    "::test_a_neighbor_changes_the_sums_alone_and_by_the_sensitivity",
    "tests/mechanisms/test_noisy_marginals.py"
    "::test_no_record_moves_all_tables_by_more_than_the_price",
    "tests/measures/test_tables.py::test_null_of_partial_synthesis_is_paired",
    "tests/models/test_coefficients.py::test_the_target_is_the_documented_posterior",
    "tests/models/test_contract.py::test_log_likelihood_of_numpy_stan_and_scipy",
    "tests/models/test_contract.py::test_replicates_have_the_models_law",
    "tests/models/test_contract.py"
    "::test_the_target_moves_with_the_weighted_and_clipped_terms_alone",
    "tests/models/test_formulas.py::test_a_design_codes_parts_of_its_table_alike",
    "tests/models/test_formulas.py::test_designs_are_those_that_r_made",
    "tests/reports/test_figures.py::test_any_name_is_drawn_and_equal_input_gives_equal_bytes",
    "tests/security/test_column_names.py::test_any_name_comes_through_a_strict_release",
    "tests/security/test_leaks.py::test_a_stopped_command_leaves_nothing",
    "tests/security/test_leaks.py::test_signals_remove_temporary_folders",
    "tests/security/test_released_form.py::test_the_form_is_that_of_the_declaration",
    "tests/security/test_streams.py::test_no_stream_of_a_release_serves_two_purposes",
    "tests/security/test_streams.py::test_same_seed_same_bytes",
))  # fmt: skip
"""Tests of many cases that take long together: `make test` runs one case of four."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the rest; the slowest files first."""
    cases = dict.fromkeys(EVERY_FOURTH, -1)
    for item in items:
        whole = item.nodeid.partition("[")[0]
        if whole in cases:
            cases[whole] += 1
            if cases[whole] % 4:
                item.add_marker("long")
        if R_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("needs_r")
        if item.get_closest_marker("samples") is None and _room(item) in ROOMS_OF_NORMAL_DRAWS:
            item.add_marker("normal_draws")
        left_out = any(item.get_closest_marker(name) for name in LEFT_OUT)
        if left_out and item.nodeid not in SHORT_FITS:
            item.add_marker("rest")
    items.sort(key=lambda item: _place(item.path.as_posix()))


def _place(path: str) -> int:
    return next((k for k, name in enumerate(SLOWEST) if path.endswith(name)), len(SLOWEST))


def _room(item: pytest.Item) -> str:
    return item.path.relative_to(Path(__file__).parent).parts[0]


_BLANK = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""A picture of one point."""
_running: list[pytest.Item] = []
_CMDSTAN = os.environ.setdefault("PYHYBRID_TESTS_CMDSTAN", os.environ.get("CMDSTAN", ""))
os.environ["CMDSTAN"] = "none in tests"
"""No test but the live ones takes an installation that is here: "auto" would compile for each."""
_sampler, _start_r = EmbeddedEngine.run, session.start_r


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture, whose scope may be wider than the test."""
    _running[:] = [item]


def _marked(name: str) -> bool:
    return not _running or _running[0].get_closest_marker(name) is not None


def _sampled(self: EmbeddedEngine, run: Run, **changes: Any) -> Any:
    if _marked("samples"):
        return _sampler(self, run, **changes)
    if not _marked("normal_draws"):
        pytest.fail("a test that samples must be marked: samples, or normal_draws (tests/conftest)")
    if run.progress is not None:
        every = run.settings.chains * (run.settings.warmup + run.settings.draws)
        run.progress(every, every)
    return normal_draws(run.program, run.data, run.seed, run.settings)


def _started_r() -> Any:
    if not _marked("needs_r"):
        pytest.fail("a test that starts R must be marked: needs_r (tests/conftest.py)")
    return _start_r()


_candidates = accounting.candidates


def _two_of_ten(deviations: Any, sizes: Any, k: int) -> list[int]:
    """Two refits where a test asks for no number: ten are eleven fits for each release."""
    return _candidates(deviations, sizes, 2 if k == REFITS else k)


if os.environ.get("PYHYBRID_SNIPPETS") != "full":
    accounting.candidates = _two_of_ten
EmbeddedEngine.run = _sampled  # type: ignore[method-assign]
session.start_r = rbridge.start_r = _started_r


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled programs of a test run are shared by it and never touch the user's cache."""
    above = 2 if "PYTEST_XDIST_WORKER" in os.environ else 1  # workers have folders of their own
    root = tmp_path_factory.getbasetemp().parents[above - 1] / "pyhybrid-test-cache"
    monkeypatch.setenv("PYHYBRID_CACHE", str(root))


@pytest.fixture
def cmdstan(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's CmdStan, for its live tests; a skip where there is none."""
    if _CMDSTAN:
        monkeypatch.setenv("CMDSTAN", _CMDSTAN)
    else:
        monkeypatch.delenv("CMDSTAN")
    status = engine_by_name("cmdstan").status()
    if not status.available:
        pytest.skip(f"CmdStan cannot be used: {status.cause}")


@pytest.fixture(scope="session")
def _headers() -> Iterator[str]:
    """Compiled headers of rstan, 0.8 GB: not to be left among the run's files."""
    with TemporaryDirectory() as folder:
        yield folder


@pytest.fixture(autouse=True)
def _quick_compiler(
    _headers: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What rstan compiles for tests runs for seconds: optimized little, and with headers that
    the run's first program leaves behind, it is there in a third of the time."""
    if request.node.get_closest_marker("needs_r"):
        folder = Path(__file__).parent / "rstan"
        monkeypatch.setenv("R_MAKEVARS_USER", str(folder / "Makevars"))
        monkeypatch.setenv("PYHYBRID_COMPILER", str(folder / "with_headers.sh"))
        monkeypatch.setenv("PYHYBRID_HEADERS", _headers)


@pytest.fixture(autouse=True)
def _blank_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without drawing, where a test does not look at pictures: half of a report's time."""
    drawn = request.node.get_closest_marker("pictures") is not None
    full = os.environ.get("PYHYBRID_SNIPPETS") == "full"
    rooms = (*ROOMS_OF_NORMAL_DRAWS, "docs", "models", "mechanisms", "masking")
    if drawn or full or _room(request.node) not in rooms:
        return

    def savefig(figure: Figure, file: Any, **_: Any) -> None:
        file.write(_BLANK) if hasattr(file, "write") else Path(file).write_bytes(_BLANK)

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture
def visits() -> pd.DataFrame:
    """400 overdispersed counts with predictors of several types and an index of labels."""
    rng = np.random.default_rng(11)
    n = 400
    age = rng.integers(18, 90, n)
    region = rng.choice(["north", "east", "west"], n)
    mu = np.exp(0.5 + 0.01 * age + 0.4 * (region == "west"))
    return pd.DataFrame(
        {
            "id": [f"p{i % 10:03d}" for i in range(n)],
            "visits": rng.negative_binomial(2, 2 / (2 + mu)),
            "age": age,
            "region": pd.Categorical(region),
            "score": rng.normal(size=n).round(3),
            "note": rng.choice(["", "x"], n),
        },
        index=pd.Index([f"row {i}" for i in range(n)], name="label"),
    )


Run = Callable[..., tuple[int, str, str]]


def command(*words: Any) -> int:
    """The exit code of a command, run in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["pyhybrid", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return int(stop.value.code or 0)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in this process; returns (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    # A loaded machine is not an error: no line of progress every 30 seconds on standard error.
    seldom = functools.partial(progress_lines, every=3600)
    monkeypatch.setattr("pyhybrid.cli.console.progress_lines", seldom)

    def call(*arguments: Any) -> tuple[int, str, str]:
        code, captured = command(*arguments), capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def refused(run: Run, tmp_path: Path) -> Callable[..., str]:
    """Run a command that must be refused in one line, leaving the files as they were: the line."""

    def call(*arguments: Any) -> str:
        before = sorted(tmp_path.rglob("*"))
        code, shown, error = run(*arguments)
        assert (code, shown, error.count("\n")) == (2, "", 1), (code, shown, error)
        assert sorted(tmp_path.rglob("*")) == before
        return error

    return call

"""The engines behind one protocol: programs, warm starts, progress, convergence, choice."""

import hashlib
import itertools
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import stanli

from pyhybrid import engines
from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines import SamplerSettings, StanProgram, diagnose, load_program
from pyhybrid.engines.cmdstan import CmdStanEngine
from pyhybrid.engines.convergence import effective_draws
from pyhybrid.engines.embedded import EmbeddedEngine, _start, as_json, compiled
from tests.engines.test_cmdstan import PROGRAM
from tests.refusals import fails, refuses

SHORT = SamplerSettings(chains=2, warmup=300, draws=200)


@pytest.mark.samples
def test_ctrl_c_at_the_end_of_a_fit_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """stanli records SIGINT and asks between iterations; here it comes after the last question."""

    def deaf(self: object, **_: object) -> object:
        before = signal.signal(signal.SIGINT, lambda *_: None)
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        return object()

    heard = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(stanli.Model, "sample", deaf)
            with pytest.raises(KeyboardInterrupt):
                EmbeddedEngine().sample(PROGRAM, {"p": 2}, seed=1, settings=SHORT)
        assert EmbeddedEngine().sample(PROGRAM, {"p": 2}, seed=1, settings=SHORT).n_draws == 400
    finally:
        signal.signal(signal.SIGINT, heard)


@pytest.mark.samples
def test_draws_have_the_declared_shapes_and_relations() -> None:
    seen: list[tuple[int, int]] = []
    draws = EmbeddedEngine().sample(
        PROGRAM, {"p": 2}, seed=1, settings=SHORT, progress=lambda *done: seen.append(done)
    )
    assert seen[-1] == (1000, 1000)
    assert all(a <= b for (a, _), (b, _) in itertools.pairwise(seen))
    assert draws.variables["x"].shape == (2, 200, 2)
    assert draws.variables["m"].shape == (2, 200, 2, 2)
    np.testing.assert_allclose(draws.variables["twice"], 2 * draws.variables["s"], rtol=1e-12)
    assert draws.parameters == ("x", "m", "s")
    assert draws.flat("x").shape == (400, 2)
    np.testing.assert_array_equal(draws.flat("x")[200:], draws.variables["x"][1])
    data = draws.to_inference_data()
    np.testing.assert_array_equal(data.posterior["m"].to_numpy(), draws.variables["m"])
    assert set(data.sample_stats) >= {"diverging", "tree_depth", "energy"}


@pytest.mark.samples
def test_same_seed_same_bytes_and_another_seed_not() -> None:
    serial = replace(SHORT, parallel_chains=1)
    one, two, other = (
        EmbeddedEngine().sample(PROGRAM, {"p": 1}, seed=seed, settings=settings)
        for seed, settings in ((5, SHORT), (5, serial), (6, SHORT))
    )
    assert one.variables["x"].tobytes() == two.variables["x"].tobytes()
    assert one.variables["x"].tobytes() != other.variables["x"].tobytes()


FACTOR = StanProgram(
    name="factor",
    text="""parameters { vector<lower=0>[3] s; cholesky_factor_corr[3] L; real x; }
model { s ~ exponential(1); L ~ lkj_corr_cholesky(2); x ~ std_normal(); }""",
)


@pytest.mark.samples
def test_unconstrained_warm_start_round_trips_a_cholesky_factor() -> None:
    fit = EmbeddedEngine().sample(FACTOR, {}, seed=1, settings=SHORT)
    model = stanli.Model(stan_code=FACTOR.text, data=as_json({}))
    inits = _start(model, fit.warm_start(), SHORT)["inits"]
    # Fix the sampler at the start: zero-length trajectories reproduce the constrained values.
    still = model.sample(
        chains=2, seed=1, warmup=0, samples=1, inits=inits, step_size=1e-14,
        adapt_engaged=False, max_depth=1, refresh=0,
    )  # fmt: skip
    for name in ("s", "L", "x"):
        np.testing.assert_allclose(still.draws(name)[:, 0], fit.variables[name][:, -1], rtol=1e-7,
                                   atol=1e-9)  # fmt: skip


@pytest.mark.samples
def test_programs_that_do_not_compile_and_failing_data_are_sampling_errors() -> None:
    broken = StanProgram(name="broken", text="parameters { real x }\nmodel { x ~ normal(0, 1); }")
    for program, said in (
        (broken, r"(?s)does not compile.*real x \}"), (PROGRAM, "embedded engine failed on normal"),
    ):  # fmt: skip
        fails(SamplingError, said, EmbeddedEngine().sample, program, {"p": -1}, seed=1,
              settings=SHORT)  # fmt: skip


def test_compiled_programs_hold_no_data() -> None:
    assert "12345" not in compiled(PROGRAM.text)


@pytest.mark.parametrize(("text", "expected"), [
    ("parameters { real a; vector[3] b; }", ("a", "b")),
    ("transformed parameters { real c = 1; } model {}", ()),
    ("parameters { // real x;\n array[2] vector<lower=0>[3] y; /* z */ real w; }", ("y", "w")),
    ("parameters { real old[3]; }", ("old",)),
])  # fmt: skip
def test_parameter_names(text: str, expected: tuple[str, ...]) -> None:
    assert engines.parameter_names(StanProgram(name="t", text=text)) == expected


def test_programs_are_found_and_hashed() -> None:
    assert {"negative_binomial", "poisson"} <= set(engines.program_names())
    program = load_program("poisson")
    assert program.sha256 == hashlib.sha256(program.text.encode()).hexdigest()
    refuses("negative_binomial", load_program, "nothing")


def test_effective_draws_count_no_chain_that_is_elsewhere_and_no_alternation() -> None:
    values = np.random.default_rng(2).normal(size=(2000, 20))
    assert effective_draws(np.diff(values, axis=0)[:-1], 1).tolist() == [1998] * 20
    values[:500] += 10
    assert effective_draws(values, 4).max() < 20
    assert effective_draws(np.sort(values, axis=0), 1).max() < 20  # and one that drifts
    assert effective_draws(np.full((40, 2), 0.1), 4).tolist() == [40, 40]


@pytest.mark.samples
def test_diagnose_accepts_good_chains_and_names_the_bad() -> None:
    draws = EmbeddedEngine().sample(PROGRAM, {"p": 2}, seed=3, settings=SamplerSettings())

    def changed(**variables: np.ndarray) -> engines.Diagnostics:
        return diagnose(replace(draws, variables={**draws.variables, **variables}))

    assert diagnose(draws).converged
    assert changed(one=np.ones((4, 1000))).converged, "constants are left out"
    stuck = draws.variables["x"].copy()
    stuck[0] += 5
    assert "R-hat of x[" in changed(x=stuck).problems[0]
    assert not changed(bad=np.full((4, 1000), np.inf) * np.arange(1, 1001)).converged
    assert not diagnose(draws, quantities={"x": np.ones((4, 1000))}).converged, "all stand still"
    divergent = np.zeros((4, 1000), dtype=bool)
    divergent[0, :5] = True
    problems = diagnose(replace(draws, divergent=divergent)).problems
    assert problems == ("5 of 4000 transitions diverged",)


def test_unknown_engine_lists_the_known() -> None:
    refuses("auto, cmdstan, embedded", engines.resolve_engine, "nuts")


def test_auto_reports_every_cause_when_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Any) -> engines.EngineStatus:
        own = self.name
        return engines.EngineStatus(name=own, cause=f"no {own}", remedy=f"get {own}")

    for engine in (EmbeddedEngine, CmdStanEngine):
        monkeypatch.setattr(engine, "status", missing)
    with pytest.raises(EngineUnavailable, match=r"no cmdstan.*get cmdstan.*no embedded"):
        engines.resolve_engine("auto")


@pytest.mark.parametrize("wrong", [
    {"chains": 1}, {"draws": 0}, {"adapt_delta": 1.0}, {"adapt_delta": "x"}, {"warmup": 1.5},
    {"metric": "dense"},
])  # fmt: skip
def test_settings_refuse_nonsense(wrong: dict[str, float]) -> None:
    refuses("", SamplerSettings, **wrong)

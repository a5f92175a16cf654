"""The cmdstan engine: against stored CmdStan output everywhere, live where CmdStan is found."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import cmdstanpy  # noqa: F401  (makes a folder of its own, before `fake` says where)
import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines import Draws, SamplerSettings, StanProgram, WarmStart, diagnose
from pyhybrid.engines.cmdstan import CmdStanEngine, compiled_program
from pyhybrid.engines.embedded import EmbeddedEngine
from tests.monte_carlo import assert_draws_near
from tests.refusals import fails

FAKE = Path(__file__).parents[1] / "fake_cmdstan"
PROGRAM = StanProgram(
    name="normal",
    text="""data { int<lower=1> p; }
parameters { vector[p] x; matrix[2, 2] m; real<lower=0> s; }
model { x ~ std_normal(); to_vector(m) ~ normal(0, 2); s ~ exponential(1); }
generated quantities { real twice = 2 * s; }
""",
)
STORED = SamplerSettings(chains=2, warmup=200, draws=20, adapt_delta=0.8)


def sampled(**options: Any) -> Draws:
    return CmdStanEngine().sample(PROGRAM, {"p": 2}, **{"seed": 1, "settings": STORED, **options})


class Fake:
    """A stand-in installation, its log, and an empty cache."""

    def __init__(self, root: Path) -> None:
        self.root, self.log, self.temporary = root / "cmdstan", root / "log", root / "tmp"

    @property
    def entries(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines if line != "build"]

    @property
    def builds(self) -> int:
        return self.log.read_text().splitlines().count("build") if self.log.exists() else 0


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    if shutil.which("make") is None:
        pytest.skip("the stand-in for CmdStan needs make")
    fake = Fake(tmp_path)
    shutil.copytree(FAKE, fake.root)
    (fake.root / "bin").mkdir()
    stanc = fake.root / "bin" / "stanc"
    stanc.write_text("#!/bin/sh\necho stanc3\n")
    stanc.chmod(0o755)
    fake.temporary.mkdir()
    monkeypatch.setenv("CMDSTAN", str(fake.root))
    monkeypatch.setenv("CXX", "sh")
    monkeypatch.setenv("FAKE_CMDSTAN_LOG", str(fake.log))
    monkeypatch.setenv("FAKE_CMDSTAN_PYTHON", sys.executable)
    monkeypatch.setenv("PYHYBRID_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(fake.temporary))
    return fake


def test_reads_cmdstan_output_whose_private_files_are_gone(fake: Fake) -> None:
    draws = sampled(seed=77)
    asked = {"seed=77", "num_samples=20", "num_warmup=200", "delta=0.8", "max_depth=10"}
    assert {*asked, "sig_figs=18"} <= set(fake.entries[0]["arguments"])
    assert fake.entries[0]["data"] == {"p": 2}
    for chain in (1, 2):
        lines = (FAKE / f"output_{chain}.csv").read_text().splitlines()
        rows = [line for line in lines if line and not line.startswith("#")]
        columns, values = rows[0].split(","), np.loadtxt(rows[1:], delimiter=",")
        stored = dict(zip(columns, values.T, strict=True))
        for place in (1, 2):
            own = draws.variables["x"][chain - 1, :, place - 1]
            np.testing.assert_array_equal(own, stored[f"x.{place}"])
        np.testing.assert_array_equal(draws.variables["m"][chain - 1, :, 0, 1], stored["m.1.2"])
        np.testing.assert_array_equal(draws.energy[chain - 1], stored["energy__"])
        np.testing.assert_array_equal(draws.treedepth[chain - 1], stored["treedepth__"])
    np.testing.assert_allclose(draws.inv_metric[0][:2], [0.629786, 1.1357])
    np.testing.assert_allclose(draws.step_size[0], 0.652524)
    assert draws.provenance.engine_version.startswith("CmdStan 2.35")
    assert fake.entries[0]["folder_mode"] == 0o700
    assert not Path(fake.entries[0]["folder"]).exists()
    assert list(fake.temporary.iterdir()) == []


def test_warm_start_hands_over_inits_metric_and_step(fake: Fake) -> None:
    inits = tuple(
        {"x": np.array([c, 1.0]), "m": np.array([[1.0, 2.0], [3.0, 4.0]]), "s": np.float64(0.5)}
        for c in (0.0, 1.0)
    )
    start = WarmStart(
        inits=inits, inv_metric=(np.full(7, 1.0), np.full(7, 3.0)), step_size=np.array([0.2, 0.4])
    )
    sampled(warm_start=start)
    first = next(e for e in fake.entries if "id=1" in e["arguments"])
    assert first["init"] == {"x": [0.0, 1.0], "m": [[1.0, 2.0], [3.0, 4.0]], "s": 0.5}
    assert first["metric_file"] == {"inv_metric": [2.0] * 7}
    assert any(a.startswith("stepsize=0.3") for a in first["arguments"])


@pytest.mark.parametrize(("mode", "said"), [
    ("fail", r"^the cmdstan engine failed: Exception: something went wrong$"),  # both chains
    # CmdStan calls it no error, and cmdstanpy does not quote it.
    ("no start", r"failed: Initialization .* attempts\. No draw had a finite"),
    ("killed", "the cmdstan engine failed: a chain ended without a"),
])  # fmt: skip
def test_failure_is_reported_and_leaves_nothing(
    mode: str, said: str, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CMDSTAN_MODE", mode)
    fails(SamplingError, said, sampled)
    assert fake.entries
    assert list(fake.temporary.iterdir()) == []


def test_ctrl_c_leaves_nothing(fake: Fake) -> None:
    """No folder, no chain that runs on, none that is started after it."""
    script = textwrap.dedent(
        f"""
        import signal
        from pyhybrid.engines import SamplerSettings, StanProgram
        from pyhybrid.engines.cmdstan import CmdStanEngine
        program = StanProgram(name="normal", text={PROGRAM.text!r})
        settings = SamplerSettings(chains=2, warmup=200, draws=20, parallel_chains=1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        CmdStanEngine().sample(program, {{"p": 2}}, seed=1, settings=settings)
        """
    )
    environment = {**os.environ, "FAKE_CMDSTAN_MODE": "endless", "TMPDIR": str(fake.temporary)}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    process.stdout.readline()
    while not fake.entries:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert [p for p in fake.temporary.iterdir() if p.name.startswith("pyhybrid-")] == []
    (chain,) = fake.entries
    fails(ProcessLookupError, "", os.kill, chain["pid"], 0)


def test_progress_follows_the_console_files(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CMDSTAN_MODE", "slow")
    seen: list[tuple[int, int]] = []
    sampled(progress=lambda *done: seen.append(done))
    assert seen[-1] == (440, 440)
    assert len(seen) > 2
    assert all(a <= b for (a, _), (b, _) in itertools.pairwise(seen))


def test_compiles_once(fake: Fake) -> None:
    first = compiled_program(PROGRAM)
    assert compiled_program(PROGRAM) == first
    assert fake.builds == 1
    other = StanProgram(name="normal", text=PROGRAM.text + "// changed\n")
    assert compiled_program(other) != first


def test_compile_error_quotes_line_and_caret(fake: Fake) -> None:
    broken = StanProgram(name="broken", text="parameters { real x }\nmodel { }")
    said = fails(SamplingError, r"(?s)line 1, column 20.*\^", compiled_program, broken)
    assert "make" not in said  # nor its command line with folders of this machine
    assert list(fake.temporary.iterdir()) == []


def test_a_compiler_that_fails_is_not_the_programs_fault(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CMDSTAN_MODE", "broken")
    said = r"(?s)Eigen/Dense.*mend the C\+\+ toolchain"
    fails(EngineUnavailable, said, compiled_program, PROGRAM)
    assert fake.builds == 0


def test_another_installation_compiles_for_itself(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executable looks for its libraries where its CmdStan was, which may be gone."""
    first = compiled_program(PROGRAM)
    moved = fake.root.rename(tmp_path / "moved")
    monkeypatch.setenv("CMDSTAN", str(moved))
    assert compiled_program(PROGRAM) != first


def test_no_installation_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMDSTAN", str(tmp_path / "nowhere"))
    status = CmdStanEngine().status()
    assert not status.available
    assert f"CMDSTAN is {tmp_path / 'nowhere'}" in status.cause
    assert "install_cmdstan" in status.remedy
    fails(EngineUnavailable, "install_cmdstan", sampled)


def test_what_was_not_built_is_named(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    status = CmdStanEngine().status()
    assert "no-such-compiler" in status.cause
    assert (status.available, status.remedy) == (False, "install a C++ toolchain")
    monkeypatch.delenv("CXX")
    (fake.root / "bin" / "stanc").unlink()
    status = CmdStanEngine().status()
    assert (status.available, status.remedy) == (False, f"make -C {fake.root} build")


@pytest.mark.samples
def test_live_compile_and_sample(cmdstan: None, visits: pd.DataFrame) -> None:
    bound = ph.NegativeBinomial("visits ~ age + region").bind(visits)
    data = bound.stan_data(np.full(bound.n, 0.5))
    settings = SamplerSettings()
    reference, embedded = (
        engine.sample(bound.program, data, seed=1, settings=settings)
        for engine in (CmdStanEngine(), EmbeddedEngine())
    )
    assert diagnose(reference, quantities=bound.monitored(reference)).converged
    assert_draws_near(reference.variables, embedded.variables, ("beta", "phi"))

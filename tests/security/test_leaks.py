"""Canaries: values planted in the data are searched for wherever a release, a failure or a killed
process could have left them: public files, terminal, log, temporary folders, caches, messages."""

import json
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyhybrid as ph
from pyhybrid import rbridge
from pyhybrid.core import checks
from pyhybrid.core.errors import PyhybridError, SamplingError, SaveFailed
from pyhybrid.engines import SamplerSettings, StanProgram
from pyhybrid.engines.base import without_values
from pyhybrid.engines.cmdstan import CmdStanEngine
from pyhybrid.engines.embedded import EmbeddedEngine
from pyhybrid.engines.rstan import RStanEngine
from pyhybrid.fitting import session as sessions
from pyhybrid.models.families import regression
from pyhybrid.releases import folder as storage
from pyhybrid.running import files
from pyhybrid.running.files import private_folder
from tests.conftest import command, require, require_opendp
from tests.engines.test_cmdstan import STORED, Fake
from tests.fits import ANY_DRAWS
from tests.refusals import fails

CANARY, SEED, ROW = 7919, 918273645, 17
SETTINGS = SamplerSettings(chains=2, warmup=200, draws=150)
MODEL = ph.Poisson("visits ~ age")
ROOT = Path(__file__).parents[2]


def people(value: float = CANARY) -> pd.DataFrame:
    """60 records; one has an outcome, a note and a label that nothing else has."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {"visits": rng.poisson(4, 60), "age": rng.normal(size=60).round(2)},
        index=[f"row {i}" for i in range(60)],
    )
    if isinstance(value, float):
        table["visits"] = table["visits"].astype(float)
    table.iloc[ROW, 0] = value
    return table


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home, temporary and working folder of their own, all empty."""
    for name in ("home", "temporary", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    monkeypatch.setenv("PYHYBRID_CACHE", str(tmp_path / "home" / "programs"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def found_in(folder: Path, *secrets: str) -> list[str]:
    """Files below `folder` whose name or content has one of the secrets."""
    return [
        f"{path.relative_to(folder)}: {secret}"
        for path in sorted(folder.rglob("*"))
        for secret in secrets
        if secret in path.name or (path.is_file() and secret.encode() in path.read_bytes())
    ]


def secrets_of(release: ph.Release) -> list[str]:
    """Seeds, bounds and weights as they would be printed, to six digits."""
    texts = [str(release.confidential.entropy)]
    for part in release.parts or (release,):
        kept = part.confidential
        texts += [str(getattr(part.provenance, "seed", SEED))]
        numbers = [kept.lipschitz_bound, *kept.alpha[:30], *kept.lipschitz[:30]]
        # Whole numbers and caps that were asked for are public.
        texts += [f"{x:.7f}"[:-1] for x in numbers if x > 0 and round(x, 3) != x]
    return texts


def mechanisms() -> dict[str, Callable[..., ph.Release]]:
    options: dict[str, Any] = {
        "seed": SEED, "engine": "embedded", "settings": SETTINGS, "on_not_converged": "warn",
        "refits": 2,
    }  # fmt: skip

    def by(mechanism: Any) -> Callable[..., ph.Release]:
        return lambda table: mechanism.release(table, n_synthetic=2, **options)

    histogram = ph.PerturbedHistogram(column="visits", lower=0, upper=9999, n_bins=50, epsilon=1)
    amounts = ph.Gamma("visits ~ age", zeros=True)
    missing = ph.Poisson("visits ~ age", zeros=True, missing=True)
    steps = [ph.Unweighted(ph.Poisson("visits ~ 1")), ph.Unweighted(ph.NormalRegression("age ~ 1"))]
    return {
        "unweighted": by(ph.Unweighted(MODEL)),
        "lipschitz": by(ph.LipschitzWeighted(MODEL, reweighting=True)),
        "count": by(ph.CountWeighted(MODEL)),
        "scalar": by(ph.ScalarWeighted(MODEL, target_epsilon=2)),
        "truncated": by(ph.Truncated(MODEL, cap=400)),
        "censored": by(ph.Censored(MODEL, epsilon=3.3, check_modes=False)),
        "given": by(ph.GivenWeights(MODEL, alpha=np.linspace(0.123456, 0.98765, 60))),
        "two parts": by(ph.LipschitzWeighted(amounts)),
        "missing values": lambda table: by(ph.Unweighted(missing))(
            table.assign(visits=table["visits"].astype("Float64").mask(table["age"] > 1.2))
        ),
        "sequential": by(ph.SequentialSynthesis(steps)),
        "perturbed_histogram": lambda table: histogram.release(table, n_synthetic=2),
        "noisy_marginals": lambda table: marginals().release(table, n_synthetic=2),
        "whole table": lambda table: whole(table, n_synthetic=2),
    }


def marginals(largest: float = 9999) -> ph.NoisyMarginals:
    """The outcome in three bins, given age."""
    domain = {"visits": ph.mechanisms.ColumnDomain(bins=(0, 3, 6, largest))}
    return ph.NoisyMarginals(domain=domain, given=["age"], epsilon=1)


def whole(table: pd.DataFrame, kind: Any = None, **options: Any) -> ph.Release:
    """The outcome of its declared kind, or counts; all others are kept."""
    own = ph.Counts(lower=0, upper=9999, spread=3) if kind is None else kind
    kept = [name for name in table if name != "visits"]
    return ph.synthesize_table(table, epsilon=1, types={"visits": own}, keep=kept, **options)


@pytest.mark.samples
@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", mechanisms())
def test_a_release_leaves_nothing_and_publishes_no_secret(
    name: str, places: Path, capfd: Any, caplog: Any
) -> None:
    if name == "perturbed_histogram":
        require_opendp()
    with caplog.at_level(logging.DEBUG):
        release = mechanisms()[name](people())
        release.save("out")
    public, secrets = places / "work/out/public", secrets_of(release)
    assert found_in(public, *secrets) == []
    assert not [path for path in public.iterdir() if path.suffix == ".html"]
    # The search finds them where they are kept.
    assert found_in(places / "work/out/confidential", secrets[0]) == ["run.json: " + secrets[0]]
    assert not any(table["visits"].iloc[[ROW]].eq(CANARY).any() for table in release.synthetic)
    words = [path for path in public.iterdir() if not path.name.startswith("synthetic")]
    assert [path for path in words if str(CANARY) in path.read_text()] == []
    assert list((places / "temporary").iterdir()) == []
    assert found_in(places / "home", str(CANARY), *secrets) == []  # other libraries' caches
    assert [path.name for path in (places / "work").iterdir()] == ["out"]
    assert capfd.readouterr() == ("", "")
    assert not [r for r in caplog.records if r.name.startswith(("pyhybrid", "stanli"))]
    for path in (places / "work/out/confidential").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


STAGES = {
    "the engine": (EmbeddedEngine, "sample", SamplingError),
    "the diagnosis": (sessions, "diagnose", SamplingError),
    "the bounds": (sessions, "bounds_of", MemoryError),
    "the replicates": (regression.BoundRegression, "replicate", SamplingError),
    "the public part": (storage, "write_table", OSError),
    "the confidential part": (storage, "_write_confidential", OSError),
    "the renaming": (files, "_swap", OSError),
}


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("stage", STAGES)
def test_an_error_at_any_stage_leaves_nothing(
    stage: str, places: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    home, name, kind = STAGES[stage]

    def fail(*_: Any, **__: Any) -> Any:
        raise kind(f"failing at {stage}")

    monkeypatch.setattr(home, name, fail)
    with pytest.raises((kind, SaveFailed)) as error:
        mechanisms()["unweighted"](people()).save("out")
    shown = "".join(traceback.format_exception(error.type, error.value, error.tb))
    assert str(SEED) not in shown.replace("SEED", "")
    assert str(CANARY) not in shown
    assert capfd.readouterr() == ("", "")
    assert list((places / "temporary").iterdir()) == []
    assert list((places / "work").iterdir()) == []
    assert found_in(places / "home", str(CANARY), str(SEED)) == []


NAMED = pd.DataFrame({"y": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], "x": np.arange(12.0),
                      "town": ["a", "b", f"x{CANARY}"] * 4})  # fmt: skip
OTHER, TEXTS = NAMED.assign(town=["a", "b", "c"] * 4), people().astype({"visits": str})
REFUSED: dict[str, Callable[[], Any]] = {
    "poisson": lambda: ph.Poisson("visits ~ age").bind(people(CANARY + 0.5)),
    "negative binomial": lambda: ph.NegativeBinomial("visits ~ age").bind(people(-CANARY)),
    "too large a count": lambda: ph.Poisson("visits ~ age").bind(people(CANARY * 10**9)),
    "beta": lambda: ph.Beta("visits ~ 1", lower=0, upper=50).bind(people()),
    "two levels": lambda: ph.Bernoulli("visits ~ 1").bind(people()),
    "declared levels": lambda: ph.Bernoulli("visits ~ 1", levels=("a", "b")).bind(TEXTS),
    "beyond a count's end": lambda: ph.Poisson("visits ~ 1", upper=9).bind(people()),
    "one of many levels": lambda: ph.Categorical("visits ~ 1", levels=(*"abc",)).bind(TEXTS),
    "ordered levels": lambda: ph.Ordinal("visits ~ 1", levels=(*"abc",)).bind(TEXTS),
    "log": lambda: ph.NormalRegression("visits ~ 1", transform="log").bind(people(-CANARY)),
    "histogram": lambda: ph.PerturbedHistogram(
        column="visits", lower=0, upper=50, n_bins=5, epsilon=1
    ).release(people()),
    "beyond an amount's end": lambda: ph.Gamma("visits ~ 1", upper=50).bind(people()),
    "a log-normal amount below 0": lambda: ph.LogNormal("visits ~ 1").bind(people(-CANARY)),
    "outside of a domain": lambda: marginals(largest=50).release(people()),
    "no declared level": lambda: whole(people(), ph.Nominal(levels=tuple(range(50)))),
    "beyond a declared range": lambda: whole(people(), ph.Counts(lower=0, upper=50)),
    "an amount below 0": lambda: ph.LogNormal("visits ~ age", zeros=True).bind(people(-CANARY)),
    "no whole count": lambda: ph.Poisson("visits ~ 1", zeros=True).bind(people(CANARY + 0.5)),
    "beside missing values": lambda: ph.Poisson("visits ~ 1", missing=True).bind(
        people(CANARY + 0.5).assign(visits=lambda t: t["visits"].where(t.index != "row 3"))
    ),
    "text": lambda: ph.Poisson("visits ~ 1").bind(TEXTS),
    "sum": lambda: ph.primitives.laplace_sum(people()["visits"], lower=0, upper=50, epsilon=1),
    "mean": lambda: ph.primitives.laplace_mean(people()["visits"], lower=0, upper=50, epsilon=1),
    "k-means": lambda: ph.primitives.dp_kmeans([[CANARY]], n_clusters=1, n_rounds=1, epsilon=1),
    "counts": lambda: ph.primitives.laplace_counts([CANARY], n_categories=3, epsilon=1),
    "responses": lambda: ph.primitives.randomized_response([True, CANARY], epsilon=1),
    "weights": lambda: checks.check_alpha([0.5, CANARY], 2),
    "bounds": lambda: checks.check_nonnegative_vector([0.5, -CANARY], "f"),
    "risk": lambda: ph.count_weights([0.2, CANARY]),
    "a negative weight": lambda: _weighing(-CANARY),
    "weights that are no numbers": lambda: _weighing(f"x{CANARY}"),
    "levels of a set": lambda: ph.measures.utility_summary(OTHER, [NAMED]),
    "levels of a calibration": lambda: ph.calibrate(
        ph.Poisson("y ~ town"), NAMED, epsilon=4, n_draws=20, engine="embedded", rule=ANY_DRAWS,
        settings=SETTINGS,
    ).weights(ph.Poisson("y ~ town").bind(OTHER)),
    "an analyst's model": lambda: ph.measures.model_utility(
        NAMED, [NAMED], "y ~ x + float(town[2])"
    ),
    "terms of a set": lambda: ph.measures.model_utility(
        NAMED, [NAMED[NAMED["town"] != f"x{CANARY}"]], "y ~ C(town)", model="ols"
    ),
    "an outcome that is no count": lambda: ph.NegativeBinomial("y ~ 1").bind(
        NAMED.assign(y=[CANARY + 0.25, *NAMED["y"][1:]])
    ),
    "a level without a design": lambda: ph.Poisson("y ~ x:town + town:x").bind(
        NAMED.assign(x=[np.inf] * 12)
    ),
}  # fmt: skip


def _weighing(weight: Any) -> Any:
    """A model with survey weights, one of which is wrong."""
    table = people(3).assign(w=pd.Series([0.5] * 59 + [weight], dtype=object).to_numpy())
    return ph.Unweighted(ph.Poisson("visits ~ 1"), design="w").bind(table)


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_what_is_refused_is_named_by_its_row_and_not_by_its_value(case: str) -> None:
    with pytest.raises(PyhybridError) as error:
        REFUSED[case]()
    shown = "".join(traceback.format_exception_only(error.value)) + repr(error.value)
    assert str(CANARY) not in shown


def test_the_check_sees_a_value_in_a_message() -> None:
    """The control: the search finds what pandas and numpy say."""
    with pytest.raises(ValueError, match=str(CANARY)):
        pd.Series([f"x{CANARY}"]).astype(float)


STAN = Path(__file__).with_name("own_normal.stan").read_text("utf-8")


def own_program(text: str, folder: Path) -> Any:
    (folder / "own.stan").write_text(text)
    return ph.StanModel(
        folder / "own.stan", outcome="visits",
        data=lambda t: {"n": len(t), "y": t["visits"].to_numpy(dtype=float)}, predict="rep",
    )  # fmt: skip


@pytest.mark.samples
def test_values_that_stan_quotes_are_not_repeated(tmp_path: Path) -> None:
    bounded = STAN.replace("vector[n] y;", "vector<upper=100>[n] y;")
    with pytest.raises(PyhybridError, match=r"must be less than or equal to #") as error:
        ph.Unweighted(own_program(bounded, tmp_path)).release(people(), engine="embedded")
    assert str(CANARY) not in str(error.value)
    rejecting = STAN.replace("model {", 'model { reject("found ", y[18], " and more");', 1)
    program = StanProgram(name="own", text=rejecting)
    data = {"n": 60, "y": people()["visits"].to_numpy(), "weights": np.ones(60)}
    sample = partial(EmbeddedEngine().sample, program, data, seed=SEED, settings=SETTINGS)
    assert str(CANARY) not in fails(SamplingError, "found # and more", sample)


def test_places_in_a_program_stay_in_messages() -> None:
    said = "x1[3] is -7.5e+300 (in 'p.stan', line 12, column 4); chain 2 of 4"
    assert without_values(said) == "x1[3] is # (in 'p.stan', line 12, column 4); chain 2 of 4"


def test_cmdstan_complaints_and_cache_hold_no_seed(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    program = StanProgram(name="p", text="data { int y; } parameters { real x; } model { }")
    data = {"p": 2, "y": CANARY}
    sample = partial(CmdStanEngine().sample, program, data, seed=SEED, settings=STORED)
    sample()
    monkeypatch.setenv("FAKE_CMDSTAN_MODE", "fail")
    said = fails(SamplingError, "something went wrong", sample)
    assert str(SEED) not in said
    assert str(CANARY) not in said
    assert found_in(Path(os.environ["PYHYBRID_CACHE"]), str(SEED), str(CANARY)) == []
    assert list(fake.temporary.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert json.loads(fake.log.read_text().splitlines()[-1])["data"]["y"] == CANARY  # it was there


@pytest.mark.needs_r
def test_r_keeps_nothing(capfd: Any) -> None:
    require(rbridge.r_status().available, "R must be found")
    require(RStanEngine().status().available, "rstan must be found")
    bound = MODEL.bind(people())
    settings = SamplerSettings(chains=2, warmup=100, draws=100, parallel_chains=1)
    data = bound.stan_data(np.ones(60))
    sample = partial(RStanEngine().sample, bound.program, seed=SEED, settings=settings)
    sample(data)
    ri = rbridge.start_r()
    folder = Path(ri.evalr("tempdir()")[0])
    assert found_in(folder, str(CANARY), str(SEED)) == []
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(ri.evalr("ls(globalenv())")) == []
    hidden = set(ri.evalr("ls(globalenv(), all.names = TRUE)"))
    held = {name for name in hidden if not name.startswith(".__")}  # classes of compiled programs
    assert held <= {".Random.seed", ".requireCachedGenerics"}
    shown = "".join(capfd.readouterr())
    assert str(CANARY) not in shown
    assert str(SEED) not in shown
    wrong = {**data, "frequency": -data["frequency"]}
    assert str(SEED) not in fails(SamplingError, "", sample, wrong)


WAITING = """
import sys, time
from pyhybrid import cli
from pyhybrid.running.files import private_folder
cli._stop_on_signals()
try:
    with private_folder() as folder:
        (folder / "data.json").write_text("{canary}")
        print("ready", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


def started(script: str, places: Path, **options: Any) -> subprocess.Popen[str]:
    """A process that has got as far as saying so."""
    heard = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup\n"
    heard += "signal.signal(signal.SIGINT, signal.default_int_handler)  # and in the background\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heard + script], env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=places / "work", stdout=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    with process.stdout:
        assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_remove_temporary_folders(number: int, places: Path) -> None:
    process = started(WAITING.replace("{canary}", str(CANARY)), places)
    process.send_signal(number)
    assert process.wait(30) == 130
    assert list((places / "temporary").iterdir()) == []


@pytest.mark.long
def test_what_a_killed_process_left_is_private_and_goes_with_the_next_fit(places: Path) -> None:
    living = started(WAITING.replace("{canary}", "of another fit"), places)
    killed = started(WAITING.replace("{canary}", str(CANARY)), places)
    killed.kill()
    killed.wait(30)
    left = sorted((places / "temporary").iterdir())
    assert len(left) == 2
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in left)
    with private_folder() as own:
        present = {*(places / "temporary").iterdir()} - {own}
        assert len(present) == 1
        assert found_in(places / "temporary", str(CANARY)) == []
        assert (present.pop() / "data.json").read_text() == "of another fit", "it is still in use"
    living.kill()
    living.wait(30)
    with private_folder():
        pass
    assert list((places / "temporary").iterdir()) == []


def test_folders_of_other_names_and_links_are_left_alone(places: Path) -> None:
    (places / "home/mine").mkdir()
    (places / "temporary/pyhybrid-fit-link").symlink_to(places / "home/mine")
    (places / "temporary/another").mkdir()
    with private_folder():
        pass
    assert {p.name for p in (places / "temporary").iterdir()} == {"pyhybrid-fit-link", "another"}
    assert (places / "home/mine").is_dir()


SAVING = """
import os, signal
import pandas as pd, pyhybrid as ph
from pyhybrid.releases import folder as storage
release = ph.Release.load("first")
write = storage._write_confidential
def die(*given, **named):
    write(*given, **named)
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
storage._write_confidential = die
release.save("out")
"""


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_save_that_was_killed_is_private_and_goes_with_the_next_one(places: Path) -> None:
    release = mechanisms()["unweighted"](people())
    release.save("first")
    assert started(SAVING, places).wait(60) == -signal.SIGKILL
    (left,) = [path for path in (places / "work").iterdir() if path.name != "first"]
    assert left.name.startswith(".out.partial-")
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    release.save("out")
    assert {path.name for path in (places / "work").iterdir()} == {"first", "out"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_command_leaves_nothing(number: int, places: Path) -> None:
    people().to_csv(places / "work/data.csv", index=False)
    script = (
        "import sys\nfrom pyhybrid import cli\n"
        "from pyhybrid.engines.embedded import EmbeddedEngine\n"
        "sample = EmbeddedEngine.sample\n"
        "def told(*a, **k):\n    print('ready', flush=True)\n    return sample(*a, **k)\n"
        "EmbeddedEngine.sample = told\n"
        "sys.argv = 'pyhybrid synthesize data.csv --out out --model poisson --mechanism unweighted "
        f"--formula visits~age --fit engine=embedded,seed={SEED},draws=900000'.split()\n"
        "cli.main()\n"
    )
    with (places / "said").open("w") as said:
        process = started(script, places, stderr=said)
    time.sleep(0.5)
    process.send_signal(number)
    killed = number == signal.SIGKILL
    assert process.wait(60) == (-signal.SIGKILL if killed else 130)
    told = "" if killed else "pyhybrid: interrupted; nothing was left half written\n"
    assert (places / "said").read_text() == told
    assert [path.name for path in (places / "work").iterdir()] == ["data.csv"]
    assert list((places / "temporary").iterdir()) == []
    assert found_in(places / "home", str(CANARY), str(SEED)) == []


def test_the_terminal_shows_no_seed_and_no_record(places: Path, capfd: Any) -> None:
    people().to_csv("data.csv", index=False)
    assert command(
        "synthesize", "data.csv", "--out", "out", "--formula", "visits ~ age",
        "--fit", f"engine=embedded,seed={SEED},on_not_converged=warn,draws=400",
        "--model", "negative_binomial", "--mechanism", "lipschitz",
    ) == 0  # fmt: skip
    shown = "".join(capfd.readouterr())
    assert str(SEED) not in shown
    assert str(CANARY) not in shown
    assert found_in(places / "work/out/public", str(SEED)) == []
    assert found_in(places / "work/out/confidential", str(SEED)) == ["run.json: " + str(SEED)]
    shutil.rmtree("out")


WEIGHT = 34.11717


def surveyed() -> pd.DataFrame:
    """People in homes with weights; one weight, and one home's name, that no other has."""
    table = people().assign(home=[f"home {i // 2}" for i in range(60)], w=0.5)
    table.loc["row 17", "w"] = WEIGHT
    table["home"] = table["home"].where(table["home"] != "home 8", f"home of {CANARY}")
    return table


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_survey_release_publishes_no_weight_and_no_home(places: Path, capfd: Any) -> None:
    """Weights shape values and statement; their own values stay with the owner, also later."""
    mechanism = ph.Unweighted(ph.Poisson("visits ~ 1"), design="w", unit="home")
    release = mechanism.release(
        surveyed(), engine="embedded", settings=SETTINGS, on_not_converged="warn", refits=0
    )
    held = mechanism.bind(surveyed())
    shown = "".join(map(repr, (release, held, mechanism, release.settings, release.statement)))
    release.save("out", report=False, drop=["home", "w"])
    secrets = (str(WEIGHT), f"home of {CANARY}", *secrets_of(release))
    assert found_in(places / "work/out/public", *secrets) == []
    shown += "".join(capfd.readouterr())
    assert [each for each in secrets if each in shown] == []
    assert list((places / "temporary").iterdir()) == []
    release.save("whole", keep=["home", "w"], report=False)  # the control: asked for, and found
    assert found_in(places / "work/whole/public", str(WEIGHT), f"home of {CANARY}") != []

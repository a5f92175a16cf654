"""The cmdstan engine: CmdStan through cmdstanpy, the reference engine.

Compiled programs are kept in the user's cache folder under a key made of program text, versions
and flags. Data, initial values and CSV output live in a private folder that is removed when the
call ends, however it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines.base import (
    Draws,
    EngineStatus,
    OurEngine,
    Run,
    SamplerSettings,
    StanProgram,
    WarmStart,
    without_values,
)
from pyhybrid.engines.programs import parameter_names
from pyhybrid.running.files import cache_folder, private_folder

_INSTALL = "python -m cmdstanpy.install_cmdstan (or: conda install -c conda-forge cmdstan)"


class CmdStanEngine(OurEngine):
    """Samples with CmdStan, one process per chain."""

    name = "cmdstan"

    def status(self) -> EngineStatus:
        """Available if cmdstanpy finds an installation and a C++ toolchain is on the path."""
        cause, remedy = _missing()
        if cause:
            return EngineStatus(name=self.name, cause=cause, remedy=remedy)
        with _quiet():
            numbers = _cmdstanpy().cmdstan_version()
        number = ".".join(str(part) for part in numbers) if numbers else "unknown"
        version = f"CmdStan {number}, cmdstanpy {_cmdstanpy().__version__}"
        return EngineStatus(name=self.name, version=version)

    def run(self, run: Run) -> Draws:
        executable = compiled_program(run.program)
        run = replace(run, started=time.perf_counter())
        with private_folder() as folder, _quiet():
            fit = _run(executable, folder, run)
            provenance = run.provenance()
            # cmdstanpy's (draws, chains) columns to arrays of shape (chains, draws, ...)
            stats = {name: np.asarray(v).T for name, v in fit.method_variables().items()}
            chains, draws = stats["divergent__"].shape
            variables = {}
            for name, values in fit.stan_variables().items():
                flat = np.asarray(values, dtype=np.float64)  # chains one after the other
                variables[name] = flat.reshape(chains, draws, *flat.shape[1:])
            metric = fit.inv_metric
            return Draws(
                variables=variables,
                divergent=stats["divergent__"] > 0,
                treedepth=stats["treedepth__"].astype(np.int64),
                energy=stats["energy__"],
                step_size=np.asarray(fit.step_size, dtype=np.float64),
                inv_metric=None if metric is None else tuple(np.asarray(row) for row in metric),
                parameters=parameter_names(run.program),
                provenance=provenance,
            )


def compiled_program(program: StanProgram) -> Path:
    """Executable of `program`, compiled unless the cache holds it: its name there is its hash,
    which tells a damaged one."""
    version = CmdStanEngine().status().required().version
    entry = cache_folder() / "cmdstan" / _key(program, version)
    for path in entry.glob("[!.]*"):
        if _sha256(path) == path.name:
            return path
    with private_folder() as folder, _quiet():
        if re.search(r"\s" if os.name == "nt" else r"[\s~]", str(folder)):  # make splits them
            raise EngineUnavailable(
                f"CmdStan cannot compile below {folder.parent}: the path of the temporary "
                "folder must have no spaces and no ~; set TMPDIR to another"
            )
        source = folder / "program.stan"
        source.write_text(program.text, encoding="utf-8")
        try:
            built = Path(str(_cmdstanpy().compile_stan_file(source)))
        except (ValueError, RuntimeError, OSError) as error:
            raise _failure(program.name, str(error).replace(f"{folder}{os.sep}", "")) from None
        return _in_cache(built, entry)


def _in_cache(built: Path, entry: Path) -> Path:
    """Copied aside, then renamed, as other processes do the same: a reader sees all or nothing."""
    aside = entry / f".{os.getpid()}.{threading.get_ident()}"
    try:
        entry.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(built, aside)
        return aside.replace(entry / _sha256(built))
    except OSError as error:
        raise EngineUnavailable(
            f"the cache folder {entry.parent} cannot be written ({error.strerror or error}): "
            "set PYHYBRID_CACHE to a folder of yours"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cmdstanpy() -> Any:
    try:
        with warnings.catch_warnings():  # its progress bars warn in notebooks that have no widgets
            warnings.simplefilter("ignore")
            import cmdstanpy
    except ImportError as error:
        raise EngineUnavailable(f"cmdstanpy cannot be imported ({error})") from None
    return cmdstanpy


def _missing() -> tuple[str, str]:
    """Cause that keeps CmdStan from running here, and its remedy; empty if nothing does."""
    try:
        cmdstanpy = _cmdstanpy()
    except EngineUnavailable as error:
        return str(error), "pip install cmdstanpy"
    try:
        with _quiet():
            home = Path(cmdstanpy.cmdstan_path())
    except ValueError:
        given = os.environ.get("CMDSTAN")
        where = f": CMDSTAN is {given}, which holds none" if given else ""
        return f"no CmdStan installation was found{where}", _INSTALL
    if not (home / "bin" / ("stanc.exe" if os.name == "nt" else "stanc")).exists():
        return f"the CmdStan in {home} is not built, it has no bin/stanc", f"make -C {home} build"
    missing = [tool for tool in (os.environ.get("MAKE", "make"),) if shutil.which(tool) is None]
    compiler = os.environ.get("CXX", "")
    if not any(shutil.which(tool) for tool in ([compiler] if compiler else ["g++", "clang++"])):
        missing.append(compiler or "g++ or clang++")
    if missing:
        return f"CmdStan needs {' and '.join(missing)} on the path", "install a C++ toolchain"
    return "", ""


def _key(program: StanProgram, version: str) -> str:
    parts = (
        program.text,
        version,
        str(_cmdstanpy().cmdstan_path()),  # an executable looks for its libraries there
        platform.machine(),
        platform.system(),
        os.environ.get("CXX", ""),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _failure(name: str, console: str) -> SamplingError | EngineUnavailable:
    """Whose fault it is that a program was not built, in the words of the tool that failed."""
    if rejected := re.search(r"^\w+ error in .*?(?=^\S*make\S*: |\Z)", console, re.M | re.S):
        return SamplingError(f"the Stan program {name} does not compile:\n{rejected[0].rstrip()}")
    said = [line for line in console.splitlines() if re.search(r"error|\*\*\*", line, re.I)]
    return EngineUnavailable(
        f"CmdStan failed to build the Stan program {name}:\n"
        + "\n".join(said[:5] or console.splitlines()[-5:])
        + f"\nmend the C++ toolchain, or install CmdStan anew: {_INSTALL}"
    )


def _run(executable: Path, folder: Path, run: Run) -> Any:
    """What cmdstanpy reads from the chains' files."""
    data_file, output, settings = folder / "data.json", folder / "output", run.settings
    output.mkdir(mode=0o700)
    files = [str(output / f"chain_{chain}.csv") for chain in range(1, settings.chains + 1)]
    inits, tuning = _start(run.warm_start, folder, settings)
    commands = [
        [
            *(str(executable), f"id={chain}", "random", f"seed={run.seed}"),
            *("data", f"file={data_file}", *inits[chain - 1 : chain]),
            *("output", f"file={file}", "sig_figs=18"),
            f"refresh={max(1, (settings.warmup + settings.draws) // 20)}",
            *("method=sample", f"num_samples={settings.draws}", f"num_warmup={settings.warmup}"),
            *("algorithm=hmc", "engine=nuts", f"max_depth={settings.max_treedepth}"),
            f"metric={'unit_e' if settings.metric == 'unit' else 'diag_e'}",
            *(*tuning, "adapt", "engaged=1", f"delta={settings.acceptance}"),
        ]
        for chain, file in enumerate(files, start=1)
    ]
    at_once = settings.parallel_chains or os.cpu_count() or 1
    total = settings.chains * (settings.warmup + settings.draws)

    def report() -> None:
        if run.progress is not None:
            run.progress(min(_iterations(output), total), total)

    try:
        _cmdstanpy().write_stan_json(str(data_file), dict(run.data))
        failed = _run_chains(commands, output, at_once, report)
        if not failed:
            report()
            return _cmdstanpy().from_csv(files, method="sample")
        said = _said_by_chains(output)
    except (RuntimeError, ValueError, OSError) as error:
        said = str(error)
    reason = without_values(said.replace(str(folder), ""))
    raise SamplingError(f"the cmdstan engine failed: {reason}")


def _run_chains(
    commands: list[list[str]], output: Path, at_once: int, report: Callable[[], None]
) -> bool:
    """Whether a chain failed, which ends the others. cmdstanpy, interrupted, waits for chains that
    run and starts those left: here they are ended."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        while True:
            codes = [process.poll() for process in started]
            if any(codes) or (len(codes) == len(commands) and None not in codes):
                return any(codes)
            if len(codes) < len(commands) and codes.count(None) < at_once:
                with open(output / f"stdout_{len(codes) + 1}.txt", "wb") as console:
                    started.append(
                        subprocess.Popen(
                            commands[len(codes)],
                            stdin=subprocess.DEVNULL,
                            stdout=console,
                            stderr=subprocess.STDOUT,
                        )
                    )
            else:
                report()
                time.sleep(0.05)
    finally:
        for process in started:
            process.kill()
            process.wait()


def _said_by_chains(output: Path) -> str:
    """What failed chains said, once; of a start that failed CmdStan's last words."""
    console = "".join(file.read_text(errors="replace") for file in output.glob("*stdout*.txt"))
    if lines := dict.fromkeys(re.findall(r"^(?:Ex|Er).*", console, re.M)):
        return "\n".join(lines)
    if failed := re.search(r"^Initialization .*failed.*", console, re.M):
        return f"{failed[0].rstrip()} No draw had a finite log density and gradient"
    return "a chain ended without a message, as those do that are killed where memory runs out"


def _start(
    warm_start: WarmStart | None, folder: Path, settings: SamplerSettings
) -> tuple[list[str], list[str]]:
    """CmdStan's words for the start of each chain, and for metric and step size of all."""
    if warm_start is None:
        return [], []
    inits, tuning = [], warm_start.tuning(settings)
    words = [f"stepsize={tuning['step_size']}"]

    def written(name: str, content: Mapping[str, Any]) -> Path:
        plain = {key: np.asarray(value).tolist() for key, value in content.items()}
        (folder / name).write_text(json.dumps(plain))
        return folder / name

    for chain, values in enumerate(warm_start.inits_of(settings.chains), start=1):
        inits.append(f"init={written(f'init_{chain}.json', values)}")
    if "inv_metric" in tuning:
        metric = {"inv_metric": tuning["inv_metric"]}
        words.insert(0, f"metric_file={written('inv_metric.json', metric)}")
    return inits, words


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep cmdstanpy's log, which quotes paths and console output, off the user's terminal."""
    with _cmdstanpy().disable_logging():
        yield


def _iterations(output: Path) -> int:
    counted = 0
    for console in output.glob("*stdout*.txt"):
        with contextlib.suppress(OSError):
            lines = re.findall(r"Iteration:\s*(\d+) /", console.read_text(errors="replace"))
            counted += int(lines[-1]) if lines else 0
    return counted

"""The cmdstan engine: CmdStan through cmdstanpy, the reference engine.

Compiled programs are kept in the user's cache folder under a key made of program text, versions
and flags. Data, initial values and CSV output live in a private folder that is removed when the
call ends, however it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.core.errors import EngineUnavailable, SamplingError
from pyhybrid.engines.base import (
    Draws,
    EngineStatus,
    Progress,
    Provenance,
    SamplerSettings,
    StanProgram,
    WarmStart,
    without_values,
)
from pyhybrid.engines.programs import parameter_names
from pyhybrid.running.files import cache_folder, private_folder

_INSTALL = "python -m cmdstanpy.install_cmdstan (or: conda install -c conda-forge cmdstan)"


class CmdStanEngine:
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

    def sample(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        *,
        seed: int,
        settings: SamplerSettings,
        warm_start: WarmStart | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """Sample as `Engine` says; progress is reported at the end."""
        status = self.status().required()
        executable = compiled_program(program)
        started = time.perf_counter()
        with private_folder() as folder, _quiet():
            fit = _run(executable, folder, data, seed, settings, warm_start)
            if progress is not None:
                total = settings.chains * (settings.warmup + settings.draws)
                progress(total, total)
            provenance = Provenance.of_run(status, program, seed, settings, started)
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
                parameters=parameter_names(program),
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


def _run(
    executable: Path,
    folder: Path,
    data: Mapping[str, Any],
    seed: int,
    settings: SamplerSettings,
    warm_start: WarmStart | None,
) -> Any:
    """What cmdstanpy reads from the chains' files. Chains run at once unless the settings say
    otherwise: after Ctrl-C, which ends those that run, cmdstanpy would start those left."""
    data_file, output = str(folder / "data.json"), folder / "output"
    output.mkdir(mode=0o700)
    start: dict[str, Any] = {}
    if warm_start is not None:
        start = warm_start.tuning(settings)
        start["inits"] = [
            {name: np.asarray(value).tolist() for name, value in values.items()}
            for values in warm_start.inits_of(settings.chains)
        ]
    try:
        _cmdstanpy().write_stan_json(data_file, dict(data))
        return _cmdstanpy().CmdStanModel(exe_file=executable).sample(
            data=data_file, chains=settings.chains, seed=seed, output_dir=output, sig_figs=18,
            parallel_chains=settings.parallel_chains or settings.chains,
            iter_warmup=settings.warmup, iter_sampling=settings.draws,
            max_treedepth=settings.max_treedepth, adapt_delta=settings.acceptance,
            metric="unit_e" if settings.metric == "unit" else "diag_e", show_progress=False,
            **start,
        )  # fmt: skip
    except RuntimeError:
        said = _said_by_chains(output)
    except (ValueError, OSError) as error:
        said = str(error)
    reason = without_values(said.replace(str(folder), ""))
    raise SamplingError(f"the cmdstan engine failed: {reason}")


def _said_by_chains(output: Path) -> str:
    """What failed chains said, once; of a start that failed CmdStan's last words, which cmdstanpy
    does not quote."""
    console = "".join(file.read_text(errors="replace") for file in output.glob("*stdout*.txt"))
    if lines := dict.fromkeys(re.findall(r"^(?:Ex|Er).*", console, re.M)):
        return "\n".join(lines)
    if failed := re.search(r"^Initialization .*failed.*", console, re.M):
        return f"{failed[0].rstrip()} No draw had a finite log density and gradient"
    return "a chain ended without a message, as those do that are killed where memory runs out"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep cmdstanpy's log, which quotes paths and console output, off the user's terminal."""
    with _cmdstanpy().disable_logging():
        yield

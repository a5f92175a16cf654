"""The rstan engine: rstan in R, through `rbridge`; the papers' own workflow, for validation.

R runs in this process and holds data and draws only while a call lasts: they live in the call's own
environment, never in R's global one. Compiled programs hold no data and are kept in the user's
cache folder.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from pyhybrid import rbridge
from pyhybrid.core.errors import SamplingError
from pyhybrid.engines.base import (
    Draws,
    EngineStatus,
    OurEngine,
    ProgressLines,
    Run,
    WarmStart,
    without_values,
)
from pyhybrid.engines.programs import parameter_names
from pyhybrid.running.files import cache_folder


class RStanEngine(OurEngine):
    """Samples with rstan; version 2.21 (Debian's) and current ones."""

    name = "rstan"

    def status(self) -> EngineStatus:
        """Available if R, rpy2, rstan and the headers of Boost are found."""
        r = rbridge.r_status()
        cause, remedy = r.cause, r.remedy
        if not cause and not r.rstan_version:
            cause = f"rstan must be installed: not found in R {r.r_version}"
            remedy = _install("rstan", "r-cran-rstan")
        elif not cause and not r.boost:
            cause = "Boost headers must be found for rstan to compile: neither BH nor the system's"
            remedy = _install("BH", "libboost-dev")
        if cause:
            return EngineStatus(name=self.name, cause=cause, remedy=remedy)
        version = f"rstan {r.rstan_version}, R {r.r_version}"
        return EngineStatus(name=self.name, version=version)

    def run(self, run: Run) -> Draws:
        """Parallel chains, R processes of their own, report at the end."""
        fit, notes = _fit(run)
        if fit["program"] != run.program.text.rstrip("\n"):
            notes = (*notes, "program text rewritten for rstan before 2.26: arrays, large phi")
        sampler = fit["sampler"]
        metric = sampler["inv_metric"]
        return Draws(
            variables={name: values for name, values in fit["draws"].items() if name != "lp__"},
            divergent=sampler["divergent"].astype(bool),
            treedepth=sampler["treedepth"].astype(np.int64),
            energy=sampler["energy"],
            step_size=np.atleast_1d(sampler["step_size"]),
            inv_metric=None if not metric else tuple(np.atleast_1d(row) for row in metric),
            parameters=parameter_names(run.program),
            provenance=run.provenance(notes),
        )


def _install(package: str, debian: str) -> str:
    return (
        f"Rscript -e 'install.packages(\"{package}\")', "
        f"or on Debian and Ubuntu: apt-get install {debian}"
    )


def _fit(run: Run) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The value of R's fit_rstan, and what R warned of."""
    settings, warm_start, progress = run.settings, run.warm_start, run.progress
    name, text = run.program.name, run.program.text.rstrip("\n")
    iterations = settings.warmup + settings.draws
    printed = ProgressLines(progress, settings)
    cores = settings.parallel_chains or os.cpu_count() or 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = rbridge.call_r(
                "fit_rstan",
                output=printed.write,
                program=text,
                data={name: _plain(value) for name, value in run.data.items()},
                chains=settings.chains,
                iter_warmup=settings.warmup,
                iter_sampling=settings.draws,
                seed=run.seed,
                adapt_delta=settings.acceptance,
                max_treedepth=settings.max_treedepth,
                cores=min(cores, settings.chains),
                refresh=max(1, iterations // 20),
                cache_folder=str(cache_folder() / "rstan"),
                **_start(warm_start, settings.chains),
            )
        except (SamplingError, rbridge.RError) as error:
            reason = without_values(f"{error}{printed.said}")
            raise SamplingError(f"the rstan engine failed on {name}: {reason}") from None
        finally:
            rbridge.collect()
    if progress is not None:
        progress(settings.chains * iterations, settings.chains * iterations)
    notes = [str(warning.message) for warning in caught]
    if warm_start is not None and warm_start.inv_metric is not None:
        notes.append("rstan takes no inverse metric: the warm start gave inits and step size")
    if settings.metric == "unit":
        notes.append("rstan adapted its metric: this engine asks for no other")
    return fit, tuple(notes)


def _plain(value: Any) -> Any:
    """Data as R has it: whole numbers in 32 bits, larger ones as doubles."""
    array = np.asarray(value)
    if array.dtype.kind in "iu" and array.size and np.abs(array.astype(float)).max() >= 2**31:
        array = array.astype(np.float64)
    return array if array.ndim else array.item()


def _start(warm_start: WarmStart | None, chains: int) -> dict[str, Any]:
    if warm_start is None:
        return {}
    inits = [
        {name: _plain(value) for name, value in values.items()}
        for values in warm_start.inits_of(chains)
    ]
    return {"init": inits, "step_size": float(np.mean(warm_start.step_size))}

"""`pyhybrid synthesize`: a release from a file into a folder.

Three ways: a whole table by noisy marginals (no --formula), columns by clipped scores (--formula),
and columns by another mechanism (--mechanism).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import pandas as pd

from pyhybrid.cli.clipped_scores import NAMES, note_persons, release_by_scores
from pyhybrid.cli.console import note, progress_bars
from pyhybrid.cli.ledger import open_ledger
from pyhybrid.cli.options import (
    FIT,
    MODEL_NAMES,
    OF_RELEASE,
    PRIVACY,
    Data,
    Drop,
    HoldsNone,
    Ids,
    Keep,
    Overwrite,
    ReleaseFolder,
    build_mechanism,
    calibrated,
    fit_options,
    model_for,
    model_free,
    named,
    option,
    read_table,
)
from pyhybrid.cli.released import save_and_show
from pyhybrid.cli.request import Prepared, Request
from pyhybrid.core.checks import check_choice, check_count, check_output_folder, check_positive
from pyhybrid.core.errors import BudgetExceeded, InvalidInput, SamplingError
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import MECHANISMS, MODEL_FREE, NoisyMarginals, meet_epsilon
from pyhybrid.mechanisms.mechanism import REFITS, Mechanism, check_unit_of_noise
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models.columns.kinds import Kind
from pyhybrid.models.columns.types_files import read_types
from pyhybrid.privacy.conversions import STRICT
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.ledger import Ledger
from pyhybrid.releases.release import Release
from pyhybrid.tables.describe import seen_kind, to_mend, unconfirmed, undecided, write_draft
from pyhybrid.tables.domains import default_delta
from pyhybrid.tables.roles import kinds_of
from pyhybrid.tables.synthesis import synthesize_table

_MARGINALS = {"marginals", "noisy_marginals"}
_TABLE = "Whole table"


def synthesize(
    data: Data,
    out: ReleaseFolder,
    formula: Annotated[
        list[str] | None,
        option(
            "As in R, e.g. 'visits ~ age + region'; several are synthesized in sequence, each "
            "given those before it. Without one the whole table is synthesized."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        option(
            f"{', '.join(MODEL_NAMES)}; with settings as NAME:key=value,..., e.g. "
            "beta:lower=0,upper=100, bernoulli:levels=no+yes, lognormal:zeros=true, any with "
            "missing=true, poisson:program=published (the Stan program that the papers print), "
            "stan:program=my.stan,predict=y_rep (your own; local). Once, or once per formula. "
            "[default: by clipped scores a draft, else by the column's values]"
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        option(
            "clipped-scores, unweighted, lipschitz, count, scalar, truncated, censored, "
            "perturbed_histogram or noisy_marginals; with settings as NAME:key=value,..., named as "
            "in Python, e.g. count:pattern=sex+region, lipschitz:reweighting=true, "
            "censored:calibration=FOLDER, noisy_marginals:select=private. Once, "
            "or once per formula. [default: clipped-scores, of a whole table noisy_marginals]"
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        option(
            "Epsilon of the whole release, all columns and sets together. It sets the mechanism's "
            "own epsilon, or determines scale, weight or cap. [default: 1 for clipped scores]",
            group=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        option(
            "Probability by which exp(epsilon) may be exceeded, below 1 / n; 0 for pure epsilon of "
            "a whole table. [default: that of the ledger, or 1e-6, from a million records on below "
            "1 / 10 n]",
            group=PRIVACY,
        ),
    ] = None,
    unit: Annotated[
        str | None,
        option(
            "Column that identifies persons or other units: epsilon protects all rows of one.",
            group=PRIVACY,
        ),
    ] = None,
    rows_per_unit: Annotated[
        int | None,
        option("With --unit: most rows of a unit, a public number.", group=_TABLE),
    ] = None,
    types: Annotated[
        Path | None,
        option(
            "JSON file of types by column. Without it and without --reference a draft is written.",
            group=_TABLE,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        option(
            "Public or historical records, not released: clipped scores start from them, noisy "
            "tables are used beside them.",
            group=PRIVACY,
        ),
    ] = None,
    holds_no_released_record: HoldsNone = False,
    ledger: Annotated[
        Path | None,
        option("Ledger to charge; it refuses a release beyond its budget.", group=PRIVACY),
    ] = None,
    n_synthetic: Annotated[int, option("m, the number of synthetic data sets.")] = 1,
    fit: Annotated[
        str | None,
        option(
            "Of mechanisms with chains, as key=value,...: engine (auto, cmdstan, embedded, rstan), "
            "seed, chains, warmup, draws, adapt_delta, on_not_converged (raise, warn), "
            "n_draws_released (1: all sets from one draw, at the cost of one), refits (0: weights "
            "taken as fixed, as published).",
            group=FIT,
        ),
    ] = None,
    drop: Drop = None,
    keep: Keep = None,
    id: Ids = None,
    overwrite: Overwrite = False,
) -> None:
    """Route the request to one of the three ways, save what it gives and show it."""
    if epsilon is not None:
        check_positive(epsilon, "--epsilon")
    request = Request(
        data=data, out=out, formula=formula or [], model=model or [], mechanism=mechanism or [],
        types=types, epsilon=epsilon, delta=delta, unit=unit, rows_per_unit=rows_per_unit,
        reference=reference, holds_no_released_record=holds_no_released_record, ledger=ledger,
        n_synthetic=check_count(n_synthetic, "--n-synthetic"), drop=drop or [], keep=keep or [],
        id=id or [], fit=fit_options(fit, OF_RELEASE), overwrite=overwrite,
    )  # fmt: skip
    prepared = _way_of(request)(request)
    save_and_show(
        prepared.release, prepared.source, prepared.decisions, out, overwrite=overwrite,
        ledger=prepared.ledger,
    )  # fmt: skip


def _way_of(request: Request) -> Callable[[Request], Prepared]:
    """Which of the three ways a request takes."""
    names = request.mechanism_names
    if not request.formula and not request.model and names <= _MARGINALS:
        return _release_table
    if request.formula and names <= NAMES:
        return release_by_scores
    return _release_by_mechanism


def _release_table(request: Request) -> Prepared:
    """A whole table by noisy marginals."""
    request.refuse(["fit"], "a whole table comes from noisy marginals, without chains")
    if request.epsilon is None:
        words = shlex.join(["pyhybrid", "synthesize", str(request.data)])
        out = shlex.join(["--out", str(request.out)])
        raise InvalidInput(
            f"--epsilon must be given for a whole table: {words} --epsilon 4 {out}; or --formula "
            f"for one column: {words} --formula 'visits ~ age + region' {out}"
        )
    request.check_confirmed()
    check_unit_of_noise(request.unit, request.rows_per_unit)
    check_output_folder(request.out, overwrite=request.overwrite)
    settings: dict[str, Any] = dict(named("".join(request.mechanism[:1]))[1])
    unknown = settings.keys() - {"select", "relation"}
    if unknown:
        raise InvalidInput(
            f"noisy_marginals of a whole table takes select and relation: found {min(unknown)}"
        )
    types = {} if request.types is None else read_types(request.types)
    source = read_table(request.data, unsaid=types)
    delta = _delta_of_table(request, len(source.frame))
    ledger = open_ledger(
        request.ledger, NoisyMarginals.__name__, settings.get("relation", "remove"), delta,
        request.epsilon,
    )  # fmt: skip
    like = None if request.reference is None else read_table(request.reference)
    declared, seen = kinds_of(types), dict[str, Kind]()
    for name, column in () if like is None else like.frame.items():
        kind = seen_kind(column)  # None is refused where it is asked for
        if kind is not None:
            seen[str(name)] = kind
    cells = {**seen, **declared}
    source, frame = source.read_as(cells), None if like is None else like.read_as(cells).frame
    decided = _decided_of_table(request, source.frame, frame, types)
    with progress_bars() as progress:
        progress("noisy counts and their model", 0, 0)
        release = synthesize_table(
            source.frame, epsilon=request.epsilon, delta=delta, unit=request.unit,
            rows_per_unit=request.rows_per_unit, types=declared, reference=frame,
            id=next(iter(decided.ids), None), drop=decided.drop, keep=decided.keep,
            holds_no_released_record=request.holds_no_released_record,
            n_synthetic=request.n_synthetic, progress=progress, **settings,
        )  # fmt: skip
    if drafted := unconfirmed(types):
        note(
            f"types of {', '.join(drafted)} are as drafted from the data: by this release you "
            "confirm that they are public"
        )
    return Prepared(release=release, source=source, decisions=release.decisions, ledger=ledger)


def _delta_of_table(request: Request, n: int) -> float | None:
    """Delta as given, as the ledger that is charged has it, or the default for n records."""
    if request.delta is not None:
        return request.delta or None
    if request.ledger is None:
        return default_delta(n)
    delta = Ledger(request.ledger).delta
    if delta is None:
        note(
            "the ledger has no delta: the release has pure epsilon and Laplace noise; with a delta "
            "it would have Gaussian noise, which is smaller for many columns"
        )
    return delta


def _decided_of_table(
    request: Request, df: pd.DataFrame, like: pd.DataFrame | None, types: Collection[str]
) -> Decisions:
    """Decisions on columns that are not synthesized; columns that need one and have none are
    refused, and without types or a reference a draft of types is written."""
    decided, columns = request.decided(df), [str(name) for name in df.columns]
    if len(decided.ids) > 1:
        raise InvalidInput(f"--id must name one column: found {', '.join(decided.ids)}")
    if request.unit is None:
        note_persons(df, " --rows-per-unit ROWS")
    said = {*decided.drop, *decided.keep, *decided.ids, *types, request.unit}
    left = df[[name for name in df.columns if name not in said]]  # not for a record to refuse
    if like is None:
        risky = undecided(left)
    else:
        both = [name for name in left if name in like]
        risky = {**undecided(left.drop(columns=both)), **undecided(like[both])}
    if not types and like is None:
        check_decided({}, decided, columns, ())
        mend = [f"{name!r}: {why}" for name in left if (why := to_mend(left[name]))]
        if mend:
            raise InvalidInput(f"columns must be mended, or left out (--drop): {'; '.join(mend)}")
        path = request.out.parent / f"{request.data.stem}.types.json"
        if path.exists() and not request.overwrite:
            raise InvalidInput(
                f"a draft of types is there, {path}: confirm or change it, then give --types "
                f"{path}; --overwrite writes a new one"
            )
        write_draft(path, left.drop(columns=[*risky]))
        command = request.command(types=[path], drop=[*request.drop, ",".join(risky)])
        raise InvalidInput(
            f"nothing was released yet. {path} was written: a draft of what each column can hold, "
            "as seen in the data. A strict release must not take that from the data: confirm or "
            "change levels, lower, upper, codes, decimals and missing by what is public. "
            f"Then run: {command}"
        )
    check_decided(risky, decided, columns, ())
    return decided


def _release_by_mechanism(request: Request) -> Prepared:
    """Columns by a mechanism that is named."""
    request.refuse(
        ["types", "rows_per_unit", "reference"],
        "--mechanism with --formula takes neither types nor a reference; declare what the outcome "
        "can hold by --model, e.g. --model ordinal:levels=low+middle+high",
    )
    check_output_folder(request.out, overwrite=request.overwrite)
    source = read_table(request.data)
    held = calibrated(
        request.mechanism[0] if request.mechanism else "",
        holds_no_released_record=request.holds_no_released_record,
    )
    if held is None:
        mechanism = _mechanism_of(request, source.frame)
    else:
        mechanism = held
        request.refuse(
            ["formula", "model", "epsilon", "delta", "unit"],
            "a calibration holds model, weights and cap",
        )
    ledger = open_ledger(
        request.ledger, mechanism.name, mechanism.relation, mechanism.delta_of_charge
    )
    decisions = request.decided(source.frame)
    source = source.read_as(mechanism.forms(source.frame))
    df = source.frame
    _check_columns(df, mechanism, decisions)
    if request.unit is None:
        note_persons(df)
    lacks = None if held is None else held.why_local(held.bind(df))
    if lacks is not None:
        raise InvalidInput(f"a strict release lacks {lacks}")
    with progress_bars() as progress:
        release = _release_within(mechanism, df, request, progress)
    if held is not None and release.charge.kind != STRICT:
        raise SamplingError(
            "nothing is released: some chains ended in other modes, so that the charge would be "
            "local, not strict; give more draws (--fit draws=4000)"
        )
    return Prepared(release=release, source=source, decisions=decisions, ledger=ledger)


_TARGETS = {
    "lipschitz": "scale", "count": "scale", "scalar": "target_epsilon", "truncated": "epsilon",
    "censored": "epsilon", "perturbed_histogram": "epsilon", "noisy_marginals": "epsilon",
}  # fmt: skip
"""The setting that --epsilon determines, by mechanism."""


def _mechanism_of(request: Request, df: pd.DataFrame) -> Mechanism:
    """The mechanism of the formula, or a sequence of those of several."""
    if request.holds_no_released_record:
        raise InvalidInput(
            "--holds-no-released-record goes with --reference, or --mechanism "
            "censored:calibration=FOLDER"
        )
    if not request.formula:
        raise InvalidInput("--formula must be given, e.g. --formula 'visits ~ age + region'")
    texts, models = [], []
    for k, formula in enumerate(request.formula):
        text = str(request.of_formula("mechanism", k))
        name, model = named(text)[0], request.of_formula("model", k)
        check_choice(name, "--mechanism", ["clipped-scores", *MECHANISMS, *MODEL_FREE])
        if name in MODEL_FREE and model is not None:
            raise InvalidInput(f"--mechanism {name} fits no model: give no --model")
        texts.append(_with_epsilon(text, request))
        models.append(None if name in MODEL_FREE else model_for(model, name, formula, df))

    def built(delta: float | None) -> Mechanism:
        shared = {"unit": request.unit, "delta": delta}
        steps: list[Any] = [
            model_free(text, formula, **shared)
            if model is None
            else build_mechanism(text, model, **shared)
            for text, model, formula in zip(texts, models, request.formula, strict=True)
        ]
        return steps[0] if len(steps) == 1 else SequentialSynthesis(steps)

    mechanism = built(request.delta)
    delta = mechanism.delta_of_charge
    if request.delta is None and request.ledger is None and delta and delta * len(df) >= 1:
        mechanism = built(default_delta(len(df)))
    return mechanism


def _with_epsilon(text: str, request: Request) -> str:
    """The text of a mechanism with a first value of the setting that --epsilon determines."""
    name, given = named(text)
    if request.epsilon is None:
        return text
    target = _TARGETS.get(name)
    if len(request.formula) > 1:
        raise InvalidInput(
            "--epsilon of mechanisms with chains is for one formula: how several columns share it "
            "is not known; give each its own settings"
        )
    if target is None:
        raise InvalidInput(
            f"--epsilon must be for a mechanism with a setting that lowers epsilon: {name} has "
            f"none; take {', '.join(_TARGETS)}"
        )
    if target in given:
        raise InvalidInput(f"--epsilon determines {target}: leave it out of --mechanism")
    if target == "scale":
        return text
    return f"{text}{',' if given else ':'}{target}={request.epsilon!r}"


def _release_within(
    mechanism: Any, df: pd.DataFrame, request: Request, progress: FitProgress
) -> Release:
    """A release, of at most --epsilon if that is given, from the fit that was found."""
    fit, target = {**request.fit, "progress": progress}, request.epsilon
    drawn = fit.pop("n_draws_released", None)
    if target is None:
        given = mechanism
    else:
        given = mechanism.at_epsilon(target, drawn, request.n_synthetic)
    if target is None or given is not None:
        return given.release(  # type: ignore[no-any-return]
            df, n_synthetic=request.n_synthetic, n_draws_released=drawn, **fit
        )
    draws = drawn or request.n_synthetic
    refits = fit.pop("refits", REFITS)
    solution = meet_epsilon(
        mechanism, df, target_epsilon=target, n_draws_released=draws, refits=refits, **fit
    )
    note(f"--epsilon: {len(solution.tried)} settings tried")
    release = solution.mechanism.release_from(
        solution.session, n_synthetic=request.n_synthetic, n_draws_released=draws, refits=refits
    )
    if release.charge.epsilon > target:
        raise BudgetExceeded(
            f"a release must cost at most --epsilon {target:g}: refits without single "
            f"records raised it to {release.charge.epsilon:g}; give a smaller one"
        )
    return release


def _check_columns(df: pd.DataFrame, mechanism: Mechanism, decisions: Decisions) -> None:
    """Columns that need a decision are named, and refused without one, before any fit."""
    replaced = mechanism.synthesizes
    if not set(replaced) <= set(df.columns):
        return  # what is wrong is said when the model is bound
    exposed = {**exposed_columns(df, replaced), **mechanism.undecided}
    exposed = {name: reason for name, reason in exposed.items() if name in df.columns}
    check_decided(exposed, decisions, map(str, df.columns), replaced)
    for name, reason in exposed.items():
        if name in decisions.keep:
            note(f"--keep {name}: it is published unchanged, although {reason}")

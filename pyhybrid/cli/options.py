"""Options of commands, from their docstrings, and what they name: models, mechanisms, designs."""

from __future__ import annotations

import inspect
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pandas as pd
import typer

from pyhybrid.cli.console import note
from pyhybrid.cli.tables import read_by_column, text_among_numbers
from pyhybrid.core.checks import check_choice, did_you_mean, number_of
from pyhybrid.core.errors import InvalidInput
from pyhybrid.engines import SamplerSettings
from pyhybrid.fitting.reweighting import Reweighting
from pyhybrid.mechanisms import (
    MECHANISMS,
    MODEL_FREE,
    Censored,
    NoisyMarginals,
    PerturbedHistogram,
    PseudoPosteriorMechanism,
)
from pyhybrid.mechanisms.censored.calibration import Calibration
from pyhybrid.mechanisms.mechanism import Mechanism
from pyhybrid.mechanisms.sequential import SequentialSynthesis
from pyhybrid.models import (
    MODELS,
    DefaultModel,
    Model,
    StanModel,
    default_name,
)
from pyhybrid.models.default_model import in_units
from pyhybrid.models.families.published import PROGRAMS
from pyhybrid.models.formula.terms import sides_of
from pyhybrid.models.registry import chosen_model, declared_by, name_and_settings

OWN_PROGRAM = "stan"
MODEL_NAMES = (*MODELS, OWN_PROGRAM)
"""What --model can name."""

_SHARED = f"""
data (argument): Confidential records, .csv or .parquet.
real (argument): Confidential records, .csv or .parquet.
synthetic (argument): Synthetic sets from anywhere, or the folder of a release.
formula: As in R, e.g. 'visits ~ age + region'.
model: {", ".join(MODEL_NAMES[:-1])} or {MODEL_NAMES[-1]}; with options as NAME:key=value,..., e.g.
    beta:lower=0,upper=100, bernoulli:levels=no+yes, lognormal:zeros=true, any with missing=true,
    or a Stan program of your own: stan:program=my.stan, whose charges are local. Give it once,
    or once for each formula.
    [default: by the column's values; a note names it]
accounting: Accounting of epsilon: lipschitz, range, gaussian. [default: lipschitz]
delta: Probability by which exp(epsilon) may be exceeded, below 1 / n. By Gaussian accounting
    [default: 1e-6; from a million records on below 1 / 10 n]. In noisy marginals, of Gaussian noise
    [default: none; of a whole table 1e-6, below 1 / 10 n; 0 for pure epsilon].
one_draw: Simulate all sets from one draw, at the cost of one.
engine: auto, cmdstan, embedded or rstan.
seed: For tests and papers; a release seed must stay secret.
chains: Number of chains. [default: 4]
warmup: Warm-up iterations of each chain. [default: 1000]
draws: Draws kept of each chain. [default: 1000]
adapt_delta: Target acceptance rate. [default: 0.9]
on_not_converged: What to do with chains that do not converge: raise or warn.
workers: Parallel processes; the results do not depend on their number.
file_format (--format): csv or parquet. [default: that of DATA]
overwrite: Replace what --out holds.
drop: Columns to leave out, separated by commas; repeatable.
keep: Columns to publish although they look risky, separated by commas; repeatable.
relation: Neighbors: remove or replace a record.
holds_no_released_record: Confirms that the reference holds none of the records to be released;
    without it nothing is strict.
versus: A set of another synthetic version, to compare with; repeat for each set.
json_out (--json): Write the numbers as JSON to this file; - for standard output.
html: Write a report with figures to this HTML file.
"""
"""Arguments and options that several commands share, in the form of their docstrings."""

Command = TypeVar("Command", bound=Callable[..., Any])
_ROW = re.compile(r"^(\w+)(?: \((.+?)\))?: (.*(?:\n[ ]{4,}.*)*)", re.MULTILINE)


def options(command: Command) -> Command:
    """A command whose docstring describes its options, after the line ``Options:``.

    A row is ``name: help``; ``name (--other): help`` names the option otherwise; ``name
    (argument):`` or ``name (METAVAR):`` is an argument. Parameters without a row are shared ones.
    """
    said, _, own = inspect.getdoc(command).partition("\n\nOptions:\n")  # type: ignore[union-attr]
    rows = {name: (how, help_) for name, how, help_ in _ROW.findall(f"{_SHARED}{own}")}
    hints = typing.get_type_hints(command)
    for name, parameter in inspect.signature(command).parameters.items():
        if hints[name] is typer.Context:
            continue
        how, help_ = rows[name]
        text = " ".join(help_.split()).replace("[default", "\\[default")
        if how and not how.startswith("--"):
            shown = None if how == "argument" else how
            described: Any = typer.Argument(help=text, metavar=shown)
        else:  # a truth value that is False is a flag without a "no"
            plain = how or f"--{name.replace('_', '-')}"
            named = how or parameter.default is False or len(name) == 1
            described = typer.Option(*([plain] if named else []), help=text)
        command.__annotations__[name] = Annotated[hints[name], described]
    command.__doc__ = said
    return command


def listed(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_of(given: Sequence[str] | None, columns: Iterable[Any]) -> list[str]:
    """Names of columns from an option that may be repeated: each one name, or several with commas
    between."""
    known = set(map(str, columns))
    parts = ([text] if text in known else listed(text) for text in given or ())
    return list(dict.fromkeys(itertools.chain.from_iterable(parts)))


def check_once(given: Sequence[str], what: str) -> None:
    """Refuse what is named twice."""
    twice = [name for name in given if list(given).count(name) > 1]
    if twice:
        raise InvalidInput(f"each {what} must be given once: {twice[0]!r} is there twice")


def build_model(text: Model | str | None, formula: str) -> Model:
    """Return the model that `text` names, ``NAME`` or ``NAME:key=value,...``, for `formula`.

    Without a name it is for counts, or refuses; see `pyhybrid.models.DefaultModel`.

    E.g. ``"beta:lower=0,upper=100"``, ``"lognormal:zeros=true,missing=true,decimals=0"``, or
    ``"stan:program=own.stan,predict=y_rep"`` for a program of the user's own, which gets the
    formula's design matrix; errors as in `build_mechanism`.
    """
    if not isinstance(text, str):
        return text or DefaultModel(formula)
    name, given = named(text)
    if name == OWN_PROGRAM:
        return _stan_model(given, formula)
    cls: Any = MODELS[check_choice(name, "--model", MODEL_NAMES)]
    model: Model = cls(formula, **values_of(f"--model {name}", cls, given, {"formula"}))
    return model


def _stan_model(given: dict[str, Any], formula: str) -> StanModel:
    missing = [name for name in ("program", "predict") if not given.get(name)]
    if missing:
        raise InvalidInput(
            f"--model stan needs {missing[0]}, e.g. stan:program=own.stan,predict=y_rep"
        )
    taken = {"outcome", "formula", "data", "predictors"}  # of the formula, or functions
    values = values_of("--model stan", StanModel, given, taken)
    outcome, _ = sides_of(formula)
    return StanModel(values.pop("program"), outcome=outcome, formula=formula, **values)


def build_mechanism(
    text: str, model: Model, options: dict[str, Any] | None = None
) -> PseudoPosteriorMechanism:
    """Return the mechanism that `text` names: ``NAME`` or ``NAME:key=value,key=value``, where
    several values of a key are joined by ``+`` (``"count:pattern=sex+region"``). `options` are
    values from options of their own; None keeps the default."""
    name, own = named(text)
    cls: Any = MECHANISMS[check_choice(name, "--mechanism", MECHANISMS)]
    given = {k: v for k, v in (options or {}).items() if v is not None}
    twice = sorted(given.keys() & own.keys())
    if twice:
        option = twice[0].replace("_", "-")
        raise InvalidInput(f"--{option} must be given once: it is also in --mechanism {text}")
    given |= own
    if isinstance(given.get("inner"), str):
        inner = check_choice(given["inner"], "inner", MECHANISMS)  # by its name alone
        shared = {name: given[name] for name in ("unit", "design") if name in given}
        given["inner"] = MECHANISMS[inner](model, **shared)
    mechanism: PseudoPosteriorMechanism = cls(
        model, **values_of(f"--mechanism {name}", cls, given, {"model"})
    )
    return mechanism


def chosen_mechanism(
    texts: Sequence[str],
    models: Sequence[Model | str | None],
    formulas: Sequence[str],
    calibration: Path | None,
    options: dict[str, Any],
    *,
    allow_unlike: bool = False,
    holds_no_released_record: bool = False,
) -> Mechanism:
    """The mechanism of the options of `synthesize`: named, or held by a calibration; a sequence if
    there are several formulas, of unlike charges, too, if `allow_unlike`."""
    if calibration is not None:
        said = True if holds_no_released_record else None
        return _calibrated(texts, models, formulas, calibration, options, said)
    if not formulas:
        raise InvalidInput("--formula must be given, e.g. --formula 'visits ~ age + region'")
    for name, given in (("--mechanism", texts), ("--model", models)):
        if len(given) > 1 and len(given) != len(formulas):
            raise InvalidInput(
                f"{name} must be given once, or once per --formula: found {len(given)} for "
                f"{number_of(len(formulas), 'formula')}"
            )
    if len(formulas) == 1:
        return _of_formula(_nth(texts, 0), _nth(models, 0), formulas[0], options)
    steps: list[Any] = [
        _of_formula(_nth(texts, place), _nth(models, place), formula, options)
        for place, formula in enumerate(formulas)
    ]
    return SequentialSynthesis(steps, allow_unlike=allow_unlike)


OF_PAPERS = "lipschitz"  # the mechanism, if none is named, of a release that may be local


def with_target(texts: Sequence[str], target: float | None) -> list[str]:
    """Names of mechanisms, with a first value of what --epsilon will set where one must be given:
    the one mechanism of one formula, with something to lower that is not given already."""
    texts = list(texts) or [OF_PAPERS]
    if target is None:
        return texts
    if len(texts) > 1:
        raise InvalidInput("--epsilon is for one mechanism: give --mechanism once")
    name, own = named(texts[0])
    settings = {"lipschitz": ("scale",), "count": ("scale",),
                "scalar": ("target_epsilon", "target_bound"), "truncated": ("cap", "epsilon"),
                "censored": ("epsilon", "cap"), "perturbed_histogram": ("epsilon",),
                "noisy_marginals": ("epsilon",)}  # fmt: skip
    check_choice(name, "--mechanism", [*MECHANISMS, *MODEL_FREE])
    if name not in settings:
        raise InvalidInput(
            f"--epsilon must be for a mechanism with a setting that lowers epsilon: {name} "
            f"has none; leave --epsilon out, or take {', '.join(settings)}"
        )
    twice = [key for key in settings[name] if key in own]
    if twice:
        raise InvalidInput(f"--epsilon finds {twice[0]}: leave it out of --mechanism")
    if settings[name] == ("scale",):
        return texts
    first = "target_epsilon" if name == "scalar" else "epsilon"
    return [_with_value(texts[0], first, target)]


def _with_value(text: str, key: str, value: float) -> str:
    return f"{text}{',' if named(text)[1] else ':'}{key}={value!r}"


_CAN_BE_STRICT = {"censored", "perturbed_histogram", "noisy_marginals"}


def mechanisms_asked_for(
    given: Mapping[str, Any], formulas: Sequence[str], target: float | None, options: dict[str, Any]
) -> list[str]:
    """Names of the mechanisms: those given, or what the kind of the charge asks for."""
    texts = given["mechanism"] or []
    if given["strict"] and given["local"]:
        raise InvalidInput("--strict and --local exclude each other")
    if given["reference"] is None:
        if given["calibration"] is not None:
            return texts
        if given["strict"] and not {named(text)[0] for text in texts} & _CAN_BE_STRICT:
            raise InvalidInput(
                "--strict needs what a strict charge rests on: --reference FILE, records that are "
                "not released, with --holds-no-released-record; --calibration FOLDER; or noisy "
                "counts, --mechanism noisy_marginals"
            )
        return with_target(texts, target)
    if given["calibration"] is not None or texts or given["target_epsilon"] is not None:
        raise InvalidInput(
            "--reference chooses the mechanism: give --epsilon, and leave --mechanism out"
        )
    if len(formulas) != 1:
        raise InvalidInput("--reference is for one --formula, or for a whole table")
    if given["unit"] is not None:
        raise InvalidInput(
            "--reference goes without --unit, as its center is for single records: leave out "
            "--formula, and give --rows-per-unit; or leave out --reference for a local release"
        )
    if not given["holds_no_released_record"] and not given["local"]:
        raise InvalidInput(
            "a strict release needs you to confirm, if it is true, that the reference holds none "
            "of the records to be released: --holds-no-released-record"
        )
    draws = 1 if given["one_draw"] else given["n_synthetic"]
    return [f"censored:epsilon={(1.0 if target is None else target) / draws!r}"]


def default_models(
    texts: Sequence[str], models: Sequence[str], formulas: Sequence[str], df: pd.DataFrame
) -> list[Model | str | None]:
    """Models, one for each formula, by what the outcomes' columns hold, which local charges allow;
    by their kinds alone where a charge may be strict; empty where models are named or no kind has
    one."""
    if models:
        return []
    chosen: list[Model | str | None] = []
    for place, formula in enumerate(formulas):
        mechanism = named(_nth(texts, place) or "")[0]
        if mechanism in MODEL_FREE:
            chosen.append(None)
        elif MECHANISMS.get(mechanism) is Censored:
            chosen.append(default_name(formula, df))
        else:
            chosen.append(default_model(formula, df))
    return chosen if any(chosen) else []


def reference_model(models: Sequence[str], formula: str, reference: pd.DataFrame) -> Model:
    """The model named, with what a reference declares, or the one that is chosen by it."""
    try:
        if not models:
            return default_model(formula, reference, of_reference=True)
        return declared_by(build_model(models[0], formula), formula, reference)
    except InvalidInput as error:
        raise InvalidInput(f"--reference: {error}") from None


def default_model(formula: str, df: pd.DataFrame, *, of_reference: bool = False) -> Model:
    """The model that is chosen without --model, with a note that says which, but for counts and for
    what the column's type alone tells."""
    outcome, _ = sides_of(formula)
    if outcome in df and text_among_numbers(df[outcome]):
        raise InvalidInput(
            f"outcome {outcome!r} must be numbers: some cells are text; mend these, or "
            "take a model of levels: --model categorical"
        )
    scaled = in_units(formula, df)
    if scaled != formula:
        note(f"predictors are fitted in units of about their spread: {scaled}")
    model = chosen_model(scaled, df, of_reference=of_reference)
    own, settings = name_and_settings(model)
    said = [f"{block}=true" for block in ("zeros", "missing") if block in settings]
    own = ":".join([own, ",".join(said)]) if said else own
    if own != (default_name(formula, df) or "negative_binomial"):
        note(f"model chosen by the column's values: {own}; --model chooses another")
    return model


_Named = TypeVar("_Named")


def _nth(given: Sequence[_Named], place: int) -> _Named | None:
    """What was given for one of several formulas, or for all of them."""
    return given[place if len(given) > 1 else 0] if given else None


def _of_formula(
    text: str | None, model: Model | str | None, formula: str, options: dict[str, Any]
) -> PseudoPosteriorMechanism | PerturbedHistogram | NoisyMarginals:
    text = text or OF_PAPERS
    if named(text)[0] in MODEL_FREE:
        if model is not None:
            raise InvalidInput(f"--mechanism {named(text)[0]} fits no model: give no --model")
        return _model_free(text, formula, options)
    check_choice(named(text)[0], "--mechanism", [*MECHANISMS, *MODEL_FREE])
    return build_mechanism(text, build_model(model, formula), options)


def _calibrated(
    texts: Sequence[str],
    models: Sequence[Model | str | None],
    formulas: Sequence[str],
    calibration: Path,
    options: dict[str, Any],
    said: bool | None,
) -> PseudoPosteriorMechanism:
    own = {"formula": formulas, "model": models, "mechanism": texts}
    given = [f"--{key.replace('_', '-')}" for key, value in own.items() if value]
    given += [f"--{key.replace('_', '-')}" for key, v in options.items() if v is not None]
    if given:
        raise InvalidInput(f"--calibration holds model, weights and cap: give no {given[0]}")
    made = Calibration.load(calibration, holds_no_released_record=said)
    return Censored(calibration=made, relation=made.relation)


def _model_free(
    text: str, formula: str, options: dict[str, Any]
) -> PerturbedHistogram | NoisyMarginals:
    """A mechanism without chains; "auto" is what its own refusal of missing bounds explains."""
    name, own = named(text)
    cls = MODEL_FREE[name]
    given = {k: v for k, v in {**options, **own}.items() if v is not None and v != "auto"}
    public = {"domain": read_by_column(given.pop("domain"), "domain")} if "domain" in given else {}
    taken = {"column", "domain", "given", "predictors"}  # of the formula, or of a file
    return cls.for_formula(formula, **public, **values_of(f"--mechanism {name}", cls, given, taken))


def with_program(mechanism: Any, program: str | None) -> Any:
    """The mechanism with another Stan program of its model, or of the models of its steps."""
    if program is None:
        return mechanism
    check_choice(program, "--program", PROGRAMS)
    if isinstance(mechanism, SequentialSynthesis):
        steps = [with_program(step, program) for step in mechanism.mechanisms]
        return replace(mechanism, mechanisms=steps)
    model: Any = getattr(mechanism, "model", None)
    if not hasattr(model, "program") or not hasattr(model, "program_name"):
        raise InvalidInput(
            "--program is for poisson, negative_binomial, beta, beta_regression and mixture, which "
            f"the papers print or describe: {mechanism.name if model is None else model.name} has "
            "none"
        )
    own = {"model": replace(model, program=program)}
    if getattr(mechanism, "inner", None) is not None:
        own["inner"] = with_program(mechanism.inner, program)
    return replace(mechanism, **own)


def reweighting_of(reweight: bool, k: float | None, single_step: bool) -> bool | Reweighting | None:
    """What --reweight, --k and --single-step say of re-weighting; None keeps the default."""
    if not reweight:
        if k is not None or single_step:
            raise InvalidInput("--k and --single-step go with --reweight")
        return None
    plan = Reweighting.published() if single_step else Reweighting()
    return plan if k is None else replace(plan, k=k)


def _number_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def sampler_settings(
    chains: int | None, warmup: int | None, draws: int | None, adapt_delta: float | None
) -> SamplerSettings | None:
    """Sampler settings, None for the default; None if nothing is given."""
    given = {"chains": chains, "warmup": warmup, "draws": draws, "adapt_delta": adapt_delta}
    settings: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    return SamplerSettings(**settings) if settings else None


_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def named(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of ``NAME:key=value,key=value``."""
    name, _, rest = text.partition(":")
    parts = (part.partition("=") for part in filter(None, rest.split(",")))
    return name.strip(), {key.strip(): value.strip() for key, _, value in parts}


def values_of(what: str, cls: type, given: dict[str, Any], positional: set[str]) -> dict[str, Any]:
    """Options converted to the types of the fields of `cls`."""
    taken = {f.name: f for f in fields(cls) if f.name not in positional}
    types_of = {name: _type_of(cls, name) for name in taken}
    values = {}
    for key, value in given.items():
        if key not in types_of:
            known = ", ".join(sorted(types_of)) or "none"
            option = key.replace("_", "-")
            raise InvalidInput(
                f"{what} takes no --{option}{did_you_mean(key, types_of)}; its options are {known}"
            )
        if taken[key].metadata.get("confidential") and isinstance(value, str):
            values[key] = _from_file(value, key)
        else:
            values[key] = converted(value, types_of[key], key)
    return values


def _from_file(value: str, key: str) -> float:
    """The number in FILE, given as ``@FILE``: no confidential one must be on a command line."""
    if not value.startswith("@"):
        raise InvalidInput(
            f"{key} is confidential, and the list of processes shows a command line: write it to a "
            f"file that only you can read, and give {key}=@FILE"
        )
    try:
        return float(Path(value[1:]).read_text(encoding="utf-8"))
    except OSError:
        raise InvalidInput(f"{key} must be in a readable file: {value[1:]} is none") from None
    except ValueError:  # UnicodeDecodeError, too
        raise InvalidInput(f"{key}: {value[1:]} must hold one number and nothing else") from None


def _type_of(cls: type, name: str) -> Any:
    """The type that the text of a field is read as."""
    hint = typing.get_type_hints(cls)[name]
    if isinstance(hint, types.UnionType):
        hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
    return typing.get_origin(hint) or hint


def _levels(texts: list[str]) -> tuple[Any, ...]:
    """Numbers if all of them are, as they would be written; "01" is a text."""
    for kind in (int, float):
        try:
            if [str(kind(text)) for text in texts] == texts:
                return tuple(map(kind, texts))
        except ValueError:
            pass
    return tuple(texts)


def converted(value: Any, kind: Any, key: str) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    if kind is bool:
        return _TRUTH.get(value.lower(), value)
    if kind is tuple:
        return _levels(value.split("+")) if key == "levels" else tuple(value.split("+"))
    if kind not in (float, int):
        raise InvalidInput(f"{key} cannot be given on the command line")
    try:
        return kind(value)
    except ValueError:
        what = "a number" if kind is float else "a whole number"
        raise InvalidInput(f"{key} must be {what}: found {value!r}") from None


def others_given(context: typer.Context, taken: Sequence[str]) -> list[str]:
    """Options given that are not `taken`: whatever is not listed, so that a new option is not
    ignored in silence."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in taken and parameter.name in context.params
        if (source := context.get_parameter_source(parameter.name)) is not None
        and source.name != "DEFAULT"
    ]

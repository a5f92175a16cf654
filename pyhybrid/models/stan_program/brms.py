"""A brms model as a `ComposedModel`: its generated program, taken apart.

In a brms program the records are vectors of length N, its terms are in a loop over them, weighted,
and the rest of the model block is the prior. One record is the same code with N = 1: declarations
of length N become a record's entries of length 1, the code up to the loop and the term in it become
log_lik, and a replicate is drawn from the same distribution at the same linear predictor. Weights
are pyhybrid's. A program that cannot be taken apart so stays whole (`StanModel`), its weights where
brms has them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.core.errors import EngineUnavailable, InvalidInput
from pyhybrid.engines.embedded import check_compiles
from pyhybrid.models.stan_program.composed_model import ComposedModel
from pyhybrid.models.stan_program.printed import modern_arrays
from pyhybrid.models.stan_program.stan_model import StanModel
from pyhybrid.models.stan_program.stan_text import (
    WHOLE_PROGRAM,
    Declared,
    Token,
    arguments,
    blocks_of,
    closing,
    declarations,
    names_in,
    tokens_of,
    without_index,
    written,
)

_LIKELIHOOD = re.compile(
    r"if \(!prior_only\) \{(?P<before>.*?)"
    r"for \(n in 1:N\) \{\s*target \+= weights\[n\] \* \((?P<term>"
    r"\s*(?P<name>\w+)_(?P<kind>lpdf|lpmf)\(Y\[n\]\s*\|\s*(?P<rest>.*?)\)\s*)\);\s*\}",
    re.DOTALL,
)
_LOOP = re.compile(r"for \(n in 1:N\) \{\s*target \+= weights\[n\] \* \(.*?\);\s*\}", re.DOTALL)
_AS_THEY_ARE = ("functions", "parameters", "transformed parameters", "generated quantities")
_CENTERING = (
    "intKc=K-1;matrix[N,Kc]Xc;vector[Kc]means_X;for(iin2:K){means_X[i-1]=mean(X[,i]);"
    "Xc[,i-1]=X[,i]-means_X[i-1];}"
)
_IF = ["if", "(", "!", "prior_only", ")", "{"]
_OF_WHOLE = frozenset({"predict", "public", "data", "if_unchecked", "log_lik_weighted"})
_OURS = ("Y", "weights")  # entries of the data that pyhybrid puts in
_HOW = (
    "make it with brms::make_stancode(y | weights(w) ~ ..., data) and a column w of ones, and hand "
    "over make_standata of the same"
)


def from_brms(
    stancode: str | Path,
    standata: Mapping[str, Any],
    *,
    outcome: str,
    predictors: tuple[str, ...] = (),
    decimals: int | None = None,
    **options: Any,
) -> ComposedModel | StanModel:
    """A brms model with weights as a synthesizer, under every mechanism.

    Parameters
    ----------
    stancode : str or path
        What ``brms::make_stancode`` gives for a formula with ``y | weights(w)``, w a column of
        ones. Old array declarations (brms before 2.19) are rewritten.
    standata : mapping
        What ``brms::make_standata`` gives, for the rows of the table in their order.
    outcome : str
        Column that replicates replace.
    predictors : tuple of str
        Columns that the design in `standata` was made of. It is handed over as it is and counts as
        public; in a sequence they must not be synthesized before.
    decimals : int, optional
        See `pyhybrid.StanModel`; 0 for discrete outcomes if omitted.
    **options
        Further ones of `pyhybrid.ComposedModel`, such as `by_record`; or of `pyhybrid.StanModel`,
        such as `predict` for families whose draws Stan does not have under the name of their
        density: the program then stays whole, and its charges local.

    Returns
    -------
    ComposedModel
        Or a `StanModel` if the program cannot be taken apart by record; a warning says why.

    Notes
    -----
    brms centers predictors by their means, and its default priors read the outcome's median and
    spread: functions of all records, which a charge does not cover. Set priors by hand
    (``prior = ...``); with ``bf(..., center = FALSE)`` and such priors give ``by_record=True`` for
    a strict charge: the design in `standata` is then a function of its own record.

    Raises
    ------
    InvalidInput
        For a program without weights, weights other than 1 (pyhybrid's own take their place, and
        terms would be weighted twice), a likelihood that is not one term for each record, and all
        that `StanModel` refuses.

    Examples
    --------
    >>> model = ph.models.from_brms("visits.stan", standata, outcome="visits")
    >>> ph.LipschitzWeighted(model).release(df)
    """
    text = stancode.read_text(encoding="utf-8") if isinstance(stancode, Path) else str(stancode)
    if "{" not in text:
        text = Path(text).read_text(encoding="utf-8")
    _check_weights(text, standata)
    text = modern_arrays(text)
    likelihood = _likelihood(text)
    discrete = likelihood["kind"] == "lpmf"
    given: dict[str, Any] = {
        "outcome": outcome,
        "predictors": predictors,
        "density_above_one": not discrete,
        "decimals": 0 if discrete and decimals is None else decimals,
        **options,
    }
    data = {name: np.asarray(values) for name, values in standata.items() if name not in _OURS}
    if not _OF_WHOLE & options.keys():
        try:
            return _composed(text, likelihood, data, given)
        except _NotByRecord as error:
            warnings.warn(
                f"the brms program stays whole, and its charges local: {error}", stacklevel=2
            )
    return StanModel(
        _with_replicates(text, likelihood, predicts="predict" not in options),
        data={name: _value(values) for name, values in data.items()},
        **{"predict": "y_rep", "public": tuple(sorted(data)), **given},
    )


def _check_weights(text: str, standata: Mapping[str, Any]) -> None:
    missing = [name for name in ("N", "Y") if name not in standata]
    if missing:
        raise InvalidInput(f"standata must be of brms::make_standata: it has no {missing[0]}")
    if not re.search(r"\bweights\b", text) or "weights" not in standata:
        raise InvalidInput(f"a brms model must have weights: this one has none; {_HOW}")
    if not (np.asarray(standata["weights"], dtype=np.float64) == 1).all():
        raise InvalidInput(
            "weights of the brms model must all be 1: pyhybrid's take their place, as terms must "
            f"not be weighted twice; {_HOW}"
        )


def _likelihood(text: str) -> re.Match[str]:
    """The loop over the records, the density in it, and what is before it."""
    n_loops, likelihood = len(_LOOP.findall(text)), _LIKELIHOOD.search(text)
    if n_loops != 1 or likelihood is None:
        raise InvalidInput(
            "a brms model must have one term for each record, target += weights[n] * (density(Y[n] "
            f"| ...)): found {n_loops} such loops; multivariate, truncated and mixture models "
            "need a program of their own (ph.StanModel)"
        )
    return likelihood


def _value(values: Any) -> Any:
    return values.item() if values.ndim == 0 else values


def _with_replicates(text: str, likelihood: re.Match[str], *, predicts: bool) -> str:
    """The program with log_lik, and y_rep, at the end of its generated quantities."""
    # Stan's draws have the name of the density without _lpdf; a replicate comes from the same one.
    draw = f"y_rep[n] = {likelihood['name']}_rng({likelihood['rest']});"
    added = (
        f"  vector[N] log_lik;\n{'  vector[N] y_rep;' if predicts else ''}\n"
        f"  {{\n{likelihood['before']}"
        f"for (n in 1:N) {{\n      log_lik[n] = {likelihood['term']};\n"
        f"      {draw if predicts else ''}\n    }}\n  }}\n"
    )
    if "generated quantities" in text:
        whole = text[: text.rstrip().rindex("}")] + added + "}\n"
    else:
        whole = f"{text}\ngenerated quantities {{\n{added}}}\n"
    return re.sub(r"\bY\b", "y", whole)


class _NotByRecord(Exception):
    """Why a program cannot be taken apart. Never leaves this module."""


def _composed(
    text: str, likelihood: re.Match[str], standata: Mapping[str, Any], given: dict[str, Any]
) -> ComposedModel:
    """The program taken apart, with a design that is centered as brms does it."""
    blocks = blocks_of(_tokens(text), "brms", WHOLE_PROGRAM)
    if _tokens(text[likelihood.end() :])[0].text != "}":
        raise _NotByRecord("its likelihood goes on after the loop over the records")
    data = declarations(blocks["data"], only=True, where="data")
    values = dict(standata)
    centered = written(blocks.get("transformed data", ()))
    if centered:
        data = (*data, *_centered(centered, values))
    used = names_in(_tokens(likelihood["before"] + likelihood["term"]))
    record = [
        variable for variable in data if _first_size(variable) == "N" and variable.name in used
    ]
    constants = [
        variable for variable in data if _first_size(variable) != "N" and variable.name != "N"
    ]
    try:
        model = ComposedModel(
            _program_of(blocks, likelihood, record, constants),
            columns={"Y": given["outcome"]},
            data={variable.name: _value(values[variable.name]) for variable in constants},
            rows={
                variable.name: values[variable.name]
                for variable in record
                if variable.name not in _OURS
            },
            **given,
        )
        check_compiles(model.text.program())
    except (InvalidInput, KeyError) as error:
        raise _NotByRecord(" ".join(str(error).split())[:900]) from None
    except EngineUnavailable:
        pass
    if centered and given.get("by_record"):
        raise InvalidInput(
            "by_record=True must be of a design that is not centered: this brms program centers "
            "its columns by their means over all records; make it with bf(..., center = FALSE)"
        )
    return model


def _tokens(text: str) -> tuple[Token, ...]:
    return tokens_of(text, "brms", lenient=True)


def _first_size(variable: Declared) -> str:
    """The first size of a declaration; "" of a single number."""
    sizes = arguments(variable.array or variable.sizes)
    return written(sizes[0]) if sizes else ""


def _centered(text: str, values: dict[str, Any]) -> tuple[Declared, ...]:
    """Variables of transformed data, if these are the centering of X and nothing else."""
    if "".join(text.split()) != _CENTERING:
        raise _NotByRecord("its transformed data are other than the centering of X")
    X = values["X"] = np.asarray(values["X"], dtype=np.float64)
    values |= {"Kc": np.asarray(X.shape[1] - 1), "means_X": X[:, 1:].mean(axis=0)}
    values["Xc"] = X[:, 1:] - values["means_X"]
    declared = _tokens("int Kc; matrix[N, Kc] Xc; vector[Kc] means_X;")
    return declarations(declared, only=True, where="data")


def _program_of(
    blocks: Mapping[str, tuple[Token, ...]],
    likelihood: re.Match[str],
    record: Sequence[Declared],
    constants: Sequence[Declared],
) -> str:
    """The text of the composed program: the code of all records, for one; what is read as ``Y[n]``
    alone is one number."""
    inner = _tokens(likelihood["before"] + likelihood["term"])
    single = {
        variable.name
        for variable in record
        if variable.dims == 1 and _read_by_n(inner, variable.name)
    }

    def of_one(part: str) -> str:
        return written(without_index(_tokens(likelihood[part]), single, "n"))

    model = blocks["model"]
    texts = [token.text for token in model]
    start = next(k for k in range(len(texts)) if texts[k : k + len(_IF)] == _IF)
    end = closing(model, start + len(_IF) - 1)
    before, draw = of_one("before"), f"{likelihood['name']}_rng({of_one('rest')})"
    body = "int N = 1;\n{}\n{{ int n = 1; return {}; }}"
    parts = {
        "data": "\n".join(variable.text() for variable in constants),
        "record": "\n".join(_of_one(variable, variable.name in single) for variable in record),
        "prior": written((*model[:start], *model[end + 1 :])),
        "log_lik": body.format(before, of_one("term")),
        "replicate": body.format(before, draw),
        **{name: written(tokens) for name, tokens in blocks.items() if name in _AS_THEY_ARE},
    }
    return "\n".join(f"{name} {{\n{text}\n}}" for name, text in parts.items())


def _read_by_n(tokens: Sequence[Token], name: str) -> bool:
    """True if a variable is read as ``name[n]`` and in no other way."""
    places = [k for k, token in enumerate(tokens) if token.text == name]
    return all([t.text for t in tokens[k + 1 : k + 4]] == ["[", "n", "]"] for k in places)


def _of_one(variable: Declared, single: bool) -> str:
    """The declaration of one number, or with 1 in the place of N."""
    if single:
        return replace(variable, of="int" if variable.is_int else "real", sizes=(), array=()).text()
    sizes, array = (
        tuple(replace(token, text="1") if token.text == "N" else token for token in tokens)
        for tokens in (variable.sizes, variable.array)
    )
    return replace(variable, sizes=sizes, array=array).text()

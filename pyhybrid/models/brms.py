"""A brms model as a `StanModel`: its generated program, with log_lik and replicates added.

brms multiplies each record's term by its weight itself (`target += weights[n] * (...)`). The terms
are read out of that loop: `log_lik` is the term without the weight, and a replicate is drawn from
the same distribution at the same linear predictor. Weights are put where brms has them, and nowhere
else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyhybrid.errors import InvalidInput
from pyhybrid.models.stan_model import StanModel

__all__ = ["from_brms"]

_LOOP = re.compile(
    r"for \(n in 1:N\) \{\s*target \+= weights\[n\] \* \((?P<term>.*?)\);\s*\}", re.DOTALL
)
_TERM = re.compile(r"(?P<name>\w+)_(?P<kind>lpdf|lpmf)\(Y\[n\]\s*\|\s*(?P<rest>.*)\)", re.DOTALL)
_LIKELIHOOD = re.compile(r"if \(!prior_only\) \{")
_OLD_ARRAY = re.compile(
    r"^(\s*)((?:int|real|vector|matrix)(?:<[^>\n]*>)?(?:\[[^\]\n]*\])?)\s+(\w+)\[([^\]\n]+)\]\s*;",
    re.MULTILINE,
)
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
) -> StanModel:
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
        Further ones of `pyhybrid.StanModel`, such as `predict` for families whose draws Stan does
        not have under the name of their density.

    Notes
    -----
    brms centers predictors by their means, and its default priors read the outcome's median and
    spread: functions of all records, which a charge does not cover. Set priors by hand
    (``prior = ...``); with ``bf(..., center = FALSE)`` and such priors give ``by_record=True`` for
    a strict charge.

    Raises
    ------
    InvalidInput
        For a program without weights, weights other than 1 (pyhybrid's own take their place, and
        terms would be weighted twice), a likelihood that is not one term for each record, and all
        that `StanModel` refuses.

    Examples
    --------
    >>> model = ph.from_brms("visits.stan", standata, outcome="visits")
    >>> ph.LipschitzWeighted(model).release(df)
    """
    text = stancode.read_text(encoding="utf-8") if isinstance(stancode, Path) else str(stancode)
    if "{" not in text:
        text = Path(text).read_text(encoding="utf-8")
    _check_weights(text, standata)
    loop, term = _likelihood(text)
    discrete = term.group("kind") == "lpmf"
    own = {name: np.asarray(values) for name, values in standata.items() if name not in _OURS}
    given: dict[str, Any] = {"predict": "y_rep", "public": tuple(sorted(own))}
    made = StanModel(
        _current_arrays(_with_replicates(text, loop, term, "predict" not in options)),
        outcome=outcome,
        data={name: values.item() if values.ndim == 0 else values for name, values in own.items()},
        density_above_one=not discrete,
        decimals=0 if discrete and decimals is None else decimals,
        predictors=predictors,
        **{**given, **options},
    )
    return made


def _check_weights(text: str, standata: Mapping[str, Any]) -> None:
    missing = [name for name in ("N", "Y") if name not in standata]
    if missing:
        raise InvalidInput(f"standata must be of brms::make_standata: it has no {missing[0]}")
    if not re.search(r"\bweights\b", text) or "weights" not in standata:
        raise InvalidInput(f"a brms model must have weights: this one has none; {_HOW}")
    own = np.asarray(standata["weights"], dtype=np.float64)
    if not (own == 1).all():
        raise InvalidInput(
            "weights of the brms model must all be 1: pyhybrid's take their place, as terms must "
            f"not be weighted twice; {_HOW}"
        )


def _likelihood(text: str) -> tuple[re.Match[str], re.Match[str]]:
    """The loop over the records, and the density in it."""
    loops = list(_LOOP.finditer(text))
    terms = [_TERM.fullmatch(loop.group("term").strip()) for loop in loops]
    if len(loops) != 1 or terms[0] is None or not _LIKELIHOOD.search(text):
        raise InvalidInput(
            "a brms model must have one term for each record, target += weights[n] * (density(Y[n] "
            f"| ...)): found {len(loops)} such loops; multivariate, truncated and mixture models "
            "need a program of their own (ph.StanModel)"
        )
    return loops[0], terms[0]


def _with_replicates(text: str, loop: re.Match[str], term: re.Match[str], predicts: bool) -> str:
    """The program with log_lik, and y_rep, at the end of its generated quantities."""
    start = _LIKELIHOOD.search(text)
    assert start is not None
    before = text[start.end() : loop.start()]
    # Stan's draws have the name of the density without _lpdf; a replicate comes from the same one.
    draw = f"y_rep[n] = {term.group('name')}_rng({term.group('rest')});"
    added = (
        f"  vector[N] log_lik;\n{'  vector[N] y_rep;' if predicts else ''}\n  {{\n{before}"
        f"for (n in 1:N) {{\n      log_lik[n] = {loop.group('term')};\n"
        f"      {draw if predicts else ''}\n    }}\n  }}\n"
    )
    end = text.rstrip().rindex("}")
    if "generated quantities" not in text:
        return re.sub(r"\bY\b", "y", f"{text}\ngenerated quantities {{\n{added}}}\n")
    whole = text[:end] + added + "}\n"
    return re.sub(r"\bY\b", "y", whole)


def _current_arrays(text: str) -> str:
    """``int y[N];`` as ``array[N] int y;``, which current Stan takes."""
    return _OLD_ARRAY.sub(r"\1array[\4] \2 \3;", text)

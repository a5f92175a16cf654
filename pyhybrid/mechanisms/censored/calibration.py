"""Frozen calibration: a weight that depends on its own record alone [C25] sec. 4.5.

From a reference database (an earlier year, a public file) it keeps posterior draws theta_s of the
unweighted model, the extremes of f over that database, scale, shift and cap. For a new database
f_i = max_s |log p(x_i | theta_s)| and alpha_i = clip(c (1 - r_i) + g, 0, 1),
r_i = clip((f_i - min f)/(max f - min f), 0, 1): a function of x_i alone, so that a censored release
is strict. The reference database itself is not protected by releases of the new one. Its owner must
confirm that it holds none of the records to be released. Without that nothing is strict, as weights
would depend on other records.

On disk it is a private folder with one readable file, calibration.json, whose numbers are exact.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    FloatArray,
    check_choice,
    check_count,
    check_finite,
    check_flag,
    check_positive,
)
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.engines import Draws
from pyhybrid.fitting.exact import frozen_draws
from pyhybrid.fitting.session import open_session
from pyhybrid.mechanisms.censored.center import REGION, Center, center_of_draws, with_frozen_rows
from pyhybrid.models.base import BoundModel, Model
from pyhybrid.models.columns.form import forms_of, read_in_forms
from pyhybrid.models.default_model import described_model
from pyhybrid.models.families.two_block import check_one_block
from pyhybrid.privacy.bounds import bounds_of
from pyhybrid.privacy.conversions import RELATIONS, STRICT, bound_of_epsilon
from pyhybrid.releases.folder import read_json, read_names, read_provenance
from pyhybrid.releases.release import Release
from pyhybrid.running.files import whole_only, write_folder

_VERSION = 2
_FEWEST_FOR_VARIANCE = 20  # draws
_EXAMPLE = "ph.calibrate(model, last_year, epsilon=1)"
_STORED = ("lowest", "highest", "scale", "shift", "cap", "relation", "censored", "program_sha256",
           "epsilon", "holds_no_released_record")  # fmt: skip
"""Fields that are stored as they are."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """How a new database differs from the reference, confidential: shares of records whose f lies
    outside the reference's extremes, and that meet the cap under the frozen draws, in the reference
    and now; and how far from theta_ref the new records' likelihood is largest, roughly, in units of
    the region: above 1 draws cannot get there. None without frozen rows, or with few draws."""

    share_outside: float
    censored_then: float
    censored_now: float
    distance: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Frozen reference of a censored mechanism; made by `calibrate`, whose arguments it keeps:
    reference draws of the likelihood's parameters, shape (1, S, *dims) each, extremes of f over the
    reference, nats, the share of its records that meet the cap, levels of categorical predictors in
    the order they are coded, columns of the design, the hash of the Stan program, and the center
    that the movement of a term is clipped from; None for [C25]'s censoring."""

    model: Model
    draws: Draws
    lowest: float
    highest: float
    scale: float
    shift: float
    cap: float
    relation: str
    censored: float
    levels: Mapping[str, list[Any]]
    columns: tuple[str, ...]
    program_sha256: str
    holds_no_released_record: bool = False
    center: Center | None = None
    epsilon: float | None = None

    def __repr__(self) -> str:
        return f"<Calibration of {self.model} with {self.draws.n_draws} draws, cap {self.cap:g}>"

    def describe(self) -> dict[str, Any]:
        """What of it may be published: the weight map and the cap, no draws and no extremes; the
        center if the reference is public."""
        shown = {"scale": self.scale, "shift": self.shift, "cap": self.cap,
                 "n_draws": self.draws.n_draws}  # fmt: skip
        if self.center is None:
            return shown
        center = self.center.as_dict() if self.center.public else "of the reference"
        return {**shown, "center": center}

    def check_fits(self, bound: BoundModel) -> None:
        """Raise InvalidInput if the program has changed, or a column is coded in another way."""
        if bound.program.sha256 != self.program_sha256:
            raise InvalidInput(
                f"calibration must be of the program that is run: stan/{bound.program.name}.stan "
                "has another hash; calibrate again"
            )
        levels = categorical_levels(bound)
        for column, known in self.levels.items():
            if column in bound.synthesized and column not in levels:
                continue  # declared: which of them some record has makes no difference
            if levels.get(column, []) != known:
                raise InvalidInput(
                    f"column {column!r} must have the levels of the calibration, {len(known)} in "
                    f"its order: found {len(levels.get(column, []))}, others or in another order; "
                    "make it categorical with those of the file calibration.json"
                )
        if bound.design_columns != self.columns:
            raise InvalidInput(
                f"predictors must be coded as in the calibration, in {len(self.columns)} columns: "
                f"found {len(bound.design_columns)}, others or in another order"
            )

    def lipschitz(self, bound: BoundModel) -> FloatArray:
        """f_i of the records of `bound`, which fits, under the frozen draws, shape (n,), nats."""
        self.check_fits(bound)
        try:
            return bounds_of(bound.log_lik(self.draws), np.ones(bound.n)).by_record
        except InvalidInput:  # a ValueError, too: what the model itself has to say
            raise
        except (ValueError, IndexError):
            raise InvalidInput(
                "the calibration's draws must have the shapes of the model's parameters: they have "
                "others; calibrate again"
            ) from None

    def weights(self, bound: BoundModel) -> FloatArray:
        """Weights of the records of `bound`, each a function of its own record, shape (n,)."""
        return self._weights_of(self.lipschitz(bound))

    def _weights_of(self, f: FloatArray) -> FloatArray:
        spread = self.highest - self.lowest
        risk = np.clip((f - self.lowest) / spread, 0, 1) if spread > 0 else np.zeros(f.size)
        return np.where(np.isfinite(f), np.clip(self.scale * (1 - risk) + self.shift, 0, 1), 0.0)

    def drift(self, bound: BoundModel) -> Drift:
        """Compare the records of `bound` with the reference."""
        f = self.lipschitz(bound)
        alpha = self._weights_of(f)
        weighted = alpha * np.where(alpha > 0, f, 0)
        if self.center is not None:
            moved = bound.log_lik(self.draws).less(self.center.log_lik(bound))
            weighted = bounds_of(moved, alpha).by_record
        outside = (f < self.lowest) | (f > self.highest)
        return Drift(
            share_outside=float(np.mean(outside)),
            censored_then=self.censored,
            censored_now=float(np.mean(weighted > self.cap)),
            distance=None if self.center is None else self._distance(bound, self.center),
        )

    def _distance(self, bound: Any, center: Center) -> float | None:
        """Over draws u ~ N(0, 1) of p parameters about theta_ref, whitened, the frozen rows' log-
        likelihood falls by k p / 2 on average, and their region ends at `region` / sqrt(k); that of
        the new records, b'u - r u'u / 2 with r = k n / n_frozen, has variance |b|^2 + r^2 p / 2 and
        is largest at b / r."""
        frozen, draws = center.frozen, self.draws
        if frozen is None or draws.n_draws < _FEWEST_FOR_VARIANCE:
            return None
        p = sum(values.size for values in center.parameters.values())
        left = bound.frozen_log_lik(frozen, draws).total(np.ones(frozen.n)).mean()
        k = 2 * max(frozen.count @ frozen.center - left, 0.0) / p
        r = k * bound.n / frozen.n
        spare = bound.log_lik(draws).total(np.ones(bound.n)).var() - r**2 * p / 2
        return float(np.sqrt(k * max(spare, 0.0)) / r / center.region) if r else None

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the calibration as a folder with a readable file (confidential, mode 0700)."""
        draws, center = self.draws, self.center
        frozen = None if center is None else center.frozen
        content = {
            "format": _VERSION,
            "model": self.model.describe(),
            **{name: getattr(self, name) for name in _STORED},
            "levels": dict(self.levels),
            "columns": self.columns,
            "draws": {name: draws.flat(name).tolist() for name in draws.variables},
            "provenance": draws.provenance and asdict(draws.provenance),
            "center": None if center is None else center.as_dict(),
            "frozen": frozen and {name: rows.tolist() for name, rows in vars(frozen).items()},
        }
        text = json.dumps(content, indent=2) + "\n"
        write_folder(folder, {"calibration.json": text}, overwrite=overwrite)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Calibration:
        """Read a calibration; raises InvalidInput if it is damaged."""
        with whole_only(folder, "calibration"):
            content: dict[str, Any] = {"holds_no_released_record": False}
            content |= read_json(Path(folder) / "calibration.json")
            if content["format"] != _VERSION:
                raise InvalidInput(
                    f"{folder} must hold a calibration of format {_VERSION}: found "
                    f"{content['format']}"
                )
            for name in ("lowest", "highest", "scale", "shift", "censored"):
                check_finite(content[name], name)
            check_positive(content["cap"], "cap")
            if content["epsilon"] is not None:
                content["epsilon"] = check_positive(content["epsilon"], "epsilon")
            check_choice(content["relation"], "relation", RELATIONS)
            check_flag(content["holds_no_released_record"], "holds_no_released_record")
            center = content["center"]
            return Calibration(
                model=described_model(content["model"]),
                draws=_read_draws(content["draws"], content["provenance"]),
                levels={name: list(levels) for name, levels in content["levels"].items()},
                columns=read_names(content, "columns"),
                center=None if center is None else Center.from_dict(center, content["frozen"]),
                **{name: content[name] for name in _STORED},
            )


@bar_in_notebooks
def calibrate(
    model: Model,
    reference_data: Any,
    *,
    epsilon: float | None = None,
    cap: float | None = None,
    relation: str = "remove",
    scale: float | None = None,
    shift: float | None = None,
    n_draws: int = 1000,
    center: bool | None = None,
    region: float = REGION,
    public: bool = False,
    holds_no_released_record: bool = False,
    **options: Any,
) -> Calibration:
    """Fit the unweighted model to a reference database and freeze what weights need.

    Parameters
    ----------
    model : Model
        A built-in model without data-dependent transforms.
    reference_data : DataFrame or Release
        Historical or public records, not those to be released, and not protected by releases of
        these. Or a strict release, as by `pyhybrid.ClippedScores`, whose first synthetic set is
        public; of the same records, its charge and that of the censored release add.
    epsilon, cap : float
        Of one released draw, or M itself; exactly one. See `pyhybrid.Censored`.
    relation : {"remove", "replace"}
    scale, shift : float, optional
        Of the weights. If both are omitted: with a center 0 and 1, so that all weights are 1 and
        the clip alone limits a record; without, 1 and 0.
    n_draws : int, default 1000
        Reference draws kept, at most the draws of the fit.
    center : bool, optional
        Keep theta_ref, so that the movement of a term is clipped and not its size: the same epsilon
        at a fraction of the loss in accuracy. If omitted, where the model's program takes a center
        (all built-in ones); False is [C25]'s censoring.
    region : float, default 10
        Half width, in posterior standard deviations of the reference, of the region about
        theta_ref that parameters stay in, on a grid or in chains; see
        `pyhybrid.mechanisms.censored.center`. A truth outside costs accuracy, not privacy.
    public : bool, default False
        True if the reference is public; then the statement shows theta_ref.
    holds_no_released_record : bool, default False
        True confirms that no record of the reference, or of its persons, is among those to be
        released. Without it no release is strict. Statement and checklist show it.
    **options
        seed, engine, settings, rule, on_not_converged, progress of
        `pyhybrid.fitting.session.FitOptions`.
    """
    if not hasattr(model, "bind"):
        kind = type(model).__name__
        raise InvalidInput(
            f"model must come first, then the reference's records: found {kind} first"
        )
    if (cap is None) == (epsilon is None):
        raise InvalidInput(f"exactly one of cap and epsilon must be given, e.g. {_EXAMPLE}")
    check_choice(relation, "relation", RELATIONS)
    check_positive(region, "region")
    check_flag(holds_no_released_record, "holds_no_released_record")
    records = reference_data
    if isinstance(records, Release):
        if records.charge.kind != STRICT:
            raise InvalidInput(
                "a release that a calibration is made from must be strict: this one is "
                f"{records.charge.kind}"
            )
        records, public, holds_no_released_record = records.synthetic[0], True, True
    bound = _bound_reference(model, records)
    centered = bound.takes_center if center is None else check_flag(center, "center")
    if centered and not bound.takes_center:
        raise InvalidInput(
            "center must be False for a model with program='published', which clips terms as "
            "they are: leave program= out for a center"
        )
    if epsilon is not None:
        # A term less its center has either sign, whatever the outcome.
        signs = centered or bound.density_above_one
        cap = bound_of_epsilon(epsilon, relation=relation, density_above_one=signs)
    usual = (0.0, 1.0) if centered and scale is None and shift is None else (1.0, 0.0)
    session = open_session(bound, **options)
    fit = session.unweighted()
    kept = _thinned(fit.draws, bound, check_count(n_draws, "n_draws"))
    finite = bounds_of(bound.log_lik(kept), np.ones(bound.n)).by_record
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        raise InvalidInput("the reference must have records with a finite log-likelihood")
    at = center_of_draws(bound, fit.draws, region=region, public=public) if centered else None
    made = Calibration(
        model=model,
        draws=kept,
        lowest=float(finite.min()),
        highest=float(finite.max()),
        scale=check_finite(usual[0] if scale is None else scale, "scale"),
        shift=check_finite(usual[1] if shift is None else shift, "shift"),
        cap=check_positive(cap, "cap"),
        relation=relation,
        censored=0.0,
        levels=categorical_levels(bound),
        columns=bound.design_columns,
        program_sha256=bound.program.sha256,
        holds_no_released_record=holds_no_released_record,
        center=at,
        epsilon=epsilon,
    )
    if made.center is not None:
        rng = session.streams.generator("frozen rows of the reference")
        made = replace(made, center=with_frozen_rows(made.center, bound, made.weights(bound), rng))
    return replace(made, censored=made.drift(bound).censored_now)


def _bound_reference(model: Model, records: pd.DataFrame) -> BoundModel:
    """The model joined to a reference whose columns are coded record by record."""
    try:
        bound = model.bind(read_in_forms(records, forms_of(model, records)))
    except InvalidInput as error:
        raise InvalidInput(f"reference: {error}") from None
    check_one_block(bound)
    if bound.data_dependent:
        raise InvalidInput(
            f"a calibration needs columns coded record by record: {bound.data_dependent[0]} "
            "depends on all records; compute it beforehand with fixed constants"
        )
    return bound


def _thinned(draws: Draws, bound: BoundModel, n_draws: int) -> Draws:
    """Evenly spaced draws of the likelihood's parameters, as one chain."""
    chosen = np.unique(np.linspace(0, draws.n_draws - 1, min(n_draws, draws.n_draws)).astype(int))
    names = bound.likelihood_parameters
    return frozen_draws({name: draws.flat(name)[chosen] for name in names}, draws.provenance)


def categorical_levels(bound: BoundModel) -> dict[str, list[Any]]:
    """Levels of each non-numeric column that the model reads, in coding order; of the outcome,
    unless they are declared."""
    levels = {}
    declared = bound.levels is not None and bound.levels.declared
    for column in (*bound.predictors, *(() if declared else bound.synthesized)):
        values = bound.table[column]
        if isinstance(values.dtype, pd.CategoricalDtype):
            levels[column] = values.cat.categories.tolist()
        elif not pd.api.types.is_numeric_dtype(values.dtype):
            levels[column] = sorted(values.dropna().unique().tolist())
    return levels


def _read_draws(values: Mapping[str, Any], made: Mapping[str, Any] | None) -> Draws:
    """Draws (S, *dims) by name, all of one length and finite, and what made them."""
    arrays = {name: np.array(draws, dtype=np.float64) for name, draws in values.items()}
    if len({len(draws) for draws in arrays.values()}) != 1 or not all(
        draws.size and np.isfinite(draws).all() for draws in arrays.values()
    ):
        raise ValueError("draws")
    return frozen_draws(arrays, None if made is None else read_provenance(made))

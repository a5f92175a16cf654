"""What a release from noisy tables says of itself: charge, assumptions, noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.randomness import Streams
from pyhybrid.fitting.disclosive_columns import exposed_columns
from pyhybrid.mechanisms.accounting.censored_charge import OWNERS_WORD
from pyhybrid.mechanisms.accounting.local_charge import public_sentences, unsynthesized_sentence
from pyhybrid.mechanisms.marginals.measurement import Measured
from pyhybrid.mechanisms.marginals.predictors import ALONE
from pyhybrid.primitives.noise import NoiseProvenance, opendp_version
from pyhybrid.primitives.selection import NoisyChoice
from pyhybrid.primitives.tables import NoisyTables, Price
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.releases.data_fingerprint import data_mark
from pyhybrid.releases.record import Confidential, ReleaseRecord

__all__ = ["record_of_tables"]

_ASSUMES = (
    "The domains of all columns, their order and their predictors were fixed without looking at "
    "the confidential columns.",
    "The number of records is public, and so are the types of the columns and how they mark "
    "missing values: the same for every possible record.",
)
_CHOICES = (
    "Choices made by looking at the confidential data: domains, predictors, epsilon, and which of "
    "several releases was kept.",
    "Other releases from the same data: their epsilons add up.",
    "Whether anything was released is itself an answer: values outside of their domain are "
    "refused.",
)

_OF_REFERENCE = {
    "public": "The records of the reference, which is public.",
    "own": "The records of the reference: its own, without noise, are in the model that is drawn "
    "from.",
}


def _noise_of(answers: Sequence[NoisyTables], choices: Sequence[NoisyChoice]) -> str:
    """All noise, scale by scale."""
    same: dict[str, list[NoisyTables]] = {}
    for answer in answers:
        same.setdefault(f"{answer.noise} of scale {answer.scale:g}", []).append(answer)
    told = []
    for noise, own in same.items():
        n_tables = sum(len(answer.shapes) for answer in own)
        counts = sum(answer.value.size for answer in own)
        told.append(
            f"{noise} on each count of {n_tables} table{'' if n_tables == 1 else 's'}, {counts} "
            "counts in all"
        )
    scales = Counter(f"{choice.scale:g}" for choice in choices)
    told += [
        f"Gumbel of scale {scale} on the scores of {times} choice{'' if times == 1 else 's'}"
        for scale, times in scales.items()
    ]
    return "; ".join(told)


def record_of_tables(
    df: pd.DataFrame,
    found: Measured,
    *,
    price: Price,
    relation: str,
    mechanism: str,
    settings: Mapping[str, Any],
    synthesized: tuple[str, ...],
    given: tuple[str, ...],
    n_synthetic: int,
    unit: str | None,
    random: Streams,
    reference: str | None = None,
) -> ReleaseRecord:
    """Charge of all that was found at `price`, however many sets are drawn, and its record;
    `reference` is "public" or "own" where the model has one."""
    charge = PrivacyCharge.strict(
        mechanism=mechanism,
        epsilon=price.epsilon,
        rho=price.rho,
        delta=price.delta,
        relation=relation,
        n_synthetic=n_synthetic,
        unit=unit,
        assumes=_ASSUMES if reference is None else (*_ASSUMES, OWNERS_WORD),
        not_covered=(
            unsynthesized_sentence(synthesized),
            *public_sentences(unit),
            *_CHOICES,
            *([] if reference is None else [_OF_REFERENCE[reference]]),
        ),
    )
    if found.choices:
        settings = {**settings, "chosen": {name: [own for own in reads if own != ALONE]
                                           for name, reads in found.order.items()}}  # fmt: skip
    return ReleaseRecord(
        charge=charge,
        diagnostics=None,
        settings=settings,
        synthesized=synthesized,
        predictors=given,
        provenance=NoiseProvenance(
            library="OpenDP",
            version=opendp_version(),
            noise=_noise_of(found.answers, found.choices),
            counts="tables",
        ),
        seeded=False,
        exposed=exposed_columns(df, synthesized),
        confidential=Confidential(
            labels=df.index,
            alpha=np.empty(0),
            lipschitz=np.empty(0),
            lipschitz_bound=charge.bound,
            entropy=random.entropy,
            data=data_mark(df),
        ),
    )

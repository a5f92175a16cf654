"""What a release from noisy tables says of itself: charge, assumptions, noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.fitting.exposed import exposed_columns
from pyhybrid.mechanisms.charge_of_fit import public_sentences, unsynthesized_sentence
from pyhybrid.primitives.library import NoiseProvenance, opendp_version
from pyhybrid.primitives.tables import NoisyTables
from pyhybrid.privacy.charge import PrivacyCharge
from pyhybrid.randomness import Streams
from pyhybrid.releases.data_mark import data_mark
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


def record_of_tables(
    df: pd.DataFrame,
    noisy: NoisyTables,
    *,
    mechanism: str,
    settings: Mapping[str, Any],
    synthesized: tuple[str, ...],
    given: tuple[str, ...],
    n_synthetic: int,
    epsilon: float,
    unit: str | None,
    random: Streams,
) -> ReleaseRecord:
    """Charge of all tables at once, however many sets are drawn from them, and its record."""
    charge = PrivacyCharge.strict(
        mechanism=mechanism,
        epsilon=epsilon,
        relation=noisy.charge.relation,
        n_synthetic=n_synthetic,
        unit=unit,
        assumes=_ASSUMES,
        not_covered=(unsynthesized_sentence(synthesized), *public_sentences(unit), *_CHOICES),
    )
    return ReleaseRecord(
        charge=charge,
        diagnostics=None,
        settings=settings,
        synthesized=synthesized,
        predictors=given,
        provenance=NoiseProvenance(
            library="OpenDP",
            version=opendp_version(),
            noise=f"discrete Laplace of scale {noisy.scale:g} on each count of "
            f"{len(noisy.shapes)} tables, {noisy.value.size} counts in all",
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

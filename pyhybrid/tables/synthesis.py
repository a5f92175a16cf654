"""A whole table at one strict charge, by noisy marginals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pyhybrid.core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_names,
    check_positive,
    did_you_mean,
    not_a_frame,
)  # fmt: skip
from pyhybrid.core.errors import InvalidInput
from pyhybrid.core.html import bar_in_notebooks
from pyhybrid.core.randomness import streams
from pyhybrid.fitting.disclosive_columns import exposed_columns, names_persons
from pyhybrid.fitting.session import FitProgress
from pyhybrid.mechanisms import NoisyMarginals
from pyhybrid.mechanisms.marginals.measure import DRIFT
from pyhybrid.models.columns.form import Kind, read_in_forms
from pyhybrid.models.columns.kinds import Counts, Dates, Leveled, Real, kind_from_dict, kind_of
from pyhybrid.models.columns.types_files import CONFIRMED, DRAFTED
from pyhybrid.models.formula.values import is_number, row_label, with_columns
from pyhybrid.releases.column_decisions import Decisions, check_decided
from pyhybrid.releases.release import Release
from pyhybrid.releases.words import in_one_line
from pyhybrid.tables.after import Relation, apply, computed, relations
from pyhybrid.tables.domains import (
    MOST_LEVELS,
    SELECTS,
    domains_of,
    few_predictors,
    is_predictor,
    pairs_are_small,
)  # fmt: skip


@bar_in_notebooks
def synthesize_table(
    df: Any,
    *,
    epsilon: float,
    types: Mapping[str, Kind] | None = None,
    types_are_public: bool = False,
    id: str | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    after: Sequence[str] = (),
    reference: pd.DataFrame | None = None,
    public: bool = False,
    holds_no_released_record: bool = False,
    delta: float | None = None,
    select: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    relation: str = "remove",
    n_synthetic: int = 1,
    progress: FitProgress | None = None,
) -> Release:
    """Synthesize a whole table by noisy marginals; see `pyhybrid.NoisyMarginals`.

    Parameters
    ----------
    df : DataFrame
        Confidential records, one row each. Not modified.
    epsilon : float
        Of the whole release, all columns and sets together, nats.
    types : mapping of str to Kind, optional
        What columns can hold, e.g. ``{"income": ph.SemiContinuous(lower=0, upper=500_000,
        decimals=0)}``. Each synthesized column needs a type, here or from the reference, as none
        may be read from the records.
    types_are_public : bool, default False
        The owner confirms that types of a draft (`read_types`) are public; without that, or
        ``"confirmed": true`` in the file, it is refused. The charge states it.
    id : str, optional
        Column that names each row once; it is released as running numbers.
    drop : sequence of str
        Columns that are not released, and that nothing reads.
    keep : sequence of str
        Public columns, released as they are; the first predictors. All columns that are neither
        dropped, kept nor the id or unit are synthesized.
    after : sequence of str
        Declared relations, such as ``"total = a + b"``, ``"start <= end"`` and ``'births if sex ==
        "m"'``, applied to the noisy rows at no cost; see `pyhybrid.tables.after`.
    reference : DataFrame, optional
        Types that are not declared come from it, too.
    select : {"few", "all"}, optional
        Which tables are measured: few of them, chosen without the records, or those of all pairs of
        columns. By default few without a delta, and with one all pairs, if no column's model of all
        would be large: Gaussian noise grows by the root of the number of tables, Laplace noise by
        their number.
    unit : str, optional
        The column is dropped unless it is kept.
    public, holds_no_released_record, delta, rows_per_unit, relation
        As `reference` and `unit`, see `pyhybrid.NoisyMarginals`.
    n_synthetic : int, default 1
        m, the number of sets, at the price of one.
    progress : callable, optional
        See `pyhybrid.fitting.session.open_session`.

    Raises
    ------
    InvalidInput
        For columns without a type, values outside of the declared ones, a reference or types that
        are not confirmed, and columns that need a decision.

    Examples
    --------
    >>> types = {"visits": ph.Counts(upper=1000), "age": ph.Counts(upper=120)}
    >>> release = synthesize_table(df[[*types]], epsilon=4, types=types)
    >>> release.charge.epsilon
    """
    check_positive(epsilon, "epsilon")
    decisions = decisions_of(df, drop, keep, id, unit)
    left_out = {*decisions.drop, *decisions.keep, *decisions.ids}
    columns = [str(name) for name in df.columns]
    names = [name for name in columns if name not in left_out]
    visible = [name for name in columns if name not in (*decisions.drop, *decisions.ids)]
    declared_after = relations(after, visible, names)
    derived = {str(one.column) for one in declared_after if one.role == "derived"}
    names = [name for name in names if name not in derived]
    if not names:
        raise InvalidInput("df must have a column to synthesize: all are kept, dropped or the id")
    check_persons(df, reference, unit)
    stated, declared = types_stated(types or {}, types_are_public), kinds_of(types or {})
    for name in (name for name in declared if name not in {*columns, *derived}):
        known = did_you_mean(name, [*columns, *derived])
        raise InvalidInput(f"types must name columns of the table: {name!r} is none{known}")
    records, df = df, df.drop(columns=[name for name in derived if name in columns])
    check_decided(exposed_columns(df, names), decisions, columns, names)
    kinds = declared_kinds(names, declared, reference)
    of_relations = {**{name: declared[name] for name in derived & declared.keys()}, **kinds}
    # a file with one text among numbers, or with none, has the others as texts, or as numbers
    leveled = {name: kind for name, kind in kinds.items() if isinstance(kind, Leveled)}
    in_levels = read_in_forms(records, leveled)
    read = _computed(in_levels, declared_after, of_relations)
    kept = [name for name in columns if name in decisions.keep and name != unit]
    mechanism = table_mechanism(
        kinds, public_kinds(df, kept, declared, reference), epsilon=epsilon, relation=relation,
        delta=delta, select=select, unit=unit, rows_per_unit=rows_per_unit, reference=reference,
        public=public, holds_no_released_record=holds_no_released_record,
    )  # fmt: skip
    if warning := mechanism.too_few(len(df)):
        warnings.warn(warning, stacklevel=2)
    check_count(n_synthetic, "n_synthetic")
    release = mechanism.release(in_levels[[*df]], n_synthetic=n_synthetic, progress=progress)
    if reference is not None and release.origin is not None:  # for the owner's report alone
        pairs = {n: (records[n].dropna(), reference[n].dropna()) for n in kinds if n in reference}
        drifted = [name for name, (now, then) in pairs.items() if _is_off(now, then)]
        release = replace(release, origin=replace(release.origin, drifted=drifted))
    if declared_after:
        release = _after(release, declared_after, of_relations, read)
    release = release.with_facts(types_stated=True) if stated else release
    return release.with_decisions(decisions)


def _computed(
    df: pd.DataFrame, declared: Sequence[Relation], kinds: Mapping[str, Kind]
) -> pd.DataFrame:
    """The records with derived columns, those that they have as what is computed. A relation that
    cannot be computed is refused here, before anything is spent, for the kinds of its columns."""
    for one in sorted(declared, key=lambda one: one.role != "derived"):
        value = one.value(df, kinds)
        if one.role == "derived":
            own = df.get(one.column, value)
            df = with_columns(df, {one.column: computed(own, value, kinds.get(str(one.column)))})
    return df


def _after(
    release: Release, declared: Sequence[Relation], kinds: Mapping[str, Kind], records: pd.DataFrame
) -> Release:
    """The release with all relations in its tables, as its statement says."""
    random = streams(release.entropy)
    derived = [str(one.column) for one in declared if one.role == "derived"]
    texts = [one.text for one in declared]
    tables = []
    for place, table in enumerate(release.synthetic, start=1):
        rng = random.generator(f"after/{place}")
        made = apply(table, declared, kinds, release.synthesized, rng)
        tables.append(made[[name for name in records if name in made]])
    said = (
        f"Relations declared for the synthetic rows, which no record was asked: {'; '.join(texts)}."
    )
    assumed = [*release.charge.facts.get("assumes", ()), in_one_line(said)]
    kept, origin = {}, release.origin
    for one in declared:
        of_rows = [1 - one.broken(table, kinds).mean() for table in (records, *tables)]
        kept[one.text] = float(of_rows[0]), float(np.mean(of_rows[1:]))
    if origin is not None:
        origin = replace(origin, data=records, relations=kept)
    return replace(
        release.with_facts(assumes=assumed), synthetic=tables, origin=origin,
        synthesized=(*release.synthesized, *derived),
        settings={**release.settings, "after": texts},
    )  # fmt: skip


def table_mechanism(
    kinds: Mapping[str, Kind],
    kept: Mapping[str, Kind],
    *,
    epsilon: float,
    relation: str = "remove",
    delta: float | None = None,
    select: str | None = None,
    reference: pd.DataFrame | None = None,
    **options: Any,
) -> NoisyMarginals:
    """Noisy marginals of columns of these `kinds`, in their order, given `kept` public ones."""
    if select is not None:
        check_choice(select, "select", SELECTS)
    domain = domains_of(kinds, reference)
    names = list(kinds)
    pairs = {name: (*kept, *names[:place]) for place, name in enumerate(names)}
    if select is None:
        small = delta is not None and pairs_are_small({**kept, **kinds}, pairs)
        select = "all" if small else "few"
    predictors = few_predictors(kinds, kept, reference) if select == "few" else pairs
    given = dict.fromkeys(n for reads in predictors.values() for n in reads if n in kept)
    return NoisyMarginals(
        domain=domain, epsilon=epsilon, delta=delta, most_bins="auto", given=tuple(given),
        predictors=predictors, relation=relation, reference=reference, **options,
    )  # fmt: skip


def decisions_of(df: Any, drop: Any, keep: Any, id: str | None, unit: str | None) -> Decisions:
    """What is published of columns that are not synthesized; the `unit` is dropped if not kept."""
    if not isinstance(df, pd.DataFrame):
        raise not_a_frame(df, "df")
    if len(df) < 2:
        raise InvalidInput(f"df must have two rows or more: found {len(df)}")
    for column in df.columns:
        if not isinstance(column, str):
            raise InvalidInput(f"names of columns must be texts: found {column!r}; rename it")
    check_names(df.columns, df.index.names)
    if not isinstance(id, str | None):
        raise InvalidInput(f"id must name one column: found {id!r}; drop the others")
    again = () if id is None or id not in df else df[id].duplicated() | df[id].isna()
    for place in np.flatnonzero(again)[:1]:
        raise InvalidInput(
            f"id {id!r} must name each row once: {row_label(df.index, int(place))} has none or "
            "that of another row, and epsilon is that of one row. Drop the column, or make one row "
            "of each person"
        )
    decided = Decisions.of(drop, keep, id)
    named = {*decided.drop, *decided.keep, *decided.ids}
    return decided if unit is None or unit in named else decided.with_these(Decisions.of(unit))


def check_persons(df: pd.DataFrame, reference: pd.DataFrame | None, unit: str | None) -> None:
    """Refuse a reference with units of the confidential table, or with its rows: any that have a
    number of a person, too, which alone may be given anew in each table, and without such columns
    more than tables of different records share."""
    if reference is None:
        return
    shared = [name for name in df.columns if name in reference]
    persons = [name for name in shared
               if names_persons(str(name)) and reference[name].nunique() > MOST_LEVELS]  # fmt: skip
    free = [name for name in shared if name not in (unit, *persons)]
    for by, what in (
        ([unit] if unit in shared else [], f"values of {unit!r}"),
        (shared if persons else [], f"rows, with their {', '.join(map(repr, persons))},"),
        (free, "rows"),
    ):
        both, many = _in_both(df[by], reference[by]) if by else (0, False)
        if many if by is free else both:
            raise InvalidInput(
                f"reference must hold no released record: {both:,} {what} are in both tables; "
                "leave these out of the reference, or, if they are of others, leave that column "
                "out of it"
            )


def _in_both(df: pd.DataFrame, reference: pd.DataFrame) -> tuple[int, bool]:
    """Number of different rows that are in both tables, and whether more pairs of them are alike
    than of two samples, which share what rows of one do: by 6 standard errors, about."""
    hashed = []
    numbers = {name: is_number(df[name]) and is_number(reference[name]) for name in df}
    for table in (df, reference):
        cells = {name: table[name].astype(float if numbers[name] else str) for name in df}
        hashed.append(pd.util.hash_pandas_object(pd.DataFrame(cells), index=False).to_numpy())
    codes = pd.factorize(np.concatenate(hashed))[0]
    ours, theirs = (np.bincount(part, minlength=codes.max() + 1).astype(np.float64)
                    for part in np.split(codes, [len(df)]))  # fmt: skip
    n, m = len(df), len(reference)
    pairs = [counts @ (counts - 1) / max(counts.sum() * (counts.sum() - 1), 1)
             for counts in (ours, theirs)]  # fmt: skip
    share = sum(pairs) / 2
    more = ours @ theirs - n * m * share
    return int((ours * theirs > 0).sum()), bool(more > 6 * math.sqrt(share * (n + m) ** 2 / 2 + 1))


def kinds_of(types: Mapping[str, Any]) -> dict[str, Kind]:
    """Kinds of columns, which may be given as in a file of types."""
    kinds = {}
    for name, given in types.items():
        if not isinstance(given, (Kind, Mapping)):
            raise InvalidInput(
                f"type of {name!r} must be a kind of column, such as ph.Nominal(levels=(...)): "
                f"found {type(given).__name__}"
            )
        try:
            kinds[name] = given if isinstance(given, Kind) else kind_from_dict(given)
        except InvalidInput as error:
            raise InvalidInput(f"type of {name!r}: {error}") from None
    return kinds


def _is_off(now: pd.Series, then: pd.Series) -> bool:
    """Whether a mean, or a share of a level, is more than a tenth and 4 standard errors off in a
    reference. Confidential."""
    if not (is_number(now) and is_number(then)):
        levels = now.astype(str).value_counts().index[:MOST_LEVELS]
        shares = [(now.astype(str).eq(v), then.astype(str).eq(v)) for v in levels]
        return any(_is_off(one.astype(float), other.astype(float)) for one, other in shares)
    one, other = now.astype(float), then.astype(float)
    error = math.hypot(one.std() / len(one) ** 0.5, other.std() / len(other) ** 0.5)
    return bool(abs(one.mean() - other.mean()) > max(DRIFT * abs(one.mean()), 4 * error))


def types_stated(types: Mapping[str, Any], types_are_public: bool) -> bool:
    """Whether the owner states that types are public; a draft is refused without that."""
    if check_flag(types_are_public, "types_are_public"):
        return True
    drafted = [
        name
        for name, given in types.items()
        if isinstance(given, Mapping)
        and given.get(CONFIRMED, not str(given.get("note", "")).startswith(DRAFTED)) is not True
    ]
    if drafted:
        raise InvalidInput(
            "types must be confirmed by the owner of the data: those of "
            f"{', '.join(map(repr, drafted[:MOST_LEVELS]))} are a draft from the confidential "
            "records; change what is not public, such as an end or a level of one person, then set "
            '"confirmed": true in the file of types'
        )
    return any(isinstance(own, Mapping) and own.get(CONFIRMED) for own in types.values())


def declared_kinds(
    names: Sequence[str], types: Mapping[str, Kind], reference: pd.DataFrame | None
) -> dict[str, Kind]:
    """Kind of each column to synthesize, as its type or the reference says, never the records;
    in the order of synthesis: few levels first, then counts, then numbers."""
    like = {} if reference is None else {str(name): reference[name] for name in reference}
    bare = [name for name in names if name not in types and name not in like]
    if bare:
        raise InvalidInput(
            "a strict charge needs types of columns that are declared, or read from a reference: "
            f"{', '.join(bare)} have none; give types={{...}} or reference=, or leave them out "
            "(drop=)"
        )
    kinds = {}
    for name in names:
        kind = types[name] if name in types else kind_of(like[name])
        if isinstance(kind, Real) and kind.decimals is None and name in like:
            read = kind_of(like[name])
            kind = replace(kind, decimals=read.decimals or 0)
        kinds[name] = kind
    return dict(sorted(kinds.items(), key=lambda item: _rank(item[1])))


def _rank(kind: Kind) -> tuple[int, int]:
    if isinstance(kind, Leveled):
        size = len(kind.levels)
        return (0, size) if size <= MOST_LEVELS else (3, size)
    return (1, 0) if isinstance(kind, Counts) else (2, 0)


def public_kinds(
    df: pd.DataFrame,
    names: Sequence[str],
    types: Mapping[str, Kind],
    reference: pd.DataFrame | None,
) -> dict[str, Kind]:
    """Kind of each kept column that can be a predictor; it is published, so that it may be read.
    Columns of no kind, of one value, of dates or of many levels can not."""
    kinds = {}
    for name in names:
        column = df[name]
        if reference is not None and name in reference:
            column = pd.concat([column, reference[name]], ignore_index=True).rename(name)
        try:
            kind = types[name] if name in types else kind_of(column)
        except InvalidInput:
            continue
        if is_predictor(kind) and not isinstance(kind, Dates):
            kinds[name] = kind
    return kinds

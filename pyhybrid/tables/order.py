"""In which order sensitive columns are synthesized, and which predictors come first."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.kinds import Counts, Kind, Leveled, Number
from pyhybrid.models.default_model import MOST_LEVELS, n_coefficients
from pyhybrid.tables.table_spec import DescribedTable, KnownKind

__all__ = ["kept_first", "ordered"]


def ordered(table: DescribedTable, known: Mapping[str, KnownKind]) -> list[str]:
    """Sensitive columns in the order given; or few levels first, then counts, then numbers, each
    as they stand in the table, and the smaller side of a rule before the larger one.

    Nothing of it looks at the data beyond the kinds.
    """
    if not isinstance(table.order, str):
        return list(table.order)
    names = [str(name) for name in table.df.columns if name in table.sensitive]
    left = sorted(names, key=lambda name: _rank(known[name].kind))  # stable
    after = _smaller_sides(table, names)
    found: list[str] = []
    while left:
        ready = next((n for n in left if not after.get(n, set()) - set(found)), None)
        if ready is None:
            raise InvalidInput(
                f"rules must leave an order for {', '.join(left)}: each is the larger side of one "
                "and the smaller of another; give order="
            )
        left.remove(ready)
        found.append(ready)
    return found


def kept_first(usable: Mapping[str, Kind], kept: Collection[str], limit: int) -> tuple[str, ...]:
    """Predictors of at most `limit` coefficients: kept columns, then the last before it."""
    own = [name for name in usable if name in kept]
    near = [name for name in reversed(list(usable)) if name not in kept]
    found, used = set(), 0
    for name in (*own, *near):
        if used + n_coefficients(usable[name]) <= limit:
            found.add(name)
            used += n_coefficients(usable[name])
    return tuple(name for name in usable if name in found)


def _rank(kind: Kind) -> tuple[int, int]:
    if isinstance(kind, Leveled):
        size = len(kind.levels)
        return (0, size) if size <= MOST_LEVELS else (4, size)
    if isinstance(kind, Counts):
        return (1, 0)
    return (2, 0) if isinstance(kind, Number) else (3, 0)


def _smaller_sides(table: DescribedTable, names: Collection[str]) -> dict[str, set[str]]:
    """For plain rules ``a <= b`` of two sensitive columns: a before b, which has no upper end."""
    before: dict[str, set[str]] = {}
    for rule in table.read_rules:
        if "->" in rule.text or "`" in rule.text:
            continue
        tree = ast.parse(rule.text, mode="eval").body
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
            continue
        left, right = tree.left, tree.comparators[0]
        if not (isinstance(left, ast.Name) and isinstance(right, ast.Name)):
            continue
        small, large = left.id, right.id
        if isinstance(tree.ops[0], ast.Gt | ast.GtE):
            small, large = large, small
        elif not isinstance(tree.ops[0], ast.Lt | ast.LtE):
            continue
        if small in names and large in names:
            before.setdefault(large, set()).add(small)
    return before

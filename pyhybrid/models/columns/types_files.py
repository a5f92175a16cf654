"""Files of types: ours, a Frictionless Table Schema, or a CSVW description of a table.

All three are JSON and say what each column can hold. A column that they do not say enough of, texts
without a list of values, is left out, and named where its type is needed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pyhybrid.core.errors import InvalidInput
from pyhybrid.models.columns.form import Kind, number_in
from pyhybrid.models.columns.kinds import FOR_PEOPLE, KINDS, Counts, Dates, Nominal, Ordered, Real

SCHEMA = "$schema"
CONFIRMED = "confirmed"
"""The owner's word that types are public; false in a draft."""
AFTER = "after"
"""Relations that are applied to the noisy rows, see `pyhybrid.tables.after`."""
DRAFTED = "from the data: confirm or change"
"""How the note of a drafted type begins."""
_WHOLE = ("integer", "int", "long", "short", "nonNegativeInteger", "positiveInteger", "unsignedInt")
_NUMBERS = (*_WHOLE, "number", "decimal", "double", "float")
_DATES = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%dT%H:%M:%SZ"}
_CHOICES = re.compile(r"[\w -]+(\|[\w -]+)+")


def read_types(path: str | Path) -> dict[str, Any]:
    """Types of columns from a file.

    Parameters
    ----------
    path : path
        JSON: types by column, as `pyhybrid synthesize` drafts them; a Frictionless Table Schema; or
        CSVW. A data package of one table will do.

    Returns
    -------
    dict of str to dict
        What `pyhybrid.synthesize_table` takes as `types`; with the file's word on whether they are
        ``"confirmed"`` in each. InvalidInput for a file that cannot be read.
    """
    given = read_by_column(path, "types")
    try:
        types = _of_schema(given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = str(error) if isinstance(error, InvalidInput) else "found another form"
        raise InvalidInput(f"types: {path} must be a Table Schema or CSVW: {reason}") from None
    if types is None:
        word = given.get(CONFIRMED)
        said = {CONFIRMED: word} if isinstance(word, bool) else {}  # else a column of that name
        lists = AFTER if isinstance(given.get(AFTER), list) else None
        types = {
            name: {**said, **kind} if isinstance(kind, dict) else kind
            for name, kind in given.items()
            if name not in (lists, *said) and not (name == SCHEMA and isinstance(kind, str))
        }
    if not types:
        raise InvalidInput(f"types: {path} must have the type of a column or more: found none")
    return types


def read_after(path: str | Path) -> list[str]:
    """Relations of a file of types, which name a column "after" no less."""
    given = read_by_column(path, "types").get(AFTER)
    return given if isinstance(given, list) else []


def read_by_column(path: str | Path, what: str) -> dict[str, Any]:
    """What a JSON file says by the names of columns: types, domains or levels."""
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError:
        raise InvalidInput(f"{what} must be in a readable file: {path} is none") from None
    except ValueError:  # UnicodeDecodeError, too
        raise InvalidInput(f"{what}: {path} must hold JSON: it does not") from None
    if not isinstance(given, dict):
        raise InvalidInput(f"{what}: {path} must hold an object, the {what} of each column by name")
    return given


def _of_schema(given: dict[str, Any]) -> dict[str, Any] | None:
    """Types as a Table Schema or CSVW has them; None of our own file."""
    for tables, inside in (("resources", "schema"), ("tables", "tableSchema")):
        if isinstance(given.get(tables), list):
            if len(given[tables]) != 1:
                raise InvalidInput(f"it must describe one table: found {len(given[tables])}")
            given = given[tables][0]
        kind_ = given.get(inside)
        given = kind_ if isinstance(kind_, dict) and "kind" not in kind_ else given
    for key, field_of, absent in (
        ("fields", dict, given.get("missingValues", ())),
        ("columns", _field_of_csvw, given.get("null", ())),
    ):
        if isinstance(given.get(key), list):
            kinds = {_name(own): _kind(field_of(own), absent) for own in given[key]}
            return {name: kind for name, kind in kinds.items() if kind is not None}
    return None


def _name(column: Mapping[str, Any]) -> str:
    """Of a column, which CSVW gives by title first, as its header has it."""
    title = column.get("titles") or column.get("name")
    while isinstance(title, (list, Mapping)) and title:
        title = next(iter(title.values() if isinstance(title, Mapping) else title))
    if not isinstance(title, str):
        raise InvalidInput("each column must have a name")
    return title


def _answers(absent: Any) -> list[str]:
    """Texts that stand for missing values, but those that every file may have."""
    given = [absent] if isinstance(absent, str) else absent
    texts = [str(own["value"]) if isinstance(own, Mapping) else str(own) for own in given]
    return [text for text in texts if text not in ("", "NA", "NaN")]


def _field_of_csvw(column: Mapping[str, Any]) -> dict[str, Any]:
    """A column of CSVW as a field of Table Schema, with the `decimals` of its pattern."""
    given = column.get("datatype", "string")
    rules: Mapping[str, Any] = given if isinstance(given, Mapping) else {"base": given}
    written = rules.get("format", "")
    pattern = written.get("pattern", "") if isinstance(written, Mapping) else str(written)
    numeric = rules.get("base") in _NUMBERS
    limits: dict[str, Any] = {
        end: rules.get(end, rules.get(f"{end[:3]}Inclusive")) for end in ("minimum", "maximum")
    }
    if not numeric and _CHOICES.fullmatch(pattern):
        limits["enum"] = pattern.split("|")
    answers = {"missingValues": column["null"]} if "null" in column else {}
    return {
        "type": rules.get("base", "string"),
        "constraints": {**limits, "required": column.get("required", False)},
        "decimals": len(pattern.partition(".")[2]) if numeric and pattern else None,
        **answers,
    }


def _number(text: str) -> int | float | None:
    number = number_in(text)
    return None if math.isnan(number) else int(number) if number.is_integer() else number


def _kind(field: Mapping[str, Any], absent: Any) -> dict[str, Any] | None:
    """Our words for a field; None if it does not say enough. What it calls missing are codes, or
    levels, which stay apart from empty cells."""
    rules, base = field.get("constraints", {}), str(field.get("type", "any"))
    required, ends = rules.get("required", False), (rules.get("minimum"), rules.get("maximum"))
    missing: dict[str, Any] = {} if required else {"missing": True}
    answers = [] if required else _answers(field.get("missingValues", absent))
    levels = rules.get("enum") or [
        category["value"] if isinstance(category, Mapping) else category
        for category in field.get("categories", ())
    ]
    if base == "boolean" and not levels:
        levels = [False, True]
    if levels:
        kind = Ordered if field.get("categoriesOrdered", False) else Nominal
        read: Any = str if any(isinstance(level, str) for level in levels) else _number
        more = [level for level in map(read, answers) if level not in (*levels, None)]
        return {"kind": kind.__name__, "levels": [*levels, *more], **missing}
    if base in _DATES and None not in ends:
        form = str(field.get("format", "default"))
        named = {"lower": str(ends[0]), "upper": str(ends[1]),
                 "format": _DATES[base] if form in ("default", "any") else form}  # fmt: skip
        codes = {"codes": answers} if answers else {}
        return {"kind": Dates.__name__, **named, **codes, **missing}
    if base not in _NUMBERS:
        return None
    if numbers := [number for text in answers if (number := _number(text)) is not None]:
        missing["codes"] = numbers
    lower, upper = (None if end is None else float(end) for end in ends)
    settings: dict[str, Any] = {"lower": lower, "upper": upper, **missing}
    if base in _WHOLE and lower is not None and lower >= 0:
        settings |= {"lower": int(lower), "upper": None if upper is None else int(upper)}
        return {"kind": Counts.__name__, **settings}
    return {"kind": Real.__name__, **settings,
            "decimals": 0 if base in _WHOLE else field.get("decimals")}  # fmt: skip


@cache
def _words() -> dict[str, Any]:
    """What kinds and their settings mean, and what a schema says of files of types."""
    words: dict[str, Any] = json.loads(Path(__file__).with_name("types.json").read_text("utf-8"))
    return words


def legend(kinds: Iterable[Kind]) -> dict[str, str]:
    """What these kinds, and the fields that they have in a file of types, mean."""
    of, words = {kind.name: kind for kind in kinds}, _words()
    fields = {field for kind in of.values() for field in (*kind.settings(), *FOR_PEOPLE)}
    said = {field: one["description"] for field, one in words["settings"].items()}
    meanings = {**words["kinds"], **said}
    return {name: text for name, text in meanings.items() if name in of or name in fields}


def schema_of_types() -> dict[str, Any]:
    """JSON Schema of a file of types, by which editors complete and check it."""
    kinds, words = [], _words()
    for name, kind in KINDS.items():
        said = {word: words["settings"][word] for word in (*kind.settings(), *FOR_PEOPLE)}
        required = ["kind", *({"levels"} & said.keys())]
        kinds.append({"properties": {"kind": {"const": name}, **said}, "required": required,
                      "additionalProperties": False})  # fmt: skip
    meant = " ".join(f"{name}: {text}" for name, text in words["kinds"].items())
    of_column = {"properties": {"kind": {"enum": [*KINDS], "description": meant}}, "oneOf": kinds}
    return {**words["schema"], "additionalProperties": {"type": "object", **of_column}}

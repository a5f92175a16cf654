"""Files of types: our own, Frictionless Table Schema, CSVW; the schema that editors complete by."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pyhybrid.models.columns.kinds import KINDS, kind_from_dict
from pyhybrid.models.columns.types_files import read_types, schema_of_types
from tests.refusals import refuses

_TABLE_SCHEMA = {
    "fields": [
        {"name": "visits", "type": "integer",
         "constraints": {"minimum": 0, "maximum": 90, "required": True}},
        {"name": "region", "type": "string", "constraints": {"enum": ["n", "s"]}},
        {"name": "health", "type": "integer", "categoriesOrdered": True,
         "categories": [{"value": 1, "label": "bad"}, {"value": 2, "label": "good"}]},
        {"name": "change", "type": "integer", "constraints": {"minimum": -9, "maximum": 9}},
        {"name": "working", "type": "boolean", "constraints": {"required": True}},
        {"name": "remarks", "type": "string"},
    ]
}  # fmt: skip
_CSVW = {
    "@context": "a context",
    "url": "survey.csv",
    "tableSchema": {
        "columns": [
            {"titles": {"en": ["visits"]}, "name": "v", "required": True,
             "datatype": {"base": "nonNegativeInteger", "minimum": "0", "maximum": "90"}},
            {"titles": "region", "datatype": {"base": "string", "format": "n|s"}},
            {"name": "change", "datatype": {"base": "integer", "minimum": -9, "maxInclusive": 9}},
            {"name": "wage", "required": True, "datatype":
                {"base": "decimal", "minimum": 0, "maximum": 500, "format": {"pattern": "#0.00"}}},
            {"name": "remarks"},
        ]
    },
}  # fmt: skip
_VISITS = {"kind": "Counts", "lower": 0, "upper": 90}
_REGION = {"kind": "Nominal", "levels": ["n", "s"], "missing": True}
_CHANGE = {"kind": "Real", "lower": -9.0, "upper": 9.0, "decimals": 0, "missing": True}
_WAGE = {"kind": "Real", "lower": 0.0, "upper": 500.0, "decimals": 2}


def _read(folder: Path, given: Any) -> dict[str, Any]:
    path = folder / "types.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    return read_types(path)


_OWN = dict.fromkeys(("fields", "columns", "schema", "tableSchema", "tables"), _REGION)
_OF_SCHEMA = {
    "visits": _VISITS, "region": _REGION, "change": _CHANGE,
    "health": {"kind": "Ordered", "levels": [1, 2], "missing": True},
    "working": {"kind": "Nominal", "levels": [False, True]},
}  # fmt: skip
_OF_CSVW = {"visits": _VISITS, "region": _REGION, "change": _CHANGE, "wage": _WAGE}


@pytest.mark.parametrize(("given", "expected"), [
    (_TABLE_SCHEMA, _OF_SCHEMA), ({"resources": [{"schema": _TABLE_SCHEMA}]}, _OF_SCHEMA),
    (_CSVW, _OF_CSVW), ({"tables": [_CSVW]}, _OF_CSVW),
    ({"$schema": "types.schema.json", **_OWN}, _OWN),  # columns of our own may have any name
])  # fmt: skip
def test_types_are_read_from_three_kinds_of_files(
    tmp_path: Path, given: Any, expected: dict[str, Any]
) -> None:
    types = _read(tmp_path, given)
    assert types == expected
    assert {kind_from_dict(own).name for own in types.values()} <= set(KINDS)


def test_what_a_schema_calls_missing_are_codes_or_levels(tmp_path: Path) -> None:
    """Seen: it was ignored, and numbers between the codes came out."""
    day = {"minimum": "1950-01-01", "maximum": "2020-12-31"}
    schema = {
        "missingValues": ["", "-9", "refused"],
        "fields": [
            {"name": "hours", "type": "integer", "constraints": {"minimum": 0, "maximum": 80}},
            {"name": "tv", "type": "string", "constraints": {"enum": ["yes", "no"]}},
            {"name": "rank", "type": "integer", "categories": [1, 2], "missingValues": ["8"]},
            {"name": "sex", "type": "integer", "constraints": {"enum": [1, 2], "required": True}},
            {"name": "born", "type": "date", "constraints": day},
        ],
    }
    assert _read(tmp_path, schema) == {
        "hours": {"kind": "Counts", "lower": 0, "upper": 80, "missing": True, "codes": [-9]},
        "tv": {"kind": "Nominal", "levels": ["yes", "no", "-9", "refused"], "missing": True},
        "rank": {"kind": "Nominal", "levels": [1, 2, 8], "missing": True},
        "sex": {"kind": "Nominal", "levels": [1, 2]},
        "born": {"kind": "Dates", "lower": "1950-01-01", "upper": "2020-12-31", "missing": True,
                 "format": "%Y-%m-%d", "codes": ["-9", "refused"]},
    }  # fmt: skip
    column = {"name": "x", "null": ["-1", "NA"], "datatype": {"base": "integer", "minimum": 0}}
    read = _read(tmp_path, {"tableSchema": {"columns": [column]}})
    assert read["x"]["codes"] == [-1]


@pytest.mark.parametrize(("given", "message"), [
    ("{", "must hold JSON"), ([1], "must hold an object"),
    ({"tables": [_CSVW, _CSVW]}, "one table: found 2"),
    ({"columns": [{"datatype": "integer"}]}, "must have a name"),
    ({"fields": ["visits"]}, "found another form"),
    ({"fields": [{"name": "x", "constraints": 3}]}, "found another form"),
    ({"columns": [{"name": "x", "datatype": {"base": "int", "minimum": "a"}}]}, "another form"),
    ({"tables": [3]}, "found another form"),
])  # fmt: skip
def test_files_that_say_no_types_are_refused(tmp_path: Path, given: Any, message: str) -> None:
    refuses(message, _read, tmp_path, given)
    refuses("readable file", read_types, tmp_path / "other.json")


_EACH: list[dict[str, Any]] = [
    _VISITS, _REGION, _CHANGE, _WAGE, {"kind": "Ordered", "levels": [1, 2], "note": "confirm"},
    {"kind": "SemiContinuous", "lower": 0, "spread": 10},
    {"kind": "Amounts", "lower": 0.5, "upper": None, "typical": 3, "decimals": 1},
]  # fmt: skip
_WRONG: list[dict[str, Any]] = [
    {"kind": "Nominal"}, {"kind": "count"}, {"kind": "Counts", "decimals": 2},
    {"kind": "Real", "missing": "no"}, {"levels": [1, 2]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("own", "right"), [*((o, True) for o in _EACH), *((o, False) for o in _WRONG)]
)
def test_the_schema_takes_what_a_table_takes(own: dict[str, Any], right: bool) -> None:
    schema = jsonschema.Draft202012Validator(schema_of_types())
    assert schema.is_valid({"$schema": "types.schema.json", "column": own}) == right
    if right:
        kind_from_dict(own)
    else:
        refuses("", kind_from_dict, own)

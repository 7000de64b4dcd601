"""JSON Schemas of the records of a catalogue and of a change, made from the models and docstrings of the indexer.

A schema is less strict than its model: it accepts every record that the indexer accepts, and a few that the indexer
rejects (two letters that are not a country, a `discount` of kind `percent` without a value).
"""

from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from indexer.records.related import RECORDS
from indexer.sources.changes import StatedChange

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
CHANGE: Final = "change"
KINDS: Final = (*RECORDS, CHANGE)

_REF: Final = "#/$defs/{model}"
_TEXT: Final = {"type": "string"}


def catalogue_schema() -> dict[str, Any]:
    """One document with the schema of each kind of record, and of a change, below `$defs`."""
    return {
        "$schema": DIALECT,
        "title": "The records of a catalogue",
        "description": "Each line of FILE.ndjson is valid against #/$defs/FILE, and each line of changes.ndjson"
        " against #/$defs/change.",
        "$defs": _definitions(),
    }


def record_schema(kind: str) -> dict[str, Any]:
    """A self-contained schema of one of KINDS."""
    definitions = _definitions() if kind == CHANGE else _definitions(kind)
    schema = {"$schema": DIALECT, **definitions.pop(kind)}
    if definitions:
        schema["$defs"] = definitions
    return schema


def _definitions(*kinds: str) -> dict[str, Any]:
    """The schemas of these kinds, by default of all, and then those of their parts."""
    kinds = kinds or KINDS
    models: dict[str, type[BaseModel]] = {kind: RECORDS.get(kind, StatedChange) for kind in kinds}
    _, made = models_json_schema([(model, "validation") for model in models.values()], ref_template=_REF)
    names = {model.__name__: kind for kind, model in models.items()}
    definitions = {names.get(name, name): _tidy(schema, names) for name, schema in made["$defs"].items()}
    if CHANGE in kinds:
        definitions[CHANGE] = _change(definitions[CHANGE])
    return {name: definitions[name] for name in (*kinds, *sorted(definitions.keys() - set(kinds)))}


def _tidy(schema: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - any part of a JSON document
    """The schema without generated titles, with references by the names of kinds."""
    if isinstance(schema, list):
        return [_tidy(part, names) for part in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {key: _tidy(part, names) for key, part in schema.items() if key != "title" or not isinstance(part, str)}
    if "$ref" in tidied:
        model = tidied["$ref"].rpartition("/")[2]
        tidied["$ref"] = _REF.format(model=names.get(model, model))
    return tidied


def _change(stated: dict[str, Any]) -> dict[str, Any]:
    fields = {**stated["properties"], "type": {"enum": list(RECORDS)}}
    is_upsert = {"op": {"const": "upsert"}}
    upsert = {"properties": is_upsert, "required": ["op"]}
    return {
        **stated,
        "properties": fields,
        "allOf": [
            {
                "if": upsert,
                "then": {
                    "required": ["record"],
                    "properties": {"key": {"type": "null"}, "updated_at": {"type": "null"}},
                },
                "else": {"required": ["key"], "properties": {"key": _TEXT, "record": {"type": "null"}}},
            },
            {"anyOf": [*_versions(), {"required": ["record"], "properties": {"record": {"anyOf": _versions()}}}]},
            *[
                {
                    "if": {"properties": {**is_upsert, "type": {"const": kind}}, "required": ["op", "type"]},
                    "then": {"properties": {"record": {"$ref": _REF.format(model=kind)}}},
                }
                for kind in RECORDS
            ],
        ],
    }


def _versions() -> list[dict[str, Any]]:
    return [
        {"required": ["version"], "properties": {"version": {"type": "integer"}}},
        {"required": ["updated_at"], "properties": {"updated_at": _TEXT}},
    ]

"""What pydantic finds -> problems in a person's words, each at its place."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pydantic
import pydantic_core

from agenteval.loading.document import MAX_FINDINGS, Document, KeyPath, key_text
from agenteval.loading.models import Frozen
from agenteval.log import SECRET_NAME
from agenteval.words import nearest

ModelT = TypeVar("ModelT", bound=pydantic.BaseModel)

_QUOTED = re.compile(r"[\w.-]+")
_MAPPING = "a mapping of keys to values"
_WANTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text (in quotes where it looks like something else)",
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _MAPPING),
    "greater_than_equal": "{ge} or more",
    "greater_than": "more than {gt}",
    "less_than_equal": "{le} or less",
}
"""What a value must be, in a person's words, by pydantic's word for its not being that."""
MAX_SHOWN_CHARACTERS = 80
"""Of a value that is not what it must be; of a longer text, list or mapping its size is told."""


_MOST_NAMED = 5
"""Wrong fields of what a program wrote that are named; more are counted."""


def wrong_fields(error: pydantic.ValidationError) -> str:
    """The fields of what a program wrote that pydantic refuses, on one line."""
    found = [f"{key_text(item['loc'])}: {item['msg']}" for item in error.errors(include_url=False, include_input=False)]
    more = f"; and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
    return "; ".join(found[:_MOST_NAMED]) + more


def validate(document: Document, model: type[ModelT], data: Any = None, at: KeyPath = ()) -> ModelT | None:
    """Validate data of a document against a model; problems go to the document.

    Args:
        document: Where the data comes from.
        model: The model to build.
        data: Data to validate, when it is not the whole document's.
        at: Key path of `data` in the document.

    Returns:
        The model, or None where a problem was added.
    """
    value = document.data if data is None and not at else data
    try:
        # Through JSON mode, so that a YAML list is a tuple and a text an enum member, and nothing else is
        # coerced.
        return model.model_validate_json(pydantic_core.to_json(value))
    except pydantic.ValidationError as error:
        items = error.errors(include_url=False)
        found = [(at + _keys_in(value, item), item) for item in items[:MAX_FINDINGS]]
        document.problems += [document.problem(key, message) for key, message in _messages(found, model)]
        if len(items) > MAX_FINDINGS:
            more = f"and {len(items) - MAX_FINDINGS:,} more problems; correct those above first"
            document.problems.append(document.problem(at, more))
        return None


def findings_text(error: pydantic.ValidationError) -> str:
    """All that is wrong with a model that was made in Python, or from parts, as one sentence."""
    model = next((model for model in _models_below(Frozen) if model.__name__ == error.title), Frozen)
    items = error.errors(include_url=False)[:MAX_FINDINGS]
    found = [(_descent(model, item["loc"])[0], item) for item in items]
    return "; ".join(f"{key_text(key)}: {text}" if key else text for key, text in _messages(found, model))


def _models_below(model: type[pydantic.BaseModel]) -> Iterator[type[pydantic.BaseModel]]:
    for child in model.__subclasses__():
        yield child
        yield from _models_below(child)


def _messages(found: Sequence[tuple[KeyPath, Any]], model: type[pydantic.BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """The findings in a person's words; what one value must be, by any of a union's forms, is one finding."""
    keys = [key for key, _ in found]
    told: set[KeyPath] = set()
    for key, item in found:
        if item["type"] not in _WANTED:
            if not (item["type"] == "too_short" and _has_deeper(key, keys)):
                yield key, _message(item, model)
        elif key not in told:
            told.add(key)
            forms = [_wanted(other) for other_key, other in found if other_key == key and other["type"] in _WANTED]
            yield key, f"must be {' or '.join(dict.fromkeys(forms))}, not {_shown_input(item)}"


def _has_deeper(key: KeyPath, others: Iterable[KeyPath]) -> bool:
    """Whether another problem lies below `key`: pydantic counts only the items that are right."""
    return any(len(other) > len(key) and other[: len(key)] == key for other in others)


def _keys_in(data: Any, item: Any) -> KeyPath:
    """Keep of a finding's location what stands in the data, not the tags of unions that pydantic adds."""
    *path, last = item["loc"] or (None,)
    keys: list[str | int] = []
    for part in path:
        if _holds(data, part):
            data = data[part]
            keys.append(part)
    if last is not None and (item["type"] == "missing" or _holds(data, last)):
        keys.append(last)
    return tuple(keys)


def _holds(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, Mapping) and part in data


def _wanted(item: Any) -> str:
    return _WANTED[item["type"]].format_map(item.get("ctx", {}))


def _message(item: Any, model: type[pydantic.BaseModel]) -> str:
    """A finding in a person's words, with the value and the nearest right word."""
    kind, location, given = item["type"], item["loc"], item.get("input")
    match kind:
        case "extra_forbidden":
            known = sorted(_fields(_descent(model, location[:-1])[1]))
            name = str(location[-1])
            return f"unknown key {_shown(name)}.{nearest(name, known)} Known: {', '.join(known)}."
        case "missing":
            return f"the key {location[-1]!r} is missing"
        case "literal_error" | "enum":
            return _no_such_word(given, item["ctx"]["expected"])
        case "union_tag_invalid":
            name = item["ctx"]["discriminator"].strip("'")
            return _no_such_word(given[name], item["ctx"]["expected_tags"])
        case "union_tag_not_found":
            kinds = [kind for member in _descent(model, location)[1] for kind in _kinds(member)]
            return f"the key {item['ctx']['discriminator']} is missing; it says which is meant: {', '.join(kinds)}"
        case "too_short":
            return f"needs {item['ctx']['min_length']} or more items, not {_shown_input(item)}"
        case "string_pattern_mismatch":
            return f"must match the pattern {item['ctx']['pattern']}, not {_shown_input(item)}"
        case "value_error":
            return str(item["msg"]).removeprefix("Value error, ")
    return f"{item['msg']}, not {_shown_input(item)}"


def _no_such_word(given: Any, expected: str) -> str:
    return f"{_shown(given)} is not one of {expected}.{nearest(str(given), _QUOTED.findall(expected))}"


def _shown_input(item: Any) -> str:
    """The value that a finding is about, unless its key says that it is a secret."""
    is_secret = any(SECRET_NAME.search(str(part)) for part in item["loc"])
    return "what is there" if is_secret else _shown(item.get("input"))


def _shown(value: Any) -> str:
    if isinstance(value, str) and len(value) > MAX_SHOWN_CHARACTERS:
        return f"a text of {len(value):,} characters"
    shown = repr(value)
    if len(shown) <= MAX_SHOWN_CHARACTERS or not isinstance(value, Mapping | Sequence):
        return shown
    return f"a {'mapping' if isinstance(value, Mapping) else 'list'} of {len(value):,}"


def _descent(
    model: type[pydantic.BaseModel], location: Sequence[str | int]
) -> tuple[KeyPath, list[type[pydantic.BaseModel]]]:
    """Fields and places on the way down a finding's location, and the models that may stand at its end."""
    models, keys = [model], []
    for place, part in enumerate(location):
        reached = [
            inner
            for current in models
            if isinstance(part, str) and part in current.model_fields
            for inner in _models_in(current.model_fields[part].annotation)
        ]
        if isinstance(part, int) or place == len(location) - 1 or any(part in _fields([each]) for each in models):
            keys.append(part)
        # A part that is no field is an index, or the tag of a union member, which narrows the candidates.
        models = reached or [current for current in models if part in _kinds(current)] or models
    return tuple(keys), models


def _fields(models: Iterable[type[pydantic.BaseModel]]) -> set[str]:
    """Keys that any of the models knows."""
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def _kinds(model: type[pydantic.BaseModel]) -> tuple[str, ...]:
    """The values of `kind` by which a model is told from the others of its union."""
    kind = model.model_fields.get("kind")
    return () if kind is None else typing.get_args(kind.annotation)


def _models_in(annotation: Any) -> list[type[pydantic.BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return [annotation] if issubclass(annotation, pydantic.BaseModel) else []
    return [model for argument in typing.get_args(annotation) for model in _models_in(argument)]

"""The JSON of commands against its schemas."""

from __future__ import annotations

import functools
import json
from typing import Any

import click
import jsonschema

from ptxmma.cli import answers

#: Items of each list that are held against a schema: long lists repeat, and the validator is slow.
_ITEMS = 40


def verb_of(context: click.Context) -> str:
    """The words of a command after ``ptxmma``."""
    return context.command_path.removeprefix(context.find_root().command_path).strip()


@functools.cache
def validator(verb: str) -> jsonschema.Draft202012Validator:
    """The validator of a verb's JSON."""
    schema = answers.schema(verb)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def suits(verb: str, answer: Any) -> bool:
    """Return whether an answer suits the schema of its verb."""
    return validator(verb).is_valid(_shortened(answer))


def check(verb: str, text: str) -> None:
    """Refuse JSON that the schema of its verb does not allow; a schema itself passes."""
    answer = json.loads(text)
    if not (isinstance(answer, dict) and "$schema" in answer):
        assert suits(verb, answer), f"the schema of {verb} does not allow {text[:2000]}"


def _shortened(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _shortened(value) for name, value in answer.items()}
    return [_shortened(value) for value in answer[:_ITEMS]] if isinstance(answer, list) else answer

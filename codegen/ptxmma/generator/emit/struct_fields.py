"""The fields of structs with their types, titles and descriptions, for tables that are generated from structs.

A field is described where it is declared: ``bits: Annotated[int, Meta(title="bits", description="of storage")]``.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, NamedTuple

import msgspec
from msgspec.inspect import Metadata, StructType, Type, UnionType, multi_type_info, type_info

from ptxmma import model


class Field(NamedTuple):
    """One field of a struct.

    Attributes:
        name: the attribute.
        type: its type without the annotations.
        title: a heading for it; the name in words where the annotation has none.
        description: the field's meaning; empty where the annotation does not say it.
        extra: the other data of the annotation: ``{"references": "targets"}``.
        default: the value that it may be left out for; ``msgspec.NODEFAULT`` where it may not.
    """

    name: str
    type: Type
    title: str
    description: str
    extra: dict[str, Any]
    default: Any


@functools.cache
def fields(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The fields of a struct in their order."""
    of_model = _of_model()
    info = of_model[struct] if struct in of_model else type_info(struct)
    assert isinstance(info, StructType)
    return tuple(_field(field.name, field.type, field.default) for field in info.fields)


@functools.cache
def _of_model() -> dict[type, Type]:
    """The information of msgspec about each struct of the model: asked about all at once, it looks at each once."""
    structs = [each for each in vars(model).values() if isinstance(each, type) and issubclass(each, msgspec.Struct)]
    return dict(zip(structs, multi_type_info(structs), strict=True))


def _field(name: str, annotated: Type, default: Any) -> Field:
    schema: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    bare = annotated
    while isinstance(bare, Metadata):
        schema = (bare.extra_json_schema or {}) | schema
        extra = (bare.extra or {}) | extra
        bare = bare.type
    return Field(name, bare, schema.get("title", name.replace("_", " ")), schema.get("description", ""), extra, default)


def bare(annotated: Type) -> Type:
    """A type without its annotations."""
    while isinstance(annotated, Metadata):
        annotated = annotated.type
    return annotated


def alternatives(kind: Type) -> tuple[Type, ...]:
    """The types of a union without their annotations; of any other type, itself."""
    return tuple(map(bare, kind.types)) if isinstance(kind, UnionType) else (kind,)


def described(struct: type[msgspec.Struct]) -> str:
    """The first paragraph of a struct's docstring, as one line."""
    return " ".join(inspect.cleandoc(struct.__doc__ or "").split("\n\n")[0].split())

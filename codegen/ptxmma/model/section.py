"""Sections of the manual: releases of the PTX ISA number them differently."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ptxmma.model.fields import Entry, Text, VersionText, like


class Section(Entry, frozen=True, kw_only=True):
    """A section of the manual, with its number in each release that has it."""

    title: Text  # "Matrix Shape"
    numbers: Annotated[  # {"9.1": "9.7.14.1", "9.4": "9.7.16.1"}
        dict[VersionText, Annotated[str, like(r"^[0-9]+(\.[0-9]+){2,}$", 'the number of a section, e.g. "9.7.14.1"')]],
        Meta(min_length=1, description="the number in each release of the manual"),
    ]

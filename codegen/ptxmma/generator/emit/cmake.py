"""A CMake package and a pkg-config file, with which build systems find the headers; both are relative to their own place.

The files below ``generated/share`` go to the prefix of a Python environment, where CMake searches by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmma.catalog.instructions import Catalog
from ptxmma.generator.emit import Output
from ptxmma.generator.emit.templating import banner, render

_FILES = {
    "generated/cmake/ptxmmaConfig.cmake": "cmake/config.cmake.jinja",
    "generated/cmake/ptxmmaConfigVersion.cmake": "cmake/version.cmake.jinja",
    "generated/share/cmake/ptxmma/ptxmmaConfig.cmake": "cmake/installed.cmake.jinja",
    "generated/share/cmake/ptxmma/ptxmmaConfigVersion.cmake": "cmake/version.cmake.jinja",
    "generated/pkgconfig/ptxmma.pc": "cmake/ptxmma.pc.jinja",
}


def emit(catalog: Catalog) -> Iterator[Output]:
    """``find_package(ptxmma CONFIG)`` and ``pkg-config --cflags ptxmma``."""
    head = banner("#", catalog, ["spec/"])
    version = catalog.database.spec.version
    for path, template in _FILES.items():
        yield Output(path, render(template, banner=head, version=version, major=version.partition(".")[0]))

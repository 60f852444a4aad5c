# SPDX-License-Identifier: MIT
"""The places of the C++ library in an installed package, for extensions that link with it."""

from __future__ import annotations

import pathlib

from .errors import MissingFileError

_ROOT = pathlib.Path(__file__).parent


def _folder(relative: str, what: str) -> str:
    folder = _ROOT / relative
    if not folder.is_dir():
        raise MissingFileError(
            f"dlprim has no {what} in {folder}: only an installed package does ('pip install .' in dlprim's source)"
        )
    return str(folder)


def get_include() -> str:
    """The folder that holds the headers ``dlprim/*.hpp`` of the C++ library.

    :raises FileNotFoundError: if dlprim is imported from a build folder and not installed.
    """
    return _folder("include", "headers")


def get_library_dir() -> str:
    """The folder that holds the C++ library ``libdlprim_core.so``.

    :raises FileNotFoundError: if dlprim is imported from a build folder and not installed.
    """
    return _folder("lib", "library")


def get_cmake_dir() -> str:
    """The folder of the CMake package: ``-Ddlprim_DIR=FOLDER`` makes ``find_package(dlprim)`` provide ``dlprim::core``.

    :raises FileNotFoundError: if dlprim is imported from a build folder and not installed.
    """
    return _folder("lib/cmake/dlprim", "CMake package")

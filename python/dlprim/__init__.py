# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from ._core import Context, DeviceInfo, Tensor, __version__, devices
from ._paths import get_cmake_dir, get_include, get_library_dir
from .errors import (
    BuildError,
    DeviceError,
    DlprimError,
    FileError,
    FormatError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    NumericError,
    OutOfMemoryError,
    UnsupportedError,
)

__all__ = [
    "BuildError",
    "Context",
    "DeviceError",
    "DeviceInfo",
    "DlprimError",
    "FileError",
    "FormatError",
    "InvalidArgumentError",
    "MissingFileError",
    "NotFoundError",
    "NumericError",
    "OutOfMemoryError",
    "Tensor",
    "UnsupportedError",
    "devices",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
]

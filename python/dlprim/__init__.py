# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from ._core import (
    Context,
    Counters,
    DeviceInfo,
    Tensor,
    Traits,
    devices,
    find,
    from_dlpack,
    set_log,
    troubles,
)
from ._core import version as __version__
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
    "__version__",
    "BuildError",
    "Context",
    "Counters",
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
    "Traits",
    "UnsupportedError",
    "devices",
    "find",
    "from_dlpack",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
    "set_log",
    "troubles",
]

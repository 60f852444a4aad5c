# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from . import nn, plot, summary, weights
from ._core import Context, DeviceInfo, NodeReport, Solver, Tensor, devices
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
from .net import Net

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
    "Net",
    "NodeReport",
    "NotFoundError",
    "NumericError",
    "OutOfMemoryError",
    "Solver",
    "Tensor",
    "UnsupportedError",
    "devices",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
    "nn",
    "plot",
    "summary",
    "weights",
]

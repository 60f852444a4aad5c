# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from ._core import Context, DeviceInfo, NodeReport, Solver, Tensor, devices
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
]

# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from . import nn, ops, plot, schedules, summary, weights
from ._core import (
    Context,
    Counters,
    DeviceInfo,
    Schedule,
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
from .net import Net, NetworkDescription, NodeReport, OperatorDescription, ParamDescription, TensorDescription, describe
from .solver import Solver
from .train import FitProgress, TrainProgress, TrainResult, fit, train

__all__ = [
    "BuildError",
    "Context",
    "Counters",
    "DeviceError",
    "DeviceInfo",
    "DlprimError",
    "FileError",
    "FitProgress",
    "FormatError",
    "InvalidArgumentError",
    "MissingFileError",
    "Net",
    "NetworkDescription",
    "NodeReport",
    "NotFoundError",
    "NumericError",
    "OperatorDescription",
    "OutOfMemoryError",
    "ParamDescription",
    "Schedule",
    "Solver",
    "Tensor",
    "TensorDescription",
    "TrainProgress",
    "TrainResult",
    "Traits",
    "UnsupportedError",
    "__version__",
    "describe",
    "devices",
    "find",
    "fit",
    "from_dlpack",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
    "nn",
    "ops",
    "plot",
    "schedules",
    "set_log",
    "summary",
    "train",
    "troubles",
    "weights",
]

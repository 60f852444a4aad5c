# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from . import schedules
from ._core import (
    Context,
    DeviceInfo,
    NetworkDescription,
    NodeReport,
    OperatorDescription,
    ParamDescription,
    Schedule,
    Tensor,
    TensorDescription,
    TrainProgress,
    TrainResult,
    devices,
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
from .net import Net, describe
from .solver import Solver
from .train import FitProgress, fit, train

__all__ = [
    "__version__",
    "BuildError",
    "Context",
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
    "UnsupportedError",
    "describe",
    "devices",
    "fit",
    "schedules",
    "train",
    "get_cmake_dir",
    "get_include",
    "get_library_dir",
]

# SPDX-License-Identifier: MIT
"""dlprim: deep learning on any OpenCL device, and on the host without one."""

from ._core import Context, NodeReport, Solver
from .net import Net

__all__ = ["Context", "Net", "NodeReport", "Solver"]

# SPDX-License-Identifier: MIT
"""The backend "ocl" of torch.distributed, by which DistributedDataParallel runs on OpenCL devices.

Loading the package registers it. A process has one rank and one device. Values of ranks go by the host, by PyTorch's
Gloo; sums are made on the device, in one order of ranks, so that all ranks get the same bits in every run.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from torch import distributed

from . import _state

if TYPE_CHECKING:  # these exist only where torch.distributed does
    from torch._C._distributed_c10d import Backend, Store


def register() -> None:
    """Makes init_process_group("ocl") known, where this build of torch has torch.distributed."""
    if distributed.is_available():
        distributed.Backend.register_backend("ocl", _create, devices=["ocl"])


def _create(store: Store, rank: int, size: int, timeout: datetime.timedelta) -> Backend:
    """Called by torch.distributed for each process group, in all of its ranks."""
    module = _state.module()
    if not distributed.is_gloo_available():
        raise RuntimeError('The backend "ocl" sends values by Gloo, which this build of PyTorch lacks.')
    from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo

    gloo = ProcessGroupGloo(PrefixStore("ocl/", store), rank, size, timeout=timeout)
    backend: Backend = module.distributed_backend(gloo, round(timeout.total_seconds() * 1000))
    return backend

# SPDX-License-Identifier: MIT
"""torch.ocl: functions for PyTorch's device "ocl", as torch.cuda has them for "cuda".

A device may be given as an index, as a text such as "ocl:1", or as a torch.device; None means the current device.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from . import _state

Device = int | str | torch.device | None


class DeviceProperties(NamedTuple):
    """What is known of a device."""

    name: str
    """The driver's name of the device."""
    id: str
    """The text with which dlprim opens it: "0:1" is device 1 of platform 0."""
    platform: str
    vendor: str
    driver: str
    kind: str
    """"cpu", "gpu" or "accelerator"."""
    total_memory: int
    """Bytes of the device's memory."""
    max_alloc_bytes: int
    """Most bytes of one tensor."""
    local_bytes: int
    """Bytes of local memory of a work-group."""
    multi_processor_count: int
    """Compute units."""
    max_work_group: int
    fp64: bool
    """Whether the device computes with double."""
    fp16: bool
    """Whether the device computes with half. Tensors of half work in any case."""


# What there is.


def is_available() -> bool:
    """Whether there is a device. Opens none, and never raises; `why()` says why not."""
    return device_count() > 0


def why() -> str:
    """Why there is no device, and what would help. Empty where there is one."""
    return _state.why()


def device_count() -> int:
    """The number of devices."""
    return 0 if _state._C is None else int(_state._C.device_count())


def get_device_properties(device: Device = None) -> DeviceProperties:
    """What is known of a device. Opens it."""
    return DeviceProperties(**_state.module().properties(_index(device)))


def get_device_name(device: Device = None) -> str:
    """The driver's name of a device."""
    return str(_state.module().device_name(_index(device)))


def is_initialized() -> bool:
    """Whether a device has been opened."""
    return any(_state.module().is_open(i) for i in range(device_count()))


def __getattr__(name: str) -> bool:
    """`_initialized`, by which torch.utils.checkpoint knows whether there are random numbers to draw again."""
    if name != "_initialized":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return is_initialized()


def init() -> None:
    """Opens the current device, which else happens at its first use."""
    _lazy_init()
    _state.module().open(current_device())


def _lazy_init() -> None:
    """Called by torch before it makes a tensor on the device."""
    if not is_available():
        raise RuntimeError(f'There is no device "ocl". {why()}')


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used a device."""
    return _state._C is not None and bool(_state._C.in_bad_fork())


# The current device.


def current_device() -> int:
    """The index of the device that "ocl" means."""
    return int(_state.module().current_device())


def set_device(device: Device) -> None:
    """Makes `device` the one that "ocl" means in this thread."""
    index = _index(device)
    if index >= 0:
        _state.module().set_device(index)


class device:  # noqa: N801  # as torch.cuda.device
    """A context in which "ocl" means another device."""

    def __init__(self, device: Device) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> device:
        self.prev_idx = current_device()
        if self.idx >= 0:
            set_device(self.idx)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        set_device(self.prev_idx)


class device_of(device):  # noqa: N801
    """A context in which "ocl" means the device of a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.get_device() if tensor.device.type == "ocl" else -1)


def synchronize(device: Device = None) -> None:
    """Waits until all work of the device is done."""
    _state.module().synchronize(_index(device))


# Streams and events: a device has one queue, in order.

Stream = torch.Stream
Event = torch.Event


def current_stream(device: Device = None) -> torch.Stream:
    """The stream on which work is enqueued."""
    return torch.accelerator.current_stream(_index(device))


def default_stream(device: Device = None) -> torch.Stream:
    """The stream on which work is enqueued where no other was chosen."""
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=_device_type())


def set_stream(stream: torch.Stream) -> None:
    """Makes `stream` the current one."""
    torch.accelerator.set_stream(stream)


def stream(stream: torch.Stream) -> torch.Stream:
    """A context in which work is enqueued on `stream`."""
    return stream


# Random numbers.


def manual_seed(seed: int) -> None:
    """Seeds the generator of the current device."""
    if device_count() > 0:
        _state.module().manual_seed(current_device(), int(seed) % 2**64)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    # Called by torch.manual_seed(), which must not look for devices where nobody uses them. The seed is kept then.
    for index in range(device_count()):
        _state.module().manual_seed(index, int(seed) % 2**64)


def seed() -> None:
    """Seeds the generator of the current device with a random number."""
    _state.module().seed(current_device())


def seed_all() -> None:
    """Seeds the generators of all devices with one random number."""
    seed()
    manual_seed_all(initial_seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return int(_state.module().initial_seed(current_device()))


def get_rng_state(device: Device = "ocl") -> torch.Tensor:
    """The state of a device's generator, a tensor of bytes."""
    return torch.frombuffer(bytearray(_state.module().rng_state(_index(device))), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: Device = "ocl") -> None:
    """Sets the state of a device's generator."""
    _state.module().set_rng_state(_index(device), new_state.cpu().contiguous().numpy().tobytes())


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


# Memory.


def empty_cache() -> None:
    """Frees the memory that devices keep for later tensors."""
    if _state._C is not None:
        _state._C.empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free bytes, as far as this process knows, and all bytes of a device's memory."""
    free, total = torch.accelerator.get_memory_info(_index(device))
    return free, total


def memory_stats(device: Device = None) -> dict[str, Any]:
    """Statistics of memory, by the names of torch.cuda.memory_stats()."""
    return dict(torch.accelerator.memory_stats(_index(device)))


def memory_allocated(device: Device = None) -> int:
    """Bytes of tensors."""
    return int(torch.accelerator.memory_allocated(_index(device)))


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes of tensors so far."""
    return int(torch.accelerator.max_memory_allocated(_index(device)))


def memory_reserved(device: Device = None) -> int:
    """Bytes of tensors and of memory that is kept for later ones."""
    return int(torch.accelerator.memory_reserved(_index(device)))


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes of tensors and of memory that was kept."""
    return int(torch.accelerator.max_memory_reserved(_index(device)))


def reset_peak_memory_stats(device: Device = None) -> None:
    """Makes the most bytes those of now."""
    torch.accelerator.reset_peak_memory_stats(_index(device))


def counters(device: Device = None) -> dict[str, int]:
    """How often the device's context launched kernels, waited, allocated and compiled."""
    return dict(_state.module().counters(_index(device)))


def prewarm(model: torch.nn.Module, *inputs: Any, training: bool = False) -> int:
    """Compiles the kernels that `model(*inputs)` needs ahead of its first use, and returns how many were compiled.

    A copy of the model runs once, in its own mode, so parameters, buffers and the device's generator stay as they are.
    With `training` gradients of the outputs' sums are computed, too. The model and the tensors of `inputs` are on
    the same device.
    """
    device = next((tensor.device for tensor in [*model.parameters(), *model.buffers()]), torch.device("ocl"))
    if device.type != "ocl":
        raise ValueError(f'prewarm() compiles for the device "ocl", and the model is on "{device}"')
    before, state = counters(device)["compiles"], get_rng_state(device)
    trial = copy.deepcopy(model)
    with torch.set_grad_enabled(training):
        outputs = trial(*inputs)
        if training:
            leaves = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
            torch.autograd.backward([leaf.sum() for leaf in leaves])
    synchronize(device)
    set_rng_state(state, device)
    return counters(device)["compiles"] - before


# Automatic mixed precision.


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types in which torch.autocast("ocl") computes."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported() -> bool:
    """Whether tensors of bfloat16 work."""
    return True


# What runs on the CPU.


_eager: dict[str, int] = {}  # operators that torch.compile's backend leaves to eager calls


def fallbacks() -> dict[str, int]:
    """How often each operator that has no kernel here ran on the CPU.

    "eager aten.x" counts graphs of torch.compile in which the operator runs eagerly on the device between planned
    regions.
    """
    return {**_state.module().fallback_counts(), **{f"eager {name}": count for name, count in _eager.items()}}


def reset_fallbacks() -> None:
    """Sets these counts to 0."""
    _state.module().reset_fallback_counts()
    _eager.clear()


def fallback_mode() -> str:
    """What happens to an operator without a kernel: "" counts it, "list" prints the counts at exit, "error" raises."""
    return str(_state.module().fallback_mode())


def set_fallback_mode(mode: str) -> None:
    """Sets fallback_mode(), which the environment variable DLPRIM_TORCH_FALLBACK sets first."""
    _state.module().set_fallback_mode(mode)


def _at_exit() -> None:
    """Prints fallbacks if that was asked for, and waits for the devices."""
    if _state._C is None:
        return
    if fallback_mode() == "list":
        for name, count in sorted(fallbacks().items(), key=lambda item: -item[1]):
            print(f"{count:8d} {name}", file=sys.stderr)
    if not _is_in_bad_fork():
        _state._C.shut_down()


def _device_type() -> int:
    return int(torch._C._autograd.DeviceType.PrivateUse1.value)


def _index(device: Device) -> int:
    """The index of a device; that of the current one where none is given."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is None:
        return current_device()
    found = torch.device(device)
    if found.type != "ocl":
        raise ValueError(f'A device "ocl" was expected, not "{found}".')
    return current_device() if found.index is None else found.index

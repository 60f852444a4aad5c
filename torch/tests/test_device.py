# SPDX-License-Identifier: MIT
"""The device: what torch.accelerator and torch.ocl say, streams, events, random states, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from programs import NO_DEVICE, busy, ever, run


def test_accelerator() -> None:
    """torch.accelerator finds the device."""
    assert torch.accelerator.is_available()
    assert str(torch.accelerator.current_accelerator()) == "ocl"
    assert torch.accelerator.device_count() == torch.ocl.device_count()
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.synchronize()
    assert torch.ocl.get_device_properties().total_memory > 0
    assert torch.ocl.get_device_name()
    free, total = torch.ocl.mem_get_info()
    assert 0 < free <= total


def test_streams_and_events() -> None:
    """They exist, and order what they must."""
    stream = torch.Stream("ocl")
    before = torch.accelerator.current_stream()
    begin, end = (torch.Event("ocl", enable_timing=True) for _ in range(2))
    with stream:
        assert torch.accelerator.current_stream() == stream
        begin.record()
        x = torch.ones(8, device="ocl") + 1
        end.record()
    assert torch.accelerator.current_stream() == before
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    before.wait_event(end)
    stream.synchronize()
    assert x.sum().item() == 16


def goes_on_before(begin: torch.Event, end: torch.Event, products: int) -> bool:
    """Records an event on each side of products. Returns whether this ended before the products did."""
    begin.record()
    busy(products)
    end.record()
    return not end.query()


def test_events_do_not_wait() -> None:
    """To record an event and to ask for it wait for nothing; its time does."""
    busy(1)
    torch.accelerator.synchronize()
    for timed in (False, True):
        begin, end = (torch.Event("ocl", enable_timing=timed) for _ in range(2))
        waits = torch.ocl.counters()["waits"]
        assert ever(lambda products, begin=begin, end=end: goes_on_before(begin, end, products))
        assert torch.ocl.counters()["waits"] == waits
        end.synchronize()
        assert begin.query() and end.query()
        if timed:
            assert begin.elapsed_time(end) > 0.1
    with pytest.raises(ValueError, match="enable_timing"):
        torch.Event("ocl").elapsed_time(end)


def test_random_states() -> None:
    """Seeds and states are kept, restored and forked."""
    torch.manual_seed(5)
    assert torch.ocl.initial_seed() == 5
    state = torch.ocl.get_rng_state()
    torch.ocl.manual_seed(6)
    with torch.random.fork_rng(device_type="ocl"):
        torch.ocl.manual_seed(7)
    assert torch.ocl.initial_seed() == 6
    torch.ocl.set_rng_state(state)
    assert torch.ocl.initial_seed() == 5
    generator = torch.Generator("ocl").manual_seed(3)
    assert generator.initial_seed() == 3 and generator.device.type == "ocl"
    other = torch.Generator("ocl")
    other.set_state(generator.get_state())
    assert other.initial_seed() == 3


def test_device_that_is_not_there() -> None:
    """The message names those that are."""
    with pytest.raises(RuntimeError, match="no device ocl:9.*ocl:0 is"):
        torch.ones(1, device="ocl:9")


def test_without_opencl() -> None:
    """No device, a reason, and nothing printed."""
    code = (
        "import torch; assert not torch.ocl.is_available() and torch.ocl.device_count() == 0; "
        "assert torch.accelerator.current_accelerator(check_available=True) is None; torch.manual_seed(1); "
        "assert 'install' in torch.ocl.why().lower(), torch.ocl.why()\n"
        "try: torch.ones(1, device='ocl')\n"
        "except RuntimeError as error: assert torch.ocl.why() in str(error), error\n"
        "else: raise SystemExit('made a tensor')"
    )
    assert run(code, **NO_DEVICE) == ""


def test_another_torch() -> None:
    """A package built for another torch is not loaded, and says so."""
    code = (
        "import sys, types; fake = types.ModuleType('dlprim_torch._build'); fake.torch_version = '1.2.3'; "
        "sys.modules['dlprim_torch._build'] = fake; import torch; assert not torch.ocl.is_available(); "
        "assert '1.2.3' in torch.ocl.why() and torch.__version__.split('+')[0] in torch.ocl.why(); "
        "assert 'pip install' in torch.ocl.why(); torch.manual_seed(1)"
    )
    assert run(code) == ""


def test_import_opens_nothing() -> None:
    """Importing torch neither opens a device nor takes long."""
    assert run("import torch; assert not torch.ocl.is_initialized()") == ""


def test_listed_fallbacks() -> None:
    """DLPRIM_TORCH_FALLBACK=list prints at exit."""
    code = "import torch; torch.linalg.eigvalsh(torch.eye(2, device='ocl'))"
    assert "aten::_linalg_eigh" in run(code, DLPRIM_TORCH_FALLBACK="list")


def test_fork() -> None:
    """A forked process that touches the device gets an error; one that does not ends well."""
    code = """
import os, warnings, torch
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork() beside threads
x = torch.ones(2, device="ocl") + 1
def child(work):
    pid = os.fork()
    if pid == 0:
        try: work()
        except RuntimeError as error: os._exit(3 if "spawn" in str(error) else 4)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert child(lambda: torch.ones(2).sum()) == 0
assert child(lambda: x + 1) == 3
assert child(lambda: torch.ones(2, device="ocl")) == 3
assert child(lambda: torch.manual_seed(1)) == 0
assert (x + 1).tolist() == [3, 3]
"""
    assert run(code) == ""


def test_exit_with_live_tensors_and_threads() -> None:
    """The process ends cleanly."""
    code = """
import threading, torch
kept = [torch.ones(100, device="ocl") + i for i in range(10)]
started = threading.Barrier(3)
def work():
    own = torch.ones(100, device="ocl", requires_grad=True)
    (own + 1).sum().backward()
    started.wait()
    threading.Event().wait()
for _ in range(2): threading.Thread(target=work, daemon=True).start()
started.wait()
x = kept[0] * 2
import builtins; builtins.kept = kept
"""
    assert run(code) == ""


def test_prewarm() -> None:
    """It compiles what the model needs, and leaves the model and the generator as they were."""
    model = torch.nn.Sequential(
        torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.5), torch.nn.Linear(5, 3)
    ).to("ocl")
    x = torch.randn(4, 7, device="ocl")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.ocl.get_rng_state()
    torch.ocl.prewarm(model, x, training=True)
    assert torch.ocl.prewarm(model, x, training=True) == 0
    assert torch.equal(torch.ocl.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    compiles = torch.ocl.counters()["compiles"]
    model(x).sum().backward()
    torch.accelerator.synchronize()
    assert torch.ocl.counters()["compiles"] == compiles
    with pytest.raises(ValueError, match='prewarm.. compiles for the device "ocl", and the model is on "cpu"'):
        torch.ocl.prewarm(torch.nn.Linear(2, 2), torch.ones(1, 2))


def test_prewarm_serves_another_process(tmp_path: Path) -> None:
    """A process that comes later compiles nothing for the model's first step, in PoCL's cache neither."""
    code = """
import sys, torch
from pathlib import Path
torch.manual_seed(1)
layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(36, 3)]
model = torch.nn.Sequential(*layers).to("ocl")
x = torch.randn(2, 3, 8, 8).to("ocl")
def kernels(): return sum(1 for _ in Path(sys.argv[1]).rglob("*.so"))
if sys.argv[2] == "ahead": print(torch.ocl.prewarm(model, x, training=True) > 0)
else:
    before = kernels()
    model(x).sum().backward()
    torch.ocl.synchronize()
    print(torch.ocl.counters()["compiles"], kernels() - before)
"""
    caches = {"DLPRIM_CACHE": "1", "DLPRIM_CACHE_DIR": str(tmp_path / "dlprim"), "POCL_CACHE_DIR": str(tmp_path)}
    printed = [
        run(f"import sys; sys.argv[1:] = {[str(tmp_path), when]!r}\n{code}", **caches) for when in ("ahead", "then")
    ]
    assert printed == ["True\n", "0 0\n"]


def test_profiles_name_waits_for_compilers() -> None:
    """A profile has the wait for a kernel apart from the operator that needs it."""
    code = """
import torch
from torch.profiler import ProfilerActivity, profile
x = torch.ones(3, 5, device="ocl")
with profile(activities=[ProfilerActivity.CPU]) as seen:
    y = (x * 3).exp()
    torch.accelerator.synchronize()
print(sum(event.count for event in seen.key_averages() if event.key == "ocl::compile"), y.shape)
"""
    count, shape = run(code).split(maxsplit=1)
    assert int(count) > 0 and shape.startswith("torch.Size([3, 5])\n")

# SPDX-License-Identifier: MIT
"""Several threads on one context, and what a child of fork() may use."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

import dlprim
import numpy as np
import pytest
from dlprim import Tensor
from example_programs import run_code


def test_threads_share_a_context(context: dlprim.Context) -> None:
    def work(number: int) -> bool:
        rng = np.random.default_rng(number)
        right = True
        for size in (3, 16, 33) * 4:
            a = rng.standard_normal((size, size), dtype="float32")
            x = Tensor(context, a)
            result = (x @ x.T * 0.5 + number - x[:, :1]).numpy()
            right = right and np.allclose(result, a @ a.T * 0.5 + number - a[:, :1], rtol=1e-4, atol=1e-4)
        return right

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(24)))


def test_tensors_go_from_thread_to_thread(context: dlprim.Context) -> None:
    tensor = Tensor.zeros(context, (50, 50))
    turn = threading.Semaphore(1)

    def work(_: int) -> None:
        nonlocal tensor
        for _ in range(20):
            with turn:
                tensor = tensor + 1

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert np.unique(tensor.numpy()).tolist() == [80]


def test_other_threads_run_while_one_waits(opencl: dlprim.Context) -> None:
    """A copy and finish() let the interpreter's lock go."""
    x = Tensor.full(opencl, (700, 700), 0.001)
    (x @ x).numpy()  # compiled
    counts = [0]
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            counts[0] += 1

    old = sys.getswitchinterval()
    # Short while the products are enqueued, so that they are not done before the wait begins.
    sys.setswitchinterval(1e-4)
    thread = threading.Thread(target=count)
    try:
        thread.start()
        y = x
        for _ in range(10):
            y = y @ x
        # Long from here on: the other thread counts only if finish() lets it.
        sys.setswitchinterval(1)
        before = counts[0]
        opencl.finish()
        assert counts[0] > before
    finally:
        done.set()
        sys.setswitchinterval(old)
        thread.join()


def test_logging_threads_do_not_lock_each_other_out(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLPRIM_CACHE", "1")
    monkeypatch.setenv("DLPRIM_CACHE_DIR", "/dev/null/nowhere")  # every context complains about it
    lines: list[str] = []
    dlprim.set_log(lambda level, line: lines.append(line))
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:

        def work(number: int) -> float:
            own = dlprim.Context(device)
            dlprim.set_log(lambda level, line: lines.append(line))
            return float((Tensor(own, [1.0, number]) * (number + 0.5)).numpy()[0])

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(work, range(8))) == [number + 0.5 for number in range(8)]
    finally:
        sys.setswitchinterval(old)
        dlprim.set_log(None)


# fork().


def in_child(work: Callable[[], str], seconds: int = 60) -> str:
    """What `work` returns in a child of fork(), which then ends as Python's programs do."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        try:
            answer = work()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, answer
    return answer


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() here")


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_is_told_that_the_device_is_its_parents(context: dlprim.Context) -> None:
    tensor = Tensor(context, [1.0, 2.0]) * 2
    uses: list[Callable[[], object]] = [
        lambda: tensor + 1,
        lambda: tensor.numpy(),
        lambda: tensor.fill(0),
        lambda: Tensor(context, [1.0]),
        lambda: context.finish(),
        lambda: np.asarray(tensor),
    ]
    for use in uses:
        answer = in_child(lambda use=use: str(use()))  # type: ignore[misc]
        assert answer.startswith(f"DeviceError: device {context.info.id} (")
        assert "was opened before this process was forked" in answer
        assert '"spawn" or "forkserver"' in answer
        assert "\n" not in answer
    assert tensor.tolist() == [2, 4]


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_may_open_the_host(context: dlprim.Context) -> None:
    tensor = Tensor(context, np.ones((300, 300), "float32"))
    (tensor @ tensor).numpy()

    def work() -> str:
        own = dlprim.Context("cpu")
        x = Tensor(own, np.full((300, 300), 2, "float32"))
        for _ in range(5):
            y = x @ x + x
        return str(y[0, 0].item())

    assert in_child(work) == "1202.0"


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_is_told_that_opencl_is_its_parents(opencl: dlprim.Context) -> None:
    uses: list[Callable[[], object]] = [
        lambda: dlprim.Context(opencl.info.id),
        lambda: dlprim.Context("gpu"),
        lambda: dlprim.devices(),
        lambda: dlprim.find(),
    ]
    for use in uses:
        answer = in_child(lambda use=use: str(use()))  # type: ignore[misc]
        assert answer.startswith("DeviceError: OpenCL was used before this process was forked"), answer


@needs_fork
def test_a_child_that_ends_as_programs_do_does_not_hang(device: str) -> None:
    """It runs destructors and exit handlers over what its parent opened."""
    program = f"""
import os, warnings
warnings.simplefilter("ignore")
import dlprim
context = dlprim.Context({device!r})
tensor = dlprim.Tensor(context, [1.0, 2.0])
result = tensor @ tensor
for _ in range(3):
    result = result * 2 + 1
child = os.fork()
if child == 0:
    del result
    try:
        tensor + 1
    except dlprim.DeviceError:
        print("told", flush=True)
    del tensor, context
else:
    assert os.waitpid(child, 0)[1] == 0
    print(result.item())
"""
    assert run_code(program) == "told\n47.0\n"


@needs_fork
def test_a_child_of_a_parent_that_used_nothing_may_use_everything(device: str) -> None:
    program = f"""
import os, dlprim
child = os.fork()
tensor = dlprim.Tensor(dlprim.Context({device!r}), [1.0, 2.0])
print((tensor * 2).tolist(), flush=True)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    assert run_code(program).count("[2.0, 4.0]") == 2


@pytest.mark.parametrize(
    "work",
    [
        "x @ x",  # asks for the interpreter's lock when a call returns
        "ops.relu(x).numpy()",
        "solver.step_if(lambda: True)",  # and in the middle of one, with the context's lock in its hands
    ],
)
def test_python_ends_while_a_daemon_thread_works(device: str, work: str) -> None:
    """Such a thread neither aborts the process nor keeps it from ending."""
    program = f"""
import threading, numpy, dlprim, small_networks
from dlprim import ops
context = dlprim.Context({device!r})
x = dlprim.Tensor.zeros(context, (300, 300))
net = dlprim.Net(context, small_networks.classifier())
net.initialize()
solver = dlprim.Solver(net)
net.forward(*small_networks.samples())
started = threading.Semaphore(0)
def loop():
    while True:
        {work}
        started.release()
threading.Thread(target=loop, daemon=True).start()
for _ in range(5):
    started.acquire()
"""
    for _ in range(3):
        run_code(program)


def test_threads_share_a_net_by_run(context: dlprim.Context) -> None:
    text = {
        "inputs": [{"name": "x", "shape": [4, 64]}],
        "outputs": ["y"],
        "operators": [{"name": "fc", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
                       "options": {"outputs": 16}}],
    }  # fmt: skip
    net = dlprim.Net(context, text, mode="inference")
    net.initialize()
    values = [np.full((4, 64), number, np.float32) for number in range(3)]
    expected = [net.run(x=value)["y"] for value in values]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(100):
            result = net.run(x=values[number])["y"]
            if not np.array_equal(result, expected[number]):
                wrong.append(number)
            with pytest.raises(dlprim.InvalidArgumentError):  # the lock is given back
                net.run(x=values[number][:2])
            with net.locked():
                net.set_input("x", values[number])
                net.enqueue_forward()
                if not np.array_equal(net.output("y").numpy(), expected[number]):
                    wrong.append(number)
            net.enter_lock()  # what locked() does
            net.leave_lock()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

# SPDX-License-Identifier: MIT
"""Processes that are the ranks of a process group "ocl", each on a device of its own where there are as many."""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

NEEDS_GLOO = pytest.mark.skipif(
    not distributed.is_available() or not distributed.is_gloo_available(), reason="this PyTorch has no Gloo"
)
Work = Callable[..., Any]


def _serve(rank: int, size: int, folder: str, backend: str, timeout: float, pipe: Connection) -> None:
    """A rank: joins the group, then calls what comes through the pipe and answers with what it returned or raised."""
    torch.set_num_threads(1)
    torch.ocl.set_device(rank % torch.ocl.device_count())
    distributed.init_process_group(
        backend,
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=timeout),
    )
    torch.ocl.set_fallback_mode("error")
    while (order := pipe.recv()) is not None:
        work, arguments = order
        try:
            pipe.send((work(*arguments), None))
        except BaseException:
            pipe.send((None, traceback.format_exc()))
    distributed.destroy_process_group()


class Ranks:
    """A process group of so many processes, which get variables of the environment beside this process's."""

    def __init__(
        self, folder: Path, size: int = 2, backend: str = "ocl", timeout: float = 60, **environment: str
    ) -> None:
        context = multiprocessing.get_context("spawn")
        folder.mkdir(parents=True, exist_ok=True)
        # PoCL then has a device for each rank.
        environment = {"POCL_DEVICES": " ".join(["pthread"] * size), **environment}
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        self.pipes, self.processes = [], []
        try:
            for rank in range(size):
                own, other = context.Pipe()
                process = context.Process(
                    target=_serve, args=(rank, size, str(folder), backend, timeout, other), daemon=True
                )
                process.start()
                other.close()
                self.pipes.append(own)
                self.processes.append(process)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    def start(self, rank: int, work: Work, *arguments: object) -> None:
        """Makes one rank call `work`."""
        self.pipes[rank].send((work, arguments))

    def answer(self, rank: int, patience: float = 120) -> tuple[Any, str | None]:
        """What the rank's call returned, or the text of its exception."""
        assert self.pipes[rank].poll(patience), f"rank {rank} does not answer"
        result: tuple[Any, str | None] = self.pipes[rank].recv()
        return result

    def answers(self, work: Work, *arguments: object) -> list[tuple[Any, str | None]]:
        """The answers of all ranks to `work`, in their order."""
        for rank in range(len(self.pipes)):
            self.start(rank, work, *arguments)
        return [self.answer(rank) for rank in range(len(self.pipes))]

    def call(self, work: Work, *arguments: object) -> list[Any]:
        """What all ranks return for `work`. Fails where one raises."""
        answers = self.answers(work, *arguments)
        assert all(error is None for _, error in answers), "\n".join(str(error) for _, error in answers)
        return [value for value, _ in answers]

    def errors(self, work: Work, *arguments: object) -> list[str]:
        """The exceptions that `work` raises on all ranks."""
        answers = self.answers(work, *arguments)
        assert all(error is not None for _, error in answers), f"did not raise: {answers}"
        return [str(error) for _, error in answers]

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the processes."""
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():
                with contextlib.suppress(BrokenPipeError):  # it is about to end
                    pipe.send(None)
        for process in self.processes:
            process.join(20)
            if process.is_alive():
                process.terminate()

# SPDX-License-Identifier: MIT
"""Processes of a run, as tests of dlprim_train start them, and by which transports."""
import contextlib
import os
import pathlib
import subprocess
import sys
import threading
import time

from commands import SECONDS, TOOLS, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from starters import QUIET, free_port, place_of, transports_in  # noqa: E402

PLUGINS = pathlib.Path(os.environ.get("DLPRIM_TEST_PLUGINS", TOOLS))
TRAIN = str(TOOLS / "dlprim_train")
# The run in one process that bits are compared with has as many: by PoCL's threads some sums are cut.
os.environ["POCL_MAX_PTHREAD_COUNT"] = QUIET["POCL_MAX_PTHREAD_COUNT"]
TRANSPORTS = transports_in(PLUGINS)


@contextlib.contextmanager
def with_variables(**variables):
    """Variables of this process, which what it starts inherits."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Group:
    """Processes of a run that are started by hand, as torchrun starts them."""
    def __init__(self, count, arguments, per_rank=lambda rank: ([], {}), program=TRAIN):
        port = free_port()
        self.processes = []
        for rank in range(count):
            more, environment = per_rank(rank)
            self.processes.append(subprocess.Popen(
                [program, *map(str, arguments), *map(str, more)], env=os.environ | QUIET | place_of(rank, count, port) | environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def until(self, word, seconds=SECONDS):
        """Waits for a line of the first process that has the word in it; whether it came."""
        patience = threading.Timer(seconds, self.processes[0].kill)
        patience.start()
        try:
            return any(word in line for line in self.processes[0].stdout)
        finally:
            patience.cancel()

    def wait(self, seconds=SECONDS):
        """(code, stdout, stderr) of each."""
        end = time.monotonic() + seconds
        try:
            done = [process.communicate(timeout=max(end - time.monotonic(), 0.1)) for process in self.processes]
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return [(process.returncode, *texts) for process, texts in zip(self.processes, done)]

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()


def main_with_transports():
    """Runs the tests of a file, which are skipped where processes have nothing to exchange data by."""
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        raise SystemExit(77)
    print(f"transports: {', '.join(TRANSPORTS)}")
    main()

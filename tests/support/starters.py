# SPDX-License-Identifier: MIT
"""What starts several processes of a test: Open MPI's and MPICH's commands, and for Gloo an address of this machine."""

from __future__ import annotations

import pathlib
import shutil
import socket

STARTERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np"],
    "mpich": ["mpiexec.mpich", "-n"],
}


def transports_in(plugins: pathlib.Path) -> list[str]:
    """Those whose plugin is in the folder and whose starter is installed."""
    return [
        name
        for name in ("openmpi", "mpich", "gloo")
        if (plugins / f"dlprim_{name}.so").exists() and shutil.which(STARTERS.get(name, ["true"])[0])
    ]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# Every process is a whole device's worth of threads otherwise, which a machine of two cores does not have.
QUIET = {
    "DLPRIM_THREADS": "1",
    "POCL_MAX_PTHREAD_COUNT": "1",
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    "DLPRIM_AFFINITY": "0",
}


def place_of(rank: int, count: int, port: int, address: str = "127.0.0.1") -> dict[str, str]:
    """What tells one of so many processes of this machine its place, as torchrun does."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }

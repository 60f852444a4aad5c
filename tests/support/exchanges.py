# SPDX-License-Identifier: MIT
"""Starts collective_exchange_hash in several processes, by Open MPI, MPICH or Gloo. Hosts are names in a variable."""

from __future__ import annotations

import os
import pathlib
import subprocess

from starters import STARTERS, free_port, transports_in

PROGRAM = os.environ["DLPRIM_EXCHANGE_HASH"]
PLUGINS = pathlib.Path(os.environ["DLPRIM_PLUGINS"])
TRANSPORTS = transports_in(PLUGINS)
QUIET = {
    "DLPRIM_THREADS": "1",
    "POCL_MAX_PTHREAD_COUNT": "1",
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    "DLPRIM_AFFINITY": "0",
}
# Each starts the program with the host's name, and with a library that is loaded into this program alone.
ON_HOST = [
    "sh",
    "-c",
    "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}}; "
    "set_host() { shift $rank; export DLPRIM_HOST=$1; }; set_host $HOSTS; "
    'if [ "$PRELOAD" ]; then export LD_PRELOAD=$PRELOAD; fi; exec "$0" "$@"',
]


def start_by_hand(hosts: str, words: list[str], variables: dict[str, str]) -> list[subprocess.Popen[str]]:
    """Processes that exchange by Gloo."""
    count = len(hosts.split())
    place = {
        "HOSTS": hosts,
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    return [
        subprocess.Popen(
            [*ON_HOST, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | QUIET | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)} | variables,
        )
        for rank in range(count)
    ]


def run(transport: str, hosts: str, words: list[str], **variables: str) -> tuple[int, str, str]:
    """The code, and what all processes print."""
    if transport != "gloo":
        done = subprocess.run(
            [*STARTERS[transport], str(len(hosts.split())), *ON_HOST, *words],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
            env=os.environ | QUIET | {"HOSTS": hosts} | variables,
        )
        return done.returncode, done.stdout, done.stderr
    processes = start_by_hand(hosts, words, variables)
    out, errors = zip(*(process.communicate(timeout=240) for process in processes))
    return max((process.returncode for process in processes), key=abs), "".join(out), "".join(errors)

# SPDX-License-Identifier: MIT
"""Starts collective_exchange_hash in several processes, by Open MPI, MPICH or Gloo. Hosts are names in a variable."""

from __future__ import annotations

import os
import pathlib
import subprocess

from starters import QUIET, STARTERS, free_port, place_of, transports_in

PROGRAM = os.environ["DLPRIM_EXCHANGE_HASH"]
PLUGINS = pathlib.Path(os.environ["DLPRIM_PLUGINS"])
TRANSPORTS = transports_in(PLUGINS)
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
    count, port = len(hosts.split()), free_port()
    return [
        subprocess.Popen(
            [*ON_HOST, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | QUIET | {"HOSTS": hosts} | place_of(rank, count, port) | variables,
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

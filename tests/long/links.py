#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train over links that are slow, lose packets, or are cut: processes by Gloo in three network namespaces, which
have a host's name each (DLPRIM_HOST), so that no memory is shared between them.

    host 0: ranks 0 and 1 --+-- host 1: rank 2
                            +-- host 2: rank 3

The namespaces are joined by a bridge. Delay and loss are those of tc netem, or, where the kernel has no netem, those of
a switch in this program to which each namespace has a TUN device. It needs root and iproute2. DLPRIM_TOOLS is the
folder of dlprim_train. The exit code is 0 if nothing was wrong.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import pathlib
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

from training import Start, bits, write_training

HOSTS = (0, 0, 1, 2)  # of each rank
DELAY, LOSS = 0.05, 0.01
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
EPOCHS = 2


def ip(*words: str) -> None:
    """Calls ip."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Bridge:
    """Namespaces joined by a bridge, which is in a namespace of its own."""

    def __init__(self) -> None:
        self.own = [f"dlfaults{os.getpid()}n{host}" for host in range(3)]
        self.middle = f"dlfaults{os.getpid()}m"
        for name in (*self.own, self.middle):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")

    def connect(self) -> None:
        """Makes the links."""
        ip("-n", self.middle, "link", "add", "joined", "type", "bridge")
        ip("-n", self.middle, "link", "set", "joined", "up")
        for host, name in enumerate(self.own):
            ip("-n", name, "link", "add", "wire", "type", "veth", "peer", "name", f"wire{host}", "netns", self.middle)
            ip("-n", self.middle, "link", "set", f"wire{host}", "master", "joined", "up")
            self.address(host)

    def address(self, host: int) -> None:
        """Gives a namespace its address."""
        ip("-n", self.own[host], "address", "add", f"10.77.0.{host + 1}/24", "dev", "wire")
        ip("-n", self.own[host], "link", "set", "wire", "up")

    def slow(self) -> bool:
        """Delays and loses packets to each namespace; whether the kernel can."""
        return all(subprocess.run(
            ["ip", "netns", "exec", self.middle, "tc", "qdisc", "add", "dev", f"wire{host}", "root", "netem", "delay",
             f"{1000 * DELAY:.0f}ms", "loss", f"{100 * LOSS:.0f}%"], capture_output=True).returncode == 0
            for host in range(3))

    def cut(self, host: int, cut: bool) -> None:
        """Cuts the link of a namespace, or mends it: at its far end, so that the host does not know."""
        ip("-n", self.middle, "link", "set", f"wire{host}", "down" if cut else "up")

    def close(self) -> None:
        """Removes all."""
        for name in (*self.own, self.middle):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


class SlowSwitch(Bridge):
    """The same by TUN devices: a thread passes packets on after DELAY, and loses LOSS of them."""

    def connect(self) -> None:
        """Makes the devices, and starts the thread."""
        self.lines = []
        for host, name in enumerate(self.own):
            line = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(line, TUNSETIFF, struct.pack("16sH", f"wire{host}f".encode(), IFF_TUN | IFF_NO_PI))
            ip("link", "set", f"wire{host}f", "netns", name)
            ip("-n", name, "link", "set", f"wire{host}f", "name", "wire")
            self.address(host)
            self.lines.append(line)
        self.ends = False
        self.passed = self.lost = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        """Passes packets on."""
        chance = random.Random(5)
        waiting: list[tuple[float, int, int, bytes]] = []
        while not self.ends:
            patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.1
            for line in select.select(self.lines, [], [], min(patience, 0.1))[0]:
                packet = os.read(line, 65536)
                host = packet[19] - 1 if packet[0] >> 4 == 4 else -1
                if not 0 <= host < len(self.lines):
                    continue
                self.passed += 1
                if chance.random() < LOSS:
                    self.lost += 1
                else:
                    heapq.heappush(waiting, (time.monotonic() + DELAY, self.passed, host, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, host, packet = heapq.heappop(waiting)
                try:
                    os.write(self.lines[host], packet)
                except OSError:
                    self.lost += 1

    def close(self) -> None:
        """Ends the thread, and removes all."""
        self.ends = True
        self.thread.join()
        for line in self.lines:
            os.close(line)
        super().close()


class Runs:
    """Starts of a small training over a network."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.config = write_training(folder, EPOCHS)
        self.long = write_training(folder / "long", 100000, checkpoints={"every_epochs": 0})
        alone = Start("one", 1, [str(self.config), "-d", "cpu", "--out", str(folder / "one")])
        alone.ended(120)
        alone.forget()
        self.whole = bits(folder / "one")
        self.wrong = 0

    def start(self, network: Bridge, config: pathlib.Path) -> Start:
        """Starts four processes."""
        own = [{"DLPRIM_HOST": f"host{host}", "DLPRIM_START_SECONDS": "60", "LOCAL_RANK": str(HOSTS[:rank].count(host)),
                "LOCAL_WORLD_SIZE": str(HOSTS.count(host))} for rank, host in enumerate(HOSTS)]
        arguments = [str(config), "-d", "cpu", "--out", str(self.folder / "out"), "--replace"]
        before = [["ip", "netns", "exec", network.own[host]] for host in HOSTS]
        return Start("gloo", len(HOSTS), arguments, own, before, "10.77.0.1")

    def tell(self, good: bool, what: str) -> None:
        """Prints a result."""
        self.wrong += not good
        print(what if good else f"WRONG: {what}", flush=True)

    def finishes(self, network: Bridge, what: str, pause: bool = False) -> None:
        """A run that ends with the bits of one process; in the middle of it the link of host 2 may be cut for 10 s."""
        start = self.start(network, self.config)
        if pause:
            while "epoch 1/" not in start.text() and start.wait_until_gone(0.01) is None:
                pass
            network.cut(2, True)
            time.sleep(10)
            network.cut(2, False)
        ended = start.ended(500)
        seconds = time.monotonic() - start.begun
        good = set(ended.codes) == {0} and bits(self.folder / "out") == self.whole
        self.tell(good, f"{what}: codes {ended.codes}, {seconds:.1f} s for {EPOCHS * 16} steps"
                        f"{', the bits of one process' if good else ''} {ended.errors}")
        start.forget()

    def cut(self, network: Bridge, host: int) -> None:
        """The link of a host is cut in the middle of a run: the processes of each side name one of the other."""
        start = self.start(network, self.long)
        while "epoch 2/" not in start.text() and start.wait_until_gone(0.01) is None:
            pass
        network.cut(host, True)
        took = start.wait_until_gone(60)
        errors = start.errors()
        start.kill()
        good = took is not None and all(process.returncode == 75 for process in start.processes)
        for rank, text in enumerate(errors):
            named = re.search(r"^dlprim_train: rank (\d) \(process \d+ on '.*'\).* in step \d+", text)
            good = good and named is not None and (HOSTS[int(named.group(1))] == host) != (HOSTS[rank] == host)
        codes = [process.returncode for process in start.processes]
        self.tell(good, f"the link of host {host} is cut: all ended after {took or 0:.1f} s, codes {codes}: {errors}")
        start.forget()
        network.cut(host, False)


def main() -> int:
    """Runs all."""
    if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists("/dev/net/tun"):
        print("skipped: it needs root, iproute2 and /dev/net/tun")
        return 77
    with tempfile.TemporaryDirectory(prefix="dlprim-links-") as name:
        runs = Runs(pathlib.Path(name))
        network = Bridge()
        try:
            network.connect()
            runs.finishes(network, "a bridge")
            runs.finishes(network, "a bridge, a link cut for 10 s", pause=True)
            for host in (2, 0):
                runs.cut(network, host)
            netem = network.slow()
            if netem:
                runs.finishes(network, "50 ms, 1% loss by netem")
        finally:
            network.close()
        if not netem:
            slow = SlowSwitch()
            try:
                slow.connect()
                runs.finishes(slow, "50 ms, 1% loss by a switch of this program")
                print(f"{slow.passed} packets, of which {slow.lost} were lost")
            finally:
                slow.close()
    return min(1, runs.wrong)


if __name__ == "__main__":
    sys.exit(main())

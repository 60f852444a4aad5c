#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulated steps of up to eight ranks: the sums, the messages by stage, and times that are worked out by hand."""
import pathlib
import sys
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import simulate  # noqa: E402

FORWARD, BACKWARD, UPDATE = 3.0, 5.0, 1.0
FAST, SLOW = 1e6, 1.0  # gbytes_per_s: nothing takes time; a megabyte in a millisecond
ELEMENTS = 65536
HEADER = 128           # bytes of the transport's
ENVELOPE = 16          # which SimGrid's MPI adds to each message

FOLDER = pathlib.Path()

Result = dict[str, Any]


def run(levels: list[dict[str, Any]], devices: int, shards: int, parts: list[tuple[float, float]], **how: Any) -> Result:
    """`parts`: bytes, and the ms since backward began at which they are ready."""
    profile = {"shards": shards, "forward_ms": FORWARD, "backward_ms": BACKWARD, "update_ms": UPDATE,
               "parts": [{"bytes": size, "ready_ms": ready} for size, ready in parts]}
    cluster = {"device": how.pop("device", {}), "levels": levels}
    return simulate.simulate(FOLDER, simulate.description(cluster, profile, devices, **how), devices)


def level(count: int, speed: float = FAST, latency: float = 0, **more: Any) -> dict[str, Any]:
    return {"count": count, "gbytes_per_s": speed, "latency_us": latency} | more


class Simulation(unittest.TestCase):
    def assert_ms(self, result: Result, want: float) -> None:
        self.assertLess(abs(result["step_ms"] - want), 0.02, result)

    def test_sums(self) -> None:
        """The means have the same bits for any levels, ways and numbers of devices; simulate() compares them with the tree."""
        parts = [(1000.0, 1.0), (4.0 * ELEMENTS, 2.0), (4.0 * ELEMENTS + 52, BACKWARD)]
        digests = {run(levels, devices, 24, parts, **how)["digest"] for levels, devices, how in (
            ([level(2), level(2), level(2)], 8, {}), ([level(2), level(2), level(2)], 8, {"direct": True}),
            ([level(4), level(2)], 8, {}), ([level(3), level(2)], 6, {}), ([level(2), level(2)], 4, {}),
            ([level(2, way="pinned"), level(4)], 8, {}), ([level(8, way="peer")], 8, {}), ([level(3, way="pinned")], 3, {}))}
        self.assertEqual(len(digests), 1)

    def test_messages(self) -> None:
        """In each of three stages a rank sends a header and half of its sums to one other, and later likewise of the means."""
        result = run([level(2), level(2), level(2)], 8, 8, [(4.0 * ELEMENTS, BACKWARD)])
        self.assertEqual([stage["messages"] for stage in result["stages"]], [8 * 4] * 3)
        self.assertEqual([stage["bytes"] for stage in result["stages"]],
                         [2 * 8 * 4 * ELEMENTS // 2, 2 * 8 * 4 * ELEMENTS // 4, 2 * 8 * 4 * ELEMENTS // 8])
        # With three shards each, two sums wait for others in six of eight ranks; the header stays one.
        several = run([level(8)], 8, 24, [(4.0 * ELEMENTS, BACKWARD)])["stages"][0]
        self.assertEqual(several["messages"], 8 * 7 * 4)
        # Ranks 0 to 7 leave (0 1) 2, 3 (4 5), (6 7) 8, 9 (10 11) and so on: two sums each.
        self.assertEqual(several["bytes"], (2 + 1) * 8 * 7 * 4 * ELEMENTS // 8)
        direct = run([level(2), level(2), level(2)], 8, 8, [(4.0 * ELEMENTS, BACKWARD)], direct=True)["stages"]
        self.assertEqual([(stage["messages"], stage["bytes"]) for stage in direct], [(8 * 7 * 4, 2 * 7 * 4 * ELEMENTS)])

    def test_a_part_that_is_small(self) -> None:
        """Of fewer elements than ranks divide, one rank of a pair has all: it is sent sums, and sends means."""
        result = run([level(2), level(2)], 4, 4, [(1000.0, BACKWARD)])
        self.assertEqual([stage["messages"] for stage in result["stages"]], [2 * (2 * 2 + 2), 2 * 2 + 2])

    def test_times_of_links(self) -> None:
        parts = [(8e6, BACKWARD)]
        self.assert_ms(run([level(2, SLOW)], 2, 2, parts), FORWARD + BACKWARD + 2 * 4 + UPDATE)
        # A host of four sends half of its sums, and half of the means; each of its devices a quarter of that.
        self.assert_ms(run([level(4), level(2, SLOW)], 8, 8, parts), FORWARD + BACKWARD + 2 * 4 + UPDATE)
        # Messages of both stages pass the link of a device.
        self.assert_ms(run([level(2, SLOW), level(2)], 4, 4, parts), FORWARD + BACKWARD + 2 * (4 + 2) + UPDATE)
        # A link of all devices of a host, through which two of them send.
        direct = run([level(2), level(2, SLOW)], 4, 4, parts, direct=True)
        self.assert_ms(direct, FORWARD + BACKWARD + 2 * (2 * 2 * 8 / 4) + UPDATE)

    def test_latency(self) -> None:
        """Of a header and of the bytes, in each stage, for sums and for means."""
        result = run([level(2, FAST, 100), level(2, FAST, 300)], 4, 4, [(1e6, BACKWARD)])
        self.assert_ms(result, FORWARD + BACKWARD + 2 * 2 * (0.1 + 0.3) + UPDATE)

    def test_parts_beside_backward(self) -> None:
        """The first has gone when the last is ready; or they wait for each other."""
        beside = run([level(2, SLOW)], 2, 2, [(2e6, 1.0), (1e6, BACKWARD)])
        self.assert_ms(beside, FORWARD + BACKWARD + 1 + UPDATE)
        late = run([level(2, SLOW)], 2, 2, [(8e6, 1.0), (1e6, BACKWARD)])
        self.assert_ms(late, FORWARD + 1 + 8 + 1 + UPDATE)

    def test_ways_of_a_host(self) -> None:
        """As tests/commands/scale_test.py has them of the model."""
        parts = [(8e6, BACKWARD)]
        pinned = run([level(2, SLOW, way="pinned")], 2, 2, parts)
        self.assert_ms(pinned, FORWARD + BACKWARD + 4 * 4 + UPDATE)
        below = run([level(2, SLOW, way="pinned"), level(2)], 4, 4, parts)
        self.assert_ms(below, FORWARD + BACKWARD + 4 + 4 + 2 + 2 + 8 + UPDATE)
        peer = run([level(2, SLOW, way="peer")], 2, 2, parts)
        self.assert_ms(peer, FORWARD + BACKWARD + 4 + 4 + UPDATE)
        device = {"wake_us": 200}
        self.assert_ms(run([level(2, way="pinned")], 2, 2, parts, device=device), FORWARD + BACKWARD + 7 * 0.2 + UPDATE)
        self.assert_ms(run([level(2, way="peer")], 2, 2, parts, device=device), FORWARD + BACKWARD + 6 * 0.2 + UPDATE)

    def test_devices(self) -> None:
        """Copies to the host and back, digests, and additions, which read and write three times the bytes of a sum."""
        parts = [(8e6, BACKWARD)]
        for key, milliseconds in (("copies_gbytes_per_s", 4 + 4 + 4 + 8), ("digests_gbytes_per_s", 4 * 4),
                                  ("gbytes_per_s", 3 * 8 + 3 * 4)):
            result = run([level(2)], 2, 2, parts, device={key: SLOW})
            self.assert_ms(result, FORWARD + BACKWARD + milliseconds + UPDATE)

    def test_folded_bytes(self) -> None:
        """Stand for so many: times are the same, but for the headers and envelopes of two messages each way."""
        whole, folded = (run([level(2, SLOW)], 2, 2, [(8e6, BACKWARD)], fold=fold)["step_ms"] for fold in (1, 16))
        self.assertLess(abs(folded - whole - 2 * 15 * (HEADER + 2 * ENVELOPE) * 1e-6), 1e-4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="dlprim-test-") as name:
        FOLDER = pathlib.Path(name)
        try:
            simulate.build(FOLDER)
        except simulate.NoSimGrid as lacking:
            print(f"skipped: {lacking}")
            sys.exit(77)
        unittest.main(verbosity=2)

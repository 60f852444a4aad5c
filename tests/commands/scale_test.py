#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_scale: steps on clusters whose times are worked out by hand, its trace, and descriptions that are wrong."""
import json
from typing import Any

from commands import DEVICES, CommandTest, main, network, operator
from trace_test import spans_of

INFINITE = 1e15  # gbytes_per_s of a link that takes no time
MEGABYTES = 4    # of the network's gradients, which leave in one range
FORWARD, BACKWARD, UPDATE = 3.0, 5.0, 1.0
DEVICE = {"name": "a card", "forward_ms": FORWARD, "backward_ms": BACKWARD, "update_ms": UPDATE}
SLOW = 0.001     # gbytes_per_s: a megabyte in a second

Point = dict[str, Any]


class Scale(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.net = self.write("net.json", network(
            {"data": [1, 1000], "label": [1]}, ["loss"],
            operator("InnerProduct", "fc", "data", outputs=1000, bias=False),
            operator("SoftmaxWithLoss", "loss", "fc label")))

    def cluster(self, *levels: tuple[int, float, float], **device: Any) -> Any:
        described = [{"name": f"L{i}", "count": count, "gbytes_per_s": speed, "latency_us": latency}
                     for i, (count, speed, latency) in enumerate(levels, 1)]
        return self.write("cluster.json", {"device": device or DEVICE, "levels": described})

    def predict(self, cluster: Any, *arguments: Any) -> dict[str, Any]:
        path = self.folder / "out.json"
        self.succeed("scale", self.net, "--cluster", cluster, "--json", path, *arguments)
        result: dict[str, Any] = json.loads(path.read_text())
        return result

    def last(self, cluster: Any, *arguments: Any) -> Point:
        point: Point = self.predict(cluster, *arguments)["points"][-1]
        return point

    def assert_ms(self, point: Point, key: str, want: float) -> None:
        """To 0.1 ms: the loss, of 4 bytes, takes some time, too."""
        self.assertLess(abs(point[key] - want), 0.1 if want < 1000 else 0.5, f"{key} of {point}")

    def test_one_device(self) -> None:
        for cluster, shards in ((self.cluster(), 1), (self.cluster(), 4)):
            point = self.last(cluster, "--shards", shards)
            self.assert_ms(point, "step_ms", shards * (FORWARD + BACKWARD) + UPDATE)
            self.assertEqual((point["bound"], point["efficiency"], point["exchange_ms"]), ("compute", 1, 0))

    def test_links_without_end(self) -> None:
        result = self.predict(self.cluster((8, INFINITE, 0)))
        self.assertEqual([point["devices"] for point in result["points"]], [1, 2, 4, 8])
        self.assertEqual((result["shards"], len(result["parts"])), (8, 2))
        self.assertLess(abs(result["sum_bytes"] - MEGABYTES * 1e6), 1e4)
        for point in result["points"]:
            self.assert_ms(point, "step_ms", 8 / point["devices"] * (FORWARD + BACKWARD) + UPDATE)
            self.assertEqual(point["bound"], "compute")
        self.assertAlmostEqual(result["points"][3]["efficiency"], (8 * 8 + 1) / (8 * 9), 5)

    def test_a_slow_link(self) -> None:
        """Each of two devices sends half of its sums, and then half of the means."""
        point = self.last(self.cluster((2, SLOW, 0)))
        self.assert_ms(point, "step_ms", FORWARD + BACKWARD + 2 * MEGABYTES / 2 * 1000 + UPDATE)
        self.assert_ms(point, "wait_ms", MEGABYTES * 1000)
        self.assertEqual(point["bound"], "link of L1")
        # Of four devices each sends three quarters, twice.
        point = self.last(self.cluster((4, SLOW, 0)))
        self.assert_ms(point, "exchange_ms", 2 * MEGABYTES * 3 / 4 * 1000)

    def test_several_sums(self) -> None:
        """Of six shards two devices have three each, of which two are halves of a node: two sums for others, one mean."""
        point = self.last(self.cluster((2, SLOW, 0)), "--shards", 6)
        self.assert_ms(point, "step_ms", 3 * (FORWARD + BACKWARD) + (2 + 1) * MEGABYTES / 2 * 1000 + UPDATE)

    def test_the_link_of_a_level(self) -> None:
        """Of two hosts of two devices each device has half of its host's sums, and sends half of that to the other host."""
        cluster = self.cluster((2, INFINITE, 0), (2, SLOW, 0))
        point = self.last(cluster)
        self.assert_ms(point, "step_ms", FORWARD + BACKWARD + 2 * MEGABYTES / 2 * 1000 + UPDATE)
        self.assertEqual(point["bound"], "link of L2")
        self.assert_ms(self.last(cluster, "-n", "2"), "wait_ms", 0)  # the devices of one host
        # Where all exchange with all, 2 devices send a quarter to 2 others each.
        self.assert_ms(self.last(cluster, "--direct"), "wait_ms", 2 * MEGABYTES * 1000)

    def test_three_levels(self) -> None:
        """The links of a level carry the messages of its own stage and of those of the levels around it."""
        for slow, megabytes in ((0, 7 / 8), (1, 3 / 4), (2, 1 / 2)):
            levels = [(2, SLOW if i == slow else INFINITE, 0) for i in range(3)]
            self.assert_ms(self.last(self.cluster(*levels)), "wait_ms", 2 * MEGABYTES * megabytes * 1000)

    def test_members_of_several_sizes(self) -> None:
        """Hosts of four and of two devices: each sends half of its sums, whatever its number of devices."""
        point = self.last(self.cluster((4, INFINITE, 0), (2, SLOW, 0)), "--shards", 6, "-n", 6)
        self.assert_ms(point, "wait_ms", 2 * MEGABYTES / 2 * 1000)

    def test_sums_that_wait_between_hosts(self) -> None:
        """Of twelve shards each of two hosts has six, of which two sums wait: (0 to 3) and (4 5), (6 7) and (8 to 11)."""
        point = self.last(self.cluster((2, INFINITE, 0), (2, SLOW, 0)), "--shards", 12)
        self.assert_ms(point, "wait_ms", (2 + 1) * MEGABYTES / 2 * 1000)

    def ways(self, device: dict[str, Any], **level: Any) -> Point:
        """Two devices that compute as DEVICE does."""
        described = {"count": 2, "gbytes_per_s": INFINITE} | level
        return self.last(self.write("cluster.json", {"device": DEVICE | device, "levels": [described]}))

    def test_ways(self) -> None:
        """Half of the sums go to host memory, half of the other's come, and so it is with the means. Kernels that reach the
        sums of others read half of them, and then half of the means."""
        self.assert_ms(self.ways({}, gbytes_per_s=SLOW, way="pinned"), "wait_ms", MEGABYTES * (1 / 2 + 1 / 2 + 1 / 2 + 1 / 2) * 1000)
        self.assert_ms(self.ways({}, gbytes_per_s=SLOW, way="peer"), "wait_ms", MEGABYTES * (1 / 2 + 1 / 2) * 1000)
        self.assert_ms(self.ways({}, gbytes_per_s=SLOW), "wait_ms", MEGABYTES * (1 / 2 + 1 / 2) * 1000)

    def test_memory_of_a_host_below_a_network(self) -> None:
        """Half of the sums out and in; what the network brings is in the host's memory, and all means come."""
        cluster = self.write("cluster.json", {"device": DEVICE, "levels": [
            {"count": 2, "gbytes_per_s": SLOW, "way": "pinned"}, {"count": 2, "gbytes_per_s": INFINITE}]})
        # The messages of the network, a quarter of the sums and of the means, pass the link of a device, too.
        self.assert_ms(self.last(cluster), "wait_ms", MEGABYTES * (1 / 2 + 1 / 2 + 1 / 4 + 1 / 4 + 1) * 1000)

    def test_the_host_of_a_device(self) -> None:
        """It learns that a part is ready, that sums are there, of a barrier, that means are there, of a barrier, that all is
        over, and begins the update."""
        self.assert_ms(self.ways({"wake_us": 200}, way="pinned"), "wait_ms", 7 * 0.2)
        self.assert_ms(self.ways({"wake_us": 200}, way="peer"), "wait_ms", 6 * 0.2)
        self.assert_ms(self.ways({"wake_us": 200}), "wait_ms", 3 * 0.2)
        # Half of the sums out, half in; half of the means out, and all in.
        point = self.ways({"copies_gbytes_per_s": SLOW})
        self.assert_ms(point, "wait_ms", MEGABYTES * (1 / 2 + 1 / 2 + 1 / 2 + 1) * 1000)
        self.assertEqual(point["bound"], "copies")
        # Of what is sent and of what is received.
        point = self.ways({"digests_gbytes_per_s": SLOW})
        self.assert_ms(point, "wait_ms", 2 * MEGABYTES * 1000)
        self.assertEqual(point["bound"], "digests")

    def test_latency(self) -> None:
        """Two exchanges of two messages for the loss, beside backward, and as many for the gradients."""
        self.assert_ms(self.last(self.cluster((2, INFINITE, 1000))), "step_ms", FORWARD + BACKWARD + 4 + UPDATE)
        point = self.last(self.cluster((2, INFINITE, 0), (2, INFINITE, 10000)))
        self.assertEqual(point["bound"], "latency of L2")
        self.assertLess(abs(point["step_ms"] - (FORWARD + 2 * 40 + UPDATE)), 1)

    def test_additions(self) -> None:
        """At 1 GB/s: 12 ms for the device's own sums, and 6 for those of its slice."""
        point = self.last(self.cluster((2, INFINITE, 0), **DEVICE, gbytes_per_s=1))
        self.assert_ms(point, "step_ms", FORWARD + BACKWARD + 3 * MEGABYTES + 3 * MEGABYTES / 2 + UPDATE)

    def test_uneven_shards(self) -> None:
        point = self.last(self.cluster((3, INFINITE, 0)), "--shards", 4)
        self.assert_ms(point, "step_ms", 2 * (FORWARD + BACKWARD) + UPDATE)

    def test_peaks(self) -> None:
        """2 x 10^6 operations forward, and as many for the gradient of the weights."""
        result = self.predict(self.cluster(gflops=0.001, gbytes_per_s=INFINITE))
        self.assertAlmostEqual(result["forward_ms"], 2000, 3)
        self.assertAlmostEqual(result["backward_ms"], 2000, 3)
        batch = self.predict(self.cluster(gflops=0.001, gbytes_per_s=INFINITE), "-B", 3)
        self.assertAlmostEqual(batch["forward_ms"], 6000, 3)
        # Bytes: the update reads and writes the parameters, of which it knows the gradients.
        slow = self.predict(self.cluster(gflops=INFINITE, gbytes_per_s=0.001), "--solver", "sgd")
        self.assertGreater(slow["update_ms"], 3 * MEGABYTES * 1000 - 1)

    def test_measured(self) -> None:
        for device in DEVICES:
            result = self.predict(self.write("cluster.json", {"levels": [{"count": 2, "gbytes_per_s": 10}]}), "-d", device)
            self.assertTrue(result["source"].startswith("measured on "), result)
            for key in ("forward_ms", "backward_ms", "update_ms"):
                self.assertGreater(result[key], 0)

    def test_a_trace(self) -> None:
        path = self.folder / "trace.json"
        point = self.last(self.cluster((3, SLOW, 5)), "--shards", 4, "--trace", path)
        spans = spans_of(self, path)
        self.assertEqual({event["cat"] for event in spans}, {"compute", "move", "wait"})
        self.assertEqual({event["pid"] for event in spans}, {0, 1, 2})
        self.assertAlmostEqual(max(event["ts"] + event["dur"] for event in spans) / 1e3, point["step_ms"], 2)
        moved = sum(event["dur"] for event in spans if event["pid"] == 1 and event["cat"] == "move")
        self.assertAlmostEqual(moved / 1e3, point["exchange_ms"], 2)
        self.cluster((64, INFINITE, 0))
        self.predict(self.folder / "cluster.json", "--trace", path)
        self.assertEqual({event["pid"] for event in json.loads(path.read_text())["traceEvents"]}, set(range(16)))

    def test_networks(self) -> None:
        """Without a loss, and with nothing to train."""
        self.net = self.write("net.json", network({"x": [2, 8]}, ["y"], operator("InnerProduct", "y", "x", outputs=4)))
        self.predict(self.cluster((2, 1, 0)))
        self.net = self.write("net.json", network({"x": [2, 8]}, ["y"], operator("Activation", "y", "x", activation="relu")))
        self.refuse(["none of its parameters is trained"], "scale", self.net, "--cluster", self.cluster())

    def test_wrong_descriptions(self) -> None:
        level = {"count": 2, "gbytes_per_s": 1}
        for cluster, words in (
                ("{", ["cluster.json"]), ([], ["object"]), ({}, ["describe it as \"device\""]),
                ({"devices": DEVICE}, ["devices", "did you mean 'device'"]),
                ({"device": DEVICE | {"gflop": 1}}, ["gflop", "did you mean 'gflops'"]),
                ({"device": {"name": "x"}}, ["device needs gflops and gbytes_per_s"]),
                ({"device": {"gflops": 1}}, ["gbytes_per_s"]),
                ({"device": {"gflops": 0, "gbytes_per_s": 1}}, ["gflops is 0", "above 0"]),
                ({"device": DEVICE | {"gflops": 1}}, ["only one of them"]),
                ({"device": {"forward_ms": 1}}, ["backward_ms"]),
                ({"device": {"backward_ms": 1}}, ["belong together"]),
                ({"device": {"forward_ms": -1, "backward_ms": 1, "update_ms": 1}}, ["forward_ms is -1"]),
                ({"device": {"forward_ms": 0, "backward_ms": 0, "update_ms": 0}}, ["no time"]),
                ({"device": DEVICE, "levels": {}}, ["levels", "list"]),
                ({"device": DEVICE, "levels": [level | {"speed": 1}]}, ["levels[0]", "speed"]),
                ({"device": DEVICE, "levels": [{"count": 2}]}, ["levels[0]", "gbytes_per_s"]),
                ({"device": DEVICE, "levels": [level | {"count": 1}]}, ["levels[0].count is 1", "at least 2"]),
                ({"device": DEVICE, "levels": [level | {"count": 1.5}]}, ["levels[0].count"]),
                ({"device": DEVICE, "levels": [level | {"gbytes_per_s": 0}]}, ["levels[0].gbytes_per_s is 0"]),
                ({"device": DEVICE, "levels": [level | {"latency_us": -1}]}, ["latency_us is -1"]),
                ({"device": DEVICE, "levels": [level | {"name": ""}]}, ["levels[0].name"]),
                ({"device": DEVICE, "levels": [level | {"way": "mpi"}]}, ["levels[0].way is 'mpi'", "transport, pinned or peer"]),
                ({"device": DEVICE, "levels": [level, level | {"way": "peer"}]}, ["levels[1].way", "first level"]),
                ({"device": DEVICE | {"wake_us": -1}}, ["wake_us is -1"]),
                ({"device": DEVICE, "levels": 3 * [level | {"count": 60000}]}, ["levels[1]", "at most 65536"])):
            with self.subTest(cluster):
                path = self.write("cluster.json", cluster.encode() if isinstance(cluster, str) else cluster)
                self.refuse(words, "scale", self.net, "--cluster", path)

    def test_wrong_numbers(self) -> None:
        cluster = self.cluster((4, 1, 0))
        self.refuse(["4 devices", "a step on 5"], "scale", self.net, "--cluster", cluster, "-n", "5")
        self.refuse(["2 shards", "4 devices"], "scale", self.net, "--cluster", cluster, "--shards", 2, "-n", "1,4")
        self.refuse(["none.json"], "scale", self.net, "--cluster", self.folder / "none.json")
        self.refuse(["trace.json"], "scale", self.net, "--cluster", cluster, "--trace", self.folder / "none/trace.json")
        for arguments in (["-n", "0"], ["-n", "many"], ["--shards", "0"], ["--solver", "rms"], ["-B", "0"]):
            self.refuse([arguments[0]], "scale", self.net, "--cluster", cluster, *arguments, code=2)
        self.refuse(["--cluster"], "scale", self.net, code=2)


if __name__ == "__main__":
    main()

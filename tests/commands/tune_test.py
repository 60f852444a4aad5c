#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_tune: what it measures is kept, used, carried to another database, and is not repeated."""
import json
import re
import unittest

from commands import DEVICES, ROOT, CommandTest, main, network, operator

NET = network({"x": [2, 8, 12, 12]}, ["y"],
              operator("Convolution2D", "conv", "x", channels_out=16, kernel=3, pad=1),
              operator("InnerProduct", "fc", "conv", "y", outputs=10))


class Tune(CommandTest):
    def test_measures_once_and_carries_over(self):
        device = DEVICES[-1]
        net = self.write("net.json", NET)
        here = {"DLPRIM_TUNING": str(self.folder / "here.json")}
        out = self.succeed("tune", net, "-d", device, "--seconds", "40", **here).out
        self.assertIn("tuned 2 problems", out)
        rows = json.loads((self.folder / "here.json").read_text())["rows"]
        self.assertEqual({row["engine"].split(".")[0] for row in rows}, {"conv2d", "inner_product"})
        for row in rows:
            self.assertGreater(row["seconds"], 0)
        out = self.succeed("tune", net, "-d", device, "--export", self.folder / "out.json", **here).out
        self.assertIn("tuned 0 problems", out)
        self.assertIn(f"{len(rows)} rows to", out)

        # A row decides: with all others taken away, its engine runs.
        there = {"DLPRIM_TUNING": str(self.folder / "there.json")}
        slowest = max((row for row in rows if row["engine"].startswith("conv2d")), key=lambda row: row["seconds"])
        self.write("one.json", {"format": 2, "rows": [slowest]})
        self.assertIn("1 rows from", self.succeed("tune", "-d", device, "--import", self.folder / "one.json", **there).out)
        report = self.folder / "report.json"
        self.succeed("benchmark", device, net, "-i", "1", "-w", "1", "--json", report, **there)
        engines = {node["name"]: node["engine"] for node in json.loads(report.read_text())["nodes"]}
        self.assertEqual(engines["conv"], slowest["engine"])

    def test_caches_are_filled_ahead(self):
        device = DEVICES[-1]
        net = self.write("net.json", NET)
        here = {"DLPRIM_CACHE_DIR": str(self.folder / "cache")}
        for train in [], ["--train"]:
            compiled = []
            for nets in [net, net], [net]:
                out = self.succeed("tune", "--prewarm", *nets, "-d", device, *train, **here).out
                compiled += map(int, re.findall(r"net\.json: (\d+) programs compiled in [0-9.]+ s", out))
            self.assertEqual(compiled[1:], [0, 0])
            if device != "cpu":
                self.assertGreater(compiled[0], 0)

    def test_shapes_that_a_network_leaves_open(self):
        device = DEVICES[-1]
        net = self.write("net.json", NET)
        here = {"DLPRIM_CACHE_DIR": str(self.folder / "cache")}
        self.succeed("tune", "--prewarm", net, "-d", device, "--shape", "x=3,8,9,9", **here)
        self.refuse(["no input 'z'"], "tune", "--prewarm", net, "-d", device, "--shape", "z=3", **here)
        self.refuse(["NAME=SIZE"], "tune", "--prewarm", net, "-d", device, "--shape", "x=3,a", code=2)

    def caches(self, name, **more):
        """Empty caches of the library and of PoCL."""
        (self.folder / name).mkdir()
        return {"DLPRIM_CACHE_DIR": str(self.folder / name / "dlprim"), "POCL_CACHE_DIR": str(self.folder / name), **more}

    def kernels_of_pocl(self, name):
        return {path.relative_to(self.folder / name) for path in (self.folder / name).rglob("*.so")}

    def test_programs_are_shipped(self):
        """A process with empty caches compiles nothing of what a folder of shipped programs has, nor does PoCL when they
        are launched."""
        device = DEVICES[-1]
        if device == "cpu":
            self.skipTest("the host compiles no programs")
        net = self.write("net.json", NET)
        shipped = self.folder / "shipped"

        def prewarm(*more, **here):
            out = self.succeed("tune", "--prewarm", net, "--train", "-d", device, *more, **here).out
            return int(re.search(r"net\.json: (\d+) programs compiled", out)[1])

        compiled = prewarm("--write-programs", shipped, **self.caches("first"))
        self.assertGreater(compiled, 0)
        self.assertGreaterEqual(len(list((shipped / "kernels").glob("*.bin"))), compiled)
        there = self.caches("second")
        self.assertEqual(prewarm(**there, DLPRIM_PROGRAMS=str(shipped)), 0)
        self.assertLessEqual(self.kernels_of_pocl("second"), self.kernels_of_pocl("first"))
        if self.kernels_of_pocl("second"):  # PoCL's own cache has them now
            self.assertEqual(prewarm(**there), 0)

        # A damaged file and one of another program count as absent.
        first, second, *_ = sorted((shipped / "kernels").glob("*.bin"), key=lambda path: -path.stat().st_size)
        first.write_bytes(first.read_bytes()[:-1])
        second.write_bytes(max((shipped / "kernels").glob("*.bin"), key=lambda path: path.name != second.name).read_bytes())
        self.assertEqual(prewarm(**self.caches("third", DLPRIM_PROGRAMS=str(shipped))), 2)

    def test_rows_that_no_engine_offers_are_passed_over(self):
        device = DEVICES[-1]
        net = self.write("net.json", NET)
        here = {"DLPRIM_TUNING": str(self.folder / "here.json")}
        self.succeed("tune", net, "-d", device, "--seconds", "40", **here)
        rows = json.loads((self.folder / "here.json").read_text())["rows"]
        run = "benchmark", device, net, "-i", "1", "-w", "1"
        self.assertNotIn("is skipped", self.succeed(*run, **here).out)

        def spoil(changed):
            self.write("here.json", {"format": 2, "rows": [{**row, **changed(row)} for row in rows]})
            result = self.succeed(*run, **here)
            return result.out + result.err

        def every_value(value):
            return lambda row: {"tuning": {**{name: value for name in row["tuning"]}, "rows": value}}

        for tuning in every_value(10**18), every_value(-7), every_value(0), lambda row: {
                "tuning": {**row["tuning"], "tile": 3}}:
            self.assertRegex(spoil(tuning), r"(?m)a row of the tuning database is skipped: .* it has no tuning")
        self.assertIn("has no layout 'sideways'", spoil(lambda row: {"layout": "sideways"}))
        for value in "three", 1.5, 2**64, None, [3], True:
            self.assertIn(f"{len(rows)} rows are left out: ", spoil(every_value(value)))
        self.write("here.json", {"format": 1, "rows": rows})
        result = self.succeed(*run, **here)
        self.assertIn("is of format 1", result.out + result.err)

    def test_a_training_step_and_a_deadline(self):
        net = self.write("net.json", NET)
        out = self.succeed("tune", net, "-d", "cpu", "--train", "--seconds", "0.000001", "--precision", "tf32",
                           DLPRIM_TUNING=str(self.folder / "t.json")).out
        self.assertIn("too short for", out)

    def test_progress_in_a_file(self):
        """A line when work begins, then one every ten seconds at most."""
        net = self.write("net.json", NET)
        result = self.succeed("tune", net, "-d", DEVICES[-1], "--seconds", "40",
                              DLPRIM_TUNING=str(self.folder / "t.json"))
        self.assertRegex(result.out, r"^\[1/2\] tuning conv, 1 of \d+\n")
        self.assertNotIn("\r", result.out)
        self.assertEqual(result.err, "")
        self.assertLess(len(re.findall(r"(?m)^\[\d/", result.out)), 8)

    def test_progress_on_a_terminal(self):
        # Enough to measure for the two seconds that a terminal is left in peace.
        net = self.write("net.json", network({"x": [32, 32, 56, 56]}, ["y"], *(
            operator("Convolution2D", f"conv{i}", "x" if i == 0 else f"conv{i - 1}", "y" if i == 7 else None,
                     channels_out=32 + 8 * i, kernel=3, pad=1) for i in range(8))))
        text = self.on_terminal("tune", net, "-d", DEVICES[-1], "--seconds", "20", DLPRIM_TUNING=str(self.folder / "t.json"))
        self.assertRegex(text, r"\r\x1b\[K\[\d/8\] tuning conv\d, \d+ of \d+(, \d+ s left)?\r\x1b\[K")
        self.assertRegex(text, r"\r\x1b\[Ktuned \d problems?\r\n")

    @unittest.skipUnless(DEVICES[1:], "the host has nothing to tune in so small a network")
    def test_what_cannot_be_kept_is_said_once(self):
        net = self.write("net.json", network({"x": [2, 6]}, ["z"], operator("InnerProduct", "y", "x", outputs=3),
                                             operator("InnerProduct", "z", "y", outputs=2)))
        result = self.succeed("tune", net, "-d", DEVICES[-1], "--seconds", "50", DLPRIM_TUNING=str(net / "t.json"))
        self.assertRegex(result.out, "tuned [12] problems?")
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertTrue(result.err.startswith("dlprim_tune: warning: tuning database: cannot create "), result.err)

    def test_what_is_shared(self):
        """One file has the rows, the device and a self-test, and is a database that --import takes."""
        device = DEVICES[-1]
        net = self.write("net.json", NET)
        here, there = ({"DLPRIM_TUNING": str(self.folder / name)} for name in ("here.json", "there.json"))
        file = self.folder / "share.json"
        self.succeed("tune", net, "-d", device, "--seconds", "40", **here)
        out = self.succeed("tune", "-d", device, "--seconds", "10", "--share", file, **here).out
        shared = json.loads(file.read_text())
        rows = json.loads((self.folder / "here.json").read_text())["rows"]
        self.assertEqual(shared["rows"], rows)
        self.assertIn(f"{len(rows)} rows, a self-test and peaks to {file}", out)
        about = shared["shared"]
        for name in ("name", "platform", "driver"):
            self.assertEqual(about[name], rows[0][name.replace("name", "device")])
        self.assertGreater(about["traits"]["max_alloc_mib"], 0)
        self.assertGreater(about["peaks"]["copy_gbytes_per_s"], 0)
        self.assertGreater(about["self_test"]["right"], 0)
        self.assertEqual([row for row in about["self_test"]["rows"] if row["outcome"] == "right"], [])
        self.assertRegex(about["version"], r"^\d+\.\d+\.\d+$")
        self.assertIn(f"{len(rows)} rows from", self.succeed("tune", "-d", device, "--import", file, **there).out)
        # The doctor says what is known, and how.
        self.write("there.json", {"format": 2, "rows": [row | ({"computed": True} if row["engine"].startswith("conv") else {})
                                                        for row in rows]})
        text = self.succeed("doctor", "-d", device, "--quick", "--operator", "Flip", **there).out
        self.assertRegex(text, r"tuning rows +Convolution2D: \d+ computed\n +\w+: \d+ measured\n +rules choose for all ")

    def test_a_device_without_rows_is_shared_too(self):
        file = self.folder / "share.json"
        self.succeed("tune", "-d", "cpu", "--seconds", "0.1", "--share", file, DLPRIM_TUNING=str(self.folder / "t.json"))
        shared = json.loads(file.read_text())
        self.assertEqual((shared["rows"], shared["shared"]["id"]), ([], "cpu"))
        self.assertGreater(shared["shared"]["self_test"]["unfinished"], 0, "a tenth of a second does not suffice")
        described = f"file:{ROOT / 'databases/devices/hd530.json'}"
        self.refuse(["--share", "hd530.json"], "tune", "-d", described, "--share", file)
        self.refuse(["/nonexistent/"], "tune", "-d", "cpu", "--share", "/nonexistent/x", DLPRIM_TUNING=str(self.folder / "t.json"))

    def test_benchmark_tunes(self):
        net = self.write("net.json", NET)
        out = self.succeed("benchmark", "cpu", net, "-i", "1", "-w", "1", "--tune",
                           DLPRIM_TUNING=str(self.folder / "t.json")).out
        self.assertRegex(out, "note: tuned [0-9]+ problem")

    def test_bad_input(self):
        place = {"DLPRIM_TUNING": str(self.folder / "t.json")}
        self.refuse(["give a NET"], "tune", "-d", "cpu", code=2, **place)
        net = self.write("net.json", NET)
        self.refuse(["--precision"], "tune", net, "-d", "cpu", "--precision", "fp8", code=2, **place)
        self.refuse(["missing.json"], "tune", "-d", "cpu", "--import", self.folder / "missing.json", **place)
        for text, words in (("[1", ["unexpected end of input"]), ("[" * 100000, ["nested deeper"]), ("{}", ["lacks 'format'"]),
                            (b"\x89HDF\r\n\x1a\n", ["invalid literal"]), ('{"format": 1e999}', ["number overflow"]),
                            ('{"format": 2, "rows": [{}]}', ["row 1", "lacks 'device'"])):
            result = self.refuse(["bad.json", "not a tuning database", *words], "tune", "-d", "cpu", "--import",
                                 self.write("bad.json", text), **place)
            self.assertNotIn("json.exception", result.err)
        self.refuse(["not a file"], "tune", "-d", "cpu", "--import", self.folder, **place)
        self.refuse(["has no rows for", "dlprim_tune measures"], "tune", "-d", "cpu", "--export", self.folder / "out.json", **place)
        self.assertFalse((self.folder / "out.json").exists())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks which rows scripts/redate_rows.py gives a new date: those whose programs the preprocessor makes the same.

    redate_rows_test.py COMPILER    a Clang for NVPTX, or nothing
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "redate_rows.py"
CLANG = sys.argv.pop() if len(sys.argv) > 1 else ""
KERNEL = "#define ADD(a, b) ((a) + (b))\nkernel void run(global float* x) { x[get_global_id(0)] = ADD(x[0], SIZE); }\n"


def programs(source: str, date: str, options: str = " -DSIZE=3") -> dict:
    return {"sources": {"one.engine": date}, "rows": [[0], [0]],
            "programs": [{"name": "one.cl", "options": options, "source": source}]}


class Redating(unittest.TestCase):
    def judged(self, before: dict, after: dict, *options: str) -> tuple[int, str, list[str]]:
        """The exit status, what is printed, and the rows' dates afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            rows = [json.dumps({"engine": "one.engine", "source": "old"}) for _ in range(2)]
            (root / "device.json").write_text('{"format": 2, "rows": [\n' + ",\n".join(rows) + "\n]}\n")
            (root / "before").write_text(json.dumps(before))
            (root / "after").write_text(json.dumps(after))
            files = [root / "before", root / "after", "--databases", root]
            command = [sys.executable, SCRIPT, *files, "--write", *options]
            run = subprocess.run(command, capture_output=True, text=True)
            dates = [row["source"] for row in json.loads((root / "device.json").read_text())["rows"]]
        return run.returncode, run.stdout + run.stderr, dates

    def test_same_tokens(self) -> None:
        renamed = "// New.\n" + KERNEL.replace("ADD", "SUM").replace("{ x", "{\n#if SIZE > 4\nx[1] = 0;\n#endif\n x")
        status, text, dates = self.judged(programs(KERNEL, "old"), programs(renamed, "new"))
        self.assertEqual((status, dates), (0, ["new", "new"]), text)
        self.assertIn("same tokens      2 rows of one.engine", text)

    def test_other_tokens(self) -> None:
        for source, options in ((KERNEL.replace("(a) +", "(a) -"), " -DSIZE=3"), (KERNEL, " -DSIZE=4"),
                                (KERNEL, " -DSIZE=3 -cl-denorms-are-zero")):
            status, text, dates = self.judged(programs(KERNEL, "old"), programs(source, "new", options))
            self.assertEqual((status, dates), (1, ["old", "old"]), text)
            self.assertIn("not proven", text)

    def test_rows_that_were_stale_stay_stale(self) -> None:
        status, text, dates = self.judged(programs(KERNEL, "another"), programs(KERNEL, "new"))
        self.assertEqual((status, dates), (1, ["old", "old"]), text)

    def test_other_rows(self) -> None:
        other = {**programs(KERNEL, "new"), "rows": [[0]]}
        status, text, dates = self.judged(programs(KERNEL, "old"), other)
        self.assertEqual((status, dates), (1, ["old", "old"]), text)
        self.assertIn("embed the same rows", text)

    @unittest.skipUnless(CLANG, "there is no Clang for NVPTX")
    def test_same_code(self) -> None:
        function = KERNEL.replace("#define ADD(a, b) ((a) + (b))",
                                  "inline __attribute__((always_inline)) float ADD(float a, float b) { return a + b; }")
        status, text, dates = self.judged(programs(KERNEL, "old"), programs(function, "new"), "--compile", CLANG)
        self.assertEqual((status, dates), (0, ["new", "new"]), text)
        self.assertIn("same code", text)
        status, text, dates = self.judged(programs(KERNEL, "old"), programs(function.replace("a + b", "a - b"), "new"),
                                          "--compile", CLANG)
        self.assertEqual((status, dates), (1, ["old", "old"]), text)

    @unittest.skipUnless(CLANG, "there is no Clang for NVPTX")
    def test_parameters_of_a_struct(self) -> None:
        single = "kernel void run(global int* x, int first, int more) { x[get_local_id(0)] = first - more; }\n"
        members = "typedef struct { int first, more; } Sizes;\n"
        joined = members + "kernel void run(global int* x, const Sizes s) { x[get_local_id(0)] = s.first - s.more; }\n"
        status, text, dates = self.judged(programs(single, "old"), programs(joined, "new"), "--compile", CLANG)
        self.assertEqual((status, dates), (0, ["new", "new"]), text)
        longer = joined.replace("first, more", "first, between, more")
        status, text, dates = self.judged(programs(single, "old"), programs(longer, "new"), "--compile", CLANG)
        self.assertEqual((status, dates), (1, ["old", "old"]), text)


if __name__ == "__main__":
    unittest.main()

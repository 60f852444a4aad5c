#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports in headless Chromium: that each part is there, is drawn, and answers to who points at it; light and dark; narrow
screens; reloading while a training runs; and how fast a report of a thousand epochs opens."""
import json
import pathlib
import random
import sys
from typing import Any

from browser import CHROMIUM, data_of, look
from commands import main, network, operator
from report_runs import HOSTILE, Runs

# How many pixels of each chart are painted, and what its lines are.
CHARTS = """[...document.querySelectorAll('canvas')].map((canvas) => ({
  title: canvas.getAttribute('aria-label'),
  painted: canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value, i) => i % 4 === 3 && value > 0),
  lines: Chart.getChart(canvas).data.datasets.map((set) => [set.label, set.data.length])}))"""
RESOURCES = "performance.getEntriesByType('resource').map((entry) => entry.name).filter((name) => !name.startsWith('data:'))"
WAIT = "new Promise((done) => setTimeout(done, 200))"


class Page(Runs):
    def with_data(self, page: pathlib.Path, **changes: Any) -> pathlib.Path:
        """A copy of a report that holds something else."""
        text = page.read_text(encoding="utf-8")
        begin = text.index('id="data">') + len('id="data">')
        end = text.index("</script>", begin)
        return self.write("changed.html", text[:begin] + json.dumps(data_of(page) | changes).replace("<", "\\u003c") + text[end:])

    def test_a_run_on_pictures(self) -> None:
        page = self.train("out", data=self.folder_of_pictures())
        dom, found = look(page, f"({{charts: {CHARTS}, resources: {RESOURCES}}})")
        self.assertLessEqual({"status", "figures", "curves", "confusion", "mistakes", "times", "roofline", "memory", "network",
                              "configuration", "matrix", "theme"}, dom.ids())
        charts = {chart["title"]: chart for chart in found["charts"]}
        self.assertEqual(list(charts), ["Loss", "Accuracy", "Learning rate", "Time of an epoch", "By type", "Nodes below the device's roofline"])
        for chart in charts.values():
            self.assertTrue(chart["painted"], chart)
        self.assertEqual(charts["Loss"]["lines"], [["training", 3], ["test", 3]])
        self.assertEqual(found["resources"], [], "nothing comes from outside")
        pictures = [attributes["src"] for tag, attributes in dom.elements if tag == "img"]
        self.assertEqual(len(pictures), len(data_of(page)["judged"]["mistakes"]))
        self.assertEqual(len([1 for tag, attributes in dom.elements if tag == "td" and "data-n" in attributes]), 9)
        for words in ("taken for class", "conv<1>", "8×3×12×12", "finished", "Convolution2D", "solver.learning_rate"):
            self.assertIn(words, dom.text)

    def test_pointing_at_things(self) -> None:
        page = self.train("out", data=self.folder_of_pictures())
        _, found = look(page, f"""({{
            chart: await (async () => {{
              const canvas = document.querySelector('canvas'), box = canvas.getBoundingClientRect();
              canvas.dispatchEvent(new MouseEvent('mousemove', {{clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true}}));
              await {WAIT};
              return Chart.getChart(canvas).tooltip.title.concat(Chart.getChart(canvas).tooltip.body.flatMap((part) => part.lines));
            }})(),
            cell: await (async () => {{
              const cell = document.querySelector('#matrix td[data-n]');
              for (const type of ['pointerover', 'pointermove']) cell.dispatchEvent(new PointerEvent(type, {{bubbles: true, clientX: 5, clientY: 5}}));
              return document.getElementById('hover').textContent;
            }})(),
            box: await (async () => {{
              document.querySelectorAll('.net g')[1].dispatchEvent(new PointerEvent('pointermove', {{bubbles: true}}));
              return document.getElementById('hover').textContent;
            }})()}})""")
        self.assertEqual(found["chart"][0], "epoch 2")
        self.assertRegex(found["chart"][1], r"training: \d")
        self.assertRegex(found["cell"], r"^\d examples of class0\nwere taken for class0: ")
        self.assertIn("conv<1> (Convolution2D)", found["box"])
        self.assertIn('"kernel"', found["box"])

    def test_light_and_dark(self) -> None:
        page = self.train("out", data=self.numbers())
        probe = """(() => { const seen = () => [getComputedStyle(document.body).backgroundColor, Chart.getChart(document.querySelector('canvas')).options.scales.x.grid.color];
                   const before = seen(); document.getElementById('theme').click(); return [before, seen()]; })()"""
        _, (light, dark) = look(page, probe)
        self.assertEqual((light[0], dark[0]), ("rgb(246, 247, 249)", "rgb(16, 20, 24)"))
        self.assertNotEqual(light[1], dark[1])
        _, (first, _) = look(page, probe, 4, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
        self.assertEqual(first, dark, "as the system wants it")

    def test_a_phone(self) -> None:
        page = self.train("out", data=self.folder_of_pictures())
        dom, wide = look(page, "[innerWidth, document.documentElement.scrollWidth]", 4, "--window-size=500,800")
        self.assertLessEqual(wide[1], wide[0], "nothing is wider than the screen")
        self.assertIn("matrix", dom.ids())

    def test_other_targets(self) -> None:
        for kind, part, words in (("masks", "confusion", "pixels are wrong"), ("numbers", "numbers", "number "), ("labels", "labels", "label ")):
            dom, charts = look(self.train(kind, data=getattr(self, kind)()), CHARTS)
            self.assertLessEqual({"curves", part, "mistakes"}, dom.ids())
            self.assertIn(words, dom.text)
            self.assertTrue(all(chart["painted"] for chart in charts), kind)

    def test_hostile_names(self) -> None:
        dom, title = look(self.train("out", data=self.hostile_classes(), epochs=1), "document.title")
        self.assertEqual(pathlib.Path(title).name, "net.json")
        self.assertEqual([attributes for tag, attributes in dom.elements if tag == "img" and "onerror" in attributes], [])
        for name in HOSTILE:
            self.assertIn(name, dom.text)

    def test_it_reloads_while_training_runs(self) -> None:
        out = self.folder / "out"
        page = self.folder / "running.html"
        with self.running(self.config("long", data=self.numbers(), epochs=1000000), out):
            page.write_bytes((out / "report.html").read_bytes())
        # Another page sees how often a report in a frame is loaded.
        loads = {}
        for status in ("running", "finished"):
            report = self.with_data(page, status=status)
            frame = self.write("frame.html", "<!doctype html><html><style></style><body><iframe width='900' height='600' "
                               f"src='{report.as_uri()}' onload='window.loads = (window.loads ?? 0) + 1'></iframe></body></html>")
            _, loads[status] = look(frame, "new Promise((done) => setTimeout(() => done(window.loads), 17000))", 20)
        self.assertGreaterEqual(loads["running"], 3)
        self.assertEqual(loads["finished"], 1)

    def test_a_thousand_epochs(self) -> None:
        page = self.train("out", data=self.folder_of_pictures(), report={"mistakes": 0})
        numbers = random.Random(1)
        rows = [[i + 1, 0.001, *(round(numbers.random() / (1 + i / 100), 6) for _ in range(4)), 1.5] for i in range(1000)]
        [run] = data_of(page)["runs"]
        large = self.with_data(page, runs=[run | {"rows": rows, "epochs": 1000}])
        self.assertLess(large.stat().st_size, 2_000_000)
        times = []
        for _ in range(3):
            dom, charts = look(large, CHARTS, 0)
            self.assertEqual(charts[0]["lines"][0], ["training", 1000])
            times.append(float(dom.attribute("data-ready-ms") or "inf"))
        print(f"a report of 1000 epochs opens in {min(times):.0f} ms, and has {large.stat().st_size} bytes")
        self.assertLess(min(times), 1000)

    def test_several_runs(self) -> None:
        data = self.numbers()
        runs = [self.train(name, data=data, solver={"learning_rate": rate}).parent for name, rate in (("slow", 0.001), ("fast", 0.01))]
        page = self.folder / "compare.html"
        self.succeed("compare", *runs, "--out", page)
        dom, charts = look(page, CHARTS)
        self.assertLessEqual({"comparison", "curves", "differences"}, dom.ids())
        self.assertEqual([label for label, _ in charts[0]["lines"]], ["slow, training", "slow", "fast, training", "fast"])
        self.assertTrue(all(chart["painted"] for chart in charts))
        self.assertIn("solver.learning_rate", dom.text)

    def test_a_benchmark(self) -> None:
        net = self.write("net.json", network({"x": [2, 3, 32, 32]}, ["y"],
                                             operator("Convolution2D", "conv", "x", channels_out=8, kernel=3),
                                             operator("InnerProduct", "y", "conv", outputs=4)))
        page, memory = self.folder / "page.html", self.folder / "memory.html"
        self.succeed("benchmark", "-i1", "-w1", "-b", "--html", page, "--memory-html", memory, "cpu", net)
        dom, charts = look(page, CHARTS)
        self.assertLessEqual({"figures", "times", "roofline", "memory", "network", "configuration"}, dom.ids())
        self.assertTrue(all(chart["painted"] for chart in charts))
        dom, boxes = look(memory, "document.querySelectorAll('svg rect.tensor').length")
        self.assertIn("memory", dom.ids())
        self.assertGreater(boxes, 1)


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: Chromium is not installed (scripts/install_deps.sh test)")
        sys.exit(77)
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What reports of dlprim_train and dlprim_benchmark hold, and dlprim_compare; how they look is report_page_test.py's."""
import base64
import re
import signal
from typing import Any

import numpy as np
from browser import data_of
from commands import SECONDS, CommandTest, call, main, network, operator
from report_runs import HOSTILE, Runs


class Report(Runs):
    def test_classes(self) -> None:
        page = self.train("out", data=self.folder_of_pictures())
        data = data_of(page)
        self.assertEqual(data["status"], "finished")
        self.assertEqual(data["device"], "cpu (" + data["device"].split("(", 1)[1])
        [run] = data["runs"]
        self.assertEqual(run["columns"], ["epoch", "learning_rate", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "seconds"])
        self.assertEqual([row[0] for row in run["rows"]], [1, 2, 3])
        judged = data["judged"]
        self.assertEqual((judged["kind"], judged["epoch"], judged["examples"]), ("classes", 3, 18))
        confusion = judged["confusion"]
        self.assertEqual([row[:2] for row in confusion["classes"]], [["class0", 6], ["class1", 6], ["class2", 6]])
        self.assertEqual(sum(map(sum, confusion["cells"])), 18)
        right = sum(confusion["cells"][c][c] for c in range(3))
        self.assertAlmostEqual(right / 18, run["rows"][-1][5], places=5)
        self.assertEqual(sum(count for _, _, count in confusion["pairs"]), 18 - right)
        mistakes = judged["mistakes"]
        self.assertEqual(len(mistakes), 18 - right)
        self.assertEqual(mistakes, sorted(mistakes, key=lambda one: -one["wrong"]), "the worst come first")
        for one in mistakes:
            self.assertIn(f"class{one['target']}", one["name"])
            self.assertNotEqual(one["target"], one["predicted"])
            self.assertGreaterEqual(one["output"], one["wanted"])
            [url] = one["pictures"]
            self.assertTrue(base64.b64decode(url.removeprefix("data:image/png;base64,"), validate=True).startswith(b"\x89PNG"))
        self.assertEqual([op["name"] for op in data["network"]["operators"]], ["conv<1>", "act", "score", "loss"])
        self.assertEqual({node["part"] for node in data["nodes"]}, {"forward", "backward", "update"})
        for part in ("forward", "backward", "update"):
            self.assertGreater(sum(node["ms"] for node in data["nodes"] if node["part"] == part), 0)
        self.assertGreater(data["peaks"]["gflops"], 0)
        self.assertGreater(data["memory"]["peak"], 0)
        titles = {table["title"]: dict(table["rows"]) for table in data["tables"]}
        self.assertEqual(titles["Configuration"]["batch"], "8")
        self.assertEqual(titles["Data"]["examples"], "24")
        self.assertIn("dlprim", titles["Device and versions"])
        self.assertIn('"learning_rate": 0.01', data["text"])

    def test_text_that_tries_to_be_markup(self) -> None:
        """Names of classes and the configuration stay within the page's data."""
        page = self.train("out", data=self.hostile_classes(), epochs=1)
        text = page.read_text(encoding="utf-8")
        self.assertEqual(data_of(page)["judged"]["names"], HOSTILE)
        self.assertEqual(len(re.findall("<script", text)), 2, "the data, and the script")
        self.assertEqual(len(re.findall("</script", text)), 2)
        self.assertNotIn("<img", text)
        self.assertIn("default-src 'none'", text)
        self.assertIsNone(re.search(r"<[^>]*(?:src|href)=[\"']?http", text), "nothing comes from outside")

    def test_other_targets(self) -> None:
        for kind, more in (("masks", {}), ("numbers", {}), ("labels", {"metrics": ["f1"]})):
            judged = data_of(self.train(kind, data=getattr(self, kind)(), **more))["judged"]
            if kind == "masks":
                self.assertEqual(judged["kind"], "pixels")
                self.assertEqual(sum(map(sum, judged["confusion"]["cells"])), 24 * 120)
                self.assertEqual([len(one["pictures"]) for one in judged["mistakes"]], [3] * len(judged["mistakes"]),
                                 "the picture, its mask and what was found")
                self.assertGreater(len(judged["mistakes"]), 0)
            elif kind == "numbers":
                self.assertEqual(judged["kind"], "numbers")
                self.assertEqual(len(judged["points"]), 80)
                worst = judged["mistakes"][0]
                self.assertAlmostEqual(worst["wrong"], max(abs(x - y) for x, y in judged["points"]), places=4)
                self.assertNotIn("pictures", worst)
            else:
                self.assertEqual([label[0] for label in judged["labels"]], HOSTILE)
                self.assertEqual(judged["kind"], "labels")

    def test_what_the_configuration_leaves_out(self) -> None:
        data = data_of(self.train("out", data=self.hostile_classes(), epochs=1, report={"profile": False, "mistakes": 2}))
        self.assertEqual(len(data["judged"]["mistakes"]), 2)
        self.assertNotIn("nodes", data)
        self.assertNotIn("memory", data)
        config = self.write("bad.json", {"net": "net.json", "data": self.hostile_classes(), "report": {"mistaeks": 2}})
        self.refuse(["mistaeks", "did you mean 'mistakes'"], "train", config, "-d", "cpu", "--out", self.folder / "bad")
        config = self.write("bad.json", {"net": "net.json", "data": self.hostile_classes(), "report": {"mistakes": 1000}})
        self.refuse(["mistakes", "1000", "200"], "train", config, "-d", "cpu", "--out", self.folder / "bad")

    def test_a_report_that_cannot_be_written_ends_nothing(self) -> None:
        out = self.folder / "out"
        with self.running(self.config("long", data=self.numbers(), epochs=1000000), out) as run:
            (out / "report.html").unlink()
            (out / "report.html").mkdir()
            self.assertRegex(self.line_of(run, "the training goes on"), "report.html.*; the training goes on")
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 130, said[-2000:])
        self.assertIn("stopped; checkpoint: ", said)

    def test_a_run_that_is_stopped_and_goes_on(self) -> None:
        config, out = self.config("long", data=self.folder_of_pictures(), epochs=1000000), self.folder / "out"
        with self.running(config, out) as run:
            self.assertEqual(data_of(out / "report.html")["status"], "running")
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 130)
        stopped = data_of(out / "report.html")
        self.assertEqual(stopped["status"], "stopped")
        epochs = len(stopped["runs"][0]["rows"])
        self.succeed("train", config, "-d", "cpu", "--out", out, "--resume", "latest", "--epochs", epochs)
        finished = data_of(out / "report.html")
        self.assertEqual(finished["status"], "finished")
        self.assertEqual(finished["judged"], stopped["judged"], "of the epoch that was over")
        self.assertEqual(finished["nodes"], stopped["nodes"])

    def test_a_run_that_is_stopped_while_it_is_judged(self) -> None:
        """Nearly all of the run's time is spent on its test set; the findings are those of the last epoch that was over."""
        x = np.random.default_rng(1).normal(size=(4000, 6)).astype(np.float32)
        data = self.numbers()
        np.savez(self.folder / "test.npz", x=x, y=x[:, :2] * 3)
        config = self.config("long", data=data | {"test": data["test"] | {"file": "test.npz"}}, epochs=1000000)
        with self.running(config, self.folder / "out") as run:
            self.line_of(run, "epoch 4/")
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=SECONDS)
        stopped = data_of(self.folder / "out/report.html")
        self.assertEqual(stopped["status"], "stopped")
        self.assertGreater(len(stopped["runs"][0]["rows"]), 1)
        self.assertEqual(stopped["judged"]["epoch"], len(stopped["runs"][0]["rows"]))

    def test_a_run_that_fails_says_so(self) -> None:
        """The loss becomes infinite some epochs after the first report."""
        config = self.write("train.json", {"net": "net.json", "data": self.numbers(), "batch": 8, "epochs": 200,
                                           "solver": {"type": "sgd", "learning_rate": 10}})
        result = call("train", config, "-d", "cpu", "--out", self.folder / "out")
        self.assertEqual(result.code, 1)
        data = data_of(self.folder / "out/report.html")
        self.assertEqual(data["status"], "failed")
        self.assertIn("the loss is", data["message"])


class Benchmark(CommandTest):
    def test_its_page(self) -> None:
        net = self.write("<b>.json", network({"x": [2, 3, 32, 32]}, ["y"],
                                             operator("Convolution2D", "c<1>", "x", "c1", channels_out=8, kernel=3),
                                             operator("Activation", "r", "c1", activation="tanh"),
                                             operator("InnerProduct", "y", "r", outputs=4)))
        page = self.folder / "page.html"
        self.succeed("benchmark", "-i1", "-w1", "-a", "--html", page, "cpu", net)
        data = data_of(page)
        self.assertIn("training step (Adam)", data["title"])
        self.assertEqual({node["part"] for node in data["nodes"]}, {"forward", "backward", "update"})
        self.assertGreater(sum(node["ms"] for node in data["nodes"]), 0)
        self.assertEqual(data["figures"][0][0], "a batch, median of 1")
        self.assertGreater(data["memory"]["peak"], 0)
        self.assertEqual(len(data["network"]["operators"]), 3)
        self.assertNotIn("<b>", page.read_text())
        self.refuse(["/nonexistent/x.html"], "benchmark", "-i1", "-w1", "--html", "/nonexistent/x.html", "cpu", net)


HEAD = "epoch,learning_rate,train_loss,train_accuracy,test_loss,test_accuracy,seconds\n"
ROWS = "1,0.1,2,0.5,1.5,0.6,3\n2,0.1,1,0.7,1.2,0.7,3\n"


class Compare(Runs):
    def run_of(self, name: str, text: str = HEAD + ROWS) -> Any:
        return self.write(f"{name}/metrics.csv", text).parent

    def compare(self, *runs: Any) -> Any:
        page = self.folder / "page.html"
        self.succeed("compare", *runs, "--out", page)
        return data_of(page)

    def test_runs_without_reports(self) -> None:
        data = self.compare(self.run_of("one"), self.run_of("two", HEAD + "1,0.1,nan,,inf,,3\n"))
        self.assertEqual(data["title"], "one, two")
        self.assertEqual([run["name"] for run in data["runs"]], ["one", "two"])
        self.assertEqual(data["runs"][0]["rows"], [[1, 0.1, 2, 0.5, 1.5, 0.6, 3], [2, 0.1, 1, 0.7, 1.2, 0.7, 3]])
        self.assertEqual(data["runs"][1]["rows"], [[1, 0.1, None, None, None, None, 3]])

    def test_runs_of_one_name(self) -> None:
        """Names are as long as they must be to differ."""
        data = self.compare(self.run_of("a/out"), self.run_of("b/out"))
        self.assertEqual([run["name"] for run in data["runs"]], ["a/out", "b/out"])

    def test_settings_come_from_reports(self) -> None:
        data = self.numbers()
        runs = [self.train(name, data=data, solver={"learning_rate": rate}).parent for name, rate in (("slow", 0.001), ("fast", 0.01))]
        facts = [dict(run["facts"]) for run in self.compare(*runs)["runs"]]
        self.assertEqual([fact["solver.learning_rate"] for fact in facts], ["0.001", "0.01"])
        self.assertEqual(facts[0]["batch"], "8")

    def test_a_report_that_says_nothing(self) -> None:
        for text in ("no page", '<script type="application/json" id="data">{"runs": 3}</script>',
                     '<script type="application/json" id="data">' + "[" * 100000 + "</script>"):
            self.write("two/report.html", text)
            self.run_of("one")
            self.run_of("two")
            result = self.succeed("compare", self.folder / "one", self.folder / "two", "--out", self.folder / "page.html")
            self.assertRegex(result.err, r"^dlprim_compare: warning: '.*two/report.html' does not say .*\n$")

    def test_bad_input(self) -> None:
        good, page = self.run_of("good"), self.folder / "page.html"
        self.refuse(["RUN"], "compare", code=2)
        self.refuse(["RUN"], "compare", good, code=2)
        self.refuse(["does not exist"], "compare", good, self.folder / "none", "--out", page)
        (self.folder / "empty").mkdir()
        self.refuse(["no metrics.csv"], "compare", good, self.folder / "empty", "--out", page)
        self.refuse(["given twice"], "compare", good, f"{good}/../good", "--out", page)
        for words, text in (("is empty", ""), ("no epochs", HEAD), ("line 3 has 4 of 7 columns", HEAD + ROWS[:32]),
                            ("line 2 holds 'x'", HEAD + "1,x,2,0.5,1.5,0.6,3\n"), ("instead of 'epoch'", "a,b\n1,2\n"),
                            ("is no metrics.csv", "\0\1\2")):
            self.refuse([words], "compare", good, self.run_of("bad", text), "--out", page)
        self.assertFalse(page.exists(), "nothing half-written")
        self.refuse(["/nonexistent/"], "compare", good, self.run_of("bad"), "--out", "/nonexistent/page.html")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""A page in headless Chromium, as tests of reports look at it."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 120 * float(os.environ.get("DLPRIM_TEST_PATIENCE", "1"))


class Dom(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def attribute(self, name: str) -> str | None:
        return self.elements[0][1].get(name)

    def ids(self) -> set[str]:
        return {str(attributes["id"]) for _, attributes in self.elements if "id" in attributes}


def look(page: pathlib.Path, probe: str = "null", seconds: float = 4, *flags: str) -> tuple[Dom, Any]:
    """The page's elements once its scripts have run, and what `probe` gives: an expression of JavaScript, which may wait
    (await). Its clock is virtual and goes on for so many seconds; with 0, it is the real one, and nothing waits. The probe
    goes into a copy of the page, and so does a list of errors. Frames come by the virtual clock too: those of the screen come
    by the real one, and on a busy machine none may come before the seconds are over."""
    watch = ("<script>window.problems = []; addEventListener('error', (e) => problems.push(String(e.message)));"
             "document.addEventListener('securitypolicyviolation', (e) => problems.push('refused: ' + e.blockedURI));</script>")
    ask = ("<script>(async () => { const found = await (async () => (" + probe + "))(); "
           "document.documentElement.dataset.probe = JSON.stringify({found, problems}); })()"
           ".catch((e) => { document.documentElement.dataset.probe = JSON.stringify({problems: [...problems, String(e)]}); });</script>")
    frames = ("<script>window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);"
              "window.cancelAnimationFrame = clearTimeout;</script>") if seconds else ""
    text = page.read_text(encoding="utf-8").replace("<style>", watch + frames + "<style>", 1)
    assert text.count("</body>") == 1
    with tempfile.TemporaryDirectory(prefix="dlprim-browser-") as folder:
        copy = pathlib.Path(folder) / "page.html"
        copy.write_text(text.replace("</body>", ask + "</body>"), encoding="utf-8")
        clock = [f"--virtual-time-budget={int(1000 * seconds)}"] if seconds else []
        done = subprocess.run([str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               f"--user-data-dir={folder}/profile", "--window-size=1200,900", *clock, *flags, "--dump-dom",
                               copy.as_uri()], capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    dom = Dom(done.stdout.decode("utf-8", "replace"))
    if not dom.elements:
        raise AssertionError(f"Chromium showed nothing: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    answer = json.loads(dom.attribute("data-probe") or "{}")
    if "problems" not in answer:
        raise AssertionError("the page's scripts did not come to their end")
    if answer["problems"]:
        raise AssertionError(f"errors on the page: {answer['problems']}")
    return dom, answer.get("found")


def data_of(page: pathlib.Path) -> Any:
    """What a report holds, as the browser gets it."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{page} holds no data"
    return json.loads(found.group(1))


def results_of(page: pathlib.Path) -> Any:
    """The same without what is measured (seconds, and when it was written), how the step is planned (its memory and
    precision), and the text of the configuration."""
    data = data_of(page)
    for key in ("written", "waits", "nodes", "memory", "text"):
        data.pop(key, None)
    for table in data["tables"]:
        table["rows"] = [row for row in table["rows"] if row[0] != "precision"]
    for run in data["runs"]:
        run["facts"] = [row for row in run["facts"] if row[0] != "precision"]
        assert run["columns"].pop() == "seconds"
        for row in run["rows"]:
            row.pop()
    return data

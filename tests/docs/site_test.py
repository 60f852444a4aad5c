#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the documentation's site without a warning, and follows every link in it, to anchors too; nothing that a page loads
comes from elsewhere. First shows on made-up pages that it can fail.

    site_test.py PACKAGE OUT      as scripts/site/build.py takes them; 77: skipped
"""
import html.parser
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

from documents import ROOT

ATTRIBUTES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src", "object": "data"}


class Page(html.parser.HTMLParser):
    """The links of a page, with the tag of each, and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        target = values.get(ATTRIBUTES.get(tag, ""))
        canonical = tag == "link" and values.get("rel") in ("canonical", "next", "prev")
        if target and not canonical:
            self.links.append((tag, target))


def problems_of(site):
    pages = {path: Page(path.read_text(errors="replace")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, page in pages.items():
        where = path.relative_to(site)
        for tag, target in page.links:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme in ("http", "https") or parts.netloc:
                if tag != "a":
                    yield f"{where} loads {target} from elsewhere"
                continue
            if parts.scheme:
                continue  # javascript:, mailto:, data:
            place = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if place.is_dir():
                place /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not place.exists():
                yield f"{where}: the link to {target} leads nowhere"
            elif anchor and place in pages and anchor not in pages[place].anchors and not anchor.startswith("__"):
                yield f"{where}: {target} names no anchor there"


def try_on_made_up_sites():
    """Each of these has one fault, or none where the last word is None."""
    for text, fault in [('<a href="other.html#here">x</a><a href="https://example.org">y</a><img src="p.svg">', None),
                        ('<a href="nowhere.html">x</a>', "leads nowhere"),
                        ('<img src="nowhere.svg">', "leads nowhere"),
                        ('<a href="other.html#nowhere">x</a>', "names no anchor"),
                        ('<script src="https://example.org/x.js"></script>', "from elsewhere"),
                        ('<link rel="stylesheet" href="//example.org/x.css">', "from elsewhere")]:
        with tempfile.TemporaryDirectory() as folder:
            site = pathlib.Path(folder)
            (site / "page.html").write_text(text)
            (site / "other.html").write_text('<p id="here">')
            (site / "p.svg").write_text("<svg/>")
            found = list(problems_of(site.resolve()))
            assert len(found) == (fault is not None) and all(fault in line for line in found), (text, found)


try_on_made_up_sites()
if not shutil.which("doxygen") or not all(importlib.util.find_spec(name) for name in ("material", "mkdocstrings")):
    print("skipped: Doxygen, mkdocs-material or mkdocstrings is missing (scripts/install_deps.sh docs)")
    sys.exit(77)
out = pathlib.Path(sys.argv[2]).resolve()
command = [sys.executable, ROOT / "scripts/site/build.py", "--python", sys.argv[1], out]
built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
assert built.returncode == 0, built.stdout
pages = sorted(str(path.relative_to(out / "site")) for path in (out / "site").rglob("*.html"))
wanted = ["index.html", "tutorial/1_train_the_example.html", "engines/README.html", "api/python.html", "api/python_ops.html",
          "api/cpp/classdlprim_1_1Net.html"]
missing = [name for name in wanted if name not in pages and name.replace("README", "index") not in pages]
assert not missing, f"{missing} are not in the site: {pages[:20]}"
assert "set_input" in (out / "site/api/python.html").read_text()
for module, name in [("nn", "relu"), ("nn", "LeakyReLU"), ("nn", "LSTM"), ("ops", "relu"), ("ops", "conv2d")]:
    assert f'id="dlprim.{module}.{name}"' in (out / f"site/api/python_{module}.html").read_text(), f"no dlprim.{module}.{name}"
problems = list(problems_of(out / "site"))
print("\n".join(problems), f"{len(pages)} pages", sep="\n")
sys.exit(1 if problems else 0)

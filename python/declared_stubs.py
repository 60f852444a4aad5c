# SPDX-License-Identifier: MIT
"""Writes the stub of dlprim.ops._declared, whose functions are made at import of what operators declare.

usage: declared_stubs.py FOLDER TO.pyi, with the folder of _core. It needs nothing else of the package, nor numpy.
"""

import json
import pathlib
import sys

folder, target = sys.argv[1:]
sys.dont_write_bytecode = True  # the sources stay clean
sys.path[:0] = [folder, str(pathlib.Path(__file__).parent / "dlprim/ops")]

import _core  # noqa: E402
import _signatures  # noqa: E402
import _table  # noqa: E402

text = _signatures.stub_module(_table.TABLE, json.loads(_core.operator_declarations()))
pathlib.Path(target).write_text(text, encoding="utf-8")

# SPDX-License-Identifier: MIT
"""Writes the stubs of dlprim.ops._declared and dlprim.nn._declared, which are made at import of what operators declare.

usage: declared_stubs.py FOLDER, the package's in the build. It needs nothing of the package but _core there, nor numpy.
"""

import json
import pathlib
import sys

package = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True  # the sources stay clean
sys.path[:0] = [str(package), str(pathlib.Path(__file__).parent / "dlprim")]

import _core  # noqa: E402
from _operators import signatures, table  # noqa: E402

declarations = json.loads(_core.operator_declarations())
eager = signatures.eager_stub(table.OF_OPS, declarations)
symbolic = signatures.symbolic_stub(table.OF_NN, table.LAYERS, declarations)
(package / "ops/_declared.pyi").write_text(eager, encoding="utf-8")
(package / "nn/_declared.pyi").write_text(symbolic, encoding="utf-8")

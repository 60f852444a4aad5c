#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a file includes one of a room below its own (docs/architecture.md), when a string in it names a file in
another operator's folder, such as a kernel, or when an operator's folder registers in another way than the guides show,
and first shows on made-up files that it can fail.
Usage: rooms_test.py [REPOSITORY]."""

import pathlib
import re
import sys

from rules import repository, shown_to_fail, told

ROOMS = ["base", "runtime", "collective", "engine", "graph", "ops", "formats", "check", "plan", "exec", "train", "api", "language"]

# Public headers belong to the room that implements them.
PUBLIC = {
    "dtype": "base", "engine_plugin": "base", "error": "base", "internal": "base", "log": "base", "namespace": "base", "op_options": "base",
    "option_table": "base", "precision": "base",
    "scalar": "base", "settings": "base", "shape": "base", "version": "base",
    "call_names": "base", "compile_wait": "runtime", "context": "runtime", "diagnosis": "runtime", "event": "runtime", "opencl": "runtime", "pinned": "runtime",
    "tensor": "runtime",
    "tuning": "engine",
    "memory_map": "plan",
    "ops": "exec", "pointwise_many": "exec", "selection": "exec",
    "image": "formats", "onnx_value": "formats", "preprocessing": "formats", "tensor_file": "formats",
    "schedule": "train", "solver_options": "train",
    "data": "api", "describe": "api", "function": "api", "communicator": "api", "net": "api", "onnx": "api", "onnx_session": "api",
    "placed_net": "api", "processes": "api", "programs": "api",
    "dlprim": "language", "embedding_model": "language", "language": "language", "language_convert": "language", "language_training": "language",
    "report": "api", "scale": "api", "solver": "api", "team": "api", "trainer": "api",
}
OUTSIDE = ["tools", "examples", "benchmarks", "python"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
STRING = re.compile(r'"((?:\\.|[^"\\\n])*)"')
SUFFIXES = {".cpp", ".hpp", ".h", ".cc", ".c"}


def includes(path):
    """(line, quote, name) of every #include."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


def room_of_include(name, own_folder, root):
    """(room, operator or None) of what `name` includes; None for what is not ours."""
    if name.startswith("dlprim/"):
        stem = pathlib.PurePosixPath(name).stem
        return (PUBLIC.get(stem), None)
    parts = name.split("/")
    if parts[0] in ROOMS and len(parts) > 1:
        return (parts[0], parts[1] if parts[0] == "ops" and len(parts) > 2 else None)
    # Relative to the including file, as the preprocessor looks first.
    near = (own_folder / name).resolve()
    source = (root / "src").resolve()
    if near.exists() and source in near.parents:
        return room_of_include(near.relative_to(source).as_posix(), own_folder, root)
    return None


def foreign_paths(text, own, folders):
    """(line, string) of every string that begins with another folder's name and a slash, like "conv2d/planes.cl".
    Comments and includes do not count."""
    for number, line in enumerate(text.splitlines(), 1):
        if INCLUDE.match(line):
            continue
        for match in STRING.finditer(line.split("//")[0]):
            folder, slash, _ = match.group(1).partition("/")
            if slash and folder in folders and folder != own:
                yield number, match.group(1)


def operator_folders(root):
    """The names of operators' folders, of their sources and of their kernels."""
    ops = root / "src" / "ops"
    return {p.name for p in ops.iterdir() if p.is_dir()} if ops.is_dir() else set()


def is_opencl(name):
    return name.startswith("CL/") or name.startswith("OpenCL/")


def check(root):
    problems = []

    def wrong(path, line, what):
        problems.append(f"{path.relative_to(root)}:{line}: {what}")

    def files(folder):
        return sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES)

    folders = operator_folders(root)
    for path in files("src"):
        parts = path.relative_to(root / "src").parts
        if parts[0] not in ROOMS:
            wrong(path, 1, f"'{parts[0]}' is no room; docs/architecture.md lists them")
            continue
        room = parts[0]
        operator = parts[1] if room == "ops" and len(parts) > 2 else None
        if room in ("engine", "ops"):
            for line, name in foreign_paths(path.read_text(encoding="utf-8", errors="replace"), operator, folders):
                owner = f"operator {operator}" if operator else room
                wrong(path, line, f"{owner} names \"{name}\", a file of operator {name.split('/')[0]}")
        for line, _, name in includes(path):
            if is_opencl(name) and room != "runtime":
                wrong(path, line, f"{room} includes <{name}>; only runtime includes OpenCL headers")
            target = room_of_include(name, path.parent, root)
            if target is None:
                continue
            if target[0] is None:
                wrong(path, line, f"<{name}> is in no room; name its room in tests/rooms_test.py")
            elif ROOMS.index(target[0]) > ROOMS.index(room):
                wrong(path, line, f"{room} includes '{name}' of {target[0]}, which is below it")
            elif target[1] and operator != target[1] and room == "ops":
                wrong(path, line, f"operator {operator} includes '{name}' of operator {target[1]}")

    for path in files("include"):
        own = PUBLIC.get(path.stem)
        if own is None:
            wrong(path, 1, "a public header of no room; name its room in tests/rooms_test.py")
            continue
        for line, _, name in includes(path):
            if is_opencl(name) and path.stem not in ("context", "tensor", "opencl"):
                wrong(path, line, f"a public header of {own} includes <{name}>")
            if name.startswith("dlprim/"):
                other = PUBLIC.get(pathlib.PurePosixPath(name).stem)
                if other and ROOMS.index(other) > ROOMS.index(own):
                    wrong(path, line, f"a header of {own} includes '{name}' of {other}")
            elif name.split("/")[0] in ROOMS and "/" in name:
                wrong(path, line, f"a public header includes '{name}', which is not public")

    for folder in OUTSIDE:
        for path in files(folder):
            for line, _, name in includes(path):
                if name.startswith("dlprim/"):
                    continue
                if name.split("/")[0] in ROOMS and "/" in name:
                    wrong(path, line, f"{folder} sees only include/dlprim, not '{name}'")
                near = (path.parent / name).resolve()
                if (root / "src").resolve() in near.parents:
                    wrong(path, line, f"{folder} sees only include/dlprim, not '{name}'")
    return problems


def check_operators(root):
    """The folders of src/ops are those of operators.cmake, and one file of each registers what it has."""
    problems = []
    listing = root / "src/ops/operators.cmake"
    listed = set(re.findall(r"^\s+(\w+)$", listing.read_text(encoding="utf-8"), re.MULTILINE))
    folders = {path.name for path in (root / "src/ops").iterdir() if path.is_dir()}
    for name in sorted(listed ^ folders):
        where = "src/ops/operators.cmake" if name in listed else "src/ops"
        problems.append(f"src/ops/{name}: only {where} has it")
    for name in sorted(listed & folders):
        wanted = f"void register_{name}(OperatorRegistry& operators, EngineRegistry&"
        texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "src/ops" / name).rglob("*.cpp"))}
        if sum(wanted in text for text in texts.values()) != 1:
            problems.append(f"src/ops/{name}: not one of its files has `{wanted}`")
        for path, text in texts.items():
            if re.search(r"Registry::instance\(\)\s*\.add\(", text):
                problems.append(f"{path.relative_to(root)}: adds to a registry that it was not given")
    return problems


# Files of a made-up tree and whether each is to be refused.
SELF_TEST = {
    "src/base/a.cpp": ('#include "runtime/queue.hpp"\n', True),
    "src/base/b.cpp": ("#include <dlprim/shape.hpp>\n#include <vector>\n", False),
    "src/base/c.cpp": ("#include <dlprim/net.hpp>\n", True),
    "src/base/d.cpp": ('#include "../plan/plan.hpp"\n', True),
    "src/plan/plan.hpp": ('#include "graph/graph.hpp"\n', False),
    "src/formats/e.cpp": ('  #  include   "plan/plan.hpp"\n', True),
    "src/engine/f.cpp": ("#include <CL/cl.h>\n", True),
    "src/runtime/g.cpp": ("#include <CL/cl.h>\n", False),
    "src/ops/one/h.cpp": ('#include "ops/one/options.hpp"\n#include "graph/operator.hpp"\n', False),
    "src/ops/one/i.cpp": ('#include "ops/two/options.hpp"\n', True),
    "src/ops/one/j.cpp": ('#include "plan/plan.hpp"\n', True),
    "src/ops/two/q.cpp": ('const char* path = "two/kernel.cl";  // not "one/kernel.cl"\n', False),
    "src/ops/two/r.cpp": ('const char* path = "matrix/stored16.cl", *text = "one / two";\n', False),
    "src/ops/two/s.cpp": ('const char* path = "one/kernel.cl";\n', True),
    "src/engine/matrix/t.cpp": ('const char* path = "two/kernel.cl";\n', True),
    "src/formats/k.cpp": ('#include "graph/description.hpp"\n', False),
    "src/cellar/l.cpp": ("\n", True),
    "src/api/m.cpp": ('#include "train/loop.hpp"\n#include <dlprim/net.hpp>\n', False),
    "include/dlprim/shape.hpp": ("#include <dlprim/net.hpp>\n", True),
    "include/dlprim/net.hpp": ("#include <dlprim/shape.hpp>\n", False),
    "include/dlprim/unheard_of.hpp": ("\n", True),
    "include/dlprim/ops.hpp": ('#include "exec/eager.hpp"\n', True),
    "tools/n.cpp": ('#include "base/text.hpp"\n', True),
    "tools/o.cpp": ('#include <dlprim/dlprim.hpp>\n#include "options.hpp"\n', False),
    "src/ops/operators.cmake": ("set(DLPRIM_OPERATORS\n    one\n    two\n    gone\n)\n", False),
    "src/ops/one/register.cpp": (
        "void register_one(OperatorRegistry& operators, EngineRegistry&) {\n", False),
    "src/ops/two/register.cpp": ("EngineRegistry::instance().add(make());\n", True),
    "examples/p.cpp": ('#include "../src/base/text.hpp"\n', True),
}


def main():
    def all_rules(root):
        return check(root) + check_operators(root)

    problems = shown_to_fail(all_rules, SELF_TEST, {"src/ops/two", "src/ops/gone"}) or all_rules(repository())
    return told(problems, "the rooms hold")


if __name__ == "__main__":
    sys.exit(main())

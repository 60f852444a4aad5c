#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the shared library exports what the public headers do not declare, or hides what they do.

    exported_symbols_test.py LIBRARY NODE

Everything that the library exports has to be a name of the namespace dlprim, under the version node. Where Python has
libclang, the functions are compared one by one, by the names that compiler gives them. cmake/exported_symbols.py, whose
work this is, reads the headers in another way.
"""
import pathlib
import re
import subprocess
import sys

# Functions of the library's own that have the name of a public one in the same namespace, which the patterns of the version
# script do not tell apart by arguments. A new one is better called something else.
OVERLOADS = {"dlprim::name_of(dlprim::MatrixUnit)"}
INSTANCE = re.compile(r" dlprim::ops::(call|backward)<dlprim::ops::(\w+)>\(")
# What tables of options are made of while the library is compiled.
TABLE = re.compile(r"dlprim::ops::(same_options|same_values|text_of)<")
ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include"


def exported(library, node):
    """Names as the compiler makes them, and as people write them."""
    found = {}
    for names in ([], ["-C"]):
        text = subprocess.run(["nm", "-D", "--defined-only", *names, library], capture_output=True, text=True, check=True).stdout
        found[bool(names)] = [line.split(maxsplit=2)[1:] for line in text.splitlines()]
    result = {}
    for (kind, mangled), (_, name) in zip(found[False], found[True]):
        if kind != "A":  # the version node itself
            assert mangled.endswith("@@" + node), f"{name} is exported without the version {node}"
            result[mangled.partition("@")[0]] = name.rpartition("@@")[0]
    return result


def declared():
    """Every function of the headers by its name as the compiler makes it, with whether the header defines it, too."""
    from clang import cindex
    kinds = cindex.CursorKind
    functions = {kinds.FUNCTION_DECL, kinds.CXX_METHOD, kinds.CONSTRUCTOR, kinds.DESTRUCTOR, kinds.CONVERSION_FUNCTION}
    scopes = {kinds.NAMESPACE, kinds.CLASS_DECL, kinds.STRUCT_DECL}
    compiler = subprocess.run(["c++", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    headers = "".join(f"#include <dlprim/{path.name}>\n" for path in sorted((HEADERS / "dlprim").glob("*.hpp")))
    unit = cindex.Index.create().parse("all.cpp", ["-x", "c++", "-std=c++20", f"-I{HEADERS}", "-isystem", compiler],
                                       unsaved_files=[("all.cpp", headers)])
    errors = [str(one) for one in unit.diagnostics if one.severity >= cindex.Diagnostic.Error]
    assert not errors, errors[:3]
    found = {}

    def walk(cursor):
        for one in cursor.get_children():
            if not one.location.file or not one.location.file.name.startswith(str(HEADERS)):
                continue
            if one.kind in scopes:
                walk(one)
            elif one.kind in functions and not one.is_deleted_method():
                inline = one.is_definition() or one.is_default_method() or one.get_definition() is not None
                found[one.mangled_name] = inline
    walk(unit.cursor)
    return found


def check_operators(symbols):
    """Fails where call() or backward() of an operator's options, which are instances of templates, is missing."""
    options = (HEADERS / "dlprim" / "op_options.hpp").read_text()
    wanted = {(function, operator) for operator in re.findall(r"struct (\w+) \{\s+static constexpr std::string_view type", options)
              for function in ("call", "backward")}
    assert len(wanted) > 100, f"op_options.hpp has only {len(wanted) // 2} operators"
    missing = wanted - {found.groups() for found in map(INSTANCE.search, symbols.values()) if found}
    assert not missing, f"declared by a header, but not exported: {sorted(missing)[:5]}"


def plain(name):
    """One name for the two or three functions that a compiler makes of a constructor or a destructor."""
    return re.sub(r"(?<=[a-z0-9])[CD][0-3](?=E)", "*", name)


def is_implicit(name):
    """Whether it is a copy or move constructor, which classes have without declaring it."""
    return re.fullmatch(r"dlprim::(\w+)::\1\(dlprim::\1( const&|&&)\)", name) is not None


def main():
    library, node = sys.argv[1:]
    symbols = exported(library, node)
    assert len(symbols) > 100, f"only {len(symbols)} symbols are exported"
    check_operators(symbols)
    symbols = {mangled: name for mangled, name in symbols.items() if not INSTANCE.search(name) and not TABLE.search(name)}
    foreign = [name for name in symbols.values() if not re.match(r"((typeinfo|typeinfo name|vtable) for )?dlprim::", name)]
    assert not foreign, f"exported without being of dlprim: {foreign[:5]}"
    try:
        functions = declared()
    except ImportError:
        print(f"{len(symbols)} symbols are exported; this Python has no libclang to compare them with the headers")
        return 77
    promised = {plain(name) for name in functions}
    extra = {name for mangled, name in symbols.items() if plain(mangled) not in promised and not name.startswith(("typeinfo", "vtable"))}
    extra = {name for name in extra if not is_implicit(name)}
    assert extra <= OVERLOADS, f"exported, but declared by no header: {sorted(extra - OVERLOADS)}"
    assert OVERLOADS <= extra, f"OVERLOADS lists what is not exported: {sorted(OVERLOADS - extra)}"
    there = {plain(mangled) for mangled in symbols}
    hidden = [name for name, inline in functions.items() if not inline and plain(name) not in there]
    assert not hidden, f"declared by a header, but not exported: {hidden[:5]}"
    print(f"{len(symbols)} symbols are exported, as the headers' {len(functions)} functions promise")
    return 0


sys.exit(main())

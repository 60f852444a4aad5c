#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a function of C++, Python or OpenCL C has more than 100 lines, or one of the first two more than 8
parameters, and first shows on made-up functions that it can fail. Usage: functions_test.py [REPOSITORY]."""

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from rules import repository, told

MOST_LINES = 100
MOST_PARAMETERS = 8
FOLDERS = ["src", "include", "tools", "examples", "benchmarks", "tests", "python", "scripts", "kernels"]

# Functions that may be longer or take more, as "file:function", with the reason.
KEYWORDS = "its parameters are the keyword arguments of the Python function that calls it"
CACHE_KEY = "its parameters are the keyword arguments of the public function, and the key of the cache of calls"
OPENCL = "its parameters are those of OpenCL's function, in front of which it stands"
EXCEPTIONS = {
    "benchmarks/opencl_times.cpp:clEnqueueCopyBuffer": OPENCL,
    "benchmarks/opencl_times.cpp:clEnqueueNDRangeKernel": OPENCL,
    "benchmarks/opencl_times.cpp:clEnqueueReadBuffer": OPENCL,
    "benchmarks/opencl_times.cpp:clEnqueueWriteBuffer": OPENCL,
    "python/src/onnx.cpp:make_session": KEYWORDS,
    "python/src/schedule.cpp:make_schedule": KEYWORDS,
    "python/src/train.cpp:run_training": KEYWORDS,
    "python/dlprim/ops/_sequences.py:recurrent_call": CACHE_KEY,
}


class Function(NamedTuple):
    name: str
    line: int
    lines: int
    parameters: int


class Scope(NamedTuple):
    """What an opening brace of C++ begins. `head` is the text in front of it."""

    head: str
    line: int
    is_function: bool
    is_initializer: bool


# Comments, strings and characters, in which braces mean nothing.
QUIET = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
# What follows a function's parameters: qualifiers, a result, initializers of members.
BEHIND = re.compile(r"(?:\s*(?:const|noexcept|override|final|mutable|&+|try|->[^;]*|:[^:].*))*\s*$", re.DOTALL)
NO_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|catch|return)\b")
OPEN = {")": "(", "]": "[", "}": "{", ">": "<"}


def closing(text: str, start: int) -> int:
    """Where the parenthesis that opens at `start` closes; -1 where it does not."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return -1


def parameters_of(head: str) -> tuple[str, str] | None:
    """The name and the parameters of the function that `head` begins; None where it begins none."""
    head = re.sub(r"\[\[.*?\]\]", "", head).strip()
    while match := re.match(r"template\s*<", head):
        depth, i = 1, match.end()
        while depth and i < len(head):
            depth += (head[i] == "<") - (head[i] == ">")
            i += 1
        head = head[i:].strip()
    if NO_FUNCTION.match(head):
        return None
    start = head.find("(")
    if match := re.search(r"operator\s*\(\)\s*\(", head):
        start = match.end() - 1
    while start > 0:
        name = re.search(r"(operator\s*[^\w\s(]+|operator\s*\(\)|[\w:~]+)\s*$", head[:start])
        end = closing(head, start)
        if end < 0 or name is None:
            return None
        if name.group(1) not in ("decltype", "noexcept", "alignas", "__attribute__", "requires"):
            if "=" in re.sub(r"operator\s*\S+", "", head[:start]) or not BEHIND.match(head[end + 1 :]):
                return None
            return name.group(1), head[start + 1 : end]
        start = head.find("(", end)
    return None


def count(parameters: str) -> int:
    """How many there are: commas outside of all brackets, and one."""
    depth, commas = 0, 0
    for i, letter in enumerate(parameters):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and parameters[i - 1] != "-"):
            depth -= 1
        commas += letter == "," and depth == 0
    return commas + 1 if parameters.strip() not in ("", "void") else 0


def quieted(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def functions_of_cpp(text: str) -> Iterator[Function]:
    text = QUIET.sub(quieted, text)
    scopes: list[Scope] = []
    begin, parentheses = 0, 0
    for match in re.finditer(r"(?:public|private|protected):(?!:)|[{};()]", text):
        letter, at = match.group(), match.start()
        inside = any(scope.is_function for scope in scopes)
        if letter in "()":
            parentheses += 0 if inside else 1 if letter == "(" else -1
            continue
        if inside and letter not in "{}":
            continue
        # Braces behind a name are an initializer, and the head of what they belong to goes on.
        initializer = letter == "{" and (text[at - 1].isalnum() or text[at - 1] in "_>")
        if letter == "{":
            head = text[begin:at]
            first = begin + len(head) - len(head.lstrip())
            is_function = not (inside or initializer or parentheses) and parameters_of(head) is not None
            scopes.append(Scope(head, text.count("\n", 0, first), is_function, initializer))
        elif letter == "}" and scopes:
            scope = scopes.pop()
            initializer = scope.is_initializer
            if scope.is_function and (found := parameters_of(scope.head)):
                lines = text.count("\n", 0, at) - scope.line + 1
                yield Function(found[0], scope.line + 1, lines, count(found[1]))
        if not initializer and not (letter == ";" and parentheses):
            begin = match.end()


def one_branch(text: str, last: bool) -> str:
    """The text with the first or the last branch of each #if alone, and the lines of the others empty."""
    lines = text.split("\n")
    while True:
        # Innermost ones first.
        end = next((i for i, line in enumerate(lines) if re.match(r"\s*#\s*endif", line)), None)
        if end is None:
            return "\n".join(lines)
        starts = [end]
        while not re.match(r"\s*#\s*if", lines[starts[0]]):
            before = (i for i in range(starts[0] - 1, -1, -1) if re.match(r"\s*#\s*(if|elif|else)", lines[i]))
            starts.insert(0, next(before))
        begin, until = (starts[-2], end) if last else (starts[0], starts[1])
        for i in range(starts[0], end + 1):
            if not begin < i < until:
                lines[i] = ""


def functions_of_opencl(text: str) -> Iterator[Function]:
    """Those of both branches of each #if, since braces may pair only within one. Parameters of kernels have names."""
    # Macros are no functions, nor what a line that consists of one makes.
    text = re.sub(r"^[ \t]*#[ \t]*(?:define|pragma)(?:\\\n|[^\n])*", quieted, text, flags=re.MULTILINE)
    text = re.sub(r"^[A-Z0-9_]+\([^\n]*\)$", quieted, text, flags=re.MULTILINE)
    found = [f for last in (False, True) for f in functions_of_cpp(one_branch(text, last))]
    yield from sorted({f._replace(parameters=0) for f in found}, key=lambda f: f.line)


def functions_of_python(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        # Keyword-only ones are options that a call names.
        given = [a for a in node.args.posonlyargs + node.args.args if a.arg not in ("self", "cls")]
        yield Function(node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, len(given))


def functions_of(path: pathlib.Path) -> Iterator[Function]:
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".cl", ".clh"):
        return functions_of_opencl(text)
    return functions_of_python(text) if path.suffix == ".py" else functions_of_cpp(text)


def too_big(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".py", ".cl", ".clh") or not path.is_file():
                continue
            name = path.relative_to(root).as_posix()
            for function in functions_of(path):
                where = f"{name}:{function.line}: {function.name}"
                key = f"{name}:{function.name}"
                if function.lines > MOST_LINES:
                    yield key, f"{where} has {function.lines} lines, more than {MOST_LINES}"
                if function.parameters > MOST_PARAMETERS:
                    yield key, f"{where} takes {function.parameters} parameters, more than {MOST_PARAMETERS}"


# Made-up sources, and (name, lines, parameters) of the functions in them.
CPP = """
#define BODY(x) { x
namespace a {
class Sum : public Base {
  public:
    explicit Sum(std::map<int, int> terms, int start = f(1, 2))
        : terms_(std::move(terms)), start_{start} {}
    int operator()(const std::function<int(int, int)>& f) const override {
        const auto g = [&](int x, int y) { return x + y; };  // a brace } in a comment
        return g(1, 2);
    }

  private:
    std::map<int, int> terms_ = {{1, 2}};
};
template <typename T, typename U>
auto Sum::twice(T a, U b) -> decltype(a + b) {
    const char* text = "{ in a text";
    if (a) {
        return a;
    }
    return R"({{{)";
}
}  // namespace a
"""
IN_CPP = {("Sum", 2, 2), ("operator()", 4, 1), ("Sum::twice", 8, 2)}
PYTHON = """
def outer(self, a, b=1, *, c=2):
    def inner():
        return 1
    return inner
"""
IN_PYTHON = {("outer", 4, 2), ("inner", 2, 0)}
OPENCL = """
#define LOAD(X) \\
    inline float load_##X(global const float* x) { return x[X]; }
LOAD(A)
LOAD(B)

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void sum(global const float* x, ulong x_offset, int n,
                                                                 global float* y EPILOGUE_PARAMETERS) {
#if ROWS
    for (int i = 0; i < n; ++i) {
#elif COLUMNS
    for (int i = 0; i < n; i += 2) {
#else
    {
#endif
        y[0] += x[0];
    }
}
#if WIDE
INLINE void wide(local float* to) {
    to[0] = 1;
}
#else
INLINE void narrow(local float* to) {}
#endif
"""
IN_OPENCL = {("sum", 12, 0), ("wide", 3, 0), ("narrow", 1, 0)}


def self_test() -> bool:
    good = True
    for text, read, expected in (
        (CPP, functions_of_cpp, IN_CPP),
        (PYTHON, functions_of_python, IN_PYTHON),
        (OPENCL, functions_of_opencl, IN_OPENCL),
    ):
        found = {(f.name, f.lines, f.parameters) for f in read(text)}
        for name in sorted(found ^ expected):
            print(f"self-test: {name} is {'found' if name in found else 'not found'}")
            good = False
    return good


def main() -> int:
    if not self_test():
        return 1
    found = list(too_big(repository()))
    problems = [what for key, what in found if key not in EXCEPTIONS]
    problems += [f"{key} is no exception any more" for key in sorted(set(EXCEPTIONS) - {key for key, _ in found})]
    return told(problems, "all functions fit on a screen")


if __name__ == "__main__":
    sys.exit(main())

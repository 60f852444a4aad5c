#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a file of src writes or reads text in a way that depends on a locale, or a command sets
one, and first shows on made-up files that it can fail. Usage: locale_rules_test.py [REPOSITORY].

Keys, kernels and files are read by machines and must not change with the program's locale, so all
text goes through base/text.hpp: TextWriter, cat, exact, fixed, leading_number, ascii::; std::to_chars
and std::from_chars ask no locale either."""

import re
import sys

from rules import repository, shown_to_fail, told

SUFFIXES = {".cpp", ".hpp", ".h", ".cc", ".c"}

# A pattern in code, where comments and texts are taken out, and what to use instead.
REFUSED_IN_SRC = [
    (r"\bw?[io]?stringstream\b", "TextWriter, cat or leading_number"),
    (r"\bstd::w?(io|i|o)stream\b|\bstd::w?(cout|cerr|clog|cin)\b", "TextWriter, or the log"),
    (r"(?<!<)\bw?(of|f)stream\b", "write_file_atomically of base/env.hpp"),
    (r"\bifstream\b(?![^;{]*std::ios::binary)(?!\s*&)", "read_file, or std::ios::binary and bytes alone"),
    (r"\bifstream\b[^;]*>>|\b(file|probe|stream|in|input)\s*>>\s*[a-z_]+\s*(;|\)|&&)", "leading_number"),
    (r"#\s*include\s*<(sstream|iostream|ostream|istream|iomanip|locale|clocale|locale\.h|cctype|ctype\.h|"
     r"cwctype|cstdio|stdio\.h|regex)>", "base/text.hpp"),
    (r"\bstd::to_w?string\b", "cat"),
    (r"\bsto(i|l|ll|ul|ull|f|d|ld)\b|\bstrto[a-z]+\b|\bato(i|l|ll|f)\b", "leading_number or std::from_chars"),
    (r"\bv?(s|sn|f|d|as)?printf\b|\b(s|f)?scanf\b|\bstrftime\b|\bput_time\b|\bget_time\b", "cat, exact or fixed"),
    (r"\bis(alnum|alpha|digit|xdigit|space|upper|lower|punct|print|cntrl|graph|blank)\s*\(\s*"
     r"(static_cast|\(|[a-z_]+\s*[\[)])", "ascii::"),
    (r"\bto(lower|upper)\b", "ascii::lower"),
    (r"\bsetlocale\b|\blocaleconv\b|\bstd::locale\b|\bimbue\b|\bnl_langinfo\b|\bnewlocale\b|\buselocale\b",
     "text that asks no locale"),
]
REFUSED_IN_COMMANDS = [(r"\bsetlocale\b|\bstd::locale\b|\bimbue\b|\buselocale\b", "the classic locale, which is there")]

# What must be near what: nlohmann/json's parser reads numbers by the C locale.
PARSES_JSON = re.compile(r"\bjson::parse\s*\(|\bsax_parse\s*\(|\bjson::accept\s*\(")
ALLOWED = {"src/base/classic_numbers.hpp": ("newlocale", "uselocale", "locale.h"),
           "src/formats/image/jpeg.cpp": ("cstdio",)}  # libjpeg's header wants FILE

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def code_of(path):
    """The file's text with comments and literals blank, lines kept; names of headers stay."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def check(root):
    problems = []
    rules = [("src", REFUSED_IN_SRC), ("tools", REFUSED_IN_COMMANDS)]
    for folder, refused in rules:
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in SUFFIXES):
            name = path.relative_to(root).as_posix()
            code = code_of(path)
            for pattern, instead in refused:
                for match in re.finditer(pattern, code):
                    if any(allowed in match.group(0) for allowed in ALLOWED.get(name, ())):
                        continue
                    line = code.count("\n", 0, match.start()) + 1
                    what = " ".join(match.group(0).split())
                    problems.append(f"{name}:{line}: '{what}' depends on the locale; use {instead}")
            found = PARSES_JSON.search(code)
            if folder == "src" and found and "ClassicNumbers" not in code:
                line = code.count("\n", 0, found.start()) + 1
                problems.append(f"{name}:{line}: parses JSON by the C locale; hold a ClassicNumbers meanwhile")
    return problems


# Files of a made-up tree and whether each is to be refused.
SELF_TEST = {
    "src/base/a.cpp": ("std::ostringstream out;\n", True),
    "src/base/b.cpp": ('// std::ostringstream is not used\nconst char* t = "printf(std::locale)";\n', False),
    "src/base/c.cpp": ("double d = std::stod(text);\n", True),
    "src/base/d.cpp": ("double d = std::strtod(text, nullptr);\n", True),
    "src/base/e.cpp": ("std::string t = std::to_string(0.5);\n", True),
    "src/base/f.cpp": ("#include <iomanip>\n", True),
    "src/base/g.cpp": ('std::snprintf(t, 8, "%g", d);\n', True),
    "src/base/h.cpp": ('std::ifstream file(path, std::ios::binary);\nfile.read(bytes, 8);\n', False),
    "src/base/i.cpp": ("std::ifstream file(path);\n", True),
    "src/base/j.cpp": ("std::ifstream file(path, std::ios::binary);\nfile >> limit;\n", True),
    "src/base/k.cpp": ("if (std::isdigit(static_cast<unsigned char>(c))) return;\n", True),
    "src/base/l.cpp": ("if (isspace(c)) return;\n", True),
    "src/base/m.cpp": ("void f(std::ostream& out);\n", True),
    "src/base/n.cpp": ("std::uint64_t half = bits >> 1; auto e = std::to_chars(t, t + 9, 0.5);\n", False),
    "src/base/o.cpp": ("std::ofstream(path) << 0.5;\n", True),
    "src/base/p.cpp": ('const char* kernel = R"(if (isdigit(c)) printf("%f", x);)";\n', False),
    "src/base/q.cpp": ("c = std::tolower(c);\n", True),
    "src/base/classic_numbers.hpp": ("#include <locale.h>\nlocale_t l = newlocale(1, 0, 0);\n", False),
    "src/base/r.cpp": ("uselocale(l);\n", True),
    "src/formats/s.cpp": ("auto j = json::parse(text);\n", True),
    "src/formats/t.cpp": ("const ClassicNumbers classic;\nauto j = json::parse(text);\n", False),
    "tools/u.cpp": ('std::printf("%.3f", ms);\n', False),
    "tools/v.cpp": ('std::setlocale(LC_ALL, "");\n', True),
    "tools/w.cpp": ("std::locale::global(std::locale());\n", True),
}


if __name__ == "__main__":
    sys.exit(told(shown_to_fail(check, SELF_TEST) or check(repository()), "no text depends on the locale"))

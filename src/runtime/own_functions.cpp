// SPDX-License-Identifier: MIT
// Puts the texts of kernels/own together for numbers and vectors. A function that has none is the
// driver's, number by number: the drivers seen so far compute single numbers right.
#include "runtime/own_functions.hpp"

#include "base/text.hpp"
#include "runtime/program.hpp"

namespace dlprim {
namespace {

using Text = MathFunction::Text;

/// A number or a vector of `lanes`.
struct Kind {
    const char* lane;
    int lanes;

    std::string of(const char* type) const { return lanes == 1 ? type : cat(type, lanes); }
};

std::string signature(const MathFunction& function, const Kind& kind) {
    const std::string type = kind.of(kind.lane);
    return cat("static ", type, " __attribute__((overloadable)) dlprim_", function.name, "(", type,
               " a", function.arity == 2 ? cat(", ", type, " b") : std::string(), ") {\n");
}

std::string drivers(const MathFunction& function, const Kind& kind) {
    return cat(signature(function, kind), "    return ", function.name, "(a",
               function.arity == 2 ? ", b" : "", ");\n}\n");
}

std::string by_lanes(const MathFunction& function, const Kind& kind) {
    const bool two = function.arity == 2;
    const int n = kind.lanes;
    const std::string drivers_vector =
        function.text == Text::small
            ? cat("    if (all(fabs(a) < (", kind.lane, ")100)) return ", function.name, "(a);\n")
            : "";
    return cat(signature(function, kind), drivers_vector, "    ", kind.lane, " s[", n, "], t[", n,
               "];\n", "    vstore", n, "(a, 0, s);\n",
               two ? cat("    vstore", n, "(b, 0, t);\n") : "", "    for (int i = 0; i < ", n,
               "; ++i) s[i] = dlprim_", function.name, "(s[i]", two ? ", t[i]" : "",
               ");\n    return vload", n, "(0, s);\n}\n");
}

/// The file's text for the kind, which it knows by macros.
std::string from_file(const MathFunction& function, const Kind& kind) {
    const bool is_double = kind.lane[0] == 'd';
    const std::pair<const char*, std::string> macros[] = {
        {"OWN_LANE", kind.lane},
        {"OWN_REAL", kind.of(kind.lane)},
        {"OWN_INTS", kind.of("int")},
        {"OWN_MASK", kind.of(is_double ? "long" : "int")},
        {"OWN_DOUBLE", is_double ? "1" : "0"},
        {"OWN_TO_REAL", cat("convert_", kind.of(kind.lane))},
        {"OWN_TO_INTS", cat("convert_", kind.of("int"))},
        {"OWN_TO_MASK", cat("convert_", kind.of(is_double ? "long" : "int"))},
        {"OWN_OVERLOADABLE", "__attribute__((overloadable))"}};
    std::string text;
    for (const auto& [name, value] : macros) text += cat("#define ", name, ' ', value, '\n');
    text += kernel_source(cat("own/", function.name, ".clh"));
    for (const auto& [name, value] : macros) text += cat("#undef ", name, '\n');
    return text;
}

std::string one(const MathFunction& function, const Kind& kind, bool is_ours) {
    const bool has_text =
        function.text == Text::vectors || (function.text == Text::numbers && kind.lanes == 1);
    if (is_ours && has_text) return from_file(function, kind);
    return is_ours && kind.lanes > 1 ? by_lanes(function, kind) : drivers(function, kind);
}

}  // namespace

std::string own_functions(const std::vector<OwnFunction>& functions, bool has_doubles) {
    std::string text;
    if (has_doubles) text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    for (const OwnFunction& own : functions) {
        for (const int lanes : {1, 2, 4, 8, 16}) {
            text += one(*own.function, {"float", lanes}, own.floats);
            if (has_doubles) text += one(*own.function, {"double", lanes}, own.doubles);
        }
    }
    return text;
}

std::string own_names(const std::vector<OwnFunction>& functions) {
    std::string text;
    for (const OwnFunction& own : functions)
        if (own.floats || own.doubles)
            text += cat("#undef ", own.function->name, "\n#define ", own.function->name, " dlprim_",
                        own.function->name, '\n');
    return text;
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// OpenCL C text of functions that OpenCL C lacks, as special_functions.hpp has them: own_<name> of
// one number, and owns_<name>, which calls it for each lane of a vector.
#include "engine/pointwise/special_functions.hpp"

#include "base/text.hpp"
#include "engine/pointwise/emit.hpp"

#include <set>
#include <span>

namespace dlprim::pointwise {

std::string Emitter::polynomial(std::span<const double> coefficients, const std::string& x) const {
    std::string text = literal(coefficients[0]);
    for (const double c : coefficients.subspan(1))
        text = cat("(", text, ") * ", x, " + ", literal(c));
    return text;
}

/// Quotients and remainders. The processor must not see a division by 0, nor the one whose result
/// does not fit, which end programs on CPUs.
void Emitter::own_quotient(SourceWriter& out, Op op) const {
    const bool down = op == Op::floordiv || op == Op::remainder;
    out.open(scalar_, " own_", function_of(op).name, "(", scalar_, " a, ", scalar_, " b)");
    if (job_.is_whole()) {
        const bool has_sign = job_.type == Compute::i64;
        out.line("if (b == 0) return 0;");
        if (has_sign) out.line("const int minus = b == -1;");
        out.line(has_sign ? "long q = minus ? (long)(0UL - (ulong)a) : a / (minus ? 1L : b);"
                          : "ulong q = a / b;");
        out.line(scalar_, " r = a - q * b;");
        if (has_sign && down) out.line("if (r != 0 && (r < 0) != (b < 0)) { r += b; q -= 1; }");
        out.line("return ", op == Op::floordiv || op == Op::truncdiv ? "q" : "r", ";");
    } else if (op == Op::remainder) {
        out.line("const ", scalar_, " r = fmod(a, b);");
        out.line("return r != 0 && (r < 0) != (b < 0) ? r + b : r;");
    } else {
        out.line("if (b == 0) return a / b;");
        out.line("const ", scalar_, " r = fmod(a, b);");
        out.line("const ", scalar_, " q = (a - r) / b - (r != 0 && (r < 0) != (b < 0) ? 1 : 0);");
        out.line("if (q == 0) return copysign((", scalar_, ")0, a / b);");
        out.line("const ", scalar_, " d = floor(q);");
        out.line("return q - d > ", literal(0.5), " ? d + 1 : d;");
    }
    out.close();
}

void Emitter::own_special(SourceWriter& out, Op op) const {
    const std::string x_type = cat(scalar_, " x"), pi = literal(3.14159265358979323846);
    out.open(scalar_, " own_", function_of(op).name, "(", x_type, ")");
    if (op == Op::erfinv) {
        const std::string one = literal(1);
        out.line("if (fabs(x) == 1) return copysign((", scalar_, ")INFINITY, x);");
        out.line("const ", scalar_, " w = -log((", one, " - x) * (", one, " + x));");
        out.line("const ", scalar_, " v = w < 5 ? w - ", literal(2.5), " : sqrt(w) - 3;");
        out.line(scalar_, " y = x * (w < 5 ? ", polynomial(erfinv_centre, "v"), " : ",
                 polynomial(erfinv_tail, "v"), ");");
        if (job_.type == Compute::f64)
            out.line("for (int i = 0; i < 2; ++i) y -= (erf(y) - x) / (",
                     literal(1.1283791670955126), " * exp(-y * y));");
        out.line("return y;");
        out.close();
        return;
    }
    const bool first = op == Op::digamma;
    out.line(scalar_, " sum = 0, sign = 1;");
    if (first) {
        out.line("if (x == 0) return copysign((", scalar_, ")INFINITY, -x);");
        out.open("if (x < 0)");
        out.line("if (x == trunc(x)) return NAN;");
        out.line("sum = -", pi, " / tan(", pi, " * (x - trunc(x)));");
    } else {
        out.open("if (x < ", literal(0.5), ")");
        out.line("const ", scalar_, " s = sin(", pi, " * (x - trunc(x)));");
        out.line("sum = -", literal(9.8696044010893586), " / (s * s);");
        out.line("sign = -1;");
    }
    out.line("x = 1 - x;");
    out.close();
    out.line("for (; x < 10; x += 1) sum ", first ? "-= 1 / x;" : "+= 1 / (x * x);");
    out.line("const ", scalar_, " z = 1 / (x * x);");
    if (first)
        out.line("return sum + log(x) - ", literal(0.5), " / x - z * (",
                 polynomial(digamma_series, "z"), ");");
    else
        out.line("return sign * (sum + (1 + ", literal(0.5), " / x + z * (",
                 polynomial(trigamma_series, "z"), ")) / x);");
    out.close();
}

void Emitter::own_lanes(SourceWriter& out, Op op) const {
    const Function& function = function_of(op);
    const bool two = function.arity == 2;
    out.open(vector_, " owns_", function.name, "(", vector_, " a", two ? ", " + vector_ + " b" : "",
             ")");
    out.line(scalar_, " s[", width_, "]", two ? cat(", t[", width_, "]") : std::string(), ";");
    out.line("vstore", width_, "(a, 0, s);");
    if (two) out.line("vstore", width_, "(b, 0, t);");
    out.line("for (int i = 0; i < ", width_, "; ++i) s[i] = own_", function.name, "(s[i]",
             two ? ", t[i]" : "", ");");
    out.line("return vload", width_, "(0, s);");
    out.close();
}

void Emitter::own_function(SourceWriter& out, Op op) const {
    if (function_of(op).arity == 2)
        own_quotient(out, op);
    else
        own_special(out, op);
    if (width_ > 1) own_lanes(out, op);
}

/// Those that the job's program and its reductions call.
void Emitter::own_functions(SourceWriter& out) const {
    std::set<Op> ops;
    const auto look = [&](const Tape& tape) {
        for (const Instruction& in : tape.code)
            if (calls_own(in.op)) ops.insert(in.op);
    };
    look(job_.tape);
    for (const JobOutput& output : job_.outputs)
        if (output.combine) look(*output.combine);
    for (const Op op : ops) own_function(out, op);
}

}  // namespace dlprim::pointwise

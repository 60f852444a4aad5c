// SPDX-License-Identifier: MIT
// OpenCL C text of random numbers. They are those of philox.hpp.
#include "base/text.hpp"
#include "engine/float_literal.hpp"
#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/emit_names.hpp"
#include "engine/pointwise/philox.hpp"

namespace dlprim::pointwise {

/// Philox4x32-10 with the element's linear index as the counter: two words of each element. Each of
/// its ten rounds multiplies two words to 64 bits.
void Emitter::philox(SourceWriter& out) const {
    const std::string ints = wide("uint", width_), longs = wide("ulong", width_);
    // CPUs can multiply 32 bits to 64 in vectors. GPUs have an instruction for the high half.
    const auto multiply = [&](int n, const char* factor, const char* word) {
        if (aligned_)
            out.line("const ", ints, " h", n, " = mul_hi((", ints, ")(", factor, "u), ", word,
                     "), l", n, " = ", word, " * ", factor, "u;");
        else
            out.line("const ", longs, " q", n, " = convert_", longs, "(", word, ") * ", factor,
                     "UL; const ", ints, " h", n, " = convert_", ints, "(q", n, " >> 32), l", n,
                     " = convert_", ints, "(q", n, " & 0xffffffffUL);");
    };
    std::string lanes = "0";
    for (int i = 1; i < width_; ++i) lanes += cat(",", i);
    out.open(ints, " philox(ulong seed, ulong step, ulong id, ulong first, ulong lane, ", ints,
             "* second)");
    out.line("const ", longs, " element = (", longs, ")(first) + (", longs, ")(", lanes, ") * (",
             longs, ")(lane);");
    out.line("const uint high = (uint)(step >> 32) ^ rotate((uint)(id >> 32), 16u);");
    out.line(ints, " c0 = convert_", ints, "(element & 0xffffffffUL), c1 = convert_", ints,
             "(element >> 32) ^ high;");
    out.line(ints, " c2 = (", ints, ")((uint)step), c3 = (", ints, ")((uint)id);");
    out.line("uint k0 = (uint)seed, k1 = (uint)(seed >> 32);");
    out.open("for (int r = 0; r < 10; ++r)");
    multiply(0, "0xD2511F53", "c0");
    multiply(1, "0xCD9E8D57", "c2");
    out.line("c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;");
    out.line("k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;");
    out.close();
    out.line("*second = c1;");
    out.line("return c0;");
    out.close();
}

/// normal_of() for each lane, step by step.
void Emitter::normal_of(SourceWriter& out) const {
    const std::string ints = wide("int", width_), words = wide("uint", width_),
                      floats = wide("float", width_);
    const auto polynomial = [&](const char* name, const char* x, const auto& coefficients) {
        std::string text = cat("(", floats, ")(", float_literal(coefficients[0]), ")");
        for (std::size_t i = 1; i < coefficients.size(); ++i)
            text = cat("(", text, ") * ", x, " + ", float_literal(coefficients[i]));
        out.line(floats, " ", name, " = ", text, ";");
    };
    out.open(floats, " normal_of(", words, " a, ", words, " b)");
    out.line("const ", floats, " u = convert_", floats, "(a) * 0x1p-32f + 0x1p-33f;");
    out.line("const ", ints, " e = (as_", ints, "(u) - 0x3f3504f3) >> 23;");
    out.line("const ", floats, " f = as_", floats, "(as_", ints, "(u) - e * 0x800000) - 1.0f, ",
             "ff = f * f, exponent = convert_", floats, "(e);");
    polynomial("p", "f", normal_log);
    out.line("const ", floats,
             " log_u = ((p * f * ff + exponent * -2.12194440e-4f) - 0.5f * ff) + ",
             "f + exponent * 0.693359375f, s = -2.0f * log_u;");
    out.line(floats, " r = as_", floats, "(0x5f375a86 - (as_", ints, "(s) >> 1));");
    out.line("for (int i = 0; i < 3; ++i) r = r * (1.5f - 0.5f * s * r * r);");
    out.line("const ", words, " quarter = (b + 0x20000000u) >> 30;");
    out.line("const ", floats, " t = convert_", floats, "(as_", ints,
             "(b - (quarter << 30))) * 1.46291807926716e-9f, tt = t * t;");
    polynomial("sine", "tt", normal_sine);
    polynomial("cosine", "tt", normal_cosine);
    out.line("sine = sine * tt * t + t;");
    out.line("cosine = cosine * tt * tt - 0.5f * tt + 1.0f;");
    const std::string cast = width_ == 1 ? "(int)" : "";
    out.line("const ", floats, " part = select(cosine, sine, ", cast, "((quarter & 1u) != 0));");
    out.line("return s * r * select(part, -part, ", cast, "(((quarter + 1u) & 2u) != 0));");
    out.close();
}

/// The functions that jobs with random numbers call.
void Emitter::random_functions(SourceWriter& out) const {
    if (helpers_.count("philox") == 0) return;
    philox(out);
    const std::string words = wide("uint", width_), floats = wide("float", width_);
    const auto function = [&](const std::string& type, const char* name, const std::string& value) {
        if (helpers_.count(name) == 0) return;
        out.open(type, " ", name, "(ulong seed, ulong step, ulong id, ulong first, ulong lane)");
        out.line(words, " b;");
        out.line("const ", words, " a = philox(seed, step, id, first, lane, &b);");
        out.line("return ", value, ";");
        out.close();
    };
    if (helpers_.count("philox_normal") > 0) normal_of(out);
    function(floats, "philox_uniform", cat("convert_", floats, "(a >> 8) * (1.0f / 16777216.0f)"));
    function(floats, "philox_normal", "normal_of(a, b)");
    function(words, "philox_random", "a");
}

/// The text of a random number of a job's elements.
std::string Emitter::random_number(const Instruction& in,
                                   const std::function<std::string(int)>& offset,
                                   const std::function<std::string(int)>& lane) {
    const std::string name = cat("philox_", function_of(in.op).name);
    helpers_.insert("philox");
    helpers_.insert(name);
    std::string text = cat("convert_", vector_, "(", name, "(");
    for (const int key : {in.a, in.b, in.c}) text += whole_number(key, offset) + ", ";
    return cat(text, "(ulong)(", offset(job_.linear_class), "), (ulong)(", lane(job_.linear_class),
               ")))");
}

}  // namespace dlprim::pointwise

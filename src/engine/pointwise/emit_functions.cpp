// SPDX-License-Identifier: MIT
// OpenCL C text of functions that the language has and OpenCL C lacks: a vectorised erf, and random
// numbers.
#include "base/text.hpp"
#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/emit_names.hpp"
#include "engine/pointwise/erf_series.hpp"

namespace dlprim::pointwise {

/// A power series below 1, and Abramowitz and Stegun 7.1.26 above. The erf of drivers computes lane
/// by lane.
void Emitter::vector_erf(SourceWriter& out) const {
    out.open(vector_, " vector_erf(", vector_, " x)");
    out.line("const ", vector_, " a = fabs(x), s = x * x, t = 1.0f / (1.0f + 0.3275911f * a);");
    out.line(vector_, " p = ", splat(literal(erf_series[0])), ";");
    for (std::size_t i = 1; i < erf_series.size(); ++i)
        out.line("p = p * s + ", literal(erf_series[i]), ";");
    out.line("const ", vector_, " near_ = 1.12837916709551257f * a * (1.0f - s * p);");
    out.line("const ", vector_,
             " far_ = 1.0f - t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * "
             "(-1.453152027f + t * 1.061405429f)))) * exp(-s);");
    out.line("return copysign(select(far_, near_, a < 1.0f), x);");
    out.close();
}

/// Philox4x32-10 with the element's linear index as the counter (program.hpp). Each of its ten
/// rounds multiplies two words to 64 bits.
void Emitter::philox_uniform(SourceWriter& out) const {
    const std::string ints = wide("uint", width_), longs = wide("ulong", width_),
                      floats = wide("float", width_);
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
    out.open(floats, " philox_uniform(ulong seed, ulong step, ulong id, ulong first, ulong lane)");
    out.line("const ", longs, " element = (", longs, ")(first) + (", longs, ")(", lanes, ") * (",
             longs, ")(lane);");
    out.line(ints, " c0 = convert_", ints, "(element & 0xffffffffUL), c1 = convert_", ints,
             "(element >> 32);");
    out.line(ints, " c2 = (", ints, ")((uint)step), c3 = (", ints, ")((uint)id);");
    out.line("uint k0 = (uint)seed, k1 = (uint)(seed >> 32);");
    out.open("for (int r = 0; r < 10; ++r)");
    multiply(0, "0xD2511F53", "c0");
    multiply(1, "0xCD9E8D57", "c2");
    out.line("c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;");
    out.line("k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;");
    out.close();
    out.line("return convert_", floats, "(c0 >> 8) * (1.0f / 16777216.0f);");
    out.close();
}

}  // namespace dlprim::pointwise

// SPDX-License-Identifier: MIT
// OpenCL C text of a vectorised erf.
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

}  // namespace dlprim::pointwise

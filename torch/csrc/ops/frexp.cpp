// SPDX-License-Identifier: MIT
// Mantissa and exponent of floats, as one program without rounding.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/Resize.h>

#include <cmath>
#include <sstream>
#include <tuple>

namespace dlprim_torch {
namespace {

/// The program, for exponents of so many bits. The logarithm may be off by one at powers of two,
/// which is mended at the end. In between x0 is scaled by 2 to the power -e: each bit of e doubles
/// or halves, which does not round. The factors come in two parts, since float has no 2^128.
std::string program(int bits) {
    std::ostringstream text;
    text.precision(17);
    text << "a = abs(x0); o = a > 0 && a < inf; e = o ? floor(log2(o ? a : 1)) + 1 : 0; "
            "n = abs(e); m0 = bitand(n, 1) == 0 ? x0 : e > 0 ? x0 * 0.5 : x0 * 2; ";
    for (int bit = 1; bit < bits; ++bit) {
        const double part = std::ldexp(1, 1 << (bit - 1));
        const int last = bit - 1;
        text << 'm' << bit << " = bitand(n, " << (1 << bit) << ") == 0 ? m" << last
             << " : e > 0 ? m" << last << " * " << 1 / part << " * " << 1 / part << " : m" << last
             << " * " << part << " * " << part << "; ";
    }
    text << "m = m" << bits - 1
         << "; w = abs(m); c = o ? (w >= 1 ? 1 : w < 0.5 ? -1 : 0) : 0; "
            "y0 = c == 0 ? m : c > 0 ? m * 0.5 : m * 2; y1 = e + c";
    return text.str();
}

std::tuple<at::Tensor&, at::Tensor&> frexp_out(const at::Tensor& self, at::Tensor& mantissa,
                                               at::Tensor& exponent) {
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "torch.frexp() only supports floating-point dtypes");
    at::native::resize_output(mantissa, self.sizes());
    at::native::resize_output(exponent, self.sizes());
    if (self.numel() > 0)
        pointwise_into({mantissa, exponent}, program(self.scalar_type() == at::kDouble ? 11 : 8),
                       {self});
    return {mantissa, exponent};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("frexp.Tensor_out", frexp_out);
}

}  // namespace
}  // namespace dlprim_torch

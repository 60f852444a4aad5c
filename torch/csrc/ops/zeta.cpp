// SPDX-License-Identifier: MIT
// Hurwitz' zeta function by the sum of Euler and Maclaurin, and the derivatives of digamma that it
// gives. The number of terms depends on the lowest operand, which is asked of the device (this
// waits).
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/Resize.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace dlprim_torch {
namespace {

/// Divisors of the terms behind the sum: (2k)! / B_2k.
constexpr std::array divisors{12.0,
                              -720.0,
                              30240.0,
                              -1209600.0,
                              47900160.0,
                              -1.8924375803183791606e9,
                              7.47242496e10,
                              -2.950130727918164224e12,
                              1.1646782814350067249e14,
                              -4.5979787224074726105e15,
                              1.8152105401943546773e17,
                              -7.1661652561756670113e18};

/// How many terms are summed one by one, so that the last is behind 9; none: too many.
std::optional<std::int64_t> terms_for(const at::Tensor& q) {
    constexpr double few = 9, most = 64;
    const auto lowest = q.min().item<double>();
    if (!(few - lowest < most)) return std::nullopt;
    return static_cast<std::int64_t>(std::max(few, std::ceil((few - lowest) / 8) * 8 + 1));
}

/// The name `base` to the power -s. Doubles, for which pow() of vectors is wrong on PoCL where a
/// lane has base 0, have digits enough for a product of logarithms.
std::string power(const std::string& base, at::ScalarType type) {
    std::ostringstream text;
    if (type == at::kDouble)
        text << "(" << base << " == 0 ? inf : (" << base << " < 0 ? odd : 1) * exp(-s * log("
             << base << " == 0 ? 1 : abs(" << base << "))))";
    else
        text << "pow(" << base << ", -s)";
    return text.str();
}

/// Adds the sum of q + 1 to q + terms, each to the power -s, to a program: v, with the last base w
/// and its power b. Behind the ninth term, bases count up to the first above 9.
void write_sum(std::ostringstream& text, std::int64_t terms, at::ScalarType type) {
    text << "odd = bitand(s, 1) == 0 ? 1 : -1; v0 = " << power("q", type) << "; ";
    for (std::int64_t i = 1; i <= terms; ++i) {
        const std::int64_t last = i - 1;
        const std::string base = std::string("a").append(std::to_string(i));
        text << base << " = q + " << i << "; b" << i << " = " << power(base, type) << "; ";
        if (i <= 9)
            text << "c" << i << " = b" << i << "; w" << i << " = a" << i << "; v" << i << " = v"
                 << last << " + b" << i << "; ";
        else
            text << "o" << i << " = a" << last << " <= 9; c" << i << " = o" << i << " ? b" << i
                 << " : c" << last << "; w" << i << " = o" << i << " ? a" << i << " : w" << last
                 << "; v" << i << " = o" << i << " ? v" << last << " + b" << i << " : v" << last
                 << "; ";
    }
    text << "v = v" << terms << "; w = w" << terms << "; b = c" << terms << "; ";
}

/// zeta(s, q) of the names s and q that `head` gives, as the name f for `tail`.
std::string program(const char* head, const char* tail, std::int64_t terms, at::ScalarType type) {
    std::ostringstream text;
    text.precision(17);
    text << head;
    write_sum(text, terms, type);
    text << "g0 = b * s / w; h0 = v + b * w / (s - 1) - 0.5 * b + g0 / " << divisors[0] << "; ";
    for (std::size_t k = 1; k < divisors.size(); ++k)
        text << "g" << k << " = g" << k - 1 << " * ((s + " << 2 * k - 1 << ") / w) * ((s + "
             << 2 * k << ") / w); h" << k << " = h" << k - 1 << " + g" << k << " / " << divisors[k]
             << "; ";
    text << "f = s == 1 ? inf : s < 1 ? inf - inf : q <= 0 && q == floor(q) ? inf : "
            "q <= 0 && s != floor(s) ? inf - inf : h"
         << divisors.size() - 1 << "; " << tail;
    return text.str();
}

at::Tensor& zeta_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
    at::meta::special_zeta_out(out, self, other);
    if (out.numel() == 0) return out;
    const c10::DeviceGuard guard(out.device());
    const std::optional<std::int64_t> terms = terms_for(other);
    if (!terms) return on_cpu<at::_ops::special_zeta_out>(self, other, out);
    const auto typed = [&](const at::Tensor& tensor) {
        return tensor.to(out.device(), out.scalar_type());
    };
    pointwise_into({out}, program("s = x0; q = x1; ", "y0 = f", *terms, out.scalar_type()),
                   {typed(self), typed(other)});
    return out;
}

at::Tensor& polygamma_out(std::int64_t n, const at::Tensor& self, at::Tensor& out) {
    if (n == 0) return at::digamma_out(out, self);
    at::meta::polygamma_out(out, n, self);
    if (out.numel() == 0) return out;
    const at::Tensor x = self.to(out.scalar_type());
    if (n == 1) {
        pointwise_into({out}, "y0 = trigamma(x0)", {x});
        return out;
    }
    const std::optional<std::int64_t> terms = terms_for(x);
    if (!terms) return on_cpu<at::_ops::polygamma_out>(n, self, out);
    const double factor = (n % 2 == 0 ? -1 : 1) * std::tgamma(static_cast<double>(n) + 1);
    pointwise_into({out}, program("s = p0; q = x0; ", "y0 = f * p1", *terms, out.scalar_type()),
                   {x}, {static_cast<double>(n) + 1, factor});
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("special_zeta.out", zeta_out);
    m.impl("polygamma.out", polygamma_out);
}

}  // namespace
}  // namespace dlprim_torch

// SPDX-License-Identifier: MIT
// Orthogonal polynomials by their recurrences, unrolled up to the highest degree of a call, which
// is asked of the device (this waits) and rounded up, so that few programs are compiled.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/rounds.hpp"

#include <string_view>

namespace dlprim_torch {
namespace {

using std::string;
using std::string_view;

string count(std::int64_t value) {
    return std::to_string(value);
}

/// A family of polynomials in x with the degree n: x0 and x1 of the program.
struct Family {
    const char* first;  ///< the polynomial of degree 1
    /// The next polynomial from the last, q, and the one before, p. `k` stands for the degree of q.
    const char* next;
    /// What counts in place of the recurrence where the condition in front of it holds: pairs.
    const char* special = nullptr;
    std::int64_t limit = 64;  ///< the highest degree that is unrolled
};

/// Writes `next` with the names of a step for p, q and k.
string step(string_view next, std::int64_t k) {
    string text;
    for (const char c : next) {
        if (c == 'P')
            text += joined({"r", count(k - 1)});
        else if (c == 'Q')
            text += joined({"r", count(k)});
        else if (c == 'K')
            text += count(k);
        else
            text += c;
    }
    return text;
}

/// The program for degrees up to `most`. Degrees are whole: their fractions do not count.
string program(const Family& family, std::int64_t most) {
    string code = joined(
        {"x = x0; n = trunc(x1); o = bitand(n, 1); z = x + x - 1; c = min(max(x, -1), 1); d = "
         "min(max(z, -1), 1); r0 = 1; r1 = ",
         family.first, "; s1 = n == 0 ? r0 : r1; "});
    for (std::int64_t k = 1; k < most; ++k)
        code += joined({"r", count(k + 1), " = ", step(family.next, k), "; s", count(k + 1),
                        " = n == ", count(k + 1), " ? r", count(k + 1), " : s", count(k), "; "});
    code += joined(
        {"y0 = n < 0 ? 0 : ", family.special == nullptr ? "" : family.special, "s", count(most)});
    return code;
}

/// What the meta function made of the operands' shapes and types is in `out`.
template <const Family& family, auto check, typename Op>
at::Tensor& polynomial(const at::Tensor& x, const at::Tensor& n, at::Tensor& out) {
    check(out, x, n);
    if (out.numel() == 0) return out;
    const c10::DeviceGuard guard(out.device());
    const auto highest = n.numel() == 0 ? 0.0 : n.max().item<double>();
    if (!(highest <= static_cast<double>(family.limit))) return on_cpu<Op>(x, n, out);
    std::int64_t most = 8;
    while (static_cast<double>(most) < highest) most *= 2;
    const auto typed = [&](const at::Tensor& tensor) {
        return tensor.to(out.device(), out.scalar_type());
    };
    pointwise_into({out}, program(family, most), {typed(x), typed(n)});
    return out;
}

constexpr const char* doubled = "(x + x) * Q - P";
constexpr const char* shifted = "(z + z) * Q - P";
// At 1 and -1, of the parity of n, and between them by angles, as PyTorch has it.
constexpr Family t{"x", doubled,
                   "x == 1 ? 1 : x == -1 ? 1 - 2 * o : n > 6 && abs(x) < 1 ? "
                   "cos(n * acos(c)) : "};
constexpr Family u{"x + x", doubled,
                   "x == 1 ? n + 1 : x == -1 ? (n + 1) * (1 - 2 * o) : n > 8 && abs(x) < 1 "
                   "? sin((n + 1) * acos(c)) / sin(acos(c)) : "};
constexpr Family v{"x + x - 1", doubled,
                   "x == 1 ? 1 : x == -1 ? (n + n + 1) * (1 - 2 * o) : n > 8 && abs(x) < 1 "
                   "? cos((n + 0.5) * acos(c)) / cos(acos(c) / 2) : "};
constexpr Family w{"x + x + 1", doubled,
                   "x == 1 ? n + n + 1 : x == -1 ? 1 - 2 * o : n > 8 && abs(x) < 1 ? "
                   "sin((n + 0.5) * acos(c)) / sin(acos(c) / 2) : "};
constexpr Family shifted_t{"z", shifted,
                           "x == 1 ? 1 : x == 0 ? 1 - 2 * o : n > 6 && abs(z) < 1 ? "
                           "cos(n * acos(d)) : "};
constexpr Family shifted_u{"z + z", shifted,
                           "x == 1 ? n + 1 : x == 0 ? (n + 1) * (1 - 2 * o) : n > 6 && "
                           "abs(z) < 1 ? sin((n + 1) * acos(d)) / sin(acos(d)) : "};
constexpr Family shifted_v{"z + z - 1", shifted,
                           "x == 1 ? 1 : x == 0 ? (n + n + 1) * (1 - 2 * o) : n > 6 && "
                           "abs(z) < 1 ? cos((n + 0.5) * acos(d)) / cos(acos(d) / 2) : "};
constexpr Family shifted_w{"z + z + 1", shifted,
                           "x == 1 ? n + n + 1 : x == 0 ? 1 - 2 * o : n > 4 && abs(z) < 1 "
                           "? sin((n + 0.5) * acos(d)) / sin(acos(d) / 2) : "};
constexpr Family hermite_h{"x + x", "(x + x) * Q - 2 * K * P"};
constexpr Family hermite_he{"x", "x * Q - K * P"};
constexpr Family laguerre{"1 - x", "((2 * K + (1 - x)) * Q - K * P) / (K + 1)", "x == 0 ? 1 : "};
constexpr Family legendre{"x", "((2 * K + 1) * x * Q - K * P) / (K + 1)",
                          "x == 1 ? 1 : x == -1 ? 1 - 2 * o : "};

namespace meta = at::meta;
namespace names = at::_ops;

DLPRIM_TORCH_KERNELS(m) {
    m.impl("special_chebyshev_polynomial_t.out",
           polynomial<t, meta::special_chebyshev_polynomial_t_out,
                      names::special_chebyshev_polynomial_t_out>);
    m.impl("special_chebyshev_polynomial_u.out",
           polynomial<u, meta::special_chebyshev_polynomial_u_out,
                      names::special_chebyshev_polynomial_u_out>);
    m.impl("special_chebyshev_polynomial_v.out",
           polynomial<v, meta::special_chebyshev_polynomial_v_out,
                      names::special_chebyshev_polynomial_v_out>);
    m.impl("special_chebyshev_polynomial_w.out",
           polynomial<w, meta::special_chebyshev_polynomial_w_out,
                      names::special_chebyshev_polynomial_w_out>);
    m.impl("special_shifted_chebyshev_polynomial_t.out",
           polynomial<shifted_t, meta::special_shifted_chebyshev_polynomial_t_out,
                      names::special_shifted_chebyshev_polynomial_t_out>);
    m.impl("special_shifted_chebyshev_polynomial_u.out",
           polynomial<shifted_u, meta::special_shifted_chebyshev_polynomial_u_out,
                      names::special_shifted_chebyshev_polynomial_u_out>);
    m.impl("special_shifted_chebyshev_polynomial_v.out",
           polynomial<shifted_v, meta::special_shifted_chebyshev_polynomial_v_out,
                      names::special_shifted_chebyshev_polynomial_v_out>);
    m.impl("special_shifted_chebyshev_polynomial_w.out",
           polynomial<shifted_w, meta::special_shifted_chebyshev_polynomial_w_out,
                      names::special_shifted_chebyshev_polynomial_w_out>);
    m.impl("special_hermite_polynomial_h.out",
           polynomial<hermite_h, meta::special_hermite_polynomial_h_out,
                      names::special_hermite_polynomial_h_out>);
    m.impl("special_hermite_polynomial_he.out",
           polynomial<hermite_he, meta::special_hermite_polynomial_he_out,
                      names::special_hermite_polynomial_he_out>);
    m.impl("special_laguerre_polynomial_l.out",
           polynomial<laguerre, meta::special_laguerre_polynomial_l_out,
                      names::special_laguerre_polynomial_l_out>);
    m.impl("special_legendre_polynomial_p.out",
           polynomial<legendre, meta::special_legendre_polynomial_p_out,
                      names::special_legendre_polynomial_p_out>);
}

}  // namespace
}  // namespace dlprim_torch

// SPDX-License-Identifier: MIT
// Special functions of one variable as generated programs: rational functions and Chebyshev series
// on a few intervals, by the method of the Cephes library. Each function here writes a program's
// text, in which x0 is the operand. The meta functions give out= its size and type.
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/rounds.hpp"
#include "ops/special_coefficients.hpp"

#include <array>
#include <charconv>
#include <span>
#include <string_view>

namespace dlprim_torch {
namespace {

namespace of = coefficients;
using Coefficients = std::span<const double>;
using std::string;
using std::string_view;

string number(double value) {
    std::array<char, 32> text{};
    const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
    return {text.data(), result.ptr};
}

/// A polynomial of the variable z, by Horner's rule.
string polynomial(Coefficients values, string_view z) {
    string text = number(values[0]);
    for (const double value : values.subspan(1))
        text = joined({"(", text, ") * ", z, " + ", number(value)});
    return joined({"(", text, ")"});
}

string quotient(Coefficients above, Coefficients below, string_view z) {
    return joined({"(", polynomial(above, z), " / ", polynomial(below, z), ")"});
}

/// Adds a Chebyshev series of the variable z to a program, by Clenshaw's recurrence with names that
/// begin with `name`, and returns its value.
string series(string& code, Coefficients values, string_view z, string_view name) {
    const auto term = [&](std::size_t i) { return joined({name, std::to_string(i)}); };
    for (std::size_t i = 0; i < values.size(); ++i) {
        code += joined({term(i), " = ", number(values[i])});
        if (i > 0) code += joined({" + ", z, " * ", term(i - 1)});
        if (i > 1) code += joined({" - ", term(i - 2)});
        code += "; ";
    }
    return joined({"(0.5 * (", term(values.size() - 1), " - ", term(values.size() - 3), "))"});
}

// Bessel functions of the first and second kind.

struct Order {
    Coefficients pp, pq, qp, qq;  ///< behind 5
    string_view phase;
};
const Order order0{of::j0_pp, of::j0_pq, of::j0_qp, of::j0_qq, "0.7853981633974483"};
const Order order1{of::j1_pp, of::j1_pq, of::j1_qp, of::j1_qq, "2.356194490192345"};

/// Behind 5, of a = |x|: a damped wave, of the first kind as cos - sin, of the second as sin + cos.
string wave(const Order& order, bool second) {
    const string p = quotient(order.pp, order.pq, "w"), q = quotient(order.qp, order.qq, "w");
    return joined({"w = 25 / z; s = sin(a - ", order.phase, "); c = cos(a - ", order.phase,
                   "); l = (", p, second ? " * s + 5 / a * " : " * c - 5 / a * ", q,
                   second ? " * c" : " * s", ") * 0.7978845608028654 / sqrt(a); "});
}

string small_j0() {
    return joined(
        {"(a < 0.00001 ? 1 - z / 4 : (z - 5.783185962946785) * (z - 30.471262343662087) * ",
         quotient(of::j0_rp, of::j0_rq, "z"), ")"});
}

/// Of a = |x|.
string small_j1() {
    return joined({"(", quotient(of::j1_rp, of::j1_rq, "z"),
                   " * a * (z - 14.681970642123893) * (z - 49.2184563216946))"});
}

constexpr const char* square = "a = abs(x0); z = a * a; ";

string bessel_j0() {
    return joined({square, wave(order0, false), "y0 = a <= 5 ? ", small_j0(), " : l"});
}

string bessel_j1() {
    return joined(
        {square, wave(order1, false), "v = a <= 5 ? ", small_j1(), " : l; y0 = x0 < 0 ? -v : v"});
}

string bessel_y0() {
    return joined({square, wave(order0, true), "v = ", quotient(of::y0_yp, of::y0_yq, "z"),
                   " + 0.6366197723675814 * log(a) * ", small_j0(),
                   "; y0 = x0 < 0 ? inf - inf : x0 == 0 ? -inf : a <= 5 ? v : l"});
}

string bessel_y1() {
    return joined({square, wave(order1, true), "v = a * ", quotient(of::y1_yp, of::y1_yq, "z"),
                   " + 0.6366197723675814 * (", small_j1(),
                   " * log(a) - 1 / a); "
                   "y0 = x0 < 0 ? inf - inf : x0 == 0 ? -inf : a <= 5 ? v : l"});
}

string spherical_bessel_j0() {
    return "z = x0 * x0; y0 = isinf(x0) ? 0 : abs(x0) < 0.5 ? 1 + z * (-1 / 6.0 + z * (1 / 120.0 + "
           "z * (-1 / 5040.0 + z * (1 / 362880.0 + z * (-1 / 39916800.0 + z * (1 / "
           "6227020800.0)))))) : sin(x0) / x0";
}

// Modified Bessel functions.

/// Adds exp(-a) I(a) of a = |x|, as the name `name`, to a program.
void scaled_i(string& code, bool first, string_view name) {
    code += "h = a / 2 - 2; k = 32 / a - 2; ";
    const string near = series(code, first ? Coefficients(of::i1_a) : of::i0_a, "h", "m");
    const string far = series(code, first ? Coefficients(of::i1_b) : of::i0_b, "k", "n");
    code += joined({name, " = a <= 8 ? ", near, first ? " * a" : "", " : ", far, " / sqrt(a); "});
}

string modified_i(bool first, bool scaled) {
    string code = "a = abs(x0); ";
    scaled_i(code, first, "v");
    if (!scaled) code += "u = exp(a) * v; ";
    const char* const value = scaled ? "v" : "u";
    return first ? joined({code, "y0 = x0 < 0 ? -", value, " : ", value})
                 : joined({code, "y0 = ", value});
}

string modified_k(bool first, bool scaled) {
    string code = "a = abs(x0); g = a * a - 2; j = 8 / a - 2; ";
    scaled_i(code, first, "v");
    const string near = series(code, first ? Coefficients(of::k1_a) : of::k0_a, "g", "q");
    const string far = series(code, first ? Coefficients(of::k1_b) : of::k0_b, "j", "r");
    code += joined({"i = exp(a) * v; ", first ? "t = log(0.5 * a) * i + " : "t = ", near,
                    first ? " / a; " : " - log(0.5 * a) * i; ", "f = ", far, " / sqrt(a); "});
    return joined({code, "y0 = x0 == 0 ? inf : x0 < 0 ? inf - inf : a <= 2 ? ",
                   scaled ? "t * exp(a) : f" : "t : exp(-a) * f"});
}

string i0() {
    return modified_i(false, false);
}
string i0e() {
    return modified_i(false, true);
}
string i1() {
    return modified_i(true, false);
}
string i1e() {
    return modified_i(true, true);
}
string k0() {
    return modified_k(false, false);
}
string scaled_k0() {
    return modified_k(false, true);
}
string k1() {
    return modified_k(true, false);
}
string scaled_k1() {
    return modified_k(true, true);
}

// The normal distribution.

/// Adds exp(a * a) * erfc(a) of a name `a`, which is not below 0, as the name `name`.
void scaled_erfc(string& code, string_view name) {
    code += joined({"z = a * a; ", name, " = a < 1 ? exp(z) * erfc(a) : a < 8 ? ",
                    quotient(of::erfc_p, of::erfc_q, "a"), " : a < 50 ? ",
                    quotient(of::erfc_r, of::erfc_s, "a"),
                    " : a < 50000 ? 0.5641895835477563 * (z * (z + 4.5) + 2) / (a * (z * (z + 5) + "
                    "3.75)) : 0.5641895835477563 / a; "});
}

string erfcx() {
    string code = "a = abs(x0); ";
    scaled_erfc(code, "v");
    return code + "y0 = isnan(x0) ? x0 : x0 < 0 ? 2 * exp(z) - v : v";
}

string log_ndtr() {
    string code = "t = x0 * 0.7071067811865476; a = abs(t); ";
    scaled_erfc(code, "v");
    return code + "y0 = x0 < -1 ? log(v / 2) - z : log1p(-erfc(t) / 2)";
}

/// The inverse of the normal distribution, by the distance from 1/2 in the middle and by
/// sqrt(-2 log) of the smaller share at both ends.
string ndtri() {
    const string middle = quotient(of::ndtri_p0, of::ndtri_q0, "m");
    const string near = quotient(of::ndtri_p1, of::ndtri_q1, "z");
    const string far = quotient(of::ndtri_p2, of::ndtri_q2, "z");
    return joined(
        {"u = x0 > 1 - 0.1353352832366127; v = u ? 1 - x0 : x0; d = v - 0.5; m = d * d; "
         "c = (d + d * m * ",
         middle, ") * 2.5066282746310007; r = sqrt(-2 * log(v)); z = 1 / r; ",
         "e = r - log(r) / r - z * (r < 8 ? ", near, " : ", far, "); ",
         "y0 = x0 == 0 ? -inf : x0 == 1 ? inf : x0 < 0 || x0 > 1 ? inf - inf : ",
         "v > 0.1353352832366127 ? c : u ? e : -e"});
}

// Airy's function.

/// The power series 1 + z / (first * (first + 1)) * (1 + z / ((first + 3) * (first + 4)) * ...).
string airy_series(int first) {
    constexpr int terms = 14;
    string text = "1";
    for (int i = terms - 1; i >= 0; --i) {
        const double divisor = (first + 3.0 * i) * (first + 3.0 * i + 1);
        text = joined({"(1 + z / ", number(divisor), " * ", text, ")"});
    }
    return text;
}

string airy_ai() {
    const string below = quotient(of::airy_afn, of::airy_afd, "q"),
                 beside = quotient(of::airy_agn, of::airy_agd, "q"),
                 above = quotient(of::airy_an, of::airy_ad, "v");
    return joined(
        {"a = abs(x0); r = sqrt(a); e = 2 * a * r / 3; v = 1 / e; q = v * v; ",
         "t = e + 0.7853981633974483; n = 0.5641895835477563 / sqrt(r) * (sin(t) * (1 + q * ",
         below, ") - cos(t) * v * ", beside, "); ", "b = 0.5641895835477563 * ", above,
         " / (2 * sqrt(r) * exp(e)); z = x0 * a * a; ", "m = 0.3550280538878172 * ", airy_series(2),
         " - 0.2588194037928068 * x0 * ", airy_series(3),
         "; y0 = isinf(x0) ? inf - inf : x0 > 103.892 ? 0 : x0 < -2.09 ? n : "
         "x0 >= 2.09 ? b : m"});
}

/// A structured operator of one operand.
template <string (*write)(), auto check>
at::Tensor& special(const at::Tensor& self, at::Tensor& out) {
    static const string code = write();
    check(out, self);
    if (out.numel() > 0) pointwise_into({out}, code, {self.to(out.scalar_type())});
    return out;
}

namespace meta = at::meta;

DLPRIM_TORCH_KERNELS(m) {
    m.impl("special_bessel_j0.out", special<bessel_j0, meta::special_bessel_j0_out>);
    m.impl("special_bessel_j1.out", special<bessel_j1, meta::special_bessel_j1_out>);
    m.impl("special_bessel_y0.out", special<bessel_y0, meta::special_bessel_y0_out>);
    m.impl("special_bessel_y1.out", special<bessel_y1, meta::special_bessel_y1_out>);
    m.impl("special_spherical_bessel_j0.out",
           special<spherical_bessel_j0, meta::special_spherical_bessel_j0_out>);
    m.impl("i0.out", special<i0, meta::i0_out>);
    m.impl("special_i0e.out", special<i0e, meta::special_i0e_out>);
    m.impl("special_i1.out", special<i1, meta::special_i1_out>);
    m.impl("special_i1e.out", special<i1e, meta::special_i1e_out>);
    m.impl("special_modified_bessel_i0.out", special<i0, meta::special_modified_bessel_i0_out>);
    m.impl("special_modified_bessel_i1.out", special<i1, meta::special_modified_bessel_i1_out>);
    m.impl("special_modified_bessel_k0.out", special<k0, meta::special_modified_bessel_k0_out>);
    m.impl("special_modified_bessel_k1.out", special<k1, meta::special_modified_bessel_k1_out>);
    m.impl("special_scaled_modified_bessel_k0.out",
           special<scaled_k0, meta::special_scaled_modified_bessel_k0_out>);
    m.impl("special_scaled_modified_bessel_k1.out",
           special<scaled_k1, meta::special_scaled_modified_bessel_k1_out>);
    m.impl("special_erfcx.out", special<erfcx, meta::special_erfcx_out>);
    m.impl("special_log_ndtr.out", special<log_ndtr, meta::special_log_ndtr_out>);
    m.impl("special_ndtri.out", special<ndtri, meta::special_ndtri_out>);
    m.impl("special_airy_ai.out", special<airy_ai, meta::special_airy_ai_out>);
}

}  // namespace
}  // namespace dlprim_torch

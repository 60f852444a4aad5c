// SPDX-License-Identifier: MIT
// The functions of OpenCL C that kernels call and that drivers may compute wrongly: what they are
// tried with, and which results are right.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace dlprim {

struct MathFunction {
    const char* name;
    int arity;
    /// The largest error, in units of the last place, that OpenCL allows for floats and doubles.
    double ulps;
    /// What it must meet exactly: nothing but 0, 1, -1 and infinity at the edges; also where the
    /// result rounds to 1 or -1 (tanh, erf); or every result at an edge that is a number of the
    /// type (pow of whole numbers, exp2, fmod).
    enum class Exact { edges, ends, always } exact;
    /// What kernels/own/NAME.clh is a text of. Where it is nothing, ours is the driver's function
    /// of one number after the other; `small` is the same, but vectors whose numbers are all below
    /// 100 in size are the driver's, too.
    enum class Text { nothing, small, numbers, vectors } text;
    /// Drivers' results in double are wrong too rarely for a trial to see.
    bool ours_for_doubles;
    long double (*value)(long double, long double);
    /// Random arguments lie between these. Where `ratio`, their logarithms are uniform.
    struct Range {
        double low = 0, high = 0;
        bool ratio = false;
    } a, b;
    /// A function that the text of kernels/own calls as dlprim_NAME: the driver's or ours, too. It
    /// comes before this one in the table.
    const char* needs = nullptr;
};

/// All that a survey covers.
std::span<const MathFunction> math_functions();
/// The one of this name, or nullptr.
const MathFunction* find_math_function(std::string_view name);

/// What a function is tried with. T is float or double.
template <typename T>
struct MathTrial {
    std::vector<T> a, b;    ///< a multiple of 16; neighbours differ
    std::size_t edges = 0;  ///< how many come first that are edges; the others are random
};
/// `numbers`: how many at least.
template <typename T>
MathTrial<T> math_trial(const MathFunction& function, std::size_t numbers = 512);

/// Whether the driver's result for the trial's number i is right.
template <typename T>
bool is_right(const MathFunction& function, const MathTrial<T>& trial, std::size_t i, T result);

}  // namespace dlprim

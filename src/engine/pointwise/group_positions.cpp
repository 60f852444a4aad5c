// SPDX-License-Identifier: MIT
// Positions in kernels for GPUs: converts numbers to coordinates and coordinates to offsets.
//
// A thread of a reduction has a position among the reduced elements. Its digits j<dim>, with the
// sizes of the dimensions as bases, are the coordinates. In each iteration the digits d<dim> of the
// increment are added with carries, so no iteration divides.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/pointwise/group_kernel.hpp"

#include <algorithm>

namespace dlprim::pointwise {

/// The number of values of digit n. The last digit counts units.
std::string GroupKernel::digit_size(const std::vector<int>& dims, std::size_t n, int unit) {
    std::int64_t count = job_.sizes[static_cast<std::size_t>(dims[n])];
    if (n + 1 == dims.size()) count = ceil_div(count, unit);
    return numbers_.name(cat("n", dims[n]), std::max<std::int64_t>(1, count));
}

/// Declares i<dim> for `dims`, innermost last, from the variable `from`, whose value is lost. If
/// `unit` > 1, the last coordinate is a multiple of it.
void GroupKernel::decompose(const std::vector<int>& dims, const std::string& from, int unit) {
    for (std::size_t n = dims.size(); n-- > 0;) {
        const std::string scale = n + 1 == dims.size() && unit > 1 ? cat(" * ", unit) : "";
        if (n == 0) {
            out_.line("const ", index_, " i", dims[n], " = ", from, scale, ";");
            continue;
        }
        const std::string size = digit_size(dims, n, unit);
        out_.line("const ", index_, " i", dims[n], " = ", from, " % ", size, scale, "; ", from,
                  " /= ", size, ";");
    }
}

/// Declares the offset <name><class> of each class: <base><class>, or 0 without a base, plus the
/// contribution of the coordinates of `dims`.
void GroupKernel::offsets(const char* name, const char* base, const std::vector<int>& dims) {
    for (int c = 0; c < static_cast<int>(job_.classes.size()); ++c) {
        std::string offset = base != nullptr ? cat(base, c) : "0";
        for (const int dim : dims) offset += numbers_.step(cat("i", dim), c, dim);
        out_.line("const ", index_, " ", name, c, " = ", offset, ";");
    }
}

/// Declares the digits of `from`, and those of the increment, which is the number of threads.
void GroupKernel::start_digits(const std::string& from) {
    const std::vector<int>& dims = shape_.reduced_dims;
    out_.line(index_, " rest = ", from, ", advance = ", shape_.ry, ";");
    for (std::size_t n = dims.size(); n-- > 0;) {
        if (n == 0) {
            out_.line(index_, " j", dims[n], " = rest;");
            out_.line("const ", index_, " d", dims[n], " = advance;");
            continue;
        }
        const std::string size = digit_size(dims, n, shape_.unit());
        out_.line(index_, " j", dims[n], " = rest % ", size, ";");
        out_.line("const ", index_, " d", dims[n], " = advance % ", size, ";");
        out_.line("rest /= ", size, "; advance /= ", size, ";");
    }
}

void GroupKernel::next_digits() {
    const std::vector<int>& dims = shape_.reduced_dims;
    for (std::size_t n = dims.size(); n-- > 0;) {
        const int dim = dims[n];
        const std::string carried = n + 1 < dims.size() ? cat(" + carry", dims[n + 1]) : "";
        out_.line("j", dim, " += d", dim, carried, ";");
        if (n == 0) continue;
        const std::string size = digit_size(dims, n, shape_.unit());
        out_.line("const ", index_, " carry", dim, " = j", dim, " >= ", size, " ? 1 : 0;");
        out_.line("if (carry", dim, ") j", dim, " -= ", size, ";");
    }
}

void GroupKernel::digits_to_coordinates() {
    const std::vector<int>& dims = shape_.reduced_dims;
    for (const int dim : dims) {
        const bool scaled = dim == dims.back() && shape_.unit() > 1;
        out_.line("const ", index_, " i", dim, " = j", dim, scaled ? cat(" * ", shape_.unit()) : "",
                  ";");
    }
}

}  // namespace dlprim::pointwise

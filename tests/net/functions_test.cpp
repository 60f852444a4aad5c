// SPDX-License-Identifier: MIT
// Functions of the pointwise language on every device, over edges and random numbers: as exact as
// OpenCL asks of drivers, and exact where src/runtime/math_functions.hpp says so.
#include "net/support.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/math_functions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <numeric>
#include <span>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr DType dtype_for(float) {
    return DType::f32;
}
constexpr DType dtype_for(double) {
    return DType::f64;
}

template <typename T>
std::vector<T> computed(const Context& device, const std::string& program,
                        const std::vector<std::vector<T>>& operands) {
    std::vector<Tensor> tensors;
    tensors.reserve(operands.size());
    for (const std::vector<T>& values : operands)
        tensors.push_back(tensor_of(device, dtype_for(T()), values));
    return values_of<T>(ops::pointwise(program, tensors)[0]);
}

/// Computes some functions by one program, which takes less time to compile than several.
template <typename T>
void check_functions(const Context& device, std::span<const MathFunction> functions) {
    std::string program;
    std::vector<Tensor> operands;
    std::vector<MathTrial<T>> trials;
    const auto operand = [&](const std::vector<T>& values) {
        operands.push_back(tensor_of(device, dtype_for(T()), values));
        return "x" + std::to_string(operands.size() - 1);
    };
    for (const MathFunction& function : functions) {
        trials.push_back(math_trial<T>(function, 1024));
        program += "y" + std::to_string(trials.size() - 1) + " = " + function.name + "(" +
                   operand(trials.back().a);
        if (function.arity == 2) program += ", " + operand(trials.back().b);
        program += "); ";
    }
    const std::vector<Tensor> made = ops::pointwise(program, operands);
    for (std::size_t k = 0; k < made.size(); ++k) {
        const std::vector<T> y = values_of<T>(made[k]);
        int wrong = 0;
        for (std::size_t i = 0; i < y.size(); ++i)
            if (!is_right(functions[k], trials[k], i, y[i]) && wrong++ == 0)
                UNSCOPED_INFO(std::setprecision(17)
                              << device.info().str() << ": " << functions[k].name << "("
                              << trials[k].a[i] << ", " << trials[k].b[i] << ") is " << y[i]
                              << " in " << sizeof(T) << " bytes");
        CHECK(wrong == 0);
    }
}

template <typename T>
void check_ends(const Context& device) {
    const std::vector<T> x{T(200), T(-2000), INFINITY, -INFINITY, T(100), T(-1000), T(0), T(90)};
    CHECK(computed<T>(device, "y0 = sigmoid(x0)", {x}) ==
          std::vector<T>{1, 0, 1, 0, 1, 0, T(0.5), 1});
    const std::vector<T> a{8, -8, 7.5, -7.5, -9, 9, 0, 1e6}, b{5, 5, 5, 5, -2, -2, 3, 7};
    CHECK(computed<T>(device, "y0 = remainder(x0, x1)", {a, b}) ==
          std::vector<T>{3, 2, 2.5, 2.5, -1, -1, 0, 1});
    CHECK(computed<T>(device, "y0 = 1 - tanh(x0) * tanh(x0)", {{T(25), T(-25), T(40), T(-1e5)}}) ==
          std::vector<T>(4, 0));
}

}  // namespace

TEST_CASE("functions are right on every device", "[functions]") {
    ON_EVERY_DEVICE(device) {
        const bool doubles = Access::impl(device).traits().fp64;
        const std::span<const MathFunction> all = math_functions();
        for (std::size_t from = 0; from < all.size(); from += 5) {
            const auto some = all.subspan(from, std::min<std::size_t>(5, all.size() - from));
            check_functions<float>(device, some);
            if (doubles) check_functions<double>(device, some);
        }
        check_ends<float>(device);
        if (doubles) check_ends<double>(device);
    }
}

// Kernels compute halves in float, so the conversions are all that a driver does with them.
TEST_CASE("every half becomes its float, and floats become the nearest half", "[functions]") {
    std::vector<std::uint16_t> halves(65536);
    std::iota(halves.begin(), halves.end(), std::uint16_t{0});
    std::vector<float> floats{1e30f, -1e30f, 1e-30f, 65519.996f, 65520, INFINITY, -INFINITY, NAN};
    for (const std::uint16_t half : halves) {
        const float next = half_to_float(static_cast<std::uint16_t>(half + 1));
        const float middle = half_to_float(half) / 2 + next / 2;
        if (!std::isfinite(middle)) continue;
        for (const float x : {half_to_float(half), middle, std::nextafter(middle, 1e30f),
                              std::nextafter(middle, -1e30f)})
            floats.push_back(x);
    }
    ON_EVERY_DEVICE(device) {
        const auto cast = [&](DType to, const Tensor& from) {
            return ops::call(ops::Cast{.dtype = to}, {from})[0];
        };
        const std::vector<float> wide =
            values_of<float>(cast(DType::f32, tensor_of(device, DType::f16, halves)));
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < wide.size(); ++i) {
            const float right = half_to_float(halves[i]);
            wrong += right != right ? wide[i] == wide[i] : wide[i] != right;
        }
        CHECK(wrong == 0);
        const std::vector<std::uint16_t> narrow =
            values_of<std::uint16_t>(cast(DType::f16, tensor_of(device, DType::f32, floats)));
        wrong = 0;
        for (std::size_t i = 0; i < narrow.size(); ++i) {
            const float right = half_to_float(float_to_half(floats[i])),
                        found = half_to_float(narrow[i]);
            if (!(right != right ? found != found : found == right) && wrong++ == 0)
                UNSCOPED_INFO(std::setprecision(17) << floats[i] << " is " << found);
        }
        CHECK(wrong == 0);
    }
}

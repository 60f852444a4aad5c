// SPDX-License-Identifier: MIT
// A program outside the source tree: a matrix product on the host, with the installed headers.
#include <dlprim/dlprim.hpp>

#include <iostream>

int main() {
    const dp::Context host("cpu");
    const dp::Tensor a(host, {2, 2}, std::vector<float>{1, 2, 3, 4});
    const dp::Tensor b(host, {2, 2}, std::vector<float>{5, 6, 7, 8});
    std::cout << "dlprim " << DLPRIM_VERSION << ":";
    const dp::Tensor product = dp::ops::call(dp::ops::MatMul{.alpha = 1}, {a, b}).at(0);
    for (const float x : product.to_floats()) std::cout << ' ' << x;
    std::cout << '\n';
}

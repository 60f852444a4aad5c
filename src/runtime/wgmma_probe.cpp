// SPDX-License-Identifier: MIT
// The probe of kernels/probe/wgmma.cl.
#include "runtime/wgmma_probe.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <vector>

namespace dlprim {

namespace {

constexpr int side = 64;

int exact(int row, int column) {
    int sum = 0;
    for (int k = 0; k < side; ++k)
        sum += ((3 * row + 5 * k) % 7 - 3) * ((2 * k + 11 * column) % 5 - 2);
    return sum;
}

}  // namespace

bool wgmma_works(ContextImpl& context) noexcept {
    try {
        const auto program = context.build({"probe/wgmma.cl", kernel_source("probe/wgmma.cl"), ""});
        const auto kernel = program->kernel("probe");
        std::vector<float> y(2 * side * side, -1.0f);
        const auto buffer = context.allocate(y.size() * sizeof(float));
        const std::uint64_t offset = 0;
        kernel->set(kernel->index_of("y"), *buffer);
        kernel->set(kernel->index_of("y_offset"), &offset, sizeof(offset));
        NDRange range;
        range.global[0] = range.local[0] = 128;
        range.local[1] = range.local[2] = 1;
        Queue& queue = context.queue();
        queue.launch(*kernel, range);
        queue.read({buffer.get(), 0}, y.data(), y.size() * sizeof(float), true);
        for (int i = 0; i < 2 * side * side; ++i) {
            const int wanted = exact(i / side % side, i % side);
            if (y[static_cast<std::size_t>(i)] == static_cast<float>(wanted)) continue;
            log(LogLevel::info, cat("matrix instructions of ", context.info().name,
                                    " are left out: their result is wrong at ", i));
            return false;
        }
        return true;
    } catch (const std::exception& error) {
        try {
            log(LogLevel::info, cat("matrix instructions of ", context.info().name,
                                    " are left out: ", error.what()));
        } catch (...) {
            return false;
        }
        return false;
    }
}

}  // namespace dlprim

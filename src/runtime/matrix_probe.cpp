// SPDX-License-Identifier: MIT
// The probes of kernels/probe/wgmma.cl and kernels/probe/mma.cl.
#include "runtime/matrix_probe.hpp"

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

// Runs the kernel: it makes two products of `side` at the start of its buffer, of `floats` floats.
bool products_are_exact(ContextImpl& context, const char* path, const std::string& options,
                        std::size_t floats) {
    const auto program = context.build({path, kernel_source(path), options});
    const auto kernel = program->kernel("probe");
    std::vector<float> y(2 * side * side, -1.0f);
    const auto buffer = context.allocate(floats * sizeof(float));
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
}

bool works(ContextImpl& context, const char* path, const std::string& options,
           std::size_t floats) noexcept {
    try {
        return products_are_exact(context, path, options, floats);
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

}  // namespace

bool wgmma_works(ContextImpl& context) noexcept {
    return works(context, "probe/wgmma.cl", "", 2 * side * side);
}

std::uint64_t mma_local_bytes(ContextImpl& context, std::uint64_t limit) noexcept {
    // What a work-group may have by compute capability: 9.0, 8.0, 8.6, and without asking.
    for (const int kib : {227, 163, 99, 48}) {
        const auto bytes = static_cast<std::uint64_t>(kib) << 10;
        if (bytes > limit) continue;
        try {
            // Behind the products the kernel keeps four tiles of 8 KiB.
            if (works(context, "probe/mma.cl", cat("-DMMA=1 -DLOCAL_BYTES=", bytes),
                      4 * side * side))
                return bytes;
        } catch (...) {
            return 0;
        }
    }
    return 0;
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// Runs the probes of kernels/probe.
#include "runtime/instruction_probe.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <numeric>
#include <vector>

namespace dlprim {

namespace {

constexpr int side = 64;      // of the matrices
constexpr int threads = 128;  // of a probe's work-group

int exact(int row, int column) {
    int sum = 0;
    for (int k = 0; k < side; ++k)
        sum += ((3 * row + 5 * k) % 7 - 3) * ((2 * k + 11 * column) % 5 - 2);
    return sum;
}

// The expected results: two products of matrices of size `side`, one after the other.
std::vector<float> exact_products() {
    std::vector<float> y(2 * side * side);
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = static_cast<float>(
            exact(static_cast<int>(i / side % side), static_cast<int>(i % side)));
    return y;
}

// The expected results of kernels/probe/subgroup.cl.
std::vector<float> exact_lanes(int lanes) {
    std::vector<float> y(2048);
    std::iota(y.begin(), y.end(), 0.0f);
    for (int id = 0; id < threads; ++id) {
        const int lane = id % lanes, group = id / lanes, from = 128 * group;
        std::vector<int> written{lane, group, from + lane};
        for (const int strips : {2, 4})
            for (int strip = 0; strip < strips; ++strip)
                written.push_back(from + strip * lanes + lane);
        written.push_back(from + lanes - 1);
        written.resize(16);
        for (const int value : written) y.push_back(static_cast<float>(value));
    }
    return y;
}

// Runs the kernel on a buffer of `floats` floats and checks that the buffer then begins with
// `right`.
void run(ContextImpl& context, const char* path, const std::string& options, std::size_t floats,
         const std::vector<float>& right) {
    const auto program = context.build({path, kernel_source(path), options});
    const auto kernel = program->kernel("probe");
    std::vector<float> y(right.size(), -1.0f);
    const auto buffer = context.allocate(floats * sizeof(float));
    const std::uint64_t offset = 0;
    kernel->set(kernel->index_of("y"), *buffer);
    kernel->set(kernel->index_of("y_offset"), &offset, sizeof(offset));
    NDRange range;
    range.global[0] = range.local[0] = threads;
    range.local[1] = range.local[2] = 1;
    Queue& queue = context.queue();
    queue.launch(*kernel, range);
    queue.read({buffer.get(), 0}, y.data(), y.size() * sizeof(float), true);
    for (std::size_t i = 0; i < right.size(); ++i)
        if (y[i] != right[i]) fail(ErrorKind::device, "the result is wrong at ", i);
}

bool works(ContextImpl& context, const char* path, const std::string& options, std::size_t floats,
           const std::vector<float>& right) {
    try {
        run(context, path, options, floats, right);
        return true;
    } catch (const std::exception& error) {
        log(LogLevel::info,
            cat("instructions that '", path, "' tests with ", options, " are not used on device ",
                context.info().str(), ": ", error.what()));
        return false;
    }
}

std::string kind_option(DType operands) {
    return operands == DType::bf16 ? "-DKIND=2" : "-DKIND=1";
}

}  // namespace

bool wgmma_works(ContextImpl& context, DType operands) {
    return works(context, "probe/wgmma.cl", kind_option(operands), 2 * side * side,
                 exact_products());
}

std::uint64_t mma_local_bytes(ContextImpl& context, std::uint64_t limit, DType operands) {
    // Largest local memory of a work-group by compute capability: 9.0, 8.0, 8.6, and the default.
    for (const int kib : {227, 163, 99, 48}) {
        const auto bytes = static_cast<std::uint64_t>(kib) << 10;
        if (bytes > limit) continue;
        // After the products, the kernel stores four tiles of 8 KiB.
        if (works(context, "probe/mma.cl",
                  cat(kind_option(operands), " -DMMA=1 -DLOCAL_BYTES=", bytes), 4 * side * side,
                  exact_products()))
            return bytes;
    }
    return 0;
}

bool subgroups_work(ContextImpl& context, int lanes) {
    const std::vector<float> right = exact_lanes(lanes);
    return works(context, "probe/subgroup.cl", cat("-DSG=", lanes), right.size(), right);
}

}  // namespace dlprim

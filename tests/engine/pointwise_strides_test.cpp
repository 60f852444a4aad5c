// SPDX-License-Identifier: MIT
// Pointwise jobs and kernels on strided operands: the walk, and what GPUs may load at once. No
// device is needed.
#include "engine/pointwise/kernels.hpp"
#include "support/catch.hpp"
#include "support/gpu_traits.hpp"

#include <string>

using namespace dlprim;
using namespace dlprim::pointwise;

namespace {

Operand laid(const Shape& shape, const Layout& layout, DType dtype = DType::f32) {
    return {shape, dtype, layout, false};
}

Problem problem_of(const char* code, const std::vector<Operand>& inputs, const Operand& output) {
    Problem problem;
    problem.op = "Pointwise";
    problem.inputs = inputs;
    problem.outputs = {output};
    problem.attrs = Attrs{{"code", std::string(code)}, {"scalars", Doubles{}}, {"shape", Ints{}}};
    return problem;
}

Job job_of(const Problem& problem) {
    std::vector<Job> jobs = make_jobs(problem, false);
    REQUIRE(jobs.size() == 1);
    return jobs[0];
}

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the walk follows the memory of strided operands") {
    const Shape shape{4, 6, 10};
    // Both lie alike, so all dimensions are joined to one.
    const Layout turned = Layout::strided({1, 4, 24}, true);
    const Job alike = job_of(problem_of("y0 = x0", {laid(shape, turned)}, laid(shape, turned)));
    CHECK(alike.sizes == std::vector<std::int64_t>{240});
    // A dimension of size 1 joins, whatever its stride.
    const Job one =
        job_of(problem_of("y0 = x0", {laid({4, 1, 60}, Layout::strided({60, 0, 1}, true))},
                          laid({4, 1, 60}, Layout::plain())));
    CHECK(one.sizes == std::vector<std::int64_t>{240});
    // An expanded dimension has stride 0, as one that is broadcast.
    const Job expanded = job_of(problem_of(
        "y0 = x0", {laid(shape, Layout::strided({0, 10, 1}, true))}, laid(shape, Layout::plain())));
    const Job broadcast = job_of(
        problem_of("y0 = x0 + x1", {laid({6, 10}, Layout::plain()), laid(shape, Layout::plain())},
                   laid(shape, Layout::plain())));
    CHECK(expanded.sizes == broadcast.sizes);
    // A reduction walks along its input.
    const Job sum =
        job_of(problem_of("y0 = sum[0](x0)", {laid({6, 10}, Layout::strided({1, 6}, true))},
                          laid({1, 10}, Layout::plain())));
    CHECK(sum.sizes == std::vector<std::int64_t>{10, 6});
    CHECK(sum.reduced == std::vector<bool>{false, true});
}

TEST_CASE("kernels for GPUs assume no alignment that an operand lacks") {
    const Traits gpu = testing::as_gpu(Traits{});
    const Shape shape{4096};
    const Layout plain = Layout::plain(), loose = Layout::strided({1}, false);
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        const auto text = [&](const Layout& x, const Layout& y) {
            const Problem problem =
                problem_of("y0 = x0", {laid(shape, x, dtype)}, laid(shape, y, dtype));
            return group_kernel(job_of(problem), gpu, 0).source;
        };
        const char* const load = dtype == DType::f16 ? "vloada_half4" : "const float4*)(p + o)";
        const char* const store = dtype == DType::f16 ? "vstorea_half4" : "float4*)(p + o) =";
        const std::string usual = text(plain, plain);
        if (dtype != DType::bf16) {
            CHECK(has(usual, load));
            CHECK(has(usual, store));
        }
        for (const std::string& loads : {text(loose, plain), text(loose, loose)})
            for (const char* aligned : {"vloada", "const float4*)(p", "const ushort4*)(p"})
                CHECK_FALSE(has(loads, aligned));
        for (const std::string& stores : {text(plain, loose), text(loose, loose)})
            for (const char* aligned : {"vstorea", "global float4*)(p", "global ushort4*)(p"})
                CHECK_FALSE(has(stores, aligned));
    }
}

TEST_CASE("offsets of strided operands may need 64 bits") {
    const Traits gpu = testing::as_gpu(Traits{});
    const Problem far =
        problem_of("y0 = x0", {laid({8, 64}, Layout::strided({std::int64_t{1} << 30, 1}, true))},
                   laid({8, 64}, Layout::plain()));
    CHECK(has(group_kernel(job_of(far), gpu, 0).source, "ulong item"));
}

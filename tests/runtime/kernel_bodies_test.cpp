// SPDX-License-Identifier: MIT
// Kernels whose bodies are functions of their own: which these are, and what they compute.
#include "runtime/kernel_bodies.hpp"
#include "runtime/small_programs.hpp"

using namespace dlprim;

namespace {

/// Kernels that add up ids and sizes, behind a macro that a body uses.
constexpr const char* ids = R"(#define N_MOST 3
#define AT(i, j) ((i) + 3 * (j))
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void adds(global float* x, ulong x_offset)
{
    x += x_offset;  // a comment (
    x[AT(get_global_id(0), get_group_id(1))] = 100 * get_global_size(0) + 10 * get_num_groups(1) + get_local_size(0)
        + get_local_id(1) + get_group_id(2);
}
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void doubles(global float* x, ulong x_offset) {
    x[x_offset + get_global_id(0)] *= 2;
}
kernel __attribute__((reqd_work_group_size(1, 1, 1))) void reverses(global float* x, ulong x_offset, int n) {
    local float first[N_MOST];
    local float other[2 * N_MOST];
    global float* const mine = x + x_offset + get_global_id(0) * n;
    for (int i = 0; i < n; ++i) first[i] = other[2 * i] = mine[i];
    for (int i = 0; i < n; ++i) mine[i] = first[n - 1 - i] + other[2 * i];
}
kernel void after(global float* x, ulong x_offset) { x[x_offset + get_global_id(0)] += get_local_size(0); }
)";

bool is_apart(const std::string& text) {
    const std::string made = bodies_apart(text);
    return made != text && made.find("body_k(") != std::string::npos;
}

}  // namespace

TEST_CASE("bodies of kernels with one work-item become functions") {
    const std::string one = "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k(";
    CHECK(is_apart(one + "int n) {}"));
    CHECK(is_apart(one + "local float* x) { /* local */ }"));
    CHECK_FALSE(is_apart(one + ") {}"));
    CHECK(is_apart(one + "int n) { local float x[4]; local uchar y[N + 2];\n n; }"));
    CHECK_FALSE(is_apart(one + "int n) { n; local float x[4]; }"));
    CHECK_FALSE(is_apart(one + "int n) { local float x[4], y; }"));
    CHECK_FALSE(is_apart(one + "int n) { local float x[4][4]; }"));
    CHECK_FALSE(is_apart(one + "int n) { local float x; }"));
    CHECK_FALSE(is_apart(one + "int n) { local float x[4]; barrier(CLK_LOCAL_MEM_FENCE); }"));
    CHECK_FALSE(is_apart(one + "int n) { barrier(CLK_LOCAL_MEM_FENCE); }"));
    CHECK_FALSE(is_apart(one + "int n) {"));
    CHECK_FALSE(is_apart("kernel void k(int n) {}"));
    CHECK_FALSE(is_apart("kernel __attribute__((reqd_work_group_size(2, 1, 1))) void k(int n) {}"));
    CHECK_FALSE(is_apart("#define kernel static\n" + one + "int n) {}\n"));
    CHECK(bodies_apart("int before;\n" + one + "int n) { n; }\nint after;\n")
              .ends_with("\nint after;\n"));
}

TEST_CASE("kernels have the same ids where their bodies are functions") {
    for (const Context& context : opencl_contexts()) {
        const auto program = Access::impl(context).build({"ids", ids, "-DUNUSED"});
        const Tensor x(context, {6}, std::vector<float>(6, 0.0f));
        const auto run = [&](const char* kernel, std::array<std::size_t, 3> global) {
            NDRange range{3, global, {1, 1, 1}};
            KernelLaunch launch;
            KernelCall call(program, kernel, range);
            call.tensor("x", 0);
            if (std::string_view(kernel) == "reverses") call.size("n", 3);
            launch.add(std::move(call));
            const BufferRef operands[] = {{Access::buffer(x).get(), 0}};
            launch.enqueue(Access::impl(context).queue(), operands);
        };
        run("adds", {3, 2, 1});
        CHECK(x.to_floats() == std::vector<float>(6, 321.0f));
        run("doubles", {2, 1, 1});
        run("after", {1, 1, 1});
        CHECK(x.to_floats() == std::vector<float>{643, 642, 321, 321, 321, 321});
        run("reverses", {2, 1, 1});
        CHECK(x.to_floats() == std::vector<float>{964, 1284, 964, 642, 642, 642});
    }
}

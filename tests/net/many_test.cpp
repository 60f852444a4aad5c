// SPDX-License-Identifier: MIT
// pointwise_many: the bits of single calls, in few launches; aliases, types, errors.
#include "net/support.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/put_off_calls.hpp"

#include <dlprim/dlprim.hpp>

#include <random>

using namespace dlprim;
using dlprim::testing::check_error;
using dlprim::testing::invalid;

namespace {

using Lists = std::vector<std::vector<Tensor>>;

constexpr const char* adam_program =
    "y1 = p0*x1 + (1-p0)*x3; y2 = p1*x2 + (1-p1)*x3*x3;"
    "y0 = x0 - p2*(p0*x1 + (1-p0)*x3)/(sqrt(p1*x2 + (1-p1)*x3*x3) + p3)";

std::vector<float> some_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(0.1f, 2.0f);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(random);
    return values;
}

/// A list of tensors of these sizes.
std::vector<Tensor> list_of(const Context& device, const std::vector<std::int64_t>& sizes,
                            unsigned seed) {
    std::vector<Tensor> list;
    list.reserve(sizes.size());
    for (const std::int64_t size : sizes)
        list.emplace_back(device, Shape{size}, some_values(static_cast<std::size_t>(size), ++seed));
    return list;
}

std::vector<std::int64_t> sizes_of_parameters() {
    std::vector<std::int64_t> sizes;
    sizes.reserve(61);
    for (int i = 0; i < 60; ++i) sizes.push_back(i % 3 == 0 ? 64 * (i + 1) : 37 * i * i + 1);
    sizes.push_back(200000);
    return sizes;
}

/// Until processes have compiled joined launches, single calls are made.
void wait_for_launches(const Context& device) {
    device.finish();
    if (PutOffCalls* const calls = put_off_calls(Access::impl(device).queue()))
        calls->compiles().wait_for_all();
}

}  // namespace

TEST_CASE("lists of tensors get the bits of single calls in a launch or two", "[many]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<std::int64_t> sizes = sizes_of_parameters();
        Lists lists, copies;
        for (unsigned i = 0; i < 4; ++i) {
            lists.push_back(list_of(device, sizes, 1000 * i));
            copies.push_back(list_of(device, sizes, 1000 * i));
        }
        const auto step = [&](double rate) {
            const std::vector<double> scalars{0.9, 0.999, rate, 1e-8};
            ops::pointwise_many(adam_program, lists, scalars, {lists[0], lists[1], lists[2]});
            for (std::size_t k = 0; k < sizes.size(); ++k) {
                ops::CallOptions how{.out = {copies[0][k], copies[1][k], copies[2][k]}};
                ops::pointwise(adam_program,
                               {copies[0][k], copies[1][k], copies[2][k], copies[3][k]}, scalars,
                               how);
            }
        };
        step(1e-2);
        wait_for_launches(device);
        step(3e-3);
        bool same = true;
        for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t k = 0; k < sizes.size(); ++k)
                same = same && lists[i][k].to_floats() == copies[i][k].to_floats();
        CHECK(same);
        const Counters before = device.counters();
        ops::pointwise_many(adam_program, lists, {0.9, 0.999, 0.5, 1e-8},
                            {lists[0], lists[1], lists[2]});
        const Counters after = device.counters();
        CHECK(after.allocations == before.allocations);
        CHECK(after.waits == before.waits);
        CHECK(after.compiles == before.compiles);
        // GPUs have several forms of the kernel: for sizes that vectors divide, and for others.
        const std::size_t most = device.traits().host           ? sizes.size()
                                 : device.traits().wide_vectors ? 4
                                                                : 8;
        CHECK(after.launches - before.launches <= most);
    }
}

TEST_CASE("tensors in many memories take more launches and get the same", "[many]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;
        // Memory of each tensor's own, as of a program that allocates itself.
        std::vector<Tensor> list;
        for (int k = 0; k < 150; ++k) {
            list.push_back(Access::tensor(device, Access::impl(device).allocate(4096), 0, {100 + k},
                                          DType::f32));
            list.back().fill(k);
        }
        const auto work = [&] { return ops::pointwise_many("y0 = x0 * 2 + p0", {list}, {1.0}); };
        work();
        wait_for_launches(device);
        work();
        const std::uint64_t before = device.counters().launches;
        const Lists results = work();
        const std::uint64_t launches = device.counters().launches - before;
        CHECK(launches >= 3);                                         // of 64 memories at most
        CHECK(launches <= (device.traits().wide_vectors ? 3U : 6U));  // by forms, as above
        bool same = true;
        for (std::size_t k = 0; k < list.size(); ++k)
            same = same && results[0][k].to_floats() ==
                               std::vector<float>(100 + k, static_cast<float>(2 * k + 1));
        CHECK(same);
    }
}

TEST_CASE("lists of tensors that are not aligned get the same after ones that are", "[many]") {
    ON_EVERY_DEVICE(device) {
        // Kernels of GPUs read whole vectors of aligned tensors, which fails elsewhere.
        const auto sum_of = [&](std::int64_t first) {
            std::vector<Tensor> left, right, out;
            for (const std::int64_t size : {64, 640, 4096}) {
                const auto part = [&](unsigned seed) {
                    return list_of(device, {size + 4}, seed)[0].slice(0, first, first + size);
                };
                left.push_back(part(1));
                right.push_back(part(2));
                out.push_back(part(3));
            }
            ops::pointwise_many("y0 = x0 + x1 * p0", {left, right}, {2.0}, {out});
            bool same = true;
            for (std::size_t k = 0; k < out.size(); ++k) {
                const Tensor single =
                    ops::pointwise("y0 = x0 + x1 * p0", {left[k], right[k]}, {2.0})[0];
                same = same && out[k].to_floats() == single.to_floats();
            }
            return same;
        };
        CHECK(sum_of(0));
        for (const std::int64_t first : {1, 2, 3}) CHECK(sum_of(first));
    }
}

TEST_CASE("lists may have one tensor for all, other types, and results in operands", "[many]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<std::int64_t> sizes{3, 100, 1, 4096};
        const std::vector<Tensor> x = list_of(device, sizes, 1);
        const Tensor scale(device, {1}, std::vector<float>{0.5f});
        const Lists scaled = ops::pointwise_many("y0 = x0 * x1", {x, {scale}});
        REQUIRE(scaled.size() == 1);
        for (std::size_t k = 0; k < sizes.size(); ++k) {
            CHECK((scaled[0][k].shape() == x[k].shape()));
            CHECK(scaled[0][k].to_floats() ==
                  ops::pointwise("y0 = x0 * x1", {x[k], scale})[0].to_floats());
        }
        // Types that differ within a list.
        std::vector<Tensor> mixed{x[0], Tensor(device, {5}, DType::i32), x[1]};
        mixed[1].fill(7);
        const Lists doubled = ops::pointwise_many("y0 = x0 + x0", {mixed});
        CHECK(doubled[0][1].dtype() == DType::i32);
        CHECK(doubled[0][1].to_doubles() == std::vector<double>(5, 14));
        CHECK(doubled[0][2].to_floats()[3] == 2 * x[1].to_floats()[3]);
        // Shapes are those of the tensors.
        const Tensor image(device, {2, 3, 4}, some_values(24, 5));
        CHECK((ops::pointwise_many("y0 = -x0", {{image}})[0][0].shape() == Shape{2, 3, 4}));
        // One k writes what the next one reads: as single calls, in their order.
        Tensor chain(device, {40}, std::vector<float>(40, 1.0f));
        std::vector<Tensor> from, to;
        for (int k = 0; k < 3; ++k) {
            from.push_back(chain.slice(0, 10 * k, 10 * k + 10));
            to.push_back(chain.slice(0, 10 * k + 10, 10 * k + 20));
        }
        ops::pointwise_many("y0 = x0 * 3", {from}, {}, {to});
        CHECK(chain.to_floats()[39] == 27);
        // Reductions.
        CHECK(ops::pointwise_many("y0 = sum[0](x0)", {{image, x[3]}})[0].size() == 2);
        CHECK(ops::pointwise_many("y0 = x0", Lists(1)).empty());
    }
}

TEST_CASE("lists that do not fit are refused", "[many]") {
    ON_EVERY_DEVICE(device) {
        const Tensor a(device, {4}), b(device, {5}), c(device, {4}, DType::i32);
        check_error(invalid, {"at least one list"}, [&] { ops::pointwise_many("y0 = x0", {}); });
        check_error(invalid, {"2", "3"}, [&] {
            ops::pointwise_many("y0 = x0+x1", {{a, a}, {a, a, a}});
        });
        check_error(invalid, {"[4]", "[5]", "position 1"}, [&] {
            ops::pointwise_many("y0 = x0+x1", {{a, a}, {a, b}});
        });
        check_error(invalid, {"out", "[5]"},
                    [&] { ops::pointwise_many("y0 = x0", {{a}}, {}, {{b}}); });
        check_error(invalid, {"out", "int"},
                    [&] { ops::pointwise_many("y0 = x0", {{a}}, {}, {{c}}); });
        check_error(invalid, {"strided"}, [&] {
            ops::pointwise_many("y0 = x0", {{Tensor(device, {4, 4}).slice(1, 0, 2)}});
        });
        check_error(invalid, {"empty"}, [&] { ops::pointwise_many("y0 = x0", {{Tensor()}}); });
        check_error(invalid, {"contexts"}, [&] {
            ops::pointwise_many("y0 = x0 + x1", {{a}, {Tensor(Context("cpu"), {4})}});
        });
        check_error(invalid, {"p0"}, [&] { ops::pointwise_many("y0 = x0 * p0", {{a}}); });
    }
}

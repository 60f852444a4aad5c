// SPDX-License-Identifier: MIT
// ops::copy() between tensors of any strides and types: values, overlaps, errors, and that the host
// neither waits nor touches an element.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const std::vector<DType> copied_types{DType::f32, DType::f16, DType::bf16,   DType::f64, DType::i8,
                                      DType::u8,  DType::i16, DType::u16,    DType::i32, DType::u32,
                                      DType::i64, DType::u64, DType::boolean};

/// A tensor of 240 small integers.
Tensor numbers(const Context& device, DType dtype, int first = 0) {
    std::vector<float> values(240);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((static_cast<int>(i) * 7 + first) % 100);
    return Tensor(device, {240}, values, dtype);
}

struct Strided {
    const char* name;
    std::vector<std::int64_t> strides;
    std::int64_t offset;
};

/// Views of shape [3, 4, 2] in 240 elements.
const std::vector<Strided> strided_views{
    {"row-major", {8, 2, 1}, 0}, {"odd offset", {8, 2, 1}, 7}, {"transposed", {1, 3, 12}, 5},
    {"steps", {60, 7, 3}, 2},    {"reversed", {2, 8, 40}, 1},  {"gaps", {30, 5, 1}, 3}};

Tensor view(const Tensor& memory, const Strided& which) {
    return memory.view({3, 4, 2}, which.strides, which.offset);
}

void check_copy(const Tensor& from, const Strided& how, DType dtype) {
    INFO("from strides " << from.strides()[0] << ", " << from.strides()[1] << ", "
                         << from.strides()[2] << " of " << name_of(from.dtype()) << " to "
                         << how.name << " of " << name_of(dtype));
    const Tensor memory = numbers(from.context(), dtype, 50);
    const Tensor expected = numbers(from.context(), dtype, 50);
    view(expected, how).copy_from(from.to_floats());  // through the host
    ops::copy(from, view(memory, how));
    CHECK(memory.to_floats() == expected.to_floats());
}

}  // namespace

TEST_CASE("copies have any strides and types", "[copy]") {
    ON_EVERY_DEVICE(device) {
        for (std::size_t t = 0; t < copied_types.size(); ++t)
            for (std::size_t i = 0; i < strided_views.size(); ++i) {
                const Tensor from = view(numbers(device, copied_types[t]), strided_views[i]);
                for (std::size_t j = 0; j < strided_views.size(); ++j) {
                    check_copy(from, strided_views[j], copied_types[t]);
                    check_copy(from, strided_views[j],
                               copied_types[(t + 1 + (i + j) % 4) % copied_types.size()]);
                }
            }
    }
}

TEST_CASE("copies repeat what was expanded", "[copy]") {
    ON_EVERY_DEVICE(device) {
        const Tensor row(device, {1, 4, 1}, {1, 2, 3, 4});
        for (const Strided& how : strided_views) {
            check_copy(row.expand({3, 4, 2}), how, DType::f32);
            check_copy(row.expand({3, 4, 2}), how, DType::i32);
        }
        const Tensor to(device, {3, 4}, DType::f16);
        ops::copy(Tensor(device, {}, {7}), to);
        CHECK(to.to_floats() == std::vector<float>(12, 7));
        ops::copy(row.reshape({4}), to);
        CHECK(to.slice(0, 2, 3).to_floats() == std::vector<float>{1, 2, 3, 4});
        ops::copy(Tensor(device, {0, 4}), Tensor(device, {0, 4}));
        ops::copy(Tensor(device, {1, 4}), Tensor(device, {0, 4}, DType::i8));
    }
}

TEST_CASE("overlapping copies read before they write", "[copy]") {
    ON_EVERY_DEVICE(device) {
        for (const DType dtype : {DType::f32, DType::i64})
            for (const Strided& a : strided_views)
                for (const Strided& b : strided_views) {
                    INFO("from " << a.name << " to " << b.name);
                    const Tensor memory = numbers(device, dtype), expected = numbers(device, dtype);
                    const std::vector<float> values = view(memory, a).to_floats();
                    view(expected, b).copy_from(values);
                    ops::copy(view(memory, a), view(memory, b));
                    CHECK(memory.to_floats() == expected.to_floats());
                }
        // The same bytes as other elements.
        const Tensor memory(device, {8}, {1, 2, 3, 4, 5, 6, 7, 8});
        ops::copy(memory, memory.bit_cast(DType::i32));
        CHECK(memory.bit_cast(DType::i32).to_floats() ==
              std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    }
}

TEST_CASE("no copy waits or goes through the host", "[copy]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = numbers(device, DType::f32), y = numbers(device, DType::f32);
        const Tensor whole = numbers(device, DType::i32);
        Tensor strided = y.view({3, 4, 2}, {60, 7, 3});
        const auto all = [&] {
            ops::copy(view(x, strided_views[2]), view(y, strided_views[3]));
            ops::copy(view(x, strided_views[2]), view(whole, strided_views[3]));
            ops::copy(x, whole);
            ops::copy(x, y);
            strided.fill(3);
            return view(x, strided_views[2]).to_contiguous();
        };
        all();
        const Counters before = device.counters();
        all();
        const Counters after = device.counters();
        CHECK(after.waits == before.waits);
        CHECK(after.compiles == before.compiles);
        CHECK(after.allocations == before.allocations);
        // One, three (gather, convert, scatter), one, none, one and one.
        CHECK(after.launches == before.launches + 7);
        CHECK(strided.to_floats() == std::vector<float>(24, 3));
    }
}

TEST_CASE("a conversion needs no gathering where both lie alike", "[copy]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = numbers(device, DType::f32), y = numbers(device, DType::i32);
        const Strided turned{"reversed", {1, 3, 12}, 4};
        ops::copy(view(x, turned), view(y, turned));
        const Counters before = device.counters();
        ops::copy(view(x, turned), view(y, turned));
        CHECK(device.counters().launches == before.launches + 1);
        CHECK(view(y, turned).to_floats() == view(x, turned).to_floats());
    }
}

TEST_CASE("copies between contexts go through the host", "[copy]") {
    ON_EVERY_DEVICE(device) {
        const Context host("cpu");
        const Tensor x = numbers(device, DType::f32), y = numbers(host, DType::i32, 1);
        ops::copy(view(x, strided_views[2]), view(y, strided_views[3]));
        CHECK(view(y, strided_views[3]).to_floats() == view(x, strided_views[2]).to_floats());
        ops::copy(y, x);
        CHECK(x.to_floats() == y.to_floats());
    }
}

TEST_CASE("what cannot be copied says why", "[copy]") {
    const Context host("cpu");
    const Tensor x = numbers(host, DType::f32);
    check_error(invalid, {"[240]", "[3, 4]"}, [&] { ops::copy(x, Tensor(host, {3, 4})); });
    check_error(invalid, {"[2, 240]", "same memory"}, [&] { ops::copy(x, x.expand({2, 240})); });
    check_error(invalid, {"same memory"}, [&] {
        ops::copy(x.slice(0, 0, 1), x.view({3, 2}, {1, 1}));
    });
    ops::copy(x.view({3, 2}, {2, 3}), x.view({3, 2}, {2, 3}));  // these do not repeat an element
    check_error(invalid, {"empty"}, [&] { ops::copy(Tensor(), x); });
    check_error(invalid, {"empty"}, [&] { ops::copy(x, Tensor()); });
}

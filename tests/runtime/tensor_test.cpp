// SPDX-License-Identifier: MIT
// Tensors on every device: copies, views with gaps, fills, wrapped memory, limits.
#include "runtime/context_impl.hpp"
#include "support/catch.hpp"

#include <dlprim/opencl.hpp>
#include <dlprim/tensor.hpp>

#include <numeric>

using namespace dlprim;

namespace {

std::vector<float> ramp(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
}

}  // namespace

TEST_CASE("copies and views") {
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.name);
        const Context context(info.id);
        for (DType dtype :
             {DType::f32, DType::f16, DType::i32, DType::u8, DType::i64, DType::f64}) {
            const Tensor x(context, {2, 3, 4}, ramp(24), dtype);
            CHECK(x.to_floats() == ramp(24));
            CHECK(x.transpose(0, -1).slice(1, 1, 3).to_floats() ==
                  std::vector<float>{4, 16, 8, 20, 5, 17, 9, 21, 6, 18, 10, 22, 7, 19, 11, 23});
            CHECK(x.slice(2, 3, 4).to_doubles() == std::vector<double>{3, 7, 11, 15, 19, 23});
            CHECK(x.slice(0, 1, 2).contiguous());
            CHECK(x.slice(0, 1, 2).reshape({12}).to_floats()[0] == 12);
            Tensor column = x.slice(2, 1, 2);
            CHECK_FALSE(column.contiguous());
            CHECK_THROWS_AS(column.reshape({6}), Error);
            column.fill(7);
            column.slice(0, 0, 1).copy_from({1, 2, 3});
            std::vector<float> expected = ramp(24);
            for (std::size_t i = 1; i < 24; i += 4) expected[i] = 7;
            expected[1] = 1, expected[5] = 2, expected[9] = 3;
            CHECK(x.to_floats() == expected);
        }
        Tensor empty(context, {0, 3});
        empty.fill(1);
        CHECK(empty.to_floats().empty());
        CHECK(empty.transpose(0, 1).to_floats().empty());
        Tensor half(context, {5}, DType::f16);
        half.fill(0.1);
        CHECK(half.to_floats()[4] == half_to_float(float_to_half(0.1f)));
        Tensor flags(context, {3}, {0, 0.5f, 2}, DType::boolean);
        CHECK(flags.to_floats() == std::vector<float>{0, 1, 1});
        CHECK_THROWS_AS(Tensor(context, {2}, {1, 2, 3}), Error);
        CHECK_THROWS_AS(Tensor().to_floats(), Error);
    }
}

TEST_CASE("a view has any shape and strides within its tensor") {
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.name);
        const Context context(info.id);
        const Tensor x(context, {2, 3, 4}, ramp(24));
        CHECK(x.view({2, 2}, {12, 2}, 5).to_floats() == std::vector<float>{5, 7, 17, 19});
        CHECK(x.view({2, 1, 3}, {4, 0, 1}, 12).to_floats() ==
              std::vector<float>{12, 13, 14, 16, 17, 18});
        CHECK(x.view({3}, {0}, 23).to_floats() == std::vector<float>{23, 23, 23});
        CHECK(x.view({}, {}, 7).to_floats() == std::vector<float>{7});
        CHECK(x.view({0, 2}, {1, 1}).to_floats().empty());
        // A view of a view counts from the first element of that view and must stay inside it.
        const Tensor row = x.slice(0, 1, 2).slice(1, 2, 3);
        CHECK(row.view({2}, {3}).to_floats() == std::vector<float>{20, 23});
        x.view({2, 3}, {12, 4}, 1).fill(-1);
        CHECK(x.slice(2, 1, 2).to_floats() == std::vector<float>(6, -1));
        CHECK_THROWS_AS(row.view({3}, {2}), Error);
        CHECK_THROWS_AS(row.view({1}, {1}, -1), Error);
        CHECK_THROWS_AS(row.view({1}, {1}, 4), Error);
        CHECK_THROWS_AS(x.view({2}, {-1}, 5), Error);
        CHECK_THROWS_AS(x.view({2}, {1, 1}), Error);
        CHECK_THROWS_AS(x.view({3, 3}, {INT64_MAX, INT64_MAX}), Error);
        CHECK_THROWS_AS(x.view({0}, {1}).view({1}, {1}), Error);
        CHECK_THROWS_AS(Tensor().view({1}, {1}), Error);
    }
}

TEST_CASE("dimensions are permuted and expanded") {
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.name);
        const Context context(info.id);
        const Tensor x(context, {2, 3, 4}, ramp(24));
        CHECK(x.permute({2, 0, -2}).to_floats() == x.transpose(0, 2).transpose(1, 2).to_floats());
        CHECK(x.permute({2, 0, 1}).shape() == Shape{4, 2, 3});
        CHECK(x.permute({0, 1, 2}).contiguous());
        CHECK(Tensor(context, {}, {1}).permute({}).contiguous());
        CHECK_THROWS_AS(x.permute({0, 1}), Error);
        CHECK_THROWS_AS(x.permute({0, 1, 1}), Error);
        CHECK_THROWS_AS(x.permute({0, 1, 3}), Error);

        const Tensor row = x.slice(0, 1, 2).slice(1, 1, 2).slice(2, 1, 3);
        CHECK(row.expand({2, 3, 2}).strides() == std::vector<std::int64_t>{0, 0, 1});
        CHECK(row.expand({2, 2, 1, 2}).to_floats() ==
              std::vector<float>{17, 18, 17, 18, 17, 18, 17, 18});
        CHECK(row.expand({0, 1, 2}).to_floats().empty());
        CHECK(x.expand({1, 2, 3, 4}).to_floats() == ramp(24));
        CHECK_THROWS_AS(x.expand({2, 3, 8}), Error);
        CHECK_THROWS_AS(x.expand({3, 4}), Error);
        CHECK_THROWS_AS(row.expand({1, 1, 1}), Error);
        CHECK_THROWS_AS(Tensor().expand({1}), Error);
    }
}

TEST_CASE("the same bytes are elements of another type") {
    for (const DeviceInfo& info : Context::devices()) {
        INFO(info.name);
        const Context context(info.id);
        const Tensor x(context, {2, 6}, ramp(12));
        CHECK(x.bit_cast(DType::i32).to_doubles()[1] == 0x3f800000);
        CHECK(x.transpose(0, 1).bit_cast(DType::i32).shape() == Shape{6, 2});
        const Tensor bytes = x.bit_cast(DType::u8);
        CHECK(bytes.shape() == Shape{2, 24});
        CHECK(bytes.slice(1, 4, 8).to_floats() == std::vector<float>{0, 0, 128, 63, 0, 0, 224, 64});
        CHECK(bytes.bit_cast(DType::f32).to_floats() == ramp(12));
        CHECK(bytes.slice(1, 4, 12).bit_cast(DType::f32).to_floats() ==
              std::vector<float>{1, 2, 7, 8});
        CHECK(x.bit_cast(DType::i64).shape() == Shape{2, 3});
        CHECK(x.bit_cast(DType::i64).strides() == std::vector<std::int64_t>{3, 1});
        CHECK(x.slice(0, 0, 0).bit_cast(DType::i64).shape() == Shape{0, 3});
        CHECK_THROWS_AS(bytes.slice(1, 2, 10).bit_cast(DType::f32), Error);       // its offset
        CHECK_THROWS_AS(bytes.slice(1, 0, 6).bit_cast(DType::f32), Error);        // its last size
        CHECK_THROWS_AS(bytes.view({2, 4}, {6, 1}).bit_cast(DType::f32), Error);  // its strides
        CHECK_THROWS_AS(x.transpose(0, 1).bit_cast(DType::u8), Error);
        CHECK_THROWS_AS(Tensor(context, {}, {1}).bit_cast(DType::u8), Error);
        CHECK_THROWS_AS(Tensor().bit_cast(DType::u8), Error);
    }
}

TEST_CASE("host memory is reached by its address, and kept by its owner") {
    const Context context("cpu");
    const Tensor x(context, {2, 3}, ramp(6));
    CHECK(static_cast<float*>(x.slice(0, 1, 2).host_data())[1] == 4);
    static_cast<float*>(x.host_data())[0] = 8;
    CHECK(x.to_floats()[0] == 8);
    // Others may have written to it, so data derived from it are invalid.
    CHECK(Access::buffer(x)->foreign());

    auto memory = std::make_shared<std::vector<float>>(ramp(4));
    const std::weak_ptr<std::vector<float>> alive = memory;
    Tensor row;
    {
        float* const data = memory->data();
        const Tensor all = Tensor::wrap_host(context, data, {2, 2}, DType::f32, std::move(memory));
        row = all.slice(0, 1, 2);
    }
    CHECK(row.to_floats() == std::vector<float>{2, 3});
    row = Tensor();
    CHECK(alive.expired());

    for (const DeviceInfo& info : Context::devices())
        if (info.kind != DeviceKind::host)
            CHECK_THROWS_AS(Tensor(Context(info.id), {1}).host_data(), Error);
    CHECK_THROWS_AS(Tensor().host_data(), Error);
}

TEST_CASE("tensors tell whether they share memory") {
    const Context context("cpu");
    const Tensor x(context, {2, 3}, ramp(6)), same_values(context, {2, 3}, ramp(6));
    CHECK(x.shares_memory(x.slice(0, 1, 2)));
    CHECK(x.slice(0, 0, 1).shares_memory(x.slice(0, 1, 2)));  // these do not overlap
    CHECK(!x.shares_memory(same_values));
    CHECK(!x.shares_memory(Tensor()));
    CHECK(!Tensor().shares_memory(Tensor()));
}

TEST_CASE("contexts are told apart by their identity") {
    const Context context("cpu"), copy = context, other("cpu");
    CHECK(copy == context);
    CHECK(copy.identity() == context.identity());
    CHECK(Tensor(context, {1}).context().identity() == context.identity());
    CHECK(!(other == context));
    CHECK(other.identity() != context.identity());
}

TEST_CASE("foreign memory is wrapped without a copy") {
    for (const DeviceInfo& info : Context::devices()) {
        const Context context(info.id);
        if (info.kind == DeviceKind::host) {
            std::vector<float> memory = ramp(6);
            Tensor x = Tensor::wrap_host(context, memory.data(), {2, 3});
            x.slice(0, 1, 2).fill(9);
            CHECK(memory == std::vector<float>{0, 1, 2, 9, 9, 9});
            CHECK_THROWS_AS(Tensor::wrap_opencl(context, memory.data(), 0, {6}), Error);
        } else {
            const Tensor owner(context, {6}, ramp(6));
            const opencl::Memory place = opencl::memory(owner);
            const Tensor x =
                Tensor::wrap_opencl(context, place.memory, place.byte_offset + 8, {2, 2});
            CHECK(x.to_floats() == std::vector<float>{2, 3, 4, 5});
            CHECK_THROWS_AS(Tensor::wrap_opencl(context, place.memory, std::uint64_t{1} << 40, {6}),
                            Error);
            const Context other(info.id);
            CHECK_THROWS_AS(Tensor::wrap_opencl(other, place.memory, 0, {6}), Error);
        }
    }
}

TEST_CASE("memory is counted, pooled and limited") {
    for (const DeviceInfo& info : Context::devices()) {
        const Context context(info.id);
        ContextImpl& impl = Access::impl(context);
        {
            const Tensor x(context, {1000});
            CHECK(context.counters().allocated_bytes == 4000);
        }
        CHECK(context.counters().allocated_bytes == 0);
        const std::uint64_t before = context.counters().allocations;
        for (int i = 0; i < 5; ++i)
            CHECK(impl.allocate_cached(3000 - static_cast<std::uint64_t>(i))->bytes() >= 2996);
        CHECK(context.counters().allocations == before);
        impl.trim();
        CHECK(context.counters().allocated_bytes == 0);
        CHECK(impl.allocate(0)->bytes() > 0);
        try {
            impl.allocate(std::uint64_t{1} << 50);
            FAIL("more memory than there is");
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::out_of_memory);
            CHECK(std::string(error.what()).find("largest single allocation") != std::string::npos);
        }
    }
}

TEST_CASE("queues fill and copy") {
    for (const DeviceInfo& info : Context::devices()) {
        const Context context(info.id);
        Queue& queue = Access::impl(context).queue();
        const Tensor x(context, {64});
        const float pattern[4] = {1, 2, 3, 4};
        queue.fill({Access::buffer(x).get(), 0}, 256, pattern, 16);
        queue.copy({Access::buffer(x).get(), 4}, {Access::buffer(x).get(), 128}, 12);
        queue.copy({Access::buffer(x).get(), 4}, {Access::buffer(x).get(), 128}, 0);
        const std::vector<float> values = x.to_floats();
        CHECK(values[31] == 4);
        CHECK(values[32] == 2);
        CHECK(values[34] == 4);
        CHECK(values[35] == 4);
        CHECK(values[63] == 4);
    }
}

// If memory were copied as if it could not overlap, only AddressSanitizer would notice it.
TEST_CASE("the host copies from memory that overlaps a tensor's own") {
    const Context host("cpu");
    std::vector<float> memory = ramp(8);
    Tensor all = Tensor::wrap_host(host, memory.data(), {8});
    all.slice(0, 1, 8).copy_from_host(memory.data(), 7 * sizeof(float));
    CHECK(all.to_floats() == std::vector<float>{0, 0, 1, 2, 3, 4, 5, 6});
    all.slice(0, 1, 8).copy_to_host(memory.data(), 7 * sizeof(float));
    CHECK(all.to_floats() == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 6});
}

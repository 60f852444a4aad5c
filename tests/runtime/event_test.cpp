// SPDX-License-Identifier: MIT
// Events, pinned memory, copies that do not wait, and copies between contexts.
#include "net/support.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <thread>

using namespace dlprim;
using dlprim::testing::check_error;
using dlprim::testing::invalid;

namespace {

std::vector<float> ramp(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 10007);
    return values;
}

}  // namespace

TEST_CASE("an event is done when the work before it is", "[event]") {
    ON_EVERY_DEVICE(device) {
        CHECK(Event().done());
        CHECK(!Event().defined());
        Event().wait();
        Tensor x(device, {1 << 20});
        const Event start(device, true);
        for (int i = 0; i < 20; ++i) x.fill(i);
        const Event end(device, true), untimed(device);
        end.wait();
        CHECK(start.done());
        CHECK(end.done());
        CHECK(end.elapsed_ms(start) >= 0);
        CHECK(start.elapsed_ms(end) <= 0);
        check_error(invalid, {"timing"}, [&] { untimed.elapsed_ms(start); });
        check_error(invalid, {"timing"}, [&] { end.elapsed_ms(Event()); });
        end.order(device);
        const Context other(device.info().id), host("cpu");
        end.order(other);
        end.order(host);
        std::thread([copy = untimed] { copy.wait(); }).join();
    }
}

// Mesa's rusticl 22.3 has nothing to wait for where nothing was enqueued since the last flush.
TEST_CASE("finish waits for work that has been flushed", "[event]") {
    ON_EVERY_DEVICE(device) {
        Tensor x(device, {1 << 22});
        for (int i = 0; i < 20; ++i) x.fill(i);
        const Event end(device);
        device.finish();
        CHECK(end.done());
    }
}

TEST_CASE("copies that do not wait are ordered with other work", "[event]") {
    ON_EVERY_DEVICE(device) {
        const std::int64_t count = 100000;
        const std::vector<float> values = ramp(count);
        const std::uint64_t bytes = values.size() * sizeof(float);
        const PinnedMemory in(device, bytes), out(device, bytes);
        REQUIRE(in.data() != nullptr);
        CHECK(in.bytes() == bytes);
        std::memcpy(in.data(), values.data(), bytes);
        Tensor x(device, {count});
        const Counters before = device.counters();
        const Event written = x.copy_from_host_async(in.data(), bytes);
        Tensor twice = ops::pointwise("y0 = x0 + x0", {x})[0];
        const Event read = twice.copy_to_host_async(out.data(), bytes);
        CHECK(device.counters().waits == before.waits);
        read.wait();
        CHECK(written.done());
        bool right = true;
        std::vector<float> got(values.size());
        std::memcpy(got.data(), out.data(), bytes);
        for (std::size_t i = 0; i < got.size(); ++i) right = right && got[i] == 2 * values[i];
        CHECK(right);
        // A view with gaps, ordinary memory, and what does not fit.
        const Tensor column = x.reshape({100, 1000}).slice(1, 3, 4);
        std::vector<float> few(100);
        column.copy_to_host_async(few.data(), 400).wait();
        CHECK(few[2] == values[2003]);
        check_error(invalid, {"bytes"}, [&] { x.copy_from_host_async(in.data(), 3); });
        check_error(invalid, {"null"}, [&] { x.copy_from_host_async(nullptr, bytes); });
        check_error(invalid, {"undefined"}, [&] { Tensor().copy_from_host_async(in.data(), 4); });
    }
}

TEST_CASE("waiting for a copy reports an index out of range before it", "[event]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) continue;  // there the call itself throws
        const Tensor data(device, {5}, ramp(5));
        const std::vector<std::int32_t> index{1, 7};
        Tensor at(device, {2}, DType::i32);
        at.copy_from_host(index.data(), 8);
        const auto gather = [&] { return ops::call(ops::Gather{}, {data, at})[0]; };
        std::vector<float> out(2);
        {
            const Event read = gather().copy_to_host_async(out.data(), 8);
            check_error(invalid, {"Gather", "7"}, [&] { read.wait(); });
            read.wait();
        }
        // An event that nobody waits for leaves the report to the next who waits.
        gather().copy_to_host_async(out.data(), 8);
        check_error(invalid, {"Gather", "7"}, [&] { device.finish(); });
        device.finish();
    }
}

TEST_CASE("tensors are copied between contexts", "[event]") {
    ON_EVERY_DEVICE(device) {
        const Context host("cpu"), other(device.info().id);
        for (const std::int64_t count : {0, 1, 1000, 5 << 20}) {
            const std::vector<float> values = ramp(count);
            const Tensor x(device, {count}, values);
            const Tensor there = x.to(other);
            CHECK((there.context() == other));
            CHECK(there.to_floats() == values);
            CHECK(there.to(host).to_floats() == values);
            CHECK(there.to(host).to(device).to_floats() == values);
            CHECK(x.to(device).shares_memory(x));
        }
        const Tensor x(device, {6, 4}, ramp(24));
        Tensor turned(other, {4, 6});
        x.transpose(0, 1).copy_to(turned);
        CHECK(turned.to_floats()[1] == 4);
        Tensor part = turned.slice(1, 1, 3);
        Tensor(device, {4, 2}, ramp(8)).copy_to(part);
        CHECK(turned.to_floats()[1] == 0);
        CHECK(turned.to_floats()[8] == 3);
        CHECK(turned.to_floats()[3] == 12);
        Tensor wrong(other, {3}), type(other, {6, 4}, DType::i32);
        check_error(invalid, {"[3]"}, [&] { x.copy_to(wrong); });
        check_error(invalid, {"int"}, [&] { x.copy_to(type); });
    }
}

// SPDX-License-Identifier: MIT
// What kernels refuse: noted on the device, thrown once by the next wait, whichever that is.
#include "runtime/refusals.hpp"

#include "engine/kernel_function.hpp"
#include "engine/launch.hpp"
#include "engine/table_launch.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"

#include <dlprim/tensor.hpp>

#include <cstring>

using namespace dlprim;

namespace {

/// Refuses indices from `size` on, of a dimension in which others count from the front or the end.
const char* const check = R"(
kernel void check(global const int* x, ulong x_offset, int size, int from_end, global long* refused, int refused_by) {
    const int at = get_global_id(0);
    if (x[x_offset + at] >= size) refuse_index(refused, refused_by, x[x_offset + at], at, size, from_end);
}
)";

/// A context, indices on it, and a launch that checks them.
struct Checked {
    explicit Checked(const std::string& device, bool from_end = false) : context(device) {
        indices = Tensor(context, {3}, DType::i32);
        NDRange range;
        range.global[0] = 3;
        range.local[0] = 1;
        ContextImpl& impl = Access::impl(context);
        launch.add(KernelCall(impl.build({"check", kernel_source("engine/refuse.clh") + check, ""}),
                              "check", range)
                       .tensor("x", 0)
                       .scalar("size", 5)
                       .scalar("from_end", std::int32_t{from_end})
                       .refuses(impl));
        launch.set_owner("[Check 'this'] ");
    }
    Queue& queue() const { return Access::impl(context).queue(); }
    BufferRef place() const { return {Access::buffer(indices).get(), indices.byte_offset()}; }
    void run(const std::vector<std::int32_t>& values) {
        indices.copy_from_host(values.data(), values.size() * sizeof(std::int32_t));
        const BufferRef operands[] = {place()};
        launch.enqueue(queue(), operands);
    }

    Context context;
    Tensor indices;
    KernelLaunch launch;
};

constexpr const char* sentence =
    "[Check 'this'] index 7 at position 1 is outside of a dimension of 5 elements, where indices "
    "are "
    "0 to 4";

template <typename Test>
void on_devices(Test&& test) {
    for (const DeviceInfo& info : Context::devices()) {
        if (info.kind == DeviceKind::host) continue;
        INFO(info.name);
        Checked checked(info.id);
        test(checked);
    }
}

}  // namespace

TEST_CASE("a refused index is thrown once, by a read or by finish()") {
    on_devices([](Checked& checked) {
        std::int32_t values[3];
        const auto read = [&] { checked.indices.copy_to_host(values, sizeof(values)); };
        checked.run({0, 7, 4});
        CHECK_THROWS_WITH(read(), ContainsSubstring(sentence));
        CHECK_NOTHROW(read());
        checked.run({0, 7, 4});
        CHECK_THROWS_WITH(checked.queue().finish(), ContainsSubstring(sentence));
        CHECK_NOTHROW(checked.queue().finish());
        checked.run({0, 1, 4});
        CHECK_NOTHROW(checked.queue().finish());
        // The first one is reported.
        checked.run({0, 7, 4});
        checked.run({9, 0, 0});
        CHECK_THROWS_WITH(read(), ContainsSubstring(sentence));
    });
}

TEST_CASE("what is said of an index tells whether indices count from the end") {
    for (const DeviceInfo& info : Context::devices()) {
        if (info.kind == DeviceKind::host) continue;
        Checked checked(info.id, true);
        checked.run({0, 7, 4});
        CHECK_THROWS_WITH(checked.queue().finish(), ContainsSubstring("where indices are -5 to 4"));
    }
}

TEST_CASE("a late read throws what was refused in front of it") {
    on_devices([](Checked& checked) {
        const auto readback = Access::impl(checked.context).make_readback(checked.indices.bytes());
        checked.run({0, 1, 2});
        readback->read(checked.place());
        checked.run({0, 7, 4});
        readback->read(checked.place());
        CHECK_NOTHROW(readback->take());
        checked.run({3, 2, 1});
        readback->read(checked.place());
        CHECK_THROWS_WITH(readback->take(), ContainsSubstring(sentence));
        // The last read saw the same note, which is reported already.
        const std::byte* const last = readback->take();
        std::int32_t first = 0;
        std::memcpy(&first, last, sizeof(first));
        CHECK(first == 3);
        CHECK_NOTHROW(checked.queue().finish());
    });
}

TEST_CASE("a launch that may refuse is neither joined nor chained") {
    on_devices([](Checked& checked) {
        REQUIRE(checked.launch.calls().size() == 1);
        CHECK(!TableLaunch::key(checked.launch.calls()[0]));
        CHECK(!are_functions(checked.launch.calls()));
    });
}

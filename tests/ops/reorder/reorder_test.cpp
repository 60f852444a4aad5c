// SPDX-License-Identifier: MIT
// Reorder between every pair of layouts, on every device, against index arithmetic; padding lanes
// must come out zero.
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"

#include <cstring>

using namespace dlprim;

namespace {

// Where channel c of pixel p of image n lies.
std::int64_t place(const Shape& s, const Layout& layout, std::int64_t n, std::int64_t c,
                   std::int64_t p) {
    const std::int64_t pixels = s[2] * s[3];
    if (layout.kind == Layout::Kind::channels_last) return (n * pixels + p) * s[1] + c;
    if (layout.kind == Layout::Kind::plain) return (n * s[1] + c) * pixels + p;
    const std::int64_t b = layout.block, blocks = (s[1] + b - 1) / b;
    return ((n * blocks + c / b) * pixels + p) * b + c % b;
}

template <typename T>
std::vector<T> stored(const Shape& s, const Layout& layout, DType dtype) {
    std::vector<T> data(storage_bytes(s, dtype, layout) / sizeof(T), T(0));
    T value = 1;
    for (std::int64_t n = 0; n < s[0]; ++n)
        for (std::int64_t c = 0; c < s[1]; ++c)
            for (std::int64_t p = 0; p < s[2] * s[3]; ++p)
                data[static_cast<std::size_t>(place(s, layout, n, c, p))] = value++;
    return data;
}

template <typename T>
void check(ContextImpl& context, const Shape& shape, DType dtype, const Layout& from,
           const Layout& to) {
    INFO(shape.str() << " " << from.str() << " to " << to.str());
    Problem problem;
    problem.op = "Reorder";
    problem.inputs = {{shape, dtype, from, false}};
    problem.outputs = {{shape, dtype, to, false}};
    const std::vector<T> x = stored<T>(shape, from, dtype), want = stored<T>(shape, to, dtype);
    int tried = 0;
    for (const Engine* engine : EngineRegistry::instance().of("Reorder", context.is_host())) {
        if (!engine->is_applicable(context.traits(), problem).ok) continue;  // of strided views
        ++tried;
        std::vector<T> y(want.size(), T(77));
        const auto a = context.allocate(x.size() * sizeof(T));
        const auto b = context.allocate(y.size() * sizeof(T));
        Queue& queue = context.queue();
        queue.write({a.get(), 0}, x.data(), x.size() * sizeof(T), true);
        queue.write({b.get(), 0}, y.data(), y.size() * sizeof(T), true);
        const BufferRef operands[] = {{a.get(), 0}, {b.get(), 0}};
        engine->build(context, problem, {})->enqueue(queue, operands);
        queue.read({b.get(), 0}, y.data(), y.size() * sizeof(T), true);
        REQUIRE(y == want);
    }
    REQUIRE(tried > 0);
}

}  // namespace

TEST_CASE("every pair of layouts") {
    OperatorRegistry::instance();  // registers the engines, too
    const Layout layouts[] = {Layout::plain(), Layout::channels_last(), Layout::blocked(8),
                              Layout::blocked(16)};
    const Shape shapes[] = {{1, 1, 1, 1},    {2, 3, 5, 7},    {1, 33, 6, 11}, {2, 70, 1, 1},
                            {2, 16, 13, 13}, {1, 72, 27, 27}, {2, 64, 3, 55}};
    for (const DeviceInfo& info : Context::devices()) {
        const Context context(info.id);
        for (const Layout& from : layouts)
            for (const Layout& to : layouts) {
                if (from == to) continue;
                for (const Shape& shape : shapes)
                    check<std::uint32_t>(Access::impl(context), shape, DType::f32, from, to);
            }
        check<std::uint64_t>(Access::impl(context), shapes[1], DType::i64, layouts[0], layouts[3]);
        check<std::uint64_t>(Access::impl(context), shapes[5], DType::i64, layouts[1], layouts[0]);
        for (const Shape& shape : shapes)
            for (const int from : {0, 1})
                check<std::uint16_t>(Access::impl(context), shape, DType::f16, layouts[from],
                                     layouts[1 - from]);
        check<std::uint8_t>(Access::impl(context), shapes[1], DType::u8, layouts[2], layouts[0]);
    }
}

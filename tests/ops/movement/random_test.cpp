// SPDX-License-Identifier: MIT
// The same checks with seeded random problems (200 per operator, or DLPRIM_TEST_RANDOM), and with
// special values: NaN, infinities, ties.
#include "ops/movement/graph_check.hpp"
#include "support/catch.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

using namespace dlprim;

namespace {

struct Random {
    std::mt19937 engine;
    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
    }
    bool coin() { return pick(0, 1) == 1; }
    /// Numbers of channels: odd ones, and ones that fill blocks.
    std::int64_t channels() { return coin() ? pick(1, 40) : 8 * pick(1, 6); }
    Ints sizes(std::int64_t rank, std::int64_t most) {
        Ints result;
        for (std::int64_t d = 0; d < rank; ++d) result.push_back(pick(1, most));
        return result;
    }
    DType any_dtype() {
        constexpr DType all[] = {DType::f32, DType::f32, DType::f32,
                                 DType::i64, DType::u8,  DType::f16};
        return all[pick(0, 5)];
    }
};

/// f(random, DType) for every seed.
template <typename F>
void each(F&& f) {
    const char* given = std::getenv("DLPRIM_TEST_RANDOM");
    const int count = given ? std::atoi(given) : 200;
    for (int seed = 0; seed < count; ++seed) {
        INFO("seed " << seed);
        Random random{std::mt19937(static_cast<unsigned>(seed))};
        f(random);
    }
}

/// Gradients are checked in float. Other types are only moved.
HostArray array(Random& random, const Ints& sizes, DType dtype = DType::f32) {
    return random_array(Shape(sizes), "normal", random.engine,
                        dtype == DType::f16 ? DType::u16 : dtype);
}

}  // namespace

TEST_CASE("random Concat") {
    each([](Random& r) {
        const bool image = r.coin();
        Ints sizes =
            image ? Ints{r.pick(1, 3), 1, r.pick(1, 9), r.pick(1, 9)} : r.sizes(r.pick(1, 6), 6);
        const auto rank = static_cast<std::int64_t>(sizes.size());
        const std::int64_t dim = image ? 1 : r.pick(0, rank - 1);
        const DType dtype = r.any_dtype();
        const bool whole = r.coin();
        std::vector<HostArray> inputs;
        for (std::int64_t i = r.pick(1, 5); i > 0; --i) {
            sizes[static_cast<std::size_t>(dim)] =
                image ? (whole ? 16 * r.pick(1, 3) : r.channels()) : r.pick(1, 9);
            inputs.push_back(array(r, sizes, dtype));
        }
        check_operator("Concat", {{"dim", r.coin() ? dim : dim - rank}}, inputs);
    });
}

TEST_CASE("random Slice") {
    each([](Random& r) {
        const bool image = r.coin();
        const Ints sizes = image ? Ints{r.pick(1, 3), r.channels(), r.pick(1, 9), r.pick(1, 9)}
                                 : r.sizes(r.pick(1, 6), 8);
        const auto rank = static_cast<std::int64_t>(sizes.size());
        const std::int64_t dim = r.pick(0, rank - 1), size = sizes[static_cast<std::size_t>(dim)];
        std::int64_t begin = r.pick(0, size - 1), end = r.pick(begin + 1, size);
        if (image && size > 16 && r.coin()) {
            begin = begin / 16 * 16;
            end = r.coin() ? size : std::max<std::int64_t>(begin + 8, end / 8 * 8);
            end = std::min(end, size);
        }
        Attrs attrs{{"dim", r.coin() ? dim : dim - rank},
                    {"begin", r.coin() ? begin : begin - size}};
        if (end < size || r.coin())
            attrs.set("end", r.coin() || end >= size - 1 ? end : end - size);
        check_operator("Slice", attrs, {array(r, sizes, r.any_dtype())});
    });
}

TEST_CASE("random Transpose") {
    each([](Random& r) {
        const std::int64_t rank = r.pick(1, r.coin() ? 3 : 8);
        const Ints sizes = r.sizes(rank, rank <= 2 ? 90 : rank <= 3 ? 30 : rank <= 5 ? 7 : 3);
        Ints dims(static_cast<std::size_t>(rank));
        std::iota(dims.begin(), dims.end(), 0);
        std::shuffle(dims.begin(), dims.end(), r.engine);
        if (r.coin()) dims[0] -= rank;
        check_operator("Transpose", {{"dims", dims}}, {array(r, sizes, r.any_dtype())});
    });
}

TEST_CASE("random Pad") {
    each([](Random& r) {
        const Ints sizes = r.sizes(r.pick(1, 5), 9);
        const auto rank = static_cast<std::int64_t>(sizes.size());
        const std::int64_t mode = r.pick(0, 2);
        Ints pads;
        for (std::int64_t i = r.pick(0, mode == 0 ? rank : std::min<std::int64_t>(3, rank)); i > 0;
             --i) {
            const std::int64_t size = sizes[static_cast<std::size_t>(rank - 1) - pads.size() / 2];
            const std::int64_t most = mode == 1 ? size - 1 : 5;
            const std::int64_t a = r.pick(-size / 2, most), b = r.pick(-size / 2, most);
            pads.push_back(a);
            pads.push_back(std::max(b, 1 - size - a));
        }
        const char* const names[] = {"constant", "reflect", "replicate"};
        const DType dtype = mode == 0 ? r.any_dtype() : DType::f32;
        check_operator(
            "Pad",
            {{"pads", pads}, {"mode", std::string(names[mode])}, {"value", double(r.pick(0, 9))}},
            {array(r, sizes, dtype)});
    });
}

TEST_CASE("random Pooling2D") {
    each([](Random& r) {
        const Ints kernel{r.pick(1, 5), r.pick(1, 5)};
        Ints pad;
        for (std::size_t i = 0; i < 4; ++i) pad.push_back(r.pick(0, kernel[i % 2] - 1));
        const bool average = r.coin();
        const Attrs attrs{{"mode", std::string(average ? "avg" : "max")},
                          {"kernel", kernel},
                          {"stride", Ints{r.pick(1, 4), r.pick(1, 4)}},
                          {"pad", pad},
                          {"count_include_pad", r.coin()},
                          {"ceil_mode", r.coin()}};
        const Ints sizes{r.pick(1, 2), r.channels(), kernel[0] + r.pick(0, 12),
                         kernel[1] + r.pick(0, 12)};
        check_operator("Pooling2D", attrs,
                       {random_array(Shape(sizes), r.coin() ? "normal" : "equal", r.engine)});
    });
}

TEST_CASE("random Interpolation") {
    each([](Random& r) {
        const std::int64_t mode = r.pick(0, 2);
        const char* const names[] = {"nearest", "nearest-exact", "bilinear"};
        Attrs attrs{{"method", std::string(names[mode])}};
        const Ints sizes{r.pick(1, 2), r.channels(), r.pick(1, 13), r.pick(1, 13)};
        if (r.coin()) {
            attrs.set("out_h", r.pick(1, 30)).set("out_w", r.pick(1, 30));
        } else {
            attrs.set("scale_y", double(r.pick(10, 35)) / 10)
                .set("scale_x", double(r.pick(10, 35)) / 10);
        }
        if (mode == 2) attrs.set("align_corners", r.coin());
        check_operator("Interpolation", attrs, {array(r, sizes)});
    });
}

TEST_CASE("a maximum of NaN, infinity and ties is PyTorch's") {
    const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
    HostArray x{Shape{1, 16, 4, 4}, {}, DType::f32};
    const double plane[16] = {1, nan, 2, 2, nan, 0, 2, 2, -inf, -inf, inf, 3, -inf, -inf, inf, 3};
    for (int c = 0; c < 16; ++c) x.data.insert(x.data.end(), plane, plane + 16);
    for (const std::int64_t stride : {1, 2})
        check_operator("Pooling2D",
                       {{"kernel", std::int64_t{2}}, {"stride", stride}, {"return_indices", true}},
                       {x});
}

TEST_CASE("windows of more than 256 elements have wider positions") {
    std::mt19937 random(3);
    check_operator(
        "Pooling2D",
        {{"kernel", Ints{17, 18}}, {"stride", std::int64_t{3}}, {"pad", std::int64_t{8}}},
        {random_array(Shape{1, 3, 25, 24}, "distinct", random)});
}

// SPDX-License-Identifier: MIT
// Compares every engine of CacheUpdate, CachedAttention and CachedStep with the oracle, on every
// device: single queries and pieces of prompts, at the beginning, in the middle and at the end of
// caches, of one sequence and of several in any order.
#include "graph/operator.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <random>

using namespace dlprim;
using testing::normals;

namespace {

struct Sizes {
    std::int64_t length, heads, key_heads, depth, features, caches, capacity;
    std::vector<std::pair<int, int>> places;  ///< of each sequence: its cache, and where it stands
    Attrs options;
    DType stored = DType::f32;
};

HostArray places_of(const Sizes& sizes) {
    HostArray places{Shape{std::ssize(sizes.places), 2}, {}, DType::i32};
    for (const auto& [cache, start] : sizes.places)
        places.data.insert(places.data.end(), {double(cache), double(start)});
    return places;
}

/// Compares the first output of all engines with the oracle's.
void check(const std::string& type, const Attrs& options, const std::vector<HostArray>& inputs) {
    const Operator& op = OperatorRegistry::instance().get(type);
    Problem problem;
    problem.op = type;
    problem.attrs = op.schema().complete(options, "test");
    std::vector<TensorSpec> specs;
    for (const HostArray& input : inputs) {
        specs.push_back({input.shape, input.dtype});
        problem.inputs.push_back({input.shape, input.dtype, {}, false});
    }
    const TensorSpec made = op.infer(problem.attrs, specs).at(0);
    problem.outputs.push_back({made.shape, made.dtype, {}, false});
    OracleCall call{problem.attrs, false, inputs, std::vector<HostArray>(1), {}};
    op.oracle(call);
    for (const Context& context : testing::test_devices())
        testing::check_engines(context, problem, inputs, call.outputs[0].data,
                               {.every_call = true});
}

void check_attention(const Sizes& s) {
    std::mt19937 random(3);
    const std::int64_t batch = std::ssize(s.places);
    INFO(s.length << " queries of " << s.heads << " heads, " << s.key_heads << " of keys, "
                  << s.depth << " features, cache of " << s.capacity);
    check(
        "CachedAttention", s.options,
        {normals({batch, s.length, s.heads, s.depth}, random),
         normals({s.caches, s.key_heads, s.capacity, s.depth}, random, s.stored),
         normals({s.caches, s.key_heads, s.capacity, s.features}, random, s.stored), places_of(s)});
}

}  // namespace

TEST_CASE("One query at any place of a cache") {
    for (const int start : {0, 1, 15, 16, 63, 64, 100, 299})
        check_attention({1, 4, 2, 64, 64, 1, 300, {{0, start}}, {}});
    check_attention({1, 1, 1, 4, 4, 1, 1, {{0, 0}}, {}});
    check_attention({1, 9, 3, 64, 64, 2, 2100, {{1, 2047}}, {}});
}

TEST_CASE("Sizes of heads that fill no vector") {
    check_attention({1, 3, 3, 1, 1, 1, 40, {{0, 33}}, {}});
    check_attention({2, 6, 2, 5, 7, 1, 50, {{0, 20}}, {}});
    check_attention({3, 4, 1, 80, 80, 1, 70, {{0, 40}}, {}});
    check_attention({1, 8, 8, 96, 128, 1, 90, {{0, 89}}, {}});
    check_attention({1, 2, 1, 256, 256, 1, 40, {{0, 37}}, {}});
}

TEST_CASE("Pieces of prompts, also where they reach beyond the cache") {
    check_attention({16, 6, 2, 32, 32, 1, 200, {{0, 0}}, {}});
    check_attention({33, 4, 4, 16, 16, 1, 500, {{0, 400}}, {}});
    check_attention({16, 4, 1, 24, 24, 1, 40, {{0, 30}}, {}});
    check_attention({64, 2, 2, 64, 64, 1, 64, {{0, 0}}, {}});
}

TEST_CASE("Sequences of different lengths in any order of caches") {
    check_attention({1, 4, 2, 32, 32, 5, 300, {{4, 299}, {0, 0}, {2, 70}}, {}});
    check_attention({5, 4, 2, 32, 32, 3, 100, {{1, 60}, {0, 2}}, {}});
}

TEST_CASE("Windows, soft caps and scales") {
    for (const std::int64_t window : {1, 7, 64, 1000})
        check_attention({1, 4, 2, 32, 32, 1, 300, {{0, 250}}, {{"window", window}}});
    check_attention({20, 4, 2, 32, 32, 1, 300, {{0, 100}}, {{"window", std::int64_t{9}}}});
    check_attention({20, 4, 2, 32, 32, 1, 110, {{0, 100}}, {{"window", std::int64_t{3}}}});
    check_attention({3, 4, 2, 32, 32, 1, 300, {{0, 100}}, {{"softcap", 1.5}, {"scale", 0.7}}});
}

TEST_CASE("Caches of halves") {
    check_attention({1, 4, 2, 64, 64, 1, 300, {{0, 200}}, {}, DType::f16});
    check_attention({16, 6, 2, 36, 36, 2, 100, {{1, 50}}, {}, DType::f16});
}

TEST_CASE("New queries are turned by their positions") {
    std::mt19937 random(5);
    for (const bool interleaved : {false, true})
        for (const std::int64_t turned : {0, 8, 12}) {
            const Sizes s{3, 4, 2, 12, 10, 3, 40, {{2, 38}, {0, 7}}, {}};
            std::vector<HostArray> inputs{normals({2, s.length, s.heads, s.depth}, random),
                                          normals({2, s.length, s.key_heads, s.depth}, random),
                                          normals({2, s.length, s.key_heads, s.features}, random),
                                          normals({3, s.key_heads, s.capacity, s.depth}, random),
                                          normals({3, s.key_heads, s.capacity, s.features}, random),
                                          places_of(s)};
            if (turned > 0)
                for (int table = 0; table < 2; ++table)
                    inputs.push_back(normals({40, turned / 2}, random));
            check("CacheUpdate", {{"interleaved", interleaved}}, inputs);
        }
}

TEST_CASE("A step of single tokens writes them into the caches, and sees them") {
    std::mt19937 random(6);
    // The place of the new token is also that of a tile's or part's first and last position.
    for (const int start : {0, 1, 31, 32, 199})
        for (const DType stored : {DType::f32, DType::f16}) {
            INFO("position " << start << ", caches of " << name_of(stored));
            const bool plain = start == 1;
            const Sizes s{1, 12, 2, plain ? 10 : 64, plain ? 7 : 64, 3, 200, {{2, start}, {0, 70}}};
            std::vector<HostArray> inputs{
                normals({2, 1, s.heads, s.depth}, random),
                normals({2, 1, s.key_heads, s.depth}, random),
                normals({2, 1, s.key_heads, s.features}, random),
                normals({3, s.key_heads, s.capacity, s.depth}, random, stored),
                normals({3, s.key_heads, s.capacity, s.features}, random, stored),
                places_of(s)};
            for (int table = 0; table < (start == 32 ? 0 : 2); ++table)
                inputs.push_back(normals({200, plain ? 3 : 32}, random));
            Attrs options{{"interleaved", start == 31}};
            if (start == 199) options.set("window", std::int64_t{40}).set("softcap", 2.0);
            check("CachedStep", options, inputs);
        }
}

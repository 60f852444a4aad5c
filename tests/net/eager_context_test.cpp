// SPDX-License-Identifier: MIT
// Eager calls and their context: cached plans are released with the context's last user, and
// several threads may call at the same time.
#include "base/lru_map.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"
#include "support/threads.hpp"

#include <memory>
#include <optional>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A convolution, whose weights are packed on some devices, followed by calls that may use its
/// result in the layout that it has.
Tensor layers(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const Tensor y = ops::call("Convolution2D", R"({"channels_out": 32, "kernel": 3, "pad": 1})",
                               {x}, {weight, bias})
                         .at(0);
    return ops::add(ops::relu(y), y);
}

struct Layer {
    Tensor x, weight, bias;
    Layer(const Context& device, std::int64_t batch, unsigned seed)
        : x(device, Shape{batch, 16, 12, 12},
            random_floats(static_cast<std::size_t>(batch * 16 * 144), seed)),
          weight(device, Shape{32, 16, 3, 3}, random_floats(32 * 16 * 9, seed + 1)),
          bias(device, Shape{32}, random_floats(32, seed + 2)) {}
    Tensor run() const { return layers(x, weight, bias); }
};

}  // namespace

TEST_CASE("the least recently used goes first", "[eager_context]") {
    LruMap<int> map(2);
    map.insert("a", 1);
    map.insert("b", 2);
    REQUIRE(map.find("a") != nullptr);
    map.insert("c", 3);
    CHECK(map.size() == 2);
    CHECK(map.find("b") == nullptr);
    CHECK(*map.find("a") == 1);
    CHECK(*map.find("c") == 3);
    map.insert("a", 4);
    map.insert("d", 5);
    CHECK(map.find("c") == nullptr);
    CHECK(*map.find("a") == 4);
    map.erase("a");
    map.erase("nothing");
    CHECK(map.find("a") == nullptr);
    CHECK(map.size() == 1);
}

TEST_CASE("what eager calls keep goes with the context's last user", "[eager_context]") {
    ON_EVERY_DEVICE(shared) {
        std::weak_ptr<ContextImpl> alive;
        std::optional<Tensor> kept;
        std::vector<float> expected;
        {
            const Context device(shared.info().id);
            alive = Access::impl(device).self();
            const Layer layer(device, 2, 1);
            expected = layer.run().to_floats();
            CHECK(layer.run().to_floats() == expected);
            kept = layer.run();
        }
        // A result, which may still have to be converted, counts as a user.
        REQUIRE_FALSE(alive.expired());
        CHECK(kept->to_floats() == expected);
        CHECK(ops::relu(*kept).to_floats().size() == expected.size());
        kept.reset();
        CHECK(alive.expired());
    }
}

TEST_CASE("a context whose net made eager calls goes with the net", "[eager_context]") {
    ON_EVERY_DEVICE(shared) {
        std::weak_ptr<ContextImpl> alive;
        std::optional<Net> net;
        {
            const Context device(shared.info().id);
            alive = Access::impl(device).self();
            net.emplace(make_net(device, small_network));
        }
        feed_small_network(*net, 0);
        net->forward();
        CHECK(ops::relu(net->output("scores")).to_floats().size() == 20);
        REQUIRE_FALSE(alive.expired());
        net.reset();
        CHECK(alive.expired());
    }
}

TEST_CASE("several threads call on one context", "[eager_context]") {
    ON_EVERY_DEVICE(device) {
        constexpr unsigned threads = 4;
        std::vector<Layer> work;
        std::vector<std::vector<float>> expected;
        for (unsigned i = 0; i < threads; ++i) {
            work.emplace_back(device, 1 + i / 2, 10 * i);  // pairs of threads share their plans
            expected.push_back(work.back().run().to_floats());
        }
        // A tensor that belongs to no thread and that several threads convert.
        const Tensor common = work[0].run();
        const std::vector<float> common_floats = work[0].run().to_floats();
        std::vector<int> wrong(threads, 0);
        in_threads(threads, [&](std::size_t i) {
            for (int round = 0; round < 30; ++round) {
                wrong[i] += work[i].run().to_floats() != expected[i];
                // A plan that does not exist yet.
                const Layer fresh(device, 3 + round % 3, 7);
                wrong[i] += fresh.run().to_floats().empty();
                if (round == 5) wrong[i] += common.to_floats() != common_floats;
            }
        });
        CHECK(wrong == std::vector<int>(threads, 0));
    }
}

TEST_CASE("a strided view has a copy without gaps", "[eager_context]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, Shape{3, 2}, {-1, 2, 3, -4, 5, 6});
        const Tensor turned = x.transpose(0, 1);
        const Tensor copy = turned.to_contiguous();
        CHECK(copy.contiguous());
        CHECK(!copy.shares_memory(x));
        CHECK(ops::relu(copy).to_floats() == std::vector<float>{0, 3, 5, 2, 0, 6});
        CHECK(x.to_contiguous().shares_memory(x));
        CHECK(x.slice(1, 1, 2).to_contiguous().to_floats() == std::vector<float>{2, -4, 6});
        check_error(ErrorKind::invalid_argument, {"undefined"}, [] { Tensor().to_contiguous(); });
    }
}

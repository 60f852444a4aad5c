// SPDX-License-Identifier: MIT
// ShardTree: the order of sums over shards.
#include "base/shard_tree.hpp"

#include "support/catch.hpp"

#include <string>

using namespace dlprim;

namespace {

/// The sum over shards that are taken one by one in some parts, as text: "((0+1)+2)". Sums of the
/// parts are joined afterwards, as devices do.
std::string sum_text(int shards, const std::vector<ShardRange>& parts) {
    ShardTree all(shards);
    std::vector<std::string> sums;
    const auto join = [](std::vector<std::string>& pending, std::string next, std::size_t joined) {
        for (; joined > 0; --joined) {
            next = "(" + pending.back() + "+" + next + ")";
            pending.pop_back();
        }
        pending.push_back(next);
    };
    for (const ShardRange& part : parts) {
        ShardTree tree(shards);
        std::vector<std::string> pending;
        for (int shard = part.first; shard < part.end(); ++shard)
            join(pending, std::to_string(shard), tree.take({shard, 1}));
        for (std::size_t i = 0; i < pending.size(); ++i)
            join(sums, pending[i], all.take(tree.pending()[i]));
    }
    REQUIRE(sums.size() == 1);
    return sums.front();
}

}  // namespace

TEST_CASE("shards are added in a binary tree over their index", "[shard_tree]") {
    CHECK(sum_text(1, {{0, 1}}) == "0");
    CHECK(sum_text(2, {{0, 2}}) == "(0+1)");
    CHECK(sum_text(3, {{0, 3}}) == "((0+1)+2)");
    CHECK(sum_text(6, {{0, 6}}) == "(((0+1)+(2+3))+(4+5))");
    CHECK(sum_text(7, {{0, 7}}) == "(((0+1)+(2+3))+((4+5)+6))");
}

TEST_CASE("the tree is the same however shards are spread", "[shard_tree]") {
    for (int shards = 1; shards <= 17; ++shards) {
        const std::string whole = sum_text(shards, {{0, shards}});
        for (int a = 1; a < shards; ++a) {
            CHECK(sum_text(shards, {{0, a}, {a, shards - a}}) == whole);
            for (int b = a + 1; b < shards; ++b)
                CHECK(sum_text(shards, {{0, a}, {a, b - a}, {b, shards - b}}) == whole);
        }
    }
}

TEST_CASE("few sums wait for others", "[shard_tree]") {
    CHECK(ShardTree::most_pending(1, {0, 1}) == 0);
    CHECK(ShardTree::most_pending(2, {0, 2}) == 1);
    CHECK(ShardTree::most_pending(4, {0, 4}) == 2);
    CHECK(ShardTree::most_pending(5, {0, 5}) == 2);
    CHECK(ShardTree::most_pending(1000, {0, 1000}) == 9);
}

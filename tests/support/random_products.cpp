// SPDX-License-Identifier: MIT
// Random problems: matrix products and operators that consist of them.
#include "base/blocks.hpp"
#include "support/random_draft.hpp"

#include <algorithm>

namespace dlprim::testing {

namespace {

/// Sets the option `blocks`, and returns a number of weights that fits.
std::int64_t in_blocks(Draft& draft) {
    const std::string blocks = draft.dice.of<std::string>(
        {"f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"});
    draft.options["blocks"] = blocks;
    return block_size(block_type(blocks)).weights * draft.dice.pick(1, 3);
}

void matmul(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t m = dice.pick(1, 40), n = dice.pick(1, 40), k = dice.pick(1, 60);
    const bool ta = dice.coin(), tb = dice.coin();
    std::vector<std::int64_t> batch = dice.dims(dice.pick(0, 2), 3), a = batch, b = batch;
    if (dice.coin()) b.clear();
    for (std::int64_t& size : b)
        if (dice.pick(0, 2) == 0) size = 1;
    a.insert(a.end(), {ta ? k : m, ta ? m : k});
    b.insert(b.end(), {tb ? n : k, tb ? k : n});
    draft.options = {{"transpose_a", ta}, {"transpose_b", tb}};
    draft.maybe("alpha", dice.number(-2, 2) + 0.01);
    draft.input(a);
    draft.input(b);
    if (dice.coin()) {
        draft.options["bias"] = true;
        draft.input({n});
    }
}

void matmul_add(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t m = dice.pick(1, 20), n = dice.pick(1, 20), k = dice.pick(1, 30);
    const bool ta = dice.coin(), tb = dice.coin();
    std::vector<std::int64_t> a = dice.dims(dice.pick(0, 1), 3), b = a, c = a;
    a.insert(a.end(), {ta ? k : m, ta ? m : k});
    b.insert(b.end(), {tb ? n : k, tb ? k : n});
    c.insert(c.end(), {dice.coin() ? m : 1, dice.coin() ? n : 1});
    draft.options = {{"transpose_a", ta}, {"transpose_b", tb}};
    draft.maybe("alpha", dice.number(-2, 2) + 0.01);
    draft.maybe("beta", dice.number(-2, 2) + 0.01);
    draft.input(a);
    draft.input(b);
    draft.input(c);
}

void attention(Draft& draft) {
    Dice& dice = draft.dice;
    const std::int64_t n = dice.pick(1, 2), heads = dice.pick(1, 3), q = dice.pick(1, 9),
                       k = dice.pick(1, 9), d = dice.pick(1, 9);
    draft.input({n, heads, q, d});
    draft.input({n, heads, k, d});
    draft.input({n, heads, k, dice.pick(1, 9)});
    draft.maybe("scale", dice.number(0.25, 2));
    if (dice.coin())
        draft.options["is_causal"] = true;
    else if (dice.coin())
        draft.input({q, k});
    draft.maybe("lower_right", dice.coin());
    draft.maybe("sliding_window", dice.pick(1, 9));
    draft.maybe("softcap", dice.number(0.5, 3));
}

void recurrent(Draft& draft, int states) {
    Dice& dice = draft.dice;
    const std::int64_t hidden = dice.pick(1, 6), layers = dice.pick(1, 2), batch = dice.pick(1, 3),
                       time = dice.pick(1, 4);
    const bool both = dice.coin(), first = dice.coin();
    draft.options = {{"hidden_size", hidden},
                     {"num_layers", layers},
                     {"bidirectional", both},
                     {"batch_first", first},
                     {"bias", dice.coin()}};
    const std::int64_t in = dice.pick(1, 5);
    draft.input(first ? std::vector<std::int64_t>{batch, time, in}
                      : std::vector<std::int64_t>{time, batch, in});
    if (dice.coin())
        for (int i = 0; i < states; ++i) draft.input({layers * (both ? 2 : 1), batch, hidden});
}

}  // namespace

Generators product_generators() {
    using D = Draft&;
    return {
        {"InnerProduct",
         [](D d) {
             d.options = {{"outputs", d.dice.pick(1, 33)}};
             d.maybe("bias", d.dice.coin());
             d.maybe("activation", d.dice.of(activations()));
             if (d.dice.pick(0, 3) == 0)
                 d.input({d.dice.pick(1, 20), in_blocks(d)});
             else
                 d.input(features(d.dice, d.dice.pick(1, 20)));
         }},
        {"LinearCrossEntropy",
         [](D d) {
             const std::int64_t classes = d.dice.pick(1, 40);
             const std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(1, 2), 9);
             d.options = {{"outputs", classes}, {"chunk_bytes", d.dice.pick(1, 4000)}};
             d.maybe("bias", d.dice.coin());
             d.maybe("reduce", d.dice.of<std::string>({"mean", "sum", "none"}));
             d.maybe("ignore_index", d.dice.pick(-1, classes - 1));
             std::vector<std::int64_t> x = shape;
             x.push_back(d.dice.pick(1, 20));
             d.input(x);
             d.labels(shape, classes);
         }},
        {"Embedding",
         [](D d) {
             const std::int64_t rows = d.dice.pick(1, 30);
             d.options = {{"num_embeddings", rows}, {"embedding_dim", d.dice.pick(1, 40)}};
             if (d.dice.pick(0, 3) == 0) d.options["embedding_dim"] = in_blocks(d);
             d.maybe("padding_idx", d.dice.pick(0, rows - 1));
             d.labels(d.dice.dims(d.dice.pick(1, 3), 7), rows);
         }},
        {"MatMulAdd", matmul_add},
        {"MatMul", matmul},
        {"Attention", attention},
        {"LSTM", [](D d) { recurrent(d, 2); }},
        {"GRU", [](D d) { recurrent(d, 1); }},
    };
}

}  // namespace dlprim::testing

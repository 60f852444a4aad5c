// SPDX-License-Identifier: MIT
// How many launches a token of a language model takes on an H200, where each one costs the host
// more time than most of the work in it.
#include "api/net_impl.hpp"
#include "base/blocks.hpp"
#include "language/network.hpp"
#include "runtime/access.hpp"
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

using namespace dlprim;

namespace {

constexpr std::int64_t vocabulary = 128256;

/// Names and shapes of a Llama's weights in one type of blocks, without their data.
class Shapes : public language::ModelFile {
  public:
    Shapes(std::int64_t layers, std::string blocks) : blocks_(std::move(blocks)) {
        sizes_.layers = layers;
        sizes_.width = 2048;
        sizes_.hidden = 8192;
        sizes_.vocabulary = vocabulary;
        sizes_.context = 8192;
        sizes_.heads = 32;
        sizes_.key_heads = 8;
        sizes_.head_size = sizes_.rotary = 64;
        sizes_.epsilon = 1e-5;
        sizes_.rotary_base = 500000;
        sizes_.windows.assign(static_cast<std::size_t>(layers), 0);
        shapes_ = {{"token_embd.weight", Shape{vocabulary, 2048}},
                   {"output_norm.weight", Shape{2048}}};
        for (std::int64_t i = 0; i < layers; ++i)
            for (const auto& [name, shape] :
                 std::map<std::string, Shape>{{"attn_norm", Shape{2048}},
                                              {"attn_q", Shape{2048, 2048}},
                                              {"attn_k", Shape{512, 2048}},
                                              {"attn_v", Shape{512, 2048}},
                                              {"attn_output", Shape{2048, 2048}},
                                              {"ffn_norm", Shape{2048}},
                                              {"ffn_gate", Shape{8192, 2048}},
                                              {"ffn_up", Shape{8192, 2048}},
                                              {"ffn_down", Shape{2048, 8192}}})
                shapes_["blk." + std::to_string(i) + "." + name + ".weight"] = shape;
    }
    const std::string& path() const override { return path_; }
    std::string architecture() const override { return "llama"; }
    language::ModelSizes sizes() const override { return sizes_; }
    language::TokenizerTables tokenizer() const override { return {}; }
    std::optional<std::string> chat_template() const override { return std::nullopt; }
    std::optional<Shape> shape(const std::string& weight) const override {
        const auto found = shapes_.find(weight);
        return found == shapes_.end() ? std::nullopt : std::optional(found->second);
    }
    void read(const std::string&, float*) const override {}
    std::string blocks(const std::string& weight) const override {
        return shapes_.at(weight).rank() == 2 ? blocks_ : "";
    }

  private:
    language::ModelSizes sizes_;
    std::map<std::string, Shape> shapes_;
    std::string path_ = "model", blocks_;
};

std::vector<NodeReport> steps_of(std::int64_t layers, const std::string& blocks,
                                 std::int64_t rows) {
    const Context device("file:" +
                         (std::filesystem::path(DLPRIM_DEVICES_DIR) / "h200.json").string());
    const Shapes file(layers, blocks);
    NetOptions options;
    options.mode = Mode::inference;
    const auto impl =
        std::make_shared<NetImpl>(device,
                                  language::make_network(language::find_decoder(file), file,
                                                         file.sizes(), {rows, 1, rows, 256, 1024}),
                                  options);
    return Access::handle<Net>(impl).nodes();
}

}  // namespace

TEST_CASE("A token of a language model takes five launches in a layer") {
    for (const char* blocks : {"f16", "q8_0", "q4_0"})
        for (const std::int64_t rows : {1, 4}) {
            INFO(blocks << ", " << rows << " rows");
            std::map<std::string, int> types;
            for (const NodeReport& node : steps_of(2, blocks, rows))
                if (!node.engine.empty()) ++types[node.type];
            // In a layer: queries, keys and values; attention, which writes its caches; its output;
            // the gate with what it lets through; what comes of that. And words, the newest token,
            // logits.
            CHECK(types["CachedStep"] == 2);
            CHECK(types["Embedding"] == 1);
            CHECK(types["Gather"] == 1);
            CHECK(types["InnerProduct"] + types["NormedProduct"] == 9);
            // Several rows of the many logits are normalised once.
            CHECK(types["NormedProduct"] == (rows == 1 ? 5 : 4));
            CHECK(types["PointwiseRows"] == (rows == 1 ? 0 : 1));
            CHECK(types["Pointwise"] == 0);
        }
}

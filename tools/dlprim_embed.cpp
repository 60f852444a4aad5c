// SPDX-License-Identifier: MIT
// dlprim_embed: vectors of texts by an encoder, as lines of JSON or in an HDF5 file.
#include "common.hpp"

#include <dlprim/embedding_model.hpp>
#include <dlprim/tensor_file.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

using namespace dlprim;

namespace {

struct Options {
    std::string model, texts_file, out, device;
    std::string precision = "fp32";
    std::vector<std::string> texts;
    bool raw = false;
    EmbeddingModelOptions encoder;
    EmbedOptions embed;
};

/// The lines of a file, also empty ones, which have an embedding, too.
std::vector<std::string> read_lines(std::istream& from) {
    std::vector<std::string> lines;
    for (std::string line; std::getline(from, line);) {
        if (line.ends_with('\r')) line.pop_back();
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<std::string> texts_of(const Options& options) {
    if (!options.texts.empty()) return options.texts;
    if (options.texts_file.empty()) return read_lines(std::cin);
    std::ifstream file(options.texts_file, std::ios::binary);
    if (!file) throw Error(ErrorKind::io, "'" + options.texts_file + "' cannot be read");
    return read_lines(file);
}

void print(const std::string& text, std::size_t tokens, const float* row, std::int64_t features) {
    const nlohmann::ordered_json object{
        {"text", text}, {"tokens", tokens}, {"embedding", std::vector<float>(row, row + features)}};
    std::puts(object.dump().c_str());
}

void save(const std::string& path, std::int64_t texts, std::int64_t features,
          const std::vector<float>& rows) {
    HostTensor tensor{Shape{texts, features}, DType::f32, {}};
    tensor.data.resize(rows.size() * sizeof(float));
    if (!rows.empty()) std::memcpy(tensor.data.data(), rows.data(), tensor.data.size());
    save_tensors(path, {{"embeddings", std::move(tensor)}});
}

void embed(Options& options) {
    options.encoder.precision = parse_precision(options.precision);
    options.encoder.progress = tools::terminal_progress();
    options.embed.normalize = !options.raw;
    const Context context(options.device);
    EmbeddingModel model(context, options.model, options.encoder);
    const std::vector<std::string> texts = texts_of(options);
    std::vector<std::vector<std::int32_t>> tokens;
    for (const std::string& text : texts) {
        try {
            tokens.push_back(model.encode(text, options.embed.truncate));
        } catch (const Error& error) {
            throw Error(error.kind(), "text " + std::to_string(tokens.size() + 1) + ": " +
                                          std::string(error.what()));
        }
    }
    const std::vector<float> rows = model.embed_tokens(tokens, options.embed);
    const std::int64_t features = model.features();
    if (!options.out.empty()) return save(options.out, std::ssize(texts), features, rows);
    for (std::size_t i = 0; i < texts.size(); ++i)
        print(texts[i], tokens[i].size(), rows.data() + i * static_cast<std::size_t>(features),
              features);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Prints a vector for each text, by which texts can be compared and searched.",
                 "dlprim_embed");
    app.add_option("MODEL", options.model,
                   "encoder such as a BERT: GGUF, or a folder with config.json")
        ->required();
    auto* texts = app.add_option("TEXT", options.texts,
                                 "texts; without any, each line of standard input is one");
    app.add_option("--texts", options.texts_file, "a file of which each line is a text")
        ->excludes(texts);
    tools::add_device_option(app, options.device);
    app.add_option("--out", options.out,
                   "an HDF5 file for the dataset 'embeddings', [texts, features], instead of lines "
                   "of JSON");
    app.add_flag("--raw", options.raw, "do not divide vectors by their length");
    app.add_flag("--truncate", options.embed.truncate,
                 "cut texts that are longer than the model reads; otherwise they are errors");
    app.add_option("--precision", options.precision,
                   "to which products may be rounded: fp32, tf32, fp16 or bf16 (fp32)")
        ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
    return tools::run_command(app, argc, argv, [&] { embed(options); });
}

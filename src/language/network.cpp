// SPDX-License-Identifier: MIT
// From a description of an architecture to a network.
#include "language/network.hpp"

#include "base/text.hpp"
#include "language/adapter.hpp"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace dlprim::language {

namespace {

using Step = Architecture::Step;

constexpr std::string_view cached_step = "CachedStep";
constexpr std::array internal_types{cached_step};

class Builder {
  public:
    Builder(const Architecture& architecture, const ModelFile& file, const ModelSizes& sizes,
            const StepSizes& step);

    NetDescription build();

  private:
    using Names = std::vector<std::string>;

    void add(const std::string& type, Names inputs, const std::string& output, Attrs options = {},
             Names params = {});
    void add_inputs();
    void add_encoder_inputs();
    /// What all layers share: positions, their cosines and sines.
    void add_common();
    void add_positions();
    void add_rotary_tables();
    void add_step(const Step& step);
    void add_heads(const Step& step);
    void add_rotary(const Step& step);
    void add_attention(const Step& step);
    /// The same where nothing is remembered: in training, and in encoders.
    void add_whole_attention(const Step& step);
    /// Sums of an encoder's features of tokens.
    void add_pooling(const Step& step);
    /// A product, with the low-rank product of an adapter added if the model has one.
    void add_product(Names inputs, const std::string& output, const Attrs& options, Names weights);
    void add_loss();
    /// A tensor's name in the whole network, by its name in this part.
    std::string full(const std::string& name) const {
        return shared_.count(name) ? name : prefix_ + name;
    }
    /// The tensor that the name stands for now, and a new one, which it stands for from now on.
    std::string current(const std::string& name) const;
    std::string define(const std::string& name);
    /// current(), for an operator that reads the tensor: if it was to be turned, now it is.
    std::string read(const std::string& name);
    /// The parameters of a step that the file has.
    Names weights_of(const Step& step) const;
    Attrs options_of(const Step& step) const;
    Attr value_of(const std::string& name) const;  ///< that options name by '$'

    const Architecture& architecture_;
    const ModelFile& file_;
    const ModelSizes& sizes_;
    const StepSizes step_;
    const Attrs& own_;  ///< what tells the model from others of the architecture
    std::string prefix_;
    std::set<std::string> shared_;         ///< tensors that have one name in all parts
    std::map<std::string, int> made_;      ///< how often an operator's name was used
    std::map<std::string, int> versions_;  ///< of tensors, by their full names
    std::int64_t layer_ = 0;
    /// A tensor that is to be turned by positions, what the names of its rows of cosines and sines
    /// begin with, and options of RotaryEmbedding.
    struct Unturned {
        std::string from, tables;
        Attrs options;
    };
    std::map<std::string, Unturned> unturned_;  ///< attention turns them where it writes its caches
    NetDescription net_;
};

Builder::Builder(const Architecture& architecture, const ModelFile& file, const ModelSizes& sizes,
                 const StepSizes& step)
    : architecture_(architecture),
      file_(file),
      sizes_(sizes),
      step_(step),
      own_(architecture.models.at(file.architecture())) {
    net_.source = file.path();
}

std::string Builder::current(const std::string& name) const {
    const auto found = versions_.find(full(name));
    const int version = found == versions_.end() ? 0 : found->second;
    return version > 1 ? cat(full(name), ".", version) : full(name);
}

std::string Builder::define(const std::string& name) {
    ++versions_[full(name)];
    return current(name);
}

void Builder::add(const std::string& type, Names inputs, const std::string& output, Attrs options,
                  Names params) {
    // An operator is named after its first weight, or after what it makes.
    std::string name = output;
    if (!params.empty()) name = params[0].substr(0, params[0].rfind('.'));
    if (const int before = made_[name]++; before > 0) name += cat(".", before);
    const bool frozen = step_.training && !params.empty() && !is_of_adapter(params[0]);
    net_.operators.push_back({.name = name,
                              .type = type,
                              .inputs = std::move(inputs),
                              .outputs = {output},
                              .params = std::move(params),
                              .options = std::move(options),
                              .frozen = frozen});
}

void Builder::add_encoder_inputs() {
    net_.inputs = {{"tokens", {step_.count}, DType::i32},
                   {"positions", {step_.count}, DType::i32},
                   {"lengths", {step_.sequences + 1}, DType::i32},
                   {"shares", {step_.sequences, step_.count}, DType::f32}};
    for (const NetDescription::Input& input : net_.inputs) shared_.insert(input.name);
}

void Builder::add_inputs() {
    if (architecture_.encoder) return add_encoder_inputs();
    const Shape cache{step_.caches, sizes_.key_heads, step_.capacity, sizes_.head_size};
    net_.inputs = {{"tokens", {step_.batch * step_.count}, DType::i32},
                   {"places", {step_.batch, 2}, DType::i32},
                   {"last", {step_.batch * (step_.training ? step_.count : 1)}, DType::i32}};
    if (step_.training) net_.inputs.push_back({"labels", net_.inputs[0].shape, DType::i32});
    for (std::int64_t i = 0; i < (step_.training ? 0 : sizes_.layers); ++i) {
        net_.inputs.push_back({keys_input(i), cache, step_.cached});
        net_.inputs.push_back({values_input(i), cache, step_.cached});
    }
    for (const NetDescription::Input& input : net_.inputs) shared_.insert(input.name);
}

/// Tables of cosines and sines, and their rows for the new tokens. If layers with a window have a
/// base of their own, its rows are in the second half of the tables.
void Builder::add_rotary_tables() {
    const bool two = sizes_.windowed_rotary_base > 0;
    if (two)
        add("Pointwise", {"positions"}, "windowed.positions",
            {{"code", cat("y0 = x0 + ", step_.positions)}, {"dtypes", Strings{"int"}}});
    for (const std::string_view table : {cosines, sines}) {
        const std::string name(table);
        add("Parameter", {}, name + ".all",
            {{"shape", Ints{(two ? 2 : 1) * step_.positions, sizes_.rotary / 2}},
             {"is_trainable", false}},
            {name});
        for (const std::string part : {"", "windowed."}) {
            if (!two && !part.empty()) continue;
            add("Gather", {name + ".all", part + "positions"}, part + name + ".rows",
                {{"dim", std::int64_t{0}}});
            add("Reshape", {part + name + ".rows"}, part + name,
                {{"dims", Ints{step_.batch, step_.count, 1, sizes_.rotary / 2}}});
            shared_.insert(part + name);
        }
    }
}

void Builder::add_positions() {
    add("Slice", {"places"}, "starts",
        {{"dim", std::int64_t{1}}, {"begin", std::int64_t{1}}, {"end", std::int64_t{2}}});
    add("Pointwise", {"starts"}, "positions.of_sequences",
        {{"code", "y0 = x0 + index(1)"},
         {"shape", Ints{step_.batch, step_.count}},
         {"dtypes", Strings{"int"}}});
    add("Reshape", {"positions.of_sequences"}, "positions", {{"dims", Ints{-1}}});
    shared_.insert("positions");
}

void Builder::add_common() {
    if (!architecture_.encoder) add_positions();
    if (sizes_.rotary > 0) add_rotary_tables();
}

Builder::Names Builder::weights_of(const Step& step) const {
    Names weights;
    for (const Architecture::Weight& weight : step.weights) {
        std::string found;
        for (const std::string& name : weight.names)
            if (found.empty() && file_.shape(prefix_ + name)) found = prefix_ + name;
        if (found.empty() && !weight.optional)
            fail(ErrorKind::format, "'", file_.path(), "' has no tensor '",
                 prefix_ + weight.names.front(), "', which the architecture ", architecture_.name,
                 " needs");
        if (!found.empty()) weights.push_back(found);
    }
    return weights;
}

Attr Builder::value_of(const std::string& name) const {
    if (const Attr* own = own_.find(name)) return *own;
    const std::map<std::string, double> values = named_sizes(sizes_, layer_);
    const auto found = values.find(name);
    if (found == values.end())
        fail(ErrorKind::format, "the architecture ", architecture_.name, " names a size '", name,
             "', which there is not");
    if (found->second == std::floor(found->second)) return static_cast<std::int64_t>(found->second);
    return found->second;
}

/// Replaces names of sizes: a text that is one by the value, one within a text by the number's
/// text.
Attrs Builder::options_of(const Step& step) const {
    Attrs options = step.options;
    for (const auto& [name, value] : step.options.items()) {
        const std::string* given = std::get_if<std::string>(&value);
        if (!given) continue;
        std::string text = *given;
        for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at)) {
            std::size_t end = at + 1;
            while (end < text.size() && ascii::is_word(text[end])) ++end;
            const Attr size = value_of(text.substr(at + 1, end - at - 1));
            if (at == 0 && end == text.size()) {
                options.set(name, size);
                break;
            }
            const auto* whole = std::get_if<std::int64_t>(&size);
            const auto* real = std::get_if<double>(&size);
            text.replace(at, end - at, whole ? cat(*whole) : exact(real ? *real : 0));
            options.set(name, text);
        }
    }
    return options;
}

/// [tokens, heads * features] -> [batch, count, heads, features]
void Builder::add_heads(const Step& step) {
    const std::int64_t features = options_of(step).integer("features");
    const std::string input = read(step.inputs.at(0));
    add("Reshape", {input}, define(step.output),
        {{"dims", Ints{step_.batch, step_.count, -1, features}}});
}

void Builder::add_rotary(const Step& step) {
    const std::string from = read(step.inputs.at(0));
    Attrs options = options_of(step);
    if (sizes_.rotary < sizes_.head_size) options.set("rotary_dim", sizes_.rotary);
    const bool own =
        sizes_.windowed_rotary_base > 0 && sizes_.windows[static_cast<std::size_t>(layer_)] > 0;
    unturned_[define(step.output)] = {from, own ? "windowed." : "", std::move(options)};
}

std::string Builder::read(const std::string& name) {
    std::string found = current(name);
    if (auto turned = unturned_.extract(found)) {
        Unturned& how = turned.mapped();
        add("RotaryEmbedding", {how.from, cat(how.tables, cosines), cat(how.tables, sines)}, found,
            std::move(how.options));
    }
    return found;
}

/// Writes the new keys and values into the layer's caches, of which queries then read what counts.
void Builder::add_attention(const Step& step) {
    const std::string keys = keys_input(layer_), values = values_input(layer_);
    const auto own = [&](const char* name) { return prefix_ + "attention." + name; };
    const auto q = unturned_.find(current(step.inputs.at(0))),
               k = unturned_.find(current(step.inputs.at(1)));
    const bool turns = q != unturned_.end() && k != unturned_.end() && q->second.tables.empty() &&
                       k->second.tables.empty() && q->second.options == k->second.options;
    Names inputs{turns ? q->second.from : read(step.inputs[0]),
                 turns ? k->second.from : read(step.inputs[1]),
                 read(step.inputs.at(2)),
                 keys,
                 values,
                 "places"};
    Attrs how;
    if (turns) {
        inputs.insert(inputs.end(), {cat(cosines, ".all"), cat(sines, ".all")});
        if (const Attr* interleaved = q->second.options.find("interleaved"))
            how.set("interleaved", *interleaved);
    }
    const Attrs options = options_of(step);
    for (const auto& [name, as] :
         {std::pair("scale", "scale"), {"window", "window"}, {"soft_cap", "softcap"}})
        if (options.has(name)) how.set(as, *options.find(name));
    add(std::string(cached_step), std::move(inputs), own("heads"), std::move(how));
    add("Reshape", {own("heads")}, define(step.output),
        {{"dims", Ints{step_.batch * step_.count, -1}}});
}

void Builder::add_whole_attention(const Step& step) {
    const auto own = [&](const char* name) { return prefix_ + "attention." + name; };
    const Ints swapped{0, 2, 1, 3};  // tokens and heads
    Names heads;
    for (std::size_t i = 0; i < 3; ++i) {
        const std::string from = read(step.inputs.at(i));
        add("Transpose", {from},
            heads.emplace_back(own(i == 0   ? "q"
                                   : i == 1 ? "k"
                                            : "v")),
            {{"dims", swapped}});
    }
    if (architecture_.encoder) heads.push_back("lengths");
    const Attrs options = options_of(step);
    Attrs how{{"is_causal", !architecture_.encoder},
              {"enable_gqa", sizes_.heads != sizes_.key_heads}};
    for (const auto& [name, as] : {std::pair("scale", "scale"), {"soft_cap", "softcap"}})
        if (options.has(name)) how.set(as, *options.find(name));
    if (options.has("window") && options.integer("window") > 0)
        how.set("sliding_window", options.integer("window"));
    add("Attention", std::move(heads), own("heads"), std::move(how));
    add("Transpose", {own("heads")}, own("tokens"), {{"dims", swapped}});
    add("Reshape", {own("tokens")}, define(step.output),
        {{"dims", Ints{step_.batch * step_.count, -1}}});
}

void Builder::add_pooling(const Step& step) {
    add("MatMul", {"shares", read(step.inputs.at(0))}, define(step.output));
}

void Builder::add_product(Names inputs, const std::string& output, const Attrs& options,
                          Names weights) {
    const std::string down = adapter_down(weights[0]), up = adapter_up(weights[0]);
    const std::optional<Shape> matrix = file_.shape(down);
    if (!matrix) return add("InnerProduct", std::move(inputs), output, options, std::move(weights));
    const std::string own = output + ".adapter";
    Attrs sum{{"coef2", file_.adapter_scale()}};
    if (const Attr* activation = options.find("activation")) sum.set("activation", *activation);
    Attrs base = options;
    base.set("activation", std::string("identity"));
    add("InnerProduct", inputs, own + ".base", base, std::move(weights));
    if (step_.dropout > 0) {
        add("Dropout", inputs, own + ".input", {{"p", step_.dropout}});
        inputs = {own + ".input"};
    }
    add("InnerProduct", std::move(inputs), own + ".down",
        {{"outputs", (*matrix)[0]}, {"bias", false}}, {down});
    add("InnerProduct", {own + ".down"}, own + ".up",
        {{"outputs", *options.find("outputs")}, {"bias", false}}, {up});
    add("Elementwise", {own + ".base", own + ".up"}, output, std::move(sum));
}

void Builder::add_loss() {
    add("SoftmaxWithLoss", {read("logits"), "labels"}, "loss",
        {{"ignore_index", std::int64_t{no_label}}});
    net_.outputs = {{.name = "loss"}};
}

void Builder::add_step(const Step& step) {
    if (step.type == "Heads") return add_heads(step);
    if (step.type == "Rotary") return add_rotary(step);
    if (step.type == "CachedAttention")
        return step_.training ? add_whole_attention(step) : add_attention(step);
    if (step.type == "SequenceAttention") return add_whole_attention(step);
    if (step.type == "Pooling") return add_pooling(step);
    Names weights = weights_of(step);
    if (weights.empty() && !step.weights.empty()) return;  // all of them are optional
    Names inputs;
    for (const std::string& name : step.inputs) {
        const bool optional = name.ends_with('?');
        const std::string from = name.substr(0, name.size() - (optional ? 1 : 0));
        if (optional && !versions_.count(full(from))) return;
        inputs.push_back(read(from));
    }
    Attrs options = options_of(step);
    if (step.type == "InnerProduct") options.set("bias", weights.size() > 1);
    if (step.type == "InnerProduct" || step.type == "Embedding")
        options.set("blocks", file_.blocks(weights.at(0)));
    if (step.type == "InnerProduct")
        return add_product(std::move(inputs), define(step.output), std::move(options),
                           std::move(weights));
    add(step.type, std::move(inputs), define(step.output), std::move(options), std::move(weights));
}

NetDescription Builder::build() {
    add_inputs();
    add_common();
    for (const Step& step : architecture_.before) {
        shared_.insert(step.output);
        add_step(step);
    }
    for (layer_ = 0; layer_ < sizes_.layers; ++layer_) {
        prefix_ = cat("blk.", layer_, ".");
        for (const Step& step : architecture_.layer) add_step(step);
    }
    prefix_.clear();
    for (const Step& step : architecture_.after) add_step(step);
    if (step_.training) {
        add_loss();
        return std::move(net_);
    }
    net_.outputs = {{.name = architecture_.encoder ? "embeddings" : "logits", .plain = true}};
    net_.internal_types = internal_types;
    return std::move(net_);
}

}  // namespace

const Architecture& find_decoder(const ModelFile& file) {
    const Architecture& found = find_architecture(file.architecture());
    if (found.encoder)
        fail(ErrorKind::unsupported, "'", file.path(), "' is an encoder (", file.architecture(),
             "), which makes embeddings and no text: use dlprim_embed or dp::EmbeddingModel");
    return found;
}

const Architecture& find_encoder(const ModelFile& file) {
    const Architecture& found = find_architecture(file.architecture());
    if (!found.encoder)
        fail(ErrorKind::unsupported, "'", file.path(), "' makes text (", file.architecture(),
             "), and embeddings need an encoder, such as a BERT");
    return found;
}

NetDescription make_network(const Architecture& architecture, const ModelFile& file,
                            const ModelSizes& sizes, const StepSizes& step) {
    return Builder(architecture, file, sizes, step).build();
}

namespace {

/// Of `positions` rows, for angles that fall from pair to pair.
void fill_rows(const ModelSizes& sizes, bool windowed, bool of_sines, std::int64_t positions,
               float* values) {
    const std::int64_t pairs = sizes.rotary / 2;
    const double base = windowed ? sizes.windowed_rotary_base : sizes.rotary_base;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const auto exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(sizes.rotary);
        double rate = std::pow(base, exponent) / (windowed ? 1 : sizes.rotary_scale);
        if (!sizes.rotary_factors.empty() && !windowed)
            rate /= sizes.rotary_factors[static_cast<std::size_t>(pair)];
        for (std::int64_t position = 0; position < positions; ++position) {
            const double angle = static_cast<double>(position) * rate;
            values[position * pairs + pair] =
                static_cast<float>(of_sines ? std::sin(angle) : std::cos(angle));
        }
    }
}

}  // namespace

void fill_rotary_table(const ModelSizes& sizes, bool of_sines, std::int64_t rows, float* values) {
    const std::int64_t positions = sizes.windowed_rotary_base > 0 ? rows / 2 : rows;
    fill_rows(sizes, false, of_sines, positions, values);
    if (positions < rows)
        fill_rows(sizes, true, of_sines, positions, values + positions * (sizes.rotary / 2));
}

std::string keys_input(std::int64_t layer) {
    return cat("keys.", layer);
}

std::string values_input(std::int64_t layer) {
    return cat("values.", layer);
}

}  // namespace dlprim::language

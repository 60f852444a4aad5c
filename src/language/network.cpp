// SPDX-License-Identifier: MIT
// From a description of an architecture to a network.
#include "language/network.hpp"

#include "base/text.hpp"

#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace dlprim::language {

namespace {

using Step = Architecture::Step;

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
    /// What all layers share: positions, their cosines and sines.
    void add_common();
    void add_rotary_tables();
    std::string mask(std::int64_t window);
    void add_step(const Step& step);
    void add_heads(const Step& step);
    void add_attention(const Step& step);
    /// A tensor's name in the whole network, by its name in this part.
    std::string full(const std::string& name) const {
        return shared_.count(name) ? name : prefix_ + name;
    }
    /// The tensor that the name stands for now, and a new one, which it stands for from now on.
    std::string current(const std::string& name) const;
    std::string define(const std::string& name);
    /// The parameters of a step that the file has.
    Names weights_of(const Step& step) const;
    Attrs options_of(const Step& step) const;
    Attr value_of(const std::string& name) const;  ///< that options name by '$'

    const Architecture& architecture_;
    const ModelFile& file_;
    const ModelSizes& sizes_;
    const std::int64_t count_, capacity_, positions_;
    const Attrs& own_;  ///< what tells the model from others of the architecture
    std::string prefix_;
    std::set<std::string> shared_;         ///< tensors that have one name in all parts
    std::map<std::string, int> made_;      ///< how often an operator's name was used
    std::map<std::string, int> versions_;  ///< of tensors, by their full names
    std::int64_t layer_ = 0;
    Names remembered_;
    NetDescription net_;
};

Builder::Builder(const Architecture& architecture, const ModelFile& file, const ModelSizes& sizes,
                 const StepSizes& step)
    : architecture_(architecture),
      file_(file),
      sizes_(sizes),
      count_(step.count),
      capacity_(step.capacity),
      positions_(step.positions),
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
    net_.operators.push_back({.name = name,
                              .type = type,
                              .inputs = std::move(inputs),
                              .outputs = {output},
                              .params = std::move(params),
                              .options = std::move(options)});
}

void Builder::add_inputs() {
    const Shape remembered{sizes_.key_heads, capacity_, sizes_.head_size};
    net_.inputs = {{"tokens", {count_}, DType::i32}, {"past", {1}}, {"last", {1}, DType::i32}};
    for (std::int64_t i = 0; i < sizes_.layers; ++i) {
        net_.inputs.push_back({keys_input(i), remembered});
        net_.inputs.push_back({values_input(i), remembered});
    }
    for (const NetDescription::Input& input : net_.inputs) shared_.insert(input.name);
}

/// Tables of cosines and sines, and their rows for the new tokens. If layers with a window have a
/// base of their own, its rows are in the second half of the tables.
void Builder::add_rotary_tables() {
    const bool two = sizes_.windowed_rotary_base > 0;
    if (two)
        add("Pointwise", {"positions"}, "windowed.positions",
            {{"code", cat("y0 = x0 + ", positions_)}, {"dtypes", Strings{"int"}}});
    for (const std::string_view table : {cosines, sines}) {
        const std::string name(table);
        add("Parameter", {}, name + ".all",
            {{"shape", Ints{(two ? 2 : 1) * positions_, sizes_.rotary / 2}},
             {"is_trainable", false}},
            {name});
        for (const std::string part : {"", "windowed."}) {
            if (!two && !part.empty()) continue;
            add("Gather", {name + ".all", part + "positions"}, part + name,
                {{"dim", std::int64_t{0}}});
            shared_.insert(part + name);
        }
    }
}

void Builder::add_common() {
    add("Pointwise", {"past"}, "positions",
        {{"code", "y0 = x0 + index(0)"}, {"shape", Ints{count_}}, {"dtypes", Strings{"int"}}});
    if (sizes_.rotary > 0) add_rotary_tables();
}

/// The mask of a layer whose tokens see the `window` newest ones, or all if it is 0. Columns are
/// those that are remembered, of which `past` count, and then the new ones, of which row i sees
/// those up to its own.
std::string Builder::mask(std::int64_t window) {
    const std::string name = window > 0 ? cat("seen.", window) : "seen";
    if (!shared_.insert(name).second) return name;
    const std::int64_t least = window > 0 ? window : largest_size;  // more than there are tokens
    add("Pointwise", {"past"}, name,
        {{"code", cat("c = index(1); at = c < ", capacity_, " ? c - x0 : c - ", capacity_,
                      "; y0 = (c < ", capacity_, " ? at < 0 : at <= index(0)) && at > index(0) - ",
                      least, " ? 0.0 : -inf")},
         {"shape", Ints{count_, capacity_ + count_}},
         {"dtypes", Strings{"float"}}});
    return name;
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

/// [count, heads * features] -> [heads, count, features]
void Builder::add_heads(const Step& step) {
    const std::int64_t features = options_of(step).integer("features");
    const std::string input = current(step.inputs.at(0)), output = define(step.output);
    add("Reshape", {input}, output + ".split", {{"dims", Ints{0, -1, features}}});
    add("Transpose", {output + ".split"}, output, {{"dims", Ints{1, 0, 2}}});
}

/// Softmax over the scores of what is remembered and of the new tokens together; each of the two
/// has its own products, so that neither is copied. Query heads that share a head of keys are rows
/// of one product.
void Builder::add_attention(const Step& step) {
    const std::string q = current(step.inputs.at(0)), k = current(step.inputs.at(1)),
                      v = current(step.inputs.at(2)), output = define(step.output);
    const std::string keys = keys_input(layer_), values = values_input(layer_);
    const auto own = [&](const char* name) { return prefix_ + "attention." + name; };
    const std::int64_t group = sizes_.heads / sizes_.key_heads, all = capacity_ + count_;
    const Ints rows{sizes_.key_heads, group * count_, -1};
    const Attrs options = options_of(step);
    const Attrs scores{{"transpose_b", true}, {"alpha", options.number("scale")}};
    remembered_.insert(remembered_.end(), {k, v});
    const double cap = options.has("soft_cap") ? options.number("soft_cap") : 0;
    const std::string seen = mask(options.has("window") ? options.integer("window") : 0);

    add("Reshape", {q}, own("queries"), {{"dims", rows}});
    add("MatMul", {own("queries"), keys}, own("old_scores"), scores);
    add("MatMul", {own("queries"), k}, own("new_scores"), scores);
    add("Concat", {own("old_scores"), own("new_scores")}, own("scores"),
        {{"dim", std::int64_t{2}}});
    add("Reshape", {own("scores")}, own("split"),
        {{"dims", Ints{sizes_.key_heads, group, count_, all}}});
    std::string split = own("split");
    if (cap > 0) {
        split = own("capped");
        add("Pointwise", {own("split")}, split,
            {{"code", cat("y0 = ", exact(cap), " * tanh(x0 / ", exact(cap), ")")}});
    }
    add("Elementwise", {split, seen}, own("masked"));
    add("Softmax", {own("masked")}, own("split_weights"), {{"axis", std::int64_t{3}}});
    add("Reshape", {own("split_weights")}, own("weights"), {{"dims", rows}});
    const auto part = [&](const char* name, std::int64_t begin, std::int64_t end) {
        add("Slice", {own("weights")}, own(name),
            {{"dim", std::int64_t{2}}, {"begin", begin}, {"end", end}});
    };
    part("old_weights", 0, capacity_);
    part("new_weights", capacity_, all);
    add("MatMul", {own("old_weights"), values}, own("old_result"));
    add("MatMul", {own("new_weights"), v}, own("new_result"));
    add("Elementwise", {own("old_result"), own("new_result")}, own("result"));
    add("Reshape", {own("result")}, own("heads"),
        {{"dims", Ints{sizes_.heads, count_, sizes_.head_size}}});
    add("Transpose", {own("heads")}, own("by_token"), {{"dims", Ints{1, 0, 2}}});
    add("Reshape", {own("by_token")}, output, {{"dims", Ints{0, -1}}});
}

void Builder::add_step(const Step& step) {
    if (step.type == "Heads") return add_heads(step);
    if (step.type == "CachedAttention") return add_attention(step);
    Names inputs;
    for (const std::string& name : step.inputs) inputs.push_back(current(name));
    Attrs options = options_of(step);
    if (step.type == "Rotary") {
        if (sizes_.rotary < sizes_.head_size) options.set("rotary_dim", sizes_.rotary);
        const bool own =
            sizes_.windowed_rotary_base > 0 && sizes_.windows[static_cast<std::size_t>(layer_)] > 0;
        const std::string part = own ? "windowed." : "";
        inputs.insert(inputs.end(), {part + std::string(cosines), part + std::string(sines)});
        return add("RotaryEmbedding", std::move(inputs), define(step.output), std::move(options));
    }
    Names weights = weights_of(step);
    if (weights.empty() && !step.weights.empty()) return;  // all of them are optional
    if (step.type == "InnerProduct") options.set("bias", weights.size() > 1);
    if (step.type == "InnerProduct" || step.type == "Embedding")
        options.set("blocks", file_.blocks(weights.at(0)));
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
    add("Concat", remembered_, "remember.rows", {{"dim", std::int64_t{0}}});
    add("Reshape", {"remember.rows"}, "remember",
        {{"dims", Ints{2 * sizes_.layers, sizes_.key_heads, count_, sizes_.head_size}}});
    net_.outputs = {{.name = "logits", .plain = true}, {.name = "remember", .plain = true}};
    return std::move(net_);
}

}  // namespace

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

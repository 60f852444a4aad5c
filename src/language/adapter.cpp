// SPDX-License-Identifier: MIT
// Adapters: which products of a model they may change, and models that are changed by one.
#include "language/adapter.hpp"

#include "base/text.hpp"
#include "language/architecture.hpp"
#include "language/products.hpp"

#include <fnmatch.h>
#include <utility>

namespace dlprim::language {

namespace {

constexpr std::string_view weight_end = ".weight", down_end = ".lora_a.weight",
                           up_end = ".lora_b.weight";

std::string with_end(const std::string& weight, std::string_view end) {
    const std::string stem =
        weight.ends_with(weight_end) ? weight.substr(0, weight.size() - weight_end.size()) : weight;
    return stem + std::string(end);
}

/// Forwards all but what is stored of weights.
class ChangedModel : public ModelFile {
  public:
    ChangedModel(std::shared_ptr<const ModelFile> model, Adapter adapter)
        : model_(std::move(model)), adapter_(std::move(adapter)) {}

    const std::string& path() const override { return model_->path(); }
    std::string architecture() const override { return model_->architecture(); }
    ModelSizes sizes() const override { return model_->sizes(); }
    TokenizerTables tokenizer() const override { return model_->tokenizer(); }
    std::optional<std::string> chat_template() const override { return model_->chat_template(); }
    std::optional<Shape> shape(const std::string& weight) const override {
        return model_->shape(weight);
    }
    std::string stored_name(const std::string& weight) const override {
        return model_->stored_name(weight);
    }
    void read(const std::string& weight, float* values) const override {
        model_->read(weight, values);
    }
    std::string blocks(const std::string& weight) const override { return model_->blocks(weight); }
    void read_blocks(const std::string& weight, std::byte* data, std::size_t bytes) const override {
        model_->read_blocks(weight, data, bytes);
    }

  protected:
    const std::shared_ptr<const ModelFile> model_;
    const Adapter adapter_;
};

class ModelWithAdapter : public ChangedModel {
  public:
    ModelWithAdapter(std::shared_ptr<const ModelFile> model, Adapter adapter)
        : ChangedModel(std::move(model), std::move(adapter)) {
        for (const auto& [weight, matrices] : adapter_.products) {
            own_[adapter_down(weight)] = {&matrices.down, &matrices.down_values};
            own_[adapter_up(weight)] = {&matrices.up, &matrices.up_values};
        }
    }
    std::optional<Shape> shape(const std::string& weight) const override {
        const auto found = own_.find(weight);
        return found == own_.end() ? model_->shape(weight) : *found->second.first;
    }
    void read(const std::string& weight, float* values) const override {
        const auto found = own_.find(weight);
        if (found == own_.end()) return model_->read(weight, values);
        std::copy(found->second.second->begin(), found->second.second->end(), values);
    }
    std::string blocks(const std::string& weight) const override {
        return own_.count(weight) ? std::string() : model_->blocks(weight);
    }
    double adapter_scale() const override { return adapter_.scale; }

  private:
    std::map<std::string, std::pair<const Shape*, const std::vector<float>*>> own_;
};

class MergedModel : public ChangedModel {
  public:
    using ChangedModel::ChangedModel;

    void read(const std::string& weight, float* values) const override {
        model_->read(weight, values);
        const auto found = adapter_.products.find(weight);
        if (found == adapter_.products.end()) return;
        const Adapter::Matrices& m = found->second;
        const auto rank = static_cast<std::size_t>(m.down[0]),
                   inputs = static_cast<std::size_t>(m.down[1]),
                   outputs = static_cast<std::size_t>(m.up[0]);
        std::vector<double> row(inputs);
        for (std::size_t i = 0; i < outputs; ++i) {
            row.assign(inputs, 0);
            for (std::size_t k = 0; k < rank; ++k)
                for (std::size_t j = 0; j < inputs; ++j)
                    row[j] += static_cast<double>(m.up_values[i * rank + k]) *
                              m.down_values[k * inputs + j];
            for (std::size_t j = 0; j < inputs; ++j)
                values[i * inputs + j] =
                    static_cast<float>(values[i * inputs + j] + adapter_.scale * row[j]);
        }
    }
    std::string blocks(const std::string& weight) const override {
        return adapter_.products.count(weight) ? std::string() : model_->blocks(weight);
    }
};

bool is_target(const std::string& module, const std::string& target) {
    return module == target || module.ends_with("." + target) ||
           ::fnmatch(target.c_str(), module.c_str(), 0) == 0;
}

}  // namespace

std::string adapter_down(const std::string& weight) {
    return with_end(weight, down_end);
}

std::string adapter_up(const std::string& weight) {
    return with_end(weight, up_end);
}

bool is_adapter_up(const std::string& parameter) {
    return parameter.ends_with(up_end);
}

bool is_of_adapter(const std::string& parameter) {
    return parameter.ends_with(down_end) || is_adapter_up(parameter);
}

Adapter Adapter::of(const ModelFile& model, const AdapterOptions& options) {
    require(options.rank >= 1 && options.rank <= 65536, "an adapter has a rank of 1 to 65536, not ",
            options.rank);
    Adapter adapter{options, options.alpha / static_cast<double>(options.rank), {}};
    const std::vector<Product> products = products_of(model);
    const auto add = [&](const Product& product) {
        const std::int64_t rank = options.rank;
        adapter.products[product.weight] = {
            Shape{rank, product.inputs}, Shape{product.outputs, rank}, {}, {}};
    };
    std::vector<std::string> known;
    for (const Product& product : products) {
        known.push_back(product.module.substr(product.module.rfind('.') + 1));
        if (options.targets.empty() && product.in_layer) add(product);
    }
    for (const std::string& target : options.targets) {
        bool any = false;
        for (const Product& product : products)
            if (is_target(product.module, target)) {
                add(product);
                any = true;
            }
        std::sort(known.begin(), known.end());
        known.erase(std::unique(known.begin(), known.end()), known.end());
        require(any, "no product of '", model.path(), "' is called '", target, "'",
                did_you_mean(target, known), "; there are ", join(known, ", "));
    }
    return adapter;
}

std::unique_ptr<const ModelFile> with_adapter(std::shared_ptr<const ModelFile> model,
                                              Adapter adapter) {
    return std::make_unique<const ModelWithAdapter>(std::move(model), std::move(adapter));
}

std::unique_ptr<const ModelFile> merged(std::shared_ptr<const ModelFile> model, Adapter adapter) {
    return std::make_unique<const MergedModel>(std::move(model), std::move(adapter));
}

std::unique_ptr<const ModelFile> open_adapted(const std::string& path, const std::string& adapter) {
    std::unique_ptr<const ModelFile> model = open_model(path);
    if (adapter.empty()) return model;
    Adapter read = Adapter::read(adapter, *model);
    return with_adapter(std::move(model), std::move(read));
}

}  // namespace dlprim::language

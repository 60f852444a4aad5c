// SPDX-License-Identifier: MIT
// Function: an eager call of many operators. exec/eager.hpp plans, caches and runs it.
#include <dlprim/function.hpp>

#include "base/text.hpp"
#include "exec/eager.hpp"
#include "formats/json_net.hpp"
#include "runtime/access.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <array>

namespace dlprim {

namespace {

/// What graphs of training need beside the public operators. These check what they are given.
constexpr std::array<std::string_view, 4> internal_types{"AttentionForward", "AttentionBackward",
                                                         "BatchNormTraining", "EmbeddingBackward"};

}  // namespace

class Function::Impl {
  public:
    Impl(const Context& given, std::string_view json, const FunctionOptions& options)
        : context(given) {
        how.training = options.training;
        how.precision = options.precision;
        how.engines = options.engines;
        function.name = options.name;
        function.description = parse_net_json(json, options.name);
        function.description.internal_types = internal_types;
        function.constants = {options.constants.begin(), options.constants.end()};
        function.options = unique_options();
        find_names();
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        try {
            forget_function(context, function);
        } catch (const std::exception&) {
            // The cache drops the plans later.
        }
    }

    std::vector<Tensor> call(std::span<const Tensor> given, ops::CallOptions&& options) const {
        require(given.size() == inputs.size(), function.name, " takes ", inputs.size(),
                " tensors, got ", given.size());
        for (std::size_t i = 0; i < given.size(); ++i) {
            require(given[i].defined(), function.name, ": input '", inputs[i],
                    "' is an empty tensor");
            require(given[i].context() == context, function.name, ": input '", inputs[i],
                    "' is of another context than the function");
        }
        const auto first = std::find(is_param.begin(), is_param.end(), true);
        if (std::find(first, is_param.end(), false) == is_param.end()) {
            const auto values = static_cast<std::size_t>(first - is_param.begin());
            return eager_function(function, given.first(values), given.subspan(values), options);
        }
        std::vector<Tensor> values, params;
        for (std::size_t i = 0; i < given.size(); ++i)
            (is_param[i] ? params : values).push_back(given[i]);
        return eager_function(function, values, params, options);
    }

    Context context;
    EagerFunction function;
    ops::CallOptions how;
    std::vector<std::string> inputs, outputs;

  private:
    /// The names of inputs and outputs. Builds the graph once, which checks it.
    void find_names() {
        const Graph graph = build_graph(function.description, {}, 0, how.training, how.precision);
        for (const ValueId id : graph.inputs) {
            inputs.push_back(graph.value(id).name);
            is_param.push_back(function.constants.count(inputs.back()) > 0);
        }
        for (const std::string& name : function.constants)
            require(std::find(inputs.begin(), inputs.end(), name) != inputs.end(), function.name,
                    " has no input '", name, "', which is to be constant",
                    did_you_mean(name, inputs));
        for (const Value& value : graph.values)
            if (value.role == Role::parameter) {
                inputs.push_back(value.name);
                is_param.push_back(true);
            }
        for (const auto& [id, name] : graph.outputs) outputs.push_back(name);
    }

    std::vector<bool> is_param;  ///< by input
};

Function::Function(const Context& context, std::string_view json, const FunctionOptions& options)
    : impl_(std::make_unique<const Impl>(context, json, options)) {}
Function::~Function() = default;
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;

const Function::Impl& Function::impl() const {
    require(impl_ != nullptr, "this Function was moved from; use the one that it was moved to");
    return *impl_;
}

const Context& Function::context() const {
    return impl().context;
}
const std::vector<std::string>& Function::input_names() const {
    return impl().inputs;
}
const std::vector<std::string>& Function::output_names() const {
    return impl().outputs;
}

std::vector<Tensor> Function::operator()(std::span<const Tensor> inputs, std::uint64_t seed,
                                         std::uint64_t step, const std::vector<Tensor>& out) const {
    ops::CallOptions how = impl().how;
    how.seed = seed;
    how.step = step;
    how.out = out;
    return impl().call(inputs, std::move(how));
}

}  // namespace dlprim

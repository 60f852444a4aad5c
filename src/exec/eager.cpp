// SPDX-License-Identifier: MIT
// Eager calls: a graph of one node, planned once a problem and kept; a second call of the same problem is a
// look-up, bindings and enqueues.
#include "exec/eager.hpp"

#include "base/text.hpp"
#include "exec/executor.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "runtime/context_impl.hpp"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dlprim {

namespace {

/// A planned call and the order in which its externals are bound.
struct Entry {
    std::unique_ptr<Executor> executor;
    std::vector<Shape> output_shapes;
    std::vector<DType> output_dtypes;
    /// By external: which operand (inputs, params, output gradients, in that order) or result it is.
    struct Binding {
        bool result;
        std::size_t index;
    };
    std::vector<Binding> bindings;
    std::vector<TensorSpec> gradients;  ///< of outputs: what the call must bring
    std::size_t results = 0;
    bool uses_scalars = false;
};

/// Calls of one context. Scratch is shared: the queue is in order.
struct ContextCache {
    std::unordered_map<std::string, std::unique_ptr<Entry>> entries;
    BlockStore store;
};

ContextCache& cache_of(const Context& context) {
    // Entries hold their context: one that was used for eager calls lives as long as the process.
    static std::mutex mutex;
    static auto* caches = new std::unordered_map<ContextImpl*, std::unique_ptr<ContextCache>>;
    const std::lock_guard lock(mutex);
    auto& slot = (*caches)[&context.impl()];
    if (!slot) slot = std::make_unique<ContextCache>();
    return *slot;
}

struct Call {
    std::string_view type;
    const Attrs& options;
    std::span<const Tensor> inputs, params, output_gradients;
    const ops::CallOptions& how;
    bool backward;
};

std::string key_of(const Call& call) {
    std::string key = cat(call.type, call.backward ? " backward " : " ", call.how.training ? "training " : "", call.how.engine,
                          " {", call.options.str(), "}");
    for (const auto& [what, engine] : call.how.engines) key += cat(' ', what, '=', engine);
    for (const auto& list : {call.inputs, call.params}) {
        key += " |";
        for (const Tensor& tensor : list) key += cat(' ', name_of(tensor.dtype()), tensor.shape().str());
    }
    return key;
}

ValueId add_operand(Graph& graph, const std::string& name, const Tensor& tensor, Role role) {
    Value value;
    value.name = name;
    value.spec = {tensor.shape(), tensor.dtype()};
    value.role = role;
    value.trainable = role == Role::parameter && is_float(tensor.dtype());
    const ValueId id = graph.add_value(std::move(value));
    if (role == Role::input) graph.inputs.push_back(id);
    return id;
}

/// A binding of another shape or type than planned would be read past its end.
void check_operand(const Call& call, const char* what, std::size_t index, const Tensor& tensor, const TensorSpec& wanted) {
    require(tensor.shape() == wanted.shape && tensor.dtype() == wanted.dtype, call.type, ": ", what, ' ', index, " is ",
            name_of(tensor.dtype()), ' ', tensor.shape().str(), ", wants ", name_of(wanted.dtype), ' ', wanted.shape.str());
}

void check_params(const Operator& op, const Attrs& attrs, const Call& call) {
    std::vector<TensorSpec> specs;
    for (const Tensor& tensor : call.inputs) specs.push_back({tensor.shape(), tensor.dtype()});
    const std::vector<ParamSpec> wanted = op.params(attrs, specs);
    require(wanted.size() == call.params.size(), call.type, " takes ", wanted.size(), " parameters, got ", call.params.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
        check_operand(call, "parameter", i, call.params[i], wanted[i].spec);
}

std::unique_ptr<Entry> make_entry(const Context& context, const Call& call, BlockStore& store) {
    const Operator& op = OperatorRegistry::instance().get(call.type);
    const auto count = static_cast<int>(call.inputs.size());
    require(count >= op.min_inputs() && count <= op.max_inputs(), call.type, " got ", count, " inputs, takes ", op.min_inputs(),
            " to ", op.max_inputs());
    const Attrs attrs = op.schema().complete(call.options, cat("[", call.type, "] "));
    check_params(op, attrs, call);

    Graph graph;
    graph.training = call.how.training;
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        operands.push_back(add_operand(graph, cat("input ", i), call.inputs[i], Role::input));
    for (std::size_t i = 0; i < call.params.size(); ++i)
        operands.push_back(add_operand(graph, cat("parameter ", i), call.params[i], Role::parameter));
    const std::vector<ValueId> made = graph.add(call.type, call.type, operands, attrs);
    graph.nodes.back().engine = call.backward ? "" : call.how.engine;
    for (std::size_t i = 0; i < made.size(); ++i) graph.outputs.emplace_back(made[i], cat("output ", i));

    expand_composites(graph);
    if (call.backward) {
        DifferentiateOptions how;
        how.input_gradients = true;
        how.seeds_are_inputs = true;
        differentiate(graph, how);
        graph.outputs.clear();
        graph.assignments.clear();
        graph.remove_dead();
    }

    PlanOptions options;
    options.external_params = true;
    options.engines = call.how.engines;
    auto entry = std::make_unique<Entry>();
    entry->executor = std::make_unique<Executor>(context, make_plan(context, std::move(graph), options), store, true);
    const Plan& plan = entry->executor->plan();
    const auto operand_index = [&](ValueId value) {
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (operands[i] == value) return i;
        return operands.size();
    };
    entry->results = call.backward ? operands.size() : made.size();
    entry->output_shapes.resize(entry->results);
    entry->output_dtypes.resize(entry->results, DType::f32);
    std::size_t next_output = 0, next_gradient = operands.size();
    for (const External& external : plan.externals) {
        Entry::Binding binding{false, 0};
        switch (external.kind) {
            case External::Kind::input: {
                const std::size_t operand = operand_index(external.value);
                binding.index = operand < operands.size() ? operand : next_gradient++;
                if (operand == operands.size()) entry->gradients.push_back(plan.graph.spec(external.value));
                break;
            }
            case External::Kind::parameter: binding.index = operand_index(external.value); break;
            case External::Kind::output: binding = {true, next_output++}; break;
            case External::Kind::gradient: binding = {true, operand_index(external.value)}; break;
        }
        if (binding.result) {
            entry->output_shapes[binding.index] = plan.graph.shape(external.value);
            entry->output_dtypes[binding.index] = plan.graph.spec(external.value).dtype;
        }
        entry->bindings.push_back(binding);
    }
    for (const Block& block : plan.blocks) entry->uses_scalars = entry->uses_scalars || block.name == "scalars";
    return entry;
}

const Context& context_of(const Call& call) {
    const Tensor* first = !call.inputs.empty() ? call.inputs.data() : call.params.data();
    require(!call.inputs.empty() || !call.params.empty(), call.type, " needs at least one tensor to know its device by");
    for (const auto& list : {call.inputs, call.params, call.output_gradients, std::span<const Tensor>(call.how.out)}) {
        for (const Tensor& tensor : list) {
            if (list.data() == call.how.out.data() && !tensor.defined()) continue;  // one to be made
            require(tensor.defined(), call.type, " got an empty tensor");
            require(tensor.context() == first->context(), call.type, " got tensors of different contexts");
        }
    }
    return first->context();
}

std::string own_key_of(const Call& call, std::string key) {
    for (const Tensor& param : call.params) key += cat(" #", param.buffer()->id(), '+', param.byte_offset());
    return key;
}

/// Entries are found by problem. One that keeps something derived from its parameters (packed weights)
/// belongs to those parameters, so that layers of one shape do not undo each other's work.
Entry& find_entry(const Context& context, const Call& call) {
    constexpr std::size_t most = 4096;
    ContextCache& cache = cache_of(context);
    const std::string key = key_of(call);
    const std::string own_key = own_key_of(call, key);
    for (const std::string* k : {&own_key, &key})
        if (const auto found = cache.entries.find(*k); found != cache.entries.end()) return *found->second;
    if (cache.entries.size() >= most) cache.entries.clear();
    std::unique_ptr<Entry> made = make_entry(context, call, cache.store);
    const bool own = !made->executor->plan().setup.empty();
    return *(cache.entries[own ? own_key : key] = std::move(made));
}

std::vector<Tensor> run_once(const Context& context, const Call& call) {
    Entry& entry = find_entry(context, call);

    if (call.backward) {
        require(call.output_gradients.size() == entry.gradients.size(), call.type, " takes the gradients of ",
                entry.gradients.size(), " outputs, got ", call.output_gradients.size());
        for (std::size_t i = 0; i < entry.gradients.size(); ++i)
            check_operand(call, "output gradient", i, call.output_gradients[i], entry.gradients[i]);
    }
    require(call.how.out.size() <= entry.results, call.type, " makes ", entry.results, " tensors, `out` has ",
            call.how.out.size());

    std::vector<Tensor> results(entry.results);
    const auto operand = [&](std::size_t i) -> const Tensor& {
        if (i < call.inputs.size()) return call.inputs[i];
        i -= call.inputs.size();
        if (i < call.params.size()) return call.params[i];
        return call.output_gradients[i - call.params.size()];
    };
    for (std::size_t i = 0; i < entry.bindings.size(); ++i) {
        const Entry::Binding& binding = entry.bindings[i];
        if (!binding.result) {
            const Tensor& tensor = operand(binding.index);
            require(tensor.contiguous(), call.type, " got a strided view of shape ", tensor.shape().str(),
                    "; copy it into a tensor of its own first");
            entry.executor->bind(static_cast<int>(i), tensor);
            continue;
        }
        Tensor& result = results[binding.index];
        const Shape& shape = entry.output_shapes[binding.index];
        const DType dtype = entry.output_dtypes[binding.index];
        if (binding.index < call.how.out.size() && call.how.out[binding.index].defined()) {
            result = call.how.out[binding.index];
            check_operand(call, "out tensor", binding.index, result, {shape, dtype});
            require(result.contiguous(), call.type, ": out tensor ", binding.index, " is a strided view; results go to memory without gaps");
        } else {
            const std::uint64_t bytes = static_cast<std::uint64_t>(shape.numel()) * size_of(dtype);
            result = Tensor(context, context.impl().allocate_cached(bytes), 0, shape, dtype);
        }
        entry.executor->bind(static_cast<int>(i), result);
    }
    if (entry.uses_scalars) {
        entry.executor->set_integer("@seed", call.how.seed);
        entry.executor->set_integer("@step", call.how.step);
    }
    entry.executor->check_params();
    entry.executor->run(Part::forward);
    if (call.backward) entry.executor->run(Part::backward);
    entry.executor->release_bindings();
    return results;
}

std::vector<Tensor> run(const Call& call) {
    const Context& context = context_of(call);
    for (;;) {
        try {
            return run_once(context, call);
        } catch (const EngineFailure&) {
            // Planned anew without the engine that failed.
            ContextCache& cache = cache_of(context);
            const std::string key = key_of(call);
            cache.entries.erase(own_key_of(call, key));
            cache.entries.erase(key);
        }
    }
}

}  // namespace

std::vector<Tensor> eager_call(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                               std::span<const Tensor> params, const ops::CallOptions& call) {
    return run({type, options, inputs, params, {}, call, false});
}

std::vector<Tensor> eager_backward(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                                   std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                                   const ops::CallOptions& call) {
    return run({type, options, inputs, params, output_gradients, call, true});
}

const Plan& eager_plan(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                       std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                       const ops::CallOptions& call) {
    const Call wanted{type, options, inputs, params, output_gradients, call, !output_gradients.empty()};
    return find_entry(context_of(wanted), wanted).executor->plan();
}

}  // namespace dlprim

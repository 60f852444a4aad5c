// SPDX-License-Identifier: MIT
// NetImpl: tensors bound to plans, shapes that change, and runs.
#include "api/net_impl.hpp"

#include "base/text.hpp"
#include "exec/first_nan.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

std::vector<std::string> apply_options(NetDescription& description, const NetOptions& options) {
    require(options.batch >= 0, "a batch of ", options.batch,
            " is invalid: it must be at least 1, or 0 for the batch that the network declares");
    for (const std::string& name : options.extra_outputs) {
        const auto same = [&](const NetDescription::Output& output) { return output.name == name; };
        if (std::none_of(description.outputs.begin(), description.outputs.end(), same))
            description.outputs.push_back({name, std::nullopt});
    }
    return override_precisions(description, options.precisions);
}

Graph build_graph(const NetDescription& description, const NetOptions& options) {
    return build_graph(description, options.input_shapes, options.batch,
                       options.mode == Mode::training, options.precision);
}

void fail_unset(const std::vector<std::string>& inputs, std::string_view action, bool has_loss) {
    fail(ErrorKind::invalid_argument, action, " needs values of all inputs, and ",
         join(inputs, ", "), inputs.size() == 1 ? " was" : " were",
         " never set: call set_input() before, and again after another reshape() or solver, which "
         "give the net new inputs",
         has_loss ? "; with without_losses a net needs no labels" : "");
}

namespace {

/// Gives an executor scratch memory until a run ends, also by an error.
struct WithScratch {
    explicit WithScratch(Executor& e) : executor(e) { executor.take_scratch(); }
    WithScratch(const WithScratch&) = delete;
    WithScratch& operator=(const WithScratch&) = delete;
    ~WithScratch() { executor.release_scratch(); }
    Executor& executor;
};

}  // namespace

NetImpl::NetImpl(const Context& context, NetDescription description, const NetOptions& options)
    : NetCore(options, std::move(description)), context_(context) {
    require(options.max_plans >= 1, "max_plans is ", options.max_plans,
            ": it must be at least 1, for the plan that the net runs");
    remarks = apply_options(description_, options);
    remark_devices();
    set_graph(build_graph(description_, options_));
    remark_float_indices();
}

NetImpl::NetImpl(const Context& context, const NetOptions& options)
    : NetCore(options), context_(context) {}

void NetImpl::remark_devices() {
    std::set<std::string> names;
    for (const NetDescription::Op& op : description_.operators)
        if (!op.device.empty()) names.insert(cat("'", op.device, "'"));
    if (names.empty()) return;
    const std::vector<std::string> list(names.begin(), names.end());
    remarks.push_back(
        cat("operators of the network name the ", list.size() == 1 ? "device " : "devices ",
            join(list, ", "), ", and this net runs all of them on ", context_.info().str(),
            ": only a placed network binds names to devices, as the devices NAME=DEVICE,... of a "
            "command do"));
}

void NetImpl::remark_float_indices() {
    for (const Node& node : base_.nodes) {
        if (node.op->type() != "Embedding") continue;
        const Value& indices = base_.value(node.inputs.at(0));
        if (is_float(indices.spec.dtype))
            remarks.push_back(cat("[Embedding '", node.name, "'] reads indices from '",
                                  indices.name, "', which is ", name_of(indices.spec.dtype),
                                  " and holds whole numbers only up to a limit: declare them as "
                                  "int or int64"));
    }
}

std::map<std::string, Precision> NetImpl::precisions() const {
    std::map<std::string, Precision> all;
    for (const NetDescription::Op& op : description_.operators)
        all[op.name] = op.precision.value_or(options_.precision);
    return all;
}

std::string NetImpl::plan_key() const {
    std::string key(solver_ ? "solver" : "");
    for (ValueId id : base_.inputs) key += base_.shape(id).str();
    if (set_ > 0) key += cat(" of set ", set_);
    return key;
}

void NetImpl::use_set(int set, const GivenMemory& memory) {
    given_ = memory;
    if (set != set_) current_ = nullptr;
    set_ = set;
    sets_ = std::max(sets_, set + 1);
    const auto found = plans_.find(plan_key());
    if (found == plans_.end()) return;
    bind_tensors(*found->second, nullptr);
    found->second->feeds.clear();  // to the memory of before
}

void NetImpl::bind_tensors(Built& built, const Built* before) {
    const Plan& made = built.executor->plan();
    const std::map<std::string, std::map<std::string, Tensor> Built::*> fed_gradients{
        {"@grad/", &Built::output_gradients}, {"@later/", &Built::later_gradients}};
    for (std::size_t i = 0; i < made.externals.size(); ++i) {
        const External& external = made.externals[i];
        if (external.kind == External::Kind::parameter) continue;  // fetched when needed
        std::map<std::string, Tensor> Built::*list = &Built::inputs;
        const std::map<std::string, Tensor>* given = &given_.inputs;
        std::string name = external.name;
        if (external.kind == External::Kind::output) {
            list = &Built::outputs;
            given = &given_.outputs;
        } else if (external.kind == External::Kind::gradient) {
            list = &Built::gradients;
            given = &given_.gradients;
        } else {
            for (const auto& [prefix, gradients] : fed_gradients) {
                if (!name.starts_with(prefix)) continue;
                list = gradients;
                name = name.substr(prefix.size());
            }
        }
        const TensorSpec& spec = made.graph.spec(external.value);
        Tensor& tensor = (built.*list)[name];
        if (before != nullptr && (before->*list).count(name)) tensor = (before->*list).at(name);
        if (given->count(external.name)) tensor = given->at(external.name);
        if (!tensor.defined()) {
            tensor = Tensor(context_, spec.shape, spec.dtype);
            // A run without inputs is a mistake of the caller, but must not use random bits as
            // indices. A session gives all inputs.
            const unsigned char zero = 0;
            if (!among_many_)
                Access::impl(context_).queue().fill({Access::buffer(tensor).get(), 0},
                                                    tensor.bytes(), &zero, 1);
        }
        built.executor->bind(static_cast<int>(i), tensor);
    }
}

void NetImpl::find_params(Built& built) {
    const Plan& made = built.executor->plan();
    for (std::size_t i = 0; i < made.graph.values.size(); ++i) {
        const Value& value = made.graph.values[i];
        if (value.role != Role::parameter) continue;
        built.params[value.name] = static_cast<ValueId>(i);
        const auto gradient = made.graph.gradients.find(static_cast<ValueId>(i));
        if (gradient == made.graph.gradients.end()) continue;
        // Gradients of trained parameters have the same offsets in their block as the parameters.
        const Place& place = made.places[i];
        const auto block = store_.find("gradients");
        if (place.kind == Place::Kind::block && block != store_.end())
            built.gradients[value.name] = Access::tensor(context_, block->second, place.offset,
                                                         value.spec.shape, value.spec.dtype);
    }
}

std::unique_ptr<NetImpl::Built> NetImpl::make_built(const Built* before, bool apart) {
    Graph graph = own_graph();
    auto built = std::make_unique<Built>();
    built->classes = label_inputs(graph);
    built->indices = index_inputs(graph);
    for (const auto& [value, weight] : graph.losses)
        for (const auto& output : graph.outputs)
            if (output.first == value) built->losses.emplace_back(output.second, weight);

    graph = step_graph(std::move(graph), solver_ ? &*solver_ : nullptr);
    const PlanOptions plan_options = options_of_plans(apart);
    try {
        built->executor = retry_without_failed_engines(
            Access::impl(context_), [&] { return make_executor(graph, plan_options); });
    } catch (const TooLarge& error) {
        if (apart) throw;
        throw with_largest_batch(error);
    }
    built->executor->fetch_params_from(*this);

    bind_tensors(*built, before);
    find_params(*built);
    const Graph& planned = built->executor->plan().graph;
    const auto read = [&](ValueId id) {
        if (id != no_value && built->inputs.count(planned.value(id).name) > 0)
            built->read.insert(planned.value(id).name);
    };
    for (const Node& node : planned.nodes)
        if (!node.removed) std::for_each(node.inputs.begin(), node.inputs.end(), read);
    for (const auto& output : planned.outputs) read(output.first);
    built->executor->set_integer("@seed", options_.seed);
    return built;
}

NetImpl::Built& NetImpl::built() {
    if (current_ == nullptr) {
        const std::string key = plan_key();
        auto found = plans_.find(key);
        if (found == plans_.end()) {
            drop_plans();
            found = plans_.emplace(key, make_built()).first;
        }
        current_ = found->second.get();
        current_->last_use = ++uses_;
    }
    if (fill_later_) {
        fill_all();
        fill_later_ = false;
    }
    return *current_;
}

void NetImpl::attach_solver(const SolverOptions& solver) {
    require(options_.mode == Mode::training, "a solver needs a net in training mode");
    for (const auto& [name, param] : params_)
        if (param.value.trainable && param.value.spec.dtype != DType::f32)
            fail(ErrorKind::unsupported, "parameter '", name, "' is ",
                 name_of(param.value.spec.dtype),
                 "; solvers train float parameters only, and \"frozen\": true keeps an operator "
                 "out of "
                 "training");
    const std::optional<SolverOptions> before = std::exchange(solver_, solver);
    const auto forget_plans = [&] {
        current_ = nullptr;
        plans_.clear();
        store_.erase("states");  // states of another solver have another meaning
    };
    forget_plans();
    try {
        built();
    } catch (...) {
        solver_ = before;
        forget_plans();
        throw;
    }
}

void NetImpl::remark_momentum(const SolverOptions& solver) {
    if (solver.kind == SolverOptions::Kind::sgd || solver.momentum == 0) return;
    const std::string text = cat("the solver's momentum of ", solver.momentum,
                                 " has no effect: only sgd has one, and beta1 is the momentum of "
                                 "adam and adamw");
    if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) remarks.push_back(text);
}

void NetImpl::reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) {
    const NetOptions before = take_shapes(batch, shapes);
    try {
        NetDescription description = redescribe_ ? redescribe_(options_) : description_;
        if (redescribe_) apply_options(description, options_);
        Graph graph = build_graph(description, options_);
        check_params_stay(graph);
        base_ = std::move(graph);
        description_ = std::move(description);
    } catch (...) {
        options_ = before;
        throw;
    }
    current_ = nullptr;
}

void NetImpl::feed(const std::string& input, const void* data) {
    Built& plan = built();
    std::unique_ptr<InputFeed>& feed = plan.feeds[input];
    if (!feed) {
        const Tensor& tensor = plan.inputs.at(input);
        feed = Access::impl(context_).make_feed(Access::buffer(tensor), tensor.byte_offset(),
                                                tensor.bytes());
    }
    feed->write(data);
}

void NetImpl::require_inputs(std::string_view action) {
    Built& plan = built();
    std::vector<std::string> missing;
    for (const std::string& name : plan.read)
        if (plan.inputs.at(name).bytes() > 0 && plan.filled.count(name) == 0 &&
            given_.inputs.count(name) == 0)
            missing.push_back(cat("'", name, "'"));
    if (!missing.empty())
        fail_unset(missing, action,
                   options_.mode != Mode::training && !base_.losses.empty() && !drops_losses());
}

void NetImpl::require_outputs(const std::string& name) {
    require(built().has_outputs, "output '", name,
            "' has no values before a forward pass of the shapes that the net has now");
}

std::uint64_t NetImpl::kept_bytes() {
    const Built& plan = built();
    std::uint64_t bytes = plan.executor->kept_bytes();
    for (const auto& [name, tensor] : plan.outputs) bytes += tensor.bytes();
    for (const auto& [name, tensor] : held_) bytes += tensor.bytes();
    return bytes;
}

std::uint64_t NetImpl::feed_bytes() {
    std::uint64_t bytes = 0;
    for (const auto& [name, feed] : built().feeds) bytes += feed->device_bytes();
    return bytes;
}

void NetImpl::set_seed(std::uint64_t seed) {
    options_.seed = seed;
    for (auto& [key, plan] : plans_)
        if (plan) plan->executor->set_integer("@seed", seed);
}

void NetImpl::forward() {
    require_params("forward()");
    Built& plan = built();
    if (options_.mode == Mode::training) plan.executor->set_integer("@step", step_count++);
    run(Part::forward);
    built().ran_forward = built().has_outputs = true;
}

void NetImpl::run(Part part, const Executor::AfterStep& after) {
    const auto attempt = [&] {
        const WithScratch scratch(*built().executor);
        scratch.executor.run(part, after);
    };
    retry_without_failed_engines(Access::impl(context_), attempt, [&](const EngineFailed& failed) {
        plan_anew();
        if (failed.rerun_forward) run(Part::forward);
    });
}

void NetImpl::pack() {
    const auto attempt = [&] {
        const WithScratch scratch(*built().executor);
        scratch.executor.set_up();
    };
    retry_without_failed_engines(Access::impl(context_), attempt,
                                 [&](const EngineFailed&) { plan_anew(); });
}

void NetImpl::plan_anew() {
    std::unique_ptr<Built>& slot = plans_.at(plan_key());
    std::unique_ptr<Built> made = make_built(slot.get());
    made->executor->take_over(*slot->executor);
    made->ran_forward = slot->ran_forward;
    made->has_outputs = slot->has_outputs;
    made->filled = std::move(slot->filled);
    made->last_use = slot->last_use;
    made->feeds = std::move(slot->feeds);
    slot = std::move(made);
    current_ = slot.get();
}

std::string NetImpl::described(const std::string& node) const {
    const auto known = [&](const std::string& name) {
        return std::any_of(description_.operators.begin(), description_.operators.end(),
                           [&](const auto& op) { return op.name == name; });
    };
    for (std::string name = node;;) {
        if (known(name)) return name;
        const std::size_t slash = name.rfind('/');
        if (slash == std::string::npos) return node;
        name.resize(slash);
    }
}

std::vector<Executor::Timing> NetImpl::profile(bool whole_step) {
    require_params("profile()");
    const auto attempt = [&] {
        Built& plan = built();
        plan.ran_forward = false;
        const WithScratch scratch(*plan.executor);
        std::vector<Executor::Timing> timings =
            plan.executor->profile(whole_step, options_.progress);
        plan.has_outputs = true;
        return timings;
    };
    return retry_without_failed_engines(Access::impl(context_), attempt,
                                        [&](const EngineFailed&) { plan_anew(); });
}

std::string NetImpl::first_nan() {
    require_params("first_nan()");
    const auto find = [](Executor& executor) {
        const WithScratch scratch(executor);
        return first_nan_step(executor);
    };
    const Step* const step = find(*built().executor);
    if (step == nullptr) return {};
    std::string name = described(step->name);
    if (step->fused.empty()) return name;
    // The launch computes several operators. To find out which of them it was, run each separately.
    try {
        const BuildsLater later;  // most programs are not run
        const std::unique_ptr<Built> apart = make_built(current_, true);
        apart->executor->take_over(*current_->executor);
        if (const Step* const first = find(*apart->executor)) return described(first->name);
    } catch (const Error&) {
        // For example too little memory. Then the answer is the launch's last operator.
    }
    return name;
}

void NetImpl::backward(const Executor::AfterStep& after) {
    require(options_.mode != Mode::inference,
            "backward() needs a net in evaluation or training mode");
    require(built().ran_forward,
            "backward() needs a forward() of these shapes before it, whose results it reads");
    run(Part::backward, after);
}

}  // namespace dlprim

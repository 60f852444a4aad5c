// SPDX-License-Identifier: MIT
// NetImpl: from description to bound plans.
#include "api/net_impl.hpp"

#include "base/text.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "runtime/context_impl.hpp"
#include "train/initialize.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace dlprim {

namespace {

/// Bytes from which on a parameter is worth memory of its own, to be let go.
constexpr std::uint64_t large_param = 64 << 10;

/// How many numbers from 0 on an integer type holds.
std::int64_t count_of(DType dtype) {
    switch (dtype) {
        case DType::i8:
            return std::int64_t{1} << 7;
        case DType::u8:
            return std::int64_t{1} << 8;
        case DType::i16:
            return std::int64_t{1} << 15;
        case DType::u16:
            return std::int64_t{1} << 16;
        case DType::i32:
            return std::int64_t{1} << 31;
        case DType::u32:
            return std::int64_t{1} << 32;
        default:
            return std::numeric_limits<std::int64_t>::max();
    }
}

/// Whether the node keeps class numbers as they are: it changes the shape alone, or casts integers,
/// which are in range there as they are here if they are below `classes`, which may become fewer.
bool keeps_labels(const Graph& graph, const Node& node, std::int64_t& classes) {
    if (node.op->is_view()) return true;
    if (node.op->type() != "Cast" || !is_integer(graph.spec(node.inputs[0]).dtype) ||
        !is_integer(graph.spec(node.outputs[0]).dtype))
        return false;
    classes = std::min(classes, count_of(graph.spec(node.outputs[0]).dtype));
    return true;
}

/// Inputs that hold class numbers, followed through operators that keep these.
std::map<std::string, std::int64_t> label_inputs(const Graph& graph) {
    std::map<std::string, std::int64_t> classes;
    for (const Node& node : graph.nodes) {
        std::vector<TensorSpec> specs;
        for (ValueId id : node.inputs) specs.push_back(graph.spec(id));
        auto [input, count] = node.op->label_input(node.attrs, specs);
        if (input < 0) continue;
        ValueId value = node.inputs.at(static_cast<std::size_t>(input));
        while (graph.value(value).producer >= 0) {
            const Node& producer =
                graph.nodes[static_cast<std::size_t>(graph.value(value).producer)];
            if (!keeps_labels(graph, producer, count)) break;
            value = producer.inputs[0];
        }
        const Value& label = graph.value(value);
        if (label.role != Role::input) continue;
        std::int64_t& known = classes.emplace(label.name, count).first->second;
        known = std::min(known, count);
    }
    return classes;
}

/// The first step of a forward whose result is not finite, or null.
const Step* first_nan_step(Executor& executor) {
    const Step* found = nullptr;
    std::vector<std::byte> stored;
    std::vector<float> host;
    executor.keep_states();  // looking changes nothing
    executor.run_stepwise(Part::forward, [&](const Step& step) {
        const DType dtype = step.written_dtype;
        if (!is_float(dtype) || dtype == DType::f64) return true;
        for (const auto& [place, bytes] : step.written) {
            stored.resize(bytes);
            executor.read(place, stored.data(), bytes);
            host.resize(bytes / size_of(dtype));
            convert(stored.data(), dtype, host.data(), DType::f32, host.size());
            if (std::all_of(host.begin(), host.end(), [](float v) { return std::isfinite(v); }))
                continue;
            found = &step;
            return false;
        }
        return true;
    });
    executor.restore_states();
    return found;
}

void drop_losses(Graph& graph) {
    if (graph.losses.size() == graph.outputs.size()) return;
    std::erase_if(graph.outputs,
                  [&](const auto& output) { return graph.losses.count(output.first) > 0; });
    graph.losses.clear();
    graph.remove_dead();
}

}  // namespace

std::vector<std::string> apply_options(NetDescription& description, const NetOptions& options) {
    require(options.batch >= 0, "a batch of ", options.batch,
            " cannot be: it is at least 1, or 0 for what the network declares");
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

NetImpl::NetImpl(const Context& context, NetDescription description, const NetOptions& options)
    : context_(context), description_(std::move(description)), options_(options) {
    require(options.max_plans >= 1, "max_plans is ", options.max_plans,
            ": a net keeps at least the plan that it runs");
    remarks = apply_options(description_, options);
    base_ = build_graph(description_, options_);
    int order = 0;
    for (const Value& value : base_.values)
        if (value.role == Role::parameter) params_[value.name] = {value, order++};
}

std::map<std::string, Precision> NetImpl::precisions() const {
    std::map<std::string, Precision> all;
    for (const NetDescription::Op& op : description_.operators)
        all[op.name] = op.precision.value_or(options_.precision);
    return all;
}

std::vector<std::string> NetImpl::param_names() const {
    std::vector<std::string> names(params_.size());
    for (const auto& [name, param] : params_) names[static_cast<std::size_t>(param.order)] = name;
    return names;
}

const TensorSpec& NetImpl::input_spec(const std::string& name) const {
    std::vector<std::string> names;
    for (ValueId id : base_.inputs) {
        if (base_.value(id).name == name) return base_.spec(id);
        names.push_back(base_.value(id).name);
    }
    fail(ErrorKind::not_found, "the network has no input '", name, "'", did_you_mean(name, names));
}

const TensorSpec& NetImpl::param_spec(const std::string& name) const {
    const auto found = params_.find(name);
    if (found == params_.end())
        fail(ErrorKind::not_found, "the network has no parameter '", name, "'",
             did_you_mean(name, param_names()));
    return found->second.value.spec;
}

std::string NetImpl::plan_key() const {
    std::string key(solver_ ? "solver" : "");
    for (ValueId id : base_.inputs) key += base_.shape(id).str();
    return key;
}

std::unique_ptr<NetImpl::Built> NetImpl::make_built(const Built* before, bool apart) {
    Graph graph = build_graph(description_, options_);
    auto built = std::make_unique<Built>();
    built->classes = label_inputs(graph);
    for (const auto& [value, weight] : graph.losses)
        for (const auto& output : graph.outputs)
            if (output.first == value) built->losses.emplace_back(output.second, weight);

    if (options_.without_losses) drop_losses(graph);
    force_engines(graph, options_.engines);
    expand_composites(graph);
    ValueId loss_scale = no_value;
    if (options_.mode != Mode::inference && options_.backward) {
        DifferentiateOptions how;
        how.input_gradients = options_.input_gradients;
        how.seeds_are_inputs = options_.output_gradients;
        if (solver_ && !how.seeds_are_inputs) loss_scale = add_loss_scale(graph, *solver_);
        how.loss_scale = loss_scale;
        differentiate(graph, how);
    }
    if (solver_) add_update(graph, *solver_, loss_scale);

    PlanOptions plan_options;
    plan_options.fuse = options_.fuse && !apart;
    plan_options.engines = options_.engines;
    plan_options.progress = options_.progress;
    plan_options.tune_seconds = options_.tune_seconds;
    if (lets_go()) plan_options.bind_params_from = large_param;
    plan_options.chains = !apart;
    std::unique_ptr<Plan> plan = make_plan(context_, std::move(graph), plan_options);
    const bool shows = options_.progress && !plan->chains.empty();
    if (shows) options_.progress("compiling all small steps as one", 0, 1);
    built->executor = std::make_unique<Executor>(context_, std::move(plan), store_);

    if (shows) options_.progress("", 1, 1);
    built->executor->fetch_params_from(*this);

    const Plan& made = built->executor->plan();
    constexpr std::string_view prefix = "@grad/";
    for (std::size_t i = 0; i < made.externals.size(); ++i) {
        const External& external = made.externals[i];
        if (external.kind == External::Kind::parameter) continue;  // fetched when it is needed
        std::map<std::string, Tensor> Built::*list = &Built::inputs;
        std::string name = external.name;
        if (external.kind == External::Kind::output) {
            list = &Built::outputs;
        } else if (external.kind == External::Kind::gradient) {
            list = &Built::gradients;
        } else if (name.rfind(prefix, 0) == 0) {
            list = &Built::output_gradients;
            name = name.substr(prefix.size());
        }
        const TensorSpec& spec = made.graph.spec(external.value);
        Tensor& tensor = ((*built).*list)[name];
        if (before != nullptr && (before->*list).count(name)) tensor = (before->*list).at(name);
        if (!tensor.defined()) {
            tensor = Tensor(context_, spec.shape, spec.dtype);
            // A run without inputs is a mistake, but no reason to index by chance bits.
            const unsigned char zero = 0;
            Access::impl(context_).queue().fill({Access::buffer(tensor).get(), 0}, tensor.bytes(),
                                                &zero, 1);
        }
        built->executor->bind(static_cast<int>(i), tensor);
    }
    for (std::size_t i = 0; i < made.graph.values.size(); ++i) {
        const Value& value = made.graph.values[i];
        if (value.role != Role::parameter) continue;
        built->params[value.name] = static_cast<ValueId>(i);
        const auto gradient = made.graph.gradients.find(static_cast<ValueId>(i));
        if (gradient == made.graph.gradients.end()) continue;
        // Gradients of trained parameters lie in their block as the parameters do in theirs.
        const Place& place = made.places[i];
        const auto block = store_.find("gradients");
        if (place.kind == Place::Kind::block && block != store_.end())
            built->gradients[value.name] = Access::tensor(context_, block->second, place.offset,
                                                          value.spec.shape, value.spec.dtype);
    }
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

void NetImpl::drop_plans() {
    while (plans_.size() >= static_cast<std::size_t>(options_.max_plans))
        plans_.erase(std::min_element(
            plans_.begin(), plans_.end(),
            [](const auto& a, const auto& b) { return a.second->last_use < b.second->last_use; }));
}

void NetImpl::attach_solver(const SolverOptions& solver) {
    require(options_.mode == Mode::training, "a solver needs a net in training mode");
    for (const auto& [name, param] : params_)
        if (param.value.trainable && param.value.spec.dtype != DType::f32)
            fail(ErrorKind::unsupported, "parameter '", name, "' is ",
                 name_of(param.value.spec.dtype),
                 ", solvers train float parameters; frozen: true keeps its operator out of "
                 "training");
    const std::optional<SolverOptions> before = std::exchange(solver_, solver);
    const auto forget_plans = [&] {
        current_ = nullptr;
        plans_.clear();
        store_.erase("states");  // another solver's mean something else
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

void NetImpl::check_params_stay(const Graph& graph) const {
    for (const Value& value : graph.values) {
        if (value.role != Role::parameter) continue;
        const TensorSpec& spec = params_.at(value.name).value.spec;
        require(value.spec == spec, "with inputs of these shapes parameter '", value.name,
                "' would have shape ", value.spec.shape.str(), " in place of ", spec.shape.str(),
                ": another Net is to be made for them, with NetOptions::input_shapes");
    }
}

void NetImpl::reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) {
    const NetOptions before = options_;
    for (const auto& [name, shape] : shapes) options_.input_shapes[name] = shape;
    if (batch > 0) {
        options_.batch = batch;
        for (auto& [name, shape] : options_.input_shapes)
            if (shape.rank() > 0) shape = shape.with(0, batch);
    }
    try {
        Graph graph = build_graph(description_, options_);
        check_params_stay(graph);
        base_ = std::move(graph);
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

std::uint64_t NetImpl::feed_bytes() {
    std::uint64_t bytes = 0;
    for (const auto& [name, feed] : built().feeds) bytes += feed->device_bytes();
    return bytes;
}

Tensor NetImpl::param(const std::string& name) {
    param_spec(name);  // throws where there is none
    const Built& plan = built();
    Tensor tensor = plan.executor->tensor(plan.params.at(name));
    if (!tensor.defined()) {
        if (const auto found = held_.find(name); found != held_.end()) {
            tensor = found->second;
        } else {
            const TensorSpec& spec = params_.at(name).value.spec;
            tensor = Tensor(context_, spec.shape, spec.dtype);
            if (source_)
                fill(name, tensor);
            else
                tensor.fill(0);
            done();
            held_[name] = tensor;
        }
    }
    given_out_.insert(name);
    return tensor;
}

void NetImpl::require_params(std::string_view action) const {
    if (source_) return;
    std::string first;
    std::size_t others = 0;
    for (const std::string& name : param_names()) {
        if (given_out_.count(name)) continue;
        if (first.empty())
            first = name;
        else
            ++others;
    }
    require(first.empty(), action, " needs values of all parameters, and '", first, "'",
            others > 0 ? cat(" and ", others, others == 1 ? " other" : " others", " have") : " has",
            " none: call initialize() or load_weights() before, or write each of them through "
            "param()");
}

void NetImpl::read_param(const std::string& name, std::vector<std::byte>& data) {
    const Built& plan = built();
    Tensor tensor = plan.executor->tensor(plan.params.at(name));
    if (const auto found = held_.find(name); found != held_.end()) tensor = found->second;
    if (!tensor.defined()) return source_->read(params_.at(name).value, data);
    data.resize(tensor.bytes());
    tensor.copy_to_host(data.data(), data.size());
}

Tensor NetImpl::fetch(const External& parameter) {
    if (const auto found = held_.find(parameter.name); found != held_.end()) return found->second;
    const TensorSpec& spec = params_.at(parameter.name).value.spec;
    Tensor tensor(context_, spec.shape, spec.dtype);
    fill(parameter.name, tensor);
    if (!parameter.setup_only) held_[parameter.name] = tensor;
    return tensor;
}

void NetImpl::fill(const std::string& name, Tensor tensor) {
    std::vector<std::byte> data;
    source_->read(params_.at(name).value, data);
    tensor.copy_from_host(data.data(), data.size());
}

bool NetImpl::lets_go() const {
    return options_.mode == Mode::inference && !options_.keep_parameters;
}

void NetImpl::fill_from(std::shared_ptr<ParamSource> source, bool pack_now) {
    const std::shared_ptr<ParamSource> before = std::exchange(source_, std::move(source));
    const bool filled_later = std::exchange(fill_later_, false);
    try {
        built();
        fill_all();
        if (pack_now && lets_go()) pack();
        source_->close();
    } catch (...) {
        source_ = before;
        fill_later_ = filled_later;
        params_changed();
        throw;
    }
}

void NetImpl::fill_all() {
    for (const auto& [name, param] : params_) {
        Tensor tensor = current_->executor->tensor(current_->params.at(name));
        if (const auto found = held_.find(name); found != held_.end()) tensor = found->second;
        if (tensor.defined()) fill(name, tensor);
    }
    params_changed();
}

void NetImpl::params_changed() {
    for (auto& [key, plan] : plans_)
        if (plan) plan->executor->params_changed();
}

void NetImpl::set_seed(std::uint64_t seed) {
    options_.seed = seed;
    for (auto& [key, plan] : plans_)
        if (plan) plan->executor->set_integer("@seed", seed);
}

void NetImpl::initialize(std::string_view method) {
    check_initialization(method);
    auto values =
        std::make_shared<InitialValues>(method, options_.seed, Access::impl(context_).pool());
    if (current_ != nullptr) return fill_from(std::move(values), false);
    // A solver that is attached before the first run would have all planned twice.
    source_ = std::move(values);
    fill_later_ = true;
}

void NetImpl::forward() {
    require_params("forward()");
    Built& plan = built();
    if (options_.mode == Mode::training) plan.executor->set_integer("@step", step_count++);
    run(Part::forward);
    built().ran_forward = true;
}

void NetImpl::run(Part part) {
    bool forward_first = false;
    try {
        return built().executor->run(part);
    } catch (const EngineFailure& failure) {
        forward_first = failure.rerun_forward;
    }
    plan_anew();
    if (forward_first) run(Part::forward);
    run(part);
}

void NetImpl::pack() {
    try {
        return built().executor->set_up();
    } catch (const EngineFailure&) {
    }
    plan_anew();
    pack();
}

void NetImpl::plan_anew() {
    std::unique_ptr<Built>& slot = plans_.at(plan_key());
    std::unique_ptr<Built> made = make_built(slot.get());
    made->executor->take_over(*slot->executor);
    made->ran_forward = slot->ran_forward;
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
    for (;;) {
        Built& plan = built();
        plan.ran_forward = false;
        try {
            return plan.executor->profile(whole_step, options_.progress);
        } catch (const EngineFailure&) {
            plan_anew();
        }
    }
}

std::string NetImpl::first_nan() {
    require_params("first_nan()");
    const Step* const step = first_nan_step(*built().executor);
    if (step == nullptr) return {};
    const std::string name = described(step->name);
    if (step->fused.empty()) return name;
    // Several operators in one launch: which of them it was shows where each has a launch.
    try {
        const BuildsLater later;  // of the programs, most are not run
        const std::unique_ptr<Built> apart = make_built(current_, true);
        apart->executor->take_over(*current_->executor);
        if (const Step* const first = first_nan_step(*apart->executor))
            return described(first->name);
    } catch (const Error&) {
        // More memory than there is, say: the launch is named after its last operator.
    }
    return name;
}

void NetImpl::backward() {
    require(options_.mode != Mode::inference,
            "backward() needs a net in evaluation or training mode");
    require(built().ran_forward,
            "backward() needs a forward() of these shapes before it: it goes back through what "
            "that left");
    run(Part::backward);
}

}  // namespace dlprim

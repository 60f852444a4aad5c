// SPDX-License-Identifier: MIT
// ONNXRun: the walk through the tree, and the import where it ends; see onnx_run.hpp.
#include "api/onnx_run.hpp"

#include "api/model_values.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

using onnx::HostValue;
using onnx::Ref;

/// About what the host keeps of an operator: its node, its launch and their texts.
constexpr std::uint64_t bytes_per_operator = 8 << 10;

std::string bytes_of(const HostTensor& value) {
    return {reinterpret_cast<const char*>(value.data.data()), value.data.size()};
}

/// What chooses the way behind a step: the value that was read, or the shapes of what a function of
/// the host made.
std::string key_of(const std::vector<HostValue>& values, bool by_shape) {
    std::string key;
    for (const HostValue& value : values)
        key += by_shape ? cat(name_of(value->dtype), value->shape.str()) : bytes_of(*value);
    return key;
}

}  // namespace

ONNXRun::ONNXRun(ONNXProgram& program, const ONNXSession::Values& inputs)
    : program_(program), node_(&program.top_) {
    for (const onnx::ValueInfo& info : program.model_->graph.inputs) {
        const auto given = inputs.find(info.name);
        if (given == inputs.end()) continue;
        key_ += cat(info.name, '=');
        fed_[info.name] = feed(given->second);
    }
    std::vector<HostValue> contents = std::move(contents_);
    contents_.clear();
    records_.push_back({nullptr, std::move(contents)});
    advance();
}

void ONNXRun::Copies::wait() {
    if (Queue* const copying = std::exchange(queue, nullptr)) copying->finish();
}

ONNXRun::Copies::~Copies() {
    try {
        wait();
    } catch (const Error&) {
        // The caller gets the error that has ended the run.
    }
}

void ONNXRun::copy(const HostTensor& contents, const Tensor& memory) {
    ContextImpl& device = Access::impl(memory.context());
    if (!device.is_host()) copies_.queue = &device.queue();
    device.queue().write({Access::buffer(memory).get(), memory.byte_offset()}, contents.data.data(),
                         memory.bytes(), device.is_host());
}

/// The input as the importer sees it. Contents and key are noted in the order in which the importer
/// makes inputs.
onnx::Fed ONNXRun::feed(const ONNXValue& value) {
    switch (value.kind()) {
        case ONNXValue::Kind::tensor:
            contents_.push_back(value.shared_tensor());
            key_ += cat(value.str(), ';');
            return {TensorSpec{value.tensor().shape, value.tensor().dtype}};
        case ONNXValue::Kind::strings:
            key_ += value.str();
            for (const std::string& text : value.strings().values)
                key_ += cat(text.size(), ':', text);
            return {onnx::HostStrings{value.strings().shape, value.strings().values}};
        case ONNXValue::Kind::sequence: {
            key_ += cat(value.str(), '[');
            onnx::Fed::Sequence elements;
            for (const ONNXValue& element : value.sequence()) elements.push_back(feed(element));
            key_ += ']';
            return {std::move(elements)};
        }
        case ONNXValue::Kind::maps:
            fail(ErrorKind::unsupported, "an input is ", value.str(), ", which is not supported");
        case ONNXValue::Kind::none:
            break;
    }
    key_ += "none;";
    return {};
}

/// Goes on from the node where the last record was made to its child, which may be new.
void ONNXRun::advance() {
    const Record& last = records_.back();
    const bool makes_slots = !last.step || last.step->function;
    const std::string key = last.step ? key_of(last.values, makes_slots) : key_;
    std::unique_ptr<Node>& child = node_->children[key];
    if (!child) {
        child = std::make_unique<Node>();
        child->parent = node_;
        child->key = key;
        if (makes_slots)
            for (const HostValue& value : last.values) {
                child->slots.push_back({{value->shape, value->dtype}, {}, {}});
                program_.count(*child, value->data.size());
            }
    }
    node_ = child.get();
    for (std::size_t i = 0; i < node_->slots.size(); ++i) {
        ONNXProgram::Slot& slot = node_->slots[i];
        slots_.push_back(&slot);
        contents_.push_back(last.values[i]);
        for (Tensor* memory : {&slot.device, &slot.host})
            if (memory->defined()) copy(*contents_.back(), *memory);
    }
}

ONNXSession::Values ONNXRun::run() {
    while (node_->step && !node_->is_leaf) {
        records_.push_back(execute(*node_->step));
        advance();
    }
    if (!node_->is_leaf) import();
    execute(*node_->step);
    node_->last_use = ++program_.uses_;
    program_.drop_surplus();
    program_.host_nodes_ = node_->host_nodes;
    ONNXSession::Values values;
    const auto& outputs = program_.model_->graph.outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i)
        values[outputs[i].name] = result(node_->results[i]);
    copies_.wait();
    return values;
}

ONNXRun::Record ONNXRun::execute(const Step& step) {
    if (step.net) {
        step.net->forward();
        Access::impl(step.net->context()).queue().flush();
    }
    Record record{&step, {}};
    for (const Place& place : step.reads) record.values.push_back(contents(place));
    if (step.function) record.values = step.function(record.values);
    return record;
}

HostValue ONNXRun::contents(const Place& place) const {
    if (place.known) return place.known;
    if (place.slot >= 0) return contents_[static_cast<std::size_t>(place.slot)];
    auto value = std::make_shared<HostTensor>();
    value->shape = place.tensor.shape();
    value->dtype = place.tensor.dtype();
    value->data.resize(place.tensor.bytes());
    place.tensor.copy_to_host(value->data.data(), value->data.size());
    // Copies have come before it in the queue.
    if (!Access::impl(place.tensor.context()).is_host()) copies_.queue = nullptr;
    return value;
}

ONNXValue ONNXRun::result(const Result& from) const {
    if (from.maps)
        return ONNXValue(ONNXMaps{from.maps->texts, from.maps->numbers, *contents(*from.place)});
    if (from.place) return ONNXValue(contents(*from.place));
    if (!from.elements) return from.value;
    ONNXValue::Sequence elements;
    for (const Result& element : *from.elements) elements.push_back(result(element));
    return ONNXValue(std::move(elements));
}

/// The rest of the way: the importer goes it from its beginning, by the records so far.
void ONNXRun::import() {
    program_.drop_leaves(static_cast<std::size_t>(program_.options_.max_programs) - 1);
    program_.memory_.forget_unused();
    replayed_ = 1;  // the inputs
    onnx::Importer importer(*program_.model_, program_.limits_);
    importer.run_stages_by(*this);
    builder_ = &importer.builder();
    builder_->share_copies(program_.copies_);
    importer.make_fed_inputs(fed_);
    const auto outputs = importer.run();
    std::vector<Ref> wanted;
    for (const auto& output : outputs)
        output.second.each_tensor([&](Ref value) {
            if (value->strings) builder_->know(value);
            if (!value->known) wanted.push_back(value);
        });
    onnx::Part part = builder_->take_part(wanted);
    std::unique_ptr<Step> step = make_step(part, std::move(part.operators));
    find_outputs(part, *step);
    for (const auto& output : outputs) node_->results.push_back(result_of(output.second));
    node_->step = std::move(step);
    node_->is_leaf = true;
    node_->host_nodes = importer.host_nodes();
    program_.leaves_.push_back(node_);
}

HostValue ONNXRun::read(const onnx::Part& part, Ref wanted) {
    return run_part(part, {wanted}, nullptr).values.at(0);
}

std::vector<TensorSpec> ONNXRun::call(const onnx::Part& part, const std::vector<Ref>& wanted,
                                      const onnx::HostFunction& function) {
    std::vector<TensorSpec> specs;
    for (const HostValue& value : run_part(part, wanted, function).values)
        specs.push_back({value->shape, value->dtype});
    return specs;
}

ONNXRun::Record ONNXRun::run_part(const onnx::Part& part, const std::vector<Ref>& wanted,
                                  const onnx::HostFunction& function) {
    if (replayed_ == records_.size()) {
        std::unique_ptr<Step> step = make_step(part, part.operators, suits_host(part, wanted));
        find_outputs(part, *step);
        for (Ref value : wanted) step->reads.push_back(place_of(value));
        step->function = function;
        node_->step = std::move(step);
        records_.push_back(execute(*node_->step));
        advance();
    } else {
        find_outputs(part, *records_[replayed_].step);
    }
    return records_[replayed_++];
}

/// Whether the part computes a few integers from a few that come with the run. The device would not
/// be faster, and the host has the result at hand.
bool ONNXRun::suits_host(const onnx::Part& part, const std::vector<Ref>& wanted) const {
    constexpr std::int64_t most = 4096;
    const auto is_small = [](Ref value) {
        return !is_float(value->spec.dtype) && value->spec.shape.numel() <= most;
    };
    bool suits = part.outputs.size() == 1 && wanted.size() == 1 && part.outputs[0] == wanted[0];
    for (Ref value : part.inputs) suits = suits && value->fed >= 0 && is_small(value);
    for (const onnx::BuiltOperator& op : part.operators)
        suits = suits && std::all_of(op.outputs.begin(), op.outputs.end(), is_small);
    return suits;
}

std::unique_ptr<ONNXProgram::Step> ONNXRun::make_step(const onnx::Part& part,
                                                      std::vector<onnx::BuiltOperator> operators,
                                                      bool on_host) {
    auto step = std::make_unique<Step>();
    if (operators.empty()) return step;
    const std::uint64_t bytes = operators.size() * bytes_per_operator;
    onnx::Names names;
    onnx::NamedRefs inputs, outputs;
    std::map<std::string, Tensor> tensors;
    const auto add = [&](onnx::NamedRefs& list, Ref value) {
        const std::string name = builder_->name_of(value);
        list.emplace_back(names.take(name.empty() ? "value" : name), value);
    };
    for (Ref value : part.inputs) {
        add(inputs, value);
        tensors[inputs.back().first] = memory_of(value, on_host);
    }
    for (Ref value : part.outputs) add(outputs, value);
    onnx::ImportedNet net = onnx::write_net(*builder_, std::move(operators), inputs, outputs);
    net.description.source = program_.model_->source;
    NetOptions options;
    options.precision = program_.options_.precision;
    step->net = std::make_shared<NetImpl>(on_host ? program_.host() : program_.context_,
                                          std::move(net.description), options);
    step->net->read_inputs_from(std::move(tensors));
    step->net->set_source(std::make_shared<ModelValues>(std::move(net.values), &program_.memory_));
    step->net->run_among_many(on_host ? program_.host_kept_ : program_.kept_);
    for (const auto& [name, value] : outputs)
        step->outputs.push_back(step->net->built().outputs.at(name));
    program_.count(*node_, step->net->kept_bytes() + bytes);
    ++program_.nets_made_;
    return step;
}

void ONNXRun::find_outputs(const onnx::Part& part, const Step& step) {
    for (std::size_t i = 0; i < part.outputs.size(); ++i)
        computed_[part.outputs[i]] = step.outputs[i];
}

/// The memory of a value that is fed or computed before.
Tensor ONNXRun::memory_of(Ref value, bool on_host) {
    if (value->fed < 0) return computed_.at(value);
    const auto at = static_cast<std::size_t>(value->fed);
    ONNXProgram::Slot& slot = *slots_[at];
    Tensor& memory = on_host ? slot.host : slot.device;
    if (!memory.defined()) {
        memory =
            Tensor(on_host ? program_.host() : program_.context_, slot.spec.shape, slot.spec.dtype);
        copy(*contents_[at], memory);
    }
    return memory;
}

ONNXProgram::Place ONNXRun::place_of(Ref value) {
    Place place;
    if (value->fed >= 0)
        place.slot = value->fed;
    else if (value->known)
        place.known = value->known;
    else
        place.tensor = computed_.at(value);
    return place;
}

ONNXProgram::Result ONNXRun::result_of(const onnx::AnyValue& value) {
    Result result;
    if (const auto* const sequence = value.sequence()) {
        result.elements.emplace();
        for (const onnx::AnyValue& element : *sequence)
            result.elements->push_back(result_of(element));
    } else if (const auto* const maps = value.maps()) {
        result.place = place_of(maps->values);
        result.maps = ONNXMaps{maps->texts, maps->numbers, {}};
    } else if (const Ref tensor = value.tensor()) {
        if (tensor->strings)
            result.value = ONNXValue(ONNXStrings{tensor->spec.shape, builder_->texts(tensor)});
        else
            result.place = place_of(tensor);
    }
    return result;
}

}  // namespace dlprim

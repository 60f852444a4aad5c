// SPDX-License-Identifier: MIT
// NetImpl: the values of parameters, where they come from, and which have memory of their own.
#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "train/initialize.hpp"

#include <cstddef>
#include <utility>

namespace dlprim {

Tensor NetImpl::param(const std::string& name) {
    param_spec(name);  // throws if it does not exist
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

void NetImpl::read_values(const std::string& name, std::vector<std::byte>& data) {
    const Built& plan = built();
    Tensor tensor = plan.executor->tensor(plan.params.at(name));
    if (const auto found = held_.find(name); found != held_.end()) tensor = found->second;
    if (!tensor.defined()) return source_->read(params_.at(name).value, data);
    data.resize(tensor.bytes());
    tensor.copy_to_host(data.data(), data.size());
}

Tensor NetImpl::fetch(const External& parameter) {
    if (const auto found = held_.find(parameter.name); found != held_.end()) return found->second;
    const Value& value = params_.at(parameter.name).value;
    if (among_many_)
        if (Tensor shared = source_->shared(context_, value); shared.defined()) return shared;
    Tensor tensor(context_, value.spec.shape, value.spec.dtype);
    fill(parameter.name, tensor);
    if (!parameter.setup_only) held_[parameter.name] = tensor;
    return tensor;
}

void NetImpl::fill(const std::string& name, Tensor tensor) {
    std::vector<std::byte> data;
    source_->read(params_.at(name).value, data);
    tensor.copy_from_host(data.data(), data.size());
}

void NetImpl::fill_from(std::shared_ptr<ParamSource> source, bool pack_now) {
    const std::shared_ptr<ParamSource> before = std::exchange(source_, std::move(source));
    const bool filled_later = std::exchange(fill_later_, false);
    try {
        built();
        fill_all();
        if (pack_now && lets_go()) pack();
    } catch (...) {
        source_ = before;
        fill_later_ = filled_later;
        params_changed();
        throw;
    }
}

std::string NetImpl::content_of(const Plan& plan, std::size_t block) const {
    const std::string& name = plan.blocks[block].name;
    if (name != "params" && name != "fixed") return {};
    std::string content = cat(name, " of ", plan.blocks[block].bytes, " bytes:");
    for (std::size_t i = 0; i < plan.graph.values.size(); ++i) {
        const Value& value = plan.graph.values[i];
        const Place& place = plan.places[i];
        if (value.role == Role::parameter && place.kind == Place::Kind::block &&
            place.index == static_cast<int>(block))
            content += cat(' ', source_->identity(value), " as ", name_of(value.spec.dtype), " at ",
                           place.offset);
    }
    return content;
}

void NetImpl::find_blocks(Plan& plan) const {
    for (std::size_t i = 0; i < plan.blocks.size(); ++i)
        if (const std::string content = content_of(plan, i); !content.empty())
            if (auto found = kept_->find(content)) plan.blocks[i].memory = std::move(found->memory);
}

void NetImpl::keep_blocks() {
    const Plan& plan = current_->executor->plan();
    for (std::size_t i = 0; i < plan.blocks.size(); ++i)
        if (const std::string content = content_of(plan, i);
            !content.empty() && !plan.blocks[i].memory)
            kept_->add(content, store_.at(plan.blocks[i].name), 0);
}

void NetImpl::fill_all() {
    const Plan& plan = current_->executor->plan();
    for (const auto& [name, param] : params_) {
        const ValueId value = current_->params.at(name);
        const Place& place = plan.places[static_cast<std::size_t>(value)];
        if (place.kind == Place::Kind::block &&
            plan.blocks[static_cast<std::size_t>(place.index)].memory)
            continue;  // another net has filled it in
        Tensor tensor = current_->executor->tensor(value);
        if (const auto found = held_.find(name); found != held_.end()) tensor = found->second;
        if (tensor.defined()) fill(name, tensor);
    }
    // What other nets of a session have made of the source's values stays as it is.
    if (among_many_)
        keep_blocks();
    else
        params_changed();
}

void NetImpl::params_changed() {
    kept_->clear();
    for (auto& [key, plan] : plans_)
        if (plan) plan->executor->params_changed();
}

void NetImpl::initialize(std::string_view method) {
    check_initialization(method);
    set_source(
        std::make_shared<InitialValues>(method, options_.seed, Access::impl(context_).pool()));
}

void NetImpl::set_source(std::shared_ptr<ParamSource> source) {
    if (current_ != nullptr) {
        fill_from(std::move(source), false);
        source_->close();
        return;
    }
    // Does not plan yet: a solver that is attached before the first run needs another plan.
    source_ = std::move(source);
    fill_later_ = true;
}

}  // namespace dlprim

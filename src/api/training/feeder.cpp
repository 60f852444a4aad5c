// SPDX-License-Identifier: MIT
// Feeder.
#include "api/training/feeder.hpp"

#include "api/net_impl.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

namespace {

/// Checks labels, because one that the network's type cannot hold would silently become another.
void check_kept(const std::string& name, const void* labels,
                const std::vector<std::byte>& converted, DType want, std::size_t count) {
    std::vector<std::int32_t> given(count), kept(count);
    std::memcpy(given.data(), labels, count * sizeof(std::int32_t));
    convert(converted.data(), want, kept.data(), DType::i32, count);
    const auto [a, b] = std::mismatch(given.begin(), given.end(), kept.begin());
    if (a != given.end())
        fail(ErrorKind::invalid_argument, "label ", *a, " does not fit into input '", name,
             "', which is ", name_of(want), "; int holds every label");
}

void upload_values(Net& net, const std::string& name, const void* data, DType dtype,
                   std::size_t count) {
    const DType want = net.input_dtype(name);
    if (want == dtype) {
        net.set_input(name, data, count * size_of(dtype));
        return;
    }
    std::vector<std::byte> converted(count * size_of(want));
    convert(data, dtype, converted.data(), want, count);
    if (dtype == DType::i32) check_kept(name, data, converted, want, count);
    net.set_input(name, converted.data(), converted.size());
}

/// "3x224x224".
std::string shape_text(const Shape& shape) {
    std::string text;
    for (const std::int64_t size : shape.dims()) text += cat(text.empty() ? "" : "x", size);
    return text;
}

}  // namespace

Feeder::Feeder(const TrainConfig& config, DataParts parts)
    : config_(config), parts_(std::move(parts)), part_(parts_.train) {
    if (size() < config.batch && !pads())
        fail(ErrorKind::invalid_argument, "there are ", size(),
             part_.data->has_pictures() ? " images in " : " examples in ", part_.data->source(),
             " to train on, fewer than a batch of ", config.batch);
}

Feeder::Feeder(const Feeder& training, Test)
    : config_(training.config_), is_test_(true), part_(training.parts_.test) {}

bool Feeder::has_test() const {
    return static_cast<bool>(parts_.test);
}

bool Feeder::pads() const {
    return part_.data->target_kind() == TargetKind::mask && !part_.data->has_pictures();
}

void Feeder::attach(Net& net, const Roles& roles) {
    roles_ = roles;
    LoaderOptions options;
    options.batch = batch_size();
    options.seed = config_.seed;
    options.training = !is_test_;
    options.whole = pads();
    const Dataset& data = *part_.data;
    const std::int64_t classes = net.label_classes(roles.labels);
    const Shape labels = net.input_shape(roles.labels);
    const std::int64_t each = labels.numel() / config_.shard_batch();
    if (data.target_kind() == TargetKind::label) {
        // A loss that takes floats takes a row of a number for each class.
        options.one_hot = classes == 0 && each > 1;
        options.classes = options.one_hot ? each : classes;
        check_labels(data, options.classes);
        const std::int64_t known = class_count(data);
        if (!is_test_ && known < options.classes)
            remarks_.push_back(cat("the network has ", options.classes,
                                   " outputs for classes, and ", data.source(), " has ", known,
                                   known == 1 ? " class" : " classes",
                                   ": the others are never right"));
    } else if (data.target_kind() == TargetKind::mask) {
        labels_ = core_of(net).label_input(roles.labels).value_or(labels_);
    } else if (classes > 0 || each != data.target_size()) {
        fail(ErrorKind::invalid_argument, "targets of ", data.source(), " are ", data.target_size(),
             " numbers, input '", roles.labels, "' has shape ", labels.str(),
             classes > 0 ? " and takes class numbers" : "");
    }
    try {
        loader_ = make_loader(part_, config_.data, options);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::invalid_argument) throw;
        fail(ErrorKind::format, config_.name, ": ", error.what());
    }
    check_shapes(net);
    if (const std::int64_t all = batches() * config_.epochs;
        !is_test_ && config_.solver.accumulate > all)
        fail(ErrorKind::format, config_.name, ": solver.accumulate is ", config_.solver.accumulate,
             ", but the run has ", all, " batches: parameters would never change");
}

void Feeder::check_shapes(Net& net) const {
    const Shape want = net.input_shape(roles_.images), have = loader_->input_shape();
    const Dataset& data = *part_.data;
    const std::int64_t batch = config_.shard_batch();
    require(
        want.rank() > 0 && want.numel() == batch * have.numel(),
        data.has_pictures() ? "images of " : "inputs of ", data.source(), " are ", shape_text(have),
        ", input '", roles_.images, "' has shape ", want.str(),
        data.has_pictures() ? "; augmentation (resize, crop) brings pictures to another size" : "");
    if (data.target_kind() != TargetKind::mask) return;
    const Shape labels = net.input_shape(roles_.labels);
    require(labels.numel() == batch * have[1] * have[2], "masks of ", data.source(), " are ",
            have[1], "x", have[2], ", input '", roles_.labels, "' has shape ", labels.str());
}

std::int64_t Feeder::batches() const {
    return (size() + (is_test_ || pads() ? batch_size() - 1 : 0)) / batch_size();
}

void Feeder::start(int epoch, std::int64_t batch) {
    // Test sets are the same in each epoch.
    const std::int64_t position = (is_test_ ? 0 : epoch * batches()) + batch;
    const bool is_next = is_test_ ? position == position_ % batches() : position == position_;
    if (is_next) return;
    loader_->start(position / batches(), position % batches());
    position_ = position;
    taken_ = nullptr;
}

Targets Feeder::take() {
    taken_ = &loader_->next();
    ++position_;
    if (const auto full = static_cast<std::size_t>(batch_size());
        pads() && taken_->examples.size() < full) {
        padded_ = *taken_;
        padded_.inputs.resize(full * static_cast<std::size_t>(loader_->input_shape().numel()));
        padded_.labels.resize(padded_.inputs.size(),
                              static_cast<std::int32_t>(labels_.ignored.value()));
        taken_ = &padded_;
    }
    const Batch& batch = *taken_;
    Targets targets;
    targets.examples = targets.weight = batch.count;
    if (pads())
        targets.weight = std::ssize(batch.labels) -
                         std::count(batch.labels.begin(), batch.labels.end(), *labels_.ignored);
    targets.indices = batch.examples;
    targets.classes = batch.labels;
    targets.values = batch.targets;
    targets.ignored = labels_.ignored;
    if (batch.count > 0 && part_.data->target_kind() == TargetKind::mask) check_masks(batch);
    return targets;
}

void Feeder::upload(Net& net, int shard, int shards) {
    const Batch& batch = *taken_;
    const auto set = [&](const std::string& name, const auto& all, DType dtype) {
        const std::size_t each = all.size() / static_cast<std::size_t>(shards);
        upload_values(net, name, all.data() + each * static_cast<std::size_t>(shard), dtype, each);
    };
    set(roles_.images, batch.inputs, DType::f32);
    if (!batch.targets.empty())
        set(roles_.labels, batch.targets, DType::f32);
    else
        set(roles_.labels, batch.labels, DType::i32);
}

Targets Feeder::feed(Net& net) {
    Targets targets = take();
    if (targets.examples == 0) return targets;
    // The last batch may be smaller, so that a mean over it is a mean over its examples only.
    if (!pads() && net.input_shape(roles_.images)[0] != targets.examples)
        net.reshape(targets.examples);
    upload(net, 0, 1);
    return targets;
}

void Feeder::check_masks(const Batch& batch) const {
    const std::size_t each = batch.labels.size() / static_cast<std::size_t>(batch.count);
    for (std::size_t i = 0; i < batch.labels.size() && labels_.classes > 0; ++i)
        if (!labels_.holds(batch.labels[i]))
            fail(ErrorKind::format, "the mask of '", part_.data->name(batch.examples[i / each]),
                 "' holds class ", batch.labels[i], ", the network has ", labels_.classes,
                 " classes: they run from 0 to ", labels_.classes - 1,
                 labels_.ignored ? ""
                                 : "; ignore_index of the loss names a class that does not count");
}

const Dataset& Feeder::data() const {
    return *part_.data;
}

std::optional<Preprocessing> Feeder::preprocessing() const {
    return preprocessing_of(config_.data, *part_.data, loader_->input_shape());
}

std::vector<std::string> Feeder::notes_before() const {
    std::vector<std::string> notes = part_.data->remarks();
    notes.insert(notes.end(), remarks_.begin(), remarks_.end());
    return notes;
}

std::vector<std::string> Feeder::notes_after() const {
    std::vector<std::string> notes;
    const std::map<std::int64_t, std::string> all = broken();
    if (!all.empty())
        notes.push_back(cat(all.size(), all.size() == 1 ? " example of " : " examples of ",
                            part_.data->source(), " could not be read and ",
                            all.size() == 1 ? "was" : "were", " skipped: ", all.begin()->second,
                            all.size() == 1 ? "" : ", and others (dlprim_data lists them)"));
    const std::string waited = text_of(waits());
    if (!is_test_ && !waited.empty()) notes.push_back(waited);
    return notes;
}

LoaderWaits Feeder::waits() const {
    return loader_ ? loader_->waits() : LoaderWaits{};
}

std::map<std::int64_t, std::string> Feeder::broken() const {
    return loader_ ? loader_->broken() : std::map<std::int64_t, std::string>{};
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// Feeder.
#include "api/training/feeder.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

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

void upload(Net& net, const std::string& name, const void* data, DType dtype, std::size_t count) {
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

}  // namespace

Feeder::Feeder(const TrainConfig& config, Set set)
    : config_(config),
      set_(set),
      data_(set == Set::training ? config.train.images : config.test.images,
            set == Set::training ? config.train.labels : config.test.labels) {
    augmentation_ = {config.mean, config.std, false, 0};
    if (set == Set::training) {
        augmentation_.flip = config.flip;
        augmentation_.crop_pad = config.crop_pad;
    }
}

void Feeder::attach(Net& net, const Roles& roles) {
    roles_ = roles;
    const Shape want = net.input_shape(roles.images);
    const std::int64_t pixels = data_.channels() * data_.height() * data_.width();
    require(want.rank() > 0 && want.numel() == config_.batch * pixels, "images of '",
            data_.images_file(), "' are ", data_.channels(), "x", data_.height(), "x",
            data_.width(), ", input '", roles.images, "' has shape ", want.str());
    data_.check_labels(net.label_classes(roles.labels));
    if (set_ == Set::test) {
        require(size() > 0, "the test set is empty");
        return;
    }
    require(size() >= config_.batch, "there are ", size(),
            " images to train on, fewer than a batch of ", config_.batch);
    check_images(config_, size(), data_.height(), data_.width());
}

std::int64_t Feeder::batches() const {
    return (size() + (set_ == Set::test ? config_.batch - 1 : 0)) / config_.batch;
}

std::int64_t Feeder::examples(std::int64_t batch) const {
    return std::min(config_.batch, size() - batch * config_.batch);
}

void Feeder::start(int epoch, std::int64_t batch) {
    batch_ = batch;
    if (epoch_ == epoch) return;
    epoch_ = epoch;
    if (set_ == Set::training) {
        order_ = data_.shuffled(config_.seed, static_cast<std::uint64_t>(epoch));
        return;
    }
    order_.resize(static_cast<std::size_t>(size()));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
}

Targets Feeder::feed(Net& net) {
    const std::int64_t first = batch_ * config_.batch, count = examples(batch_);
    const std::int64_t pixels = data_.channels() * data_.height() * data_.width();
    images_.resize(static_cast<std::size_t>(count * pixels));
    Targets targets;
    targets.examples = count;
    targets.classes.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t index = order_.at(static_cast<std::size_t>(first + i));
        data_.image(index, augmentation_, config_.seed, static_cast<std::uint64_t>(epoch_),
                    images_.data() + i * pixels);
        targets.classes[static_cast<std::size_t>(i)] = data_.label(index);
    }
    upload(net, roles_.images, images_.data(), DType::f32, images_.size());
    upload(net, roles_.labels, targets.classes.data(), DType::i32, targets.classes.size());
    ++batch_;
    return targets;
}

}  // namespace dlprim

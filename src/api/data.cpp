// SPDX-License-Identifier: MIT
// TrainingData: summaries of data sets.
#include <dlprim/data.hpp>

#include "api/training/contact_sheet.hpp"
#include "base/text.hpp"
#include "train/config.hpp"
#include "train/data/open_data.hpp"
#include "train/data/random.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

namespace dlprim {

namespace {

constexpr std::size_t most_messages = 100;

/// Sums over the examples that were read.
struct DataSums {
    std::int64_t read = 0;
    double least = INFINITY, most = -INFINITY;
    std::vector<double> count, sum, squares;  ///< by channel or feature
    std::int64_t least_height = INT64_MAX, most_height = 0, least_width = INT64_MAX, most_width = 0;
    std::vector<std::int64_t> mask_counts = std::vector<std::int64_t>(256);

    void add(const Example& example, bool pictures) {
        ++read;
        if (pictures)
            add_picture(example);
        else
            add_values(example);
        for (const std::uint8_t value : example.mask.pixels) ++mask_counts[value];
    }
    void add(const DataSums& other) {
        read += other.read;
        least = std::min(least, other.least);
        most = std::max(most, other.most);
        make_room(other.count.size());
        for (std::size_t i = 0; i < other.count.size(); ++i) {
            count[i] += other.count[i];
            sum[i] += other.sum[i];
            squares[i] += other.squares[i];
        }
        least_height = std::min(least_height, other.least_height);
        most_height = std::max(most_height, other.most_height);
        least_width = std::min(least_width, other.least_width);
        most_width = std::max(most_width, other.most_width);
        for (std::size_t i = 0; i < mask_counts.size(); ++i) mask_counts[i] += other.mask_counts[i];
    }

  private:
    void make_room(std::size_t channels) {
        for (auto* list : {&count, &sum, &squares})
            if (list->size() < channels) list->resize(channels);
    }
    void add_value(std::size_t channel, double value, double times) {
        least = std::min(least, value);
        most = std::max(most, value);
        count[channel] += times;
        sum[channel] += times * value;
        squares[channel] += times * value * value;
    }
    void add_picture(const Example& example) {
        const Image& image = example.image;
        const auto channels = static_cast<std::size_t>(image.channels);
        make_room(channels);
        least_height = std::min(least_height, image.height);
        most_height = std::max(most_height, image.height);
        least_width = std::min(least_width, image.width);
        most_width = std::max(most_width, image.width);
        std::vector<std::int64_t> bytes(channels * 256);
        for (std::size_t i = 0; i < image.pixels.size(); ++i)
            ++bytes[i % channels * 256 + image.pixels[i]];
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (bytes[i] > 0)
                add_value(i / 256, static_cast<double>(i % 256) / 255,
                          static_cast<double>(bytes[i]));
    }
    void add_values(const Example& example) {
        // Of many numbers, all together: nobody reads thousands of means.
        const std::size_t features = example.values.size() <= 256 ? example.values.size() : 1;
        make_room(features);
        for (std::size_t i = 0; i < example.values.size(); ++i)
            add_value(i % features, example.values[i], 1);
    }
};

/// Reads examples on as many threads as there are cores. Throws what is no fault of an example.
class DataReaders {
  public:
    DataReaders(const DataPart& part, std::vector<std::int64_t> chosen)
        : part_(part), chosen_(std::move(chosen)) {}

    void run(int threads, DataSums& sums, DataSummary& summary) {
        if (threads <= 0)
            threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        std::vector<std::thread> workers;
        workers.reserve(static_cast<std::size_t>(threads));
        for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
        for (std::thread& worker : workers) worker.join();
        if (failure_) std::rethrow_exception(failure_);
        sums = std::move(sums_);
        summary.broken = static_cast<std::int64_t>(broken_.size());
        for (const auto& [index, why] : broken_)
            if (summary.messages.size() < most_messages) summary.messages.push_back(why);
    }

  private:
    void work() {
        DataSums mine;
        std::map<std::int64_t, std::string> broken;
        try {
            for (std::size_t i = next_++; i < chosen_.size(); i = next_++) {
                try {
                    mine.add(part_.data->read(chosen_[i]), part_.data->has_pictures());
                } catch (const Error& error) {
                    broken.emplace(chosen_[i], error.what());
                }
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
            next_ = chosen_.size();
        }
        const std::lock_guard lock(mutex_);
        sums_.add(mine);
        broken_.merge(broken);
    }

    const DataPart& part_;
    std::vector<std::int64_t> chosen_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    DataSums sums_;
    std::map<std::int64_t, std::string> broken_;
    std::exception_ptr failure_;
};

void count_labels(const DataPart& part, DataSummary& summary) {
    for (const std::int64_t index : part.members) {
        const std::int32_t label = part.data->label(index);
        if (label < 0 || label > 10'000'000)
            fail(ErrorKind::format, part.data->label_name(index), " holds label ", label,
                 "; classes are numbered from 0");
        if (static_cast<std::size_t>(label) >= summary.counts.size())
            summary.counts.resize(static_cast<std::size_t>(label) + 1);
        ++summary.counts[static_cast<std::size_t>(label)];
    }
}

void name_classes(const Dataset& data, DataSummary& summary) {
    summary.classes = data.classes();
    if (summary.counts.size() < summary.classes.size())
        summary.counts.resize(summary.classes.size());
    while (summary.classes.size() < summary.counts.size())
        summary.classes.push_back(cat(summary.classes.size()));
}

}  // namespace

struct TrainingData::Impl {
    explicit Impl(const std::string& file)
        : config(read_train_config(file)), parts(open_data(config.data, config.seed)) {}

    DataSummary summary(const DataPart& part, const std::string& role, std::int64_t most) const;
    /// The augmenter of the training set. Errors name the configuration.
    Augmenter augmenter(const DataPart& part, bool training) const try {
        return {*part.data, config.data.augmentation, config.seed, training};
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::invalid_argument) throw;
        fail(ErrorKind::format, config.name, ": ", error.what());
    }

    TrainConfig config;
    DataParts parts;
};

DataSummary TrainingData::Impl::summary(const DataPart& part, const std::string& role,
                                        std::int64_t most) const {
    const Dataset& data = *part.data;
    DataSummary summary;
    summary.role = role;
    summary.source = data.source();
    summary.examples = static_cast<std::int64_t>(part.members.size());
    summary.pictures = data.has_pictures();
    summary.remarks = data.remarks();
    summary.target_size = data.target_size();
    summary.input = augmenter(part, role == "train").shape();
    std::vector<std::int64_t> chosen = part.members;
    if (most > 0 && most < summary.examples) {
        shuffle(chosen, config.seed, 0, RandomUse::sampling);
        chosen.resize(static_cast<std::size_t>(most));
    }
    summary.read = static_cast<std::int64_t>(chosen.size());
    DataSums sums;
    DataReaders(part, std::move(chosen)).run(config.data.threads, sums, summary);
    if (sums.read > 0) {
        summary.least = sums.least;
        summary.most = sums.most;
        for (std::size_t i = 0; i < sums.count.size(); ++i) {
            const double mean = sums.sum[i] / sums.count[i];
            summary.mean.push_back(mean);
            summary.deviation.push_back(
                std::sqrt(std::max(0.0, sums.squares[i] / sums.count[i] - mean * mean)));
        }
        if (summary.pictures) {
            summary.least_height = sums.least_height;
            summary.most_height = sums.most_height;
            summary.least_width = sums.least_width;
            summary.most_width = sums.most_width;
        }
    }
    switch (data.target_kind()) {
        case TargetKind::label:
            summary.target = "label";
            count_labels(part, summary);
            name_classes(data, summary);
            break;
        case TargetKind::mask:
            summary.target = "mask";
            summary.counts = sums.mask_counts;
            while (!summary.counts.empty() && summary.counts.back() == 0) summary.counts.pop_back();
            name_classes(data, summary);
            break;
        case TargetKind::values:
            summary.target = "values";
    }
    return summary;
}

TrainingData::TrainingData(const std::string& config) : impl_(std::make_unique<Impl>(config)) {}
TrainingData::~TrainingData() = default;
TrainingData::TrainingData(TrainingData&&) noexcept = default;
TrainingData& TrainingData::operator=(TrainingData&&) noexcept = default;

std::vector<DataSummary> TrainingData::summaries(std::int64_t most) const {
    require(most >= 0, "the number of examples to read is ", most, ", below 0");
    std::vector<DataSummary> result{impl_->summary(impl_->parts.train, "train", most)};
    if (impl_->parts.test) result.push_back(impl_->summary(impl_->parts.test, "test", most));
    return result;
}

ContactSheet TrainingData::contact_sheet(std::int64_t rows, std::int64_t columns) const {
    const DataPart& part = impl_->parts.train;
    if (!part.data->has_pictures())
        fail(ErrorKind::unsupported, "inputs of ", part.data->source(),
             " are no pictures, so that there is no contact sheet");
    require(rows > 0 && columns > 0 && rows <= 1000 && columns <= 1000,
            "a contact sheet has from "
            "1 to 1000 rows and columns, not ",
            rows, " x ", columns);
    return draw_contact_sheet(part, impl_->augmenter(part, true), rows, columns);
}

DataSpeed TrainingData::speed(double seconds) const {
    const TrainConfig& config = impl_->config;
    LoaderOptions options;
    options.batch = config.batch;
    options.seed = config.seed;
    const DataPart& part = impl_->parts.train;
    // Mixing asks for targets of floats, whatever a net would want.
    options.one_hot =
        config.data.augmentation.mixup > 0 && part.data->target_kind() == TargetKind::label;
    for (std::int64_t i = 0; options.one_hot && i < part.data->size(); ++i)
        options.classes = std::max<std::int64_t>(options.classes, part.data->label(i) + 1);
    const std::unique_ptr<Loader> loader = make_loader(part, config.data, options);
    for (int i = 0; i < 2; ++i) loader->next();
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    DataSpeed speed;
    do {
        speed.examples += loader->next().count;
        speed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (speed.seconds < seconds);
    return speed;
}

}  // namespace dlprim

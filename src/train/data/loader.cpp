// SPDX-License-Identifier: MIT
// Loader: a ring of batches that threads fill, an example or a few at a time.
#include "train/data/loader.hpp"

#include "base/text.hpp"
#include "train/data/mixup.hpp"
#include "train/data/random.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr std::size_t slots_ahead = 3;  ///< one is the caller's, two are read ahead

}  // namespace

/// A batch that is being filled.
struct LoaderSlot {
    Batch batch;
    std::int64_t position = -1;         ///< in the sequence of batches; -1: none
    std::vector<std::int64_t> indices;  ///< examples that are wanted
    std::vector<char> absent;           ///< of `indices`, those that could not be read
    std::int64_t taken = 0, done = 0;   ///< of `indices`, those given to threads, and finished
    std::int64_t failed_at = -1;        ///< the first of `indices` that threw
    std::exception_ptr failure;
    bool ready = false;
};

struct Loader::Impl {
    Impl(std::shared_ptr<const Dataset> set, std::vector<std::int64_t> chosen,
         const AugmentOptions& augmentation, const LoaderOptions& how)
        : data(std::move(set)),
          members(std::move(chosen)),
          options(how),
          augmenter(*data, augmentation, how.seed, how.training),
          slots(slots_ahead) {
        const std::int64_t each = std::max<std::int64_t>(1, augmenter.shape().numel());
        chunk = std::clamp<std::int64_t>((1 << 15) / each, 1,
                                         std::max<std::int64_t>(1, options.batch / 4));
    }

    std::int64_t batches() const {
        const auto count = static_cast<std::int64_t>(members.size());
        return options.training && !options.whole ? count / options.batch
                                                  : (count + options.batch - 1) / options.batch;
    }

    void start(std::int64_t position);
    const Batch& next();
    void launch();
    void work();
    bool find_work(std::unique_lock<std::mutex>& lock, LoaderSlot*& slot, std::int64_t& first,
                   std::int64_t& last);
    bool open_next();
    void make_room(LoaderSlot& slot) const;
    void fill(LoaderSlot& slot, std::int64_t first, std::int64_t last);
    void fill_one(LoaderSlot& slot, std::int64_t at);
    void read_one(LoaderSlot& slot, std::int64_t at, std::int64_t index);
    bool is_broken(std::int64_t index) const;
    void finish(LoaderSlot& slot) const;

    const std::shared_ptr<const Dataset> data;
    const std::vector<std::int64_t> members;
    const LoaderOptions options;
    const Augmenter augmenter;
    std::int64_t chunk = 1;  ///< examples that a thread takes at a time

    mutable std::mutex mutex;
    std::condition_variable work_waits, caller_waits;
    std::vector<LoaderSlot> slots;
    std::vector<std::thread> threads;
    bool stopping = false, pausing = true;
    std::int64_t opened = 0;  ///< the position of the next batch to open
    std::int64_t wanted = 0;  ///< the position that next() returns next
    int busy = 0, idle = 0;
    std::vector<std::int64_t> order;  ///< of order_epoch
    std::int64_t order_epoch = -1;
    std::map<std::int64_t, std::string> broken;
    LoaderWaits waits;
    Clock::time_point idle_since;
};

void Loader::Impl::launch() {
    int count = options.threads;
    if (count <= 0) count = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    for (int i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
}

void Loader::Impl::start(std::int64_t position) {
    std::unique_lock lock(mutex);
    pausing = true;
    caller_waits.wait(lock, [&] { return busy == 0; });
    for (LoaderSlot& slot : slots) slot.position = -1;
    opened = wanted = position;
    pausing = false;
    if (threads.empty()) launch();
    work_waits.notify_all();
}

const Batch& Loader::Impl::next() {
    if (pausing) start(0);
    std::unique_lock lock(mutex);
    LoaderSlot& slot = slots[static_cast<std::size_t>(wanted) % slots.size()];
    ++wanted;  // frees the slot that the caller had
    work_waits.notify_all();
    const auto begin = Clock::now();
    caller_waits.wait(lock, [&] { return slot.position == wanted - 1 && slot.ready; });
    waits.for_data += seconds_since(begin);
    if (slot.failure) std::rethrow_exception(slot.failure);
    return slot.batch;
}

/// Opens the next batch if there is a slot for it.
bool Loader::Impl::open_next() {
    // The slot of the batch before `wanted` is the caller's.
    if (opened >= wanted + static_cast<std::int64_t>(slots.size()) - 1) return false;
    const std::int64_t epoch = opened / batches(), number = opened % batches();
    // Outside of training somebody asks for an epoch.
    if (!options.training && number == 0 && opened > wanted) return false;
    if (order_epoch != epoch) {
        order.resize(members.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        if (options.training)
            shuffle(order, options.seed, static_cast<std::uint64_t>(epoch), RandomUse::shuffling);
        order_epoch = epoch;
    }
    LoaderSlot& slot = slots[static_cast<std::size_t>(opened) % slots.size()];
    slot.position = opened++;
    slot.taken = slot.done = 0;
    slot.failed_at = -1;
    slot.failure = nullptr;
    slot.ready = false;
    const auto first = static_cast<std::size_t>(number * options.batch);
    const std::size_t count =
        std::min(static_cast<std::size_t>(options.batch), order.size() - first);
    slot.indices.resize(count);
    for (std::size_t i = 0; i < count; ++i)
        slot.indices[i] = members[static_cast<std::size_t>(order[first + i])];
    slot.absent.assign(count, 0);
    slot.batch.epoch = epoch;
    slot.batch.number = number;
    try {
        make_room(slot);
    } catch (...) {
        slot.failure = std::current_exception();
        slot.taken = static_cast<std::int64_t>(count);
        slot.ready = true;
        caller_waits.notify_all();
    }
    return true;
}

void Loader::Impl::make_room(LoaderSlot& slot) const {
    const std::size_t count = slot.indices.size();
    const auto each = static_cast<std::size_t>(augmenter.shape().numel());
    const TargetKind kind = data->target_kind();
    Batch& batch = slot.batch;
    batch.count = static_cast<std::int64_t>(count);
    batch.examples = slot.indices;
    batch.inputs.resize(count * each);
    batch.labels.clear();
    batch.targets.clear();
    if (kind == TargetKind::label) batch.labels.resize(count);
    if (kind == TargetKind::mask)
        batch.labels.resize(count * each / static_cast<std::size_t>(augmenter.shape()[0]));
    if (kind == TargetKind::values)
        batch.targets.resize(count * static_cast<std::size_t>(data->target_size()));
}

/// Takes some examples of the oldest batch that is not given out. False: the thread is to end.
bool Loader::Impl::find_work(std::unique_lock<std::mutex>& lock, LoaderSlot*& slot,
                             std::int64_t& first, std::int64_t& last) {
    for (;;) {
        if (stopping) return false;
        if (!pausing) {
            LoaderSlot* oldest = nullptr;
            for (LoaderSlot& one : slots)
                if (one.position >= 0 &&
                    one.taken < static_cast<std::int64_t>(one.indices.size()) &&
                    (oldest == nullptr || one.position < oldest->position))
                    oldest = &one;
            if (oldest != nullptr) {
                slot = oldest;
                first = oldest->taken;
                last = std::min(first + chunk, static_cast<std::int64_t>(oldest->indices.size()));
                oldest->taken = last;
                return true;
            }
            if (open_next()) continue;
        }
        if (++idle == static_cast<int>(threads.size())) idle_since = Clock::now();
        work_waits.wait(lock);
        if (idle-- == static_cast<int>(threads.size()) && !pausing)
            waits.for_device += seconds_since(idle_since);
    }
}

void Loader::Impl::work() {
    std::unique_lock lock(mutex);
    LoaderSlot* slot = nullptr;
    std::int64_t first = 0, last = 0;
    while (find_work(lock, slot, first, last)) {
        ++busy;
        lock.unlock();
        fill(*slot, first, last);
        lock.lock();
        slot->done += last - first;
        if (slot->done == static_cast<std::int64_t>(slot->indices.size())) {
            lock.unlock();
            try {
                if (!slot->failure) finish(*slot);
            } catch (...) {
                slot->failure = std::current_exception();
            }
            lock.lock();
            slot->ready = true;
        }
        --busy;
        caller_waits.notify_all();
    }
}

void Loader::Impl::fill(LoaderSlot& slot, std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; ++at) {
        try {
            fill_one(slot, at);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (slot.failed_at < 0 || at < slot.failed_at) {
                slot.failed_at = at;
                slot.failure = std::current_exception();
            }
        }
    }
}

bool Loader::Impl::is_broken(std::int64_t index) const {
    const std::lock_guard lock(mutex);
    return broken.count(index) != 0;
}

void Loader::Impl::fill_one(LoaderSlot& slot, std::int64_t at) {
    const std::int64_t wanted_index = slot.indices[static_cast<std::size_t>(at)];
    std::int64_t index = wanted_index;
    constexpr std::uint32_t attempts = 100;
    std::string why;
    for (std::uint32_t attempt = 0; attempt < attempts; ++attempt) {
        try {
            if (!is_broken(index)) return read_one(slot, at, index);
        } catch (const Error& error) {
            // An option that does not suit the data, say, is no fault of the example.
            const bool is_examples = error.kind() == ErrorKind::format ||
                                     error.kind() == ErrorKind::io ||
                                     error.kind() == ErrorKind::not_found;
            if (!options.skip_broken || !is_examples) throw;
            const std::lock_guard lock(mutex);
            broken.emplace(index, error.what());
            why = error.what();
        }
        if (!options.training) {
            slot.absent[static_cast<std::size_t>(at)] = 1;
            return;
        }
        const auto words = data_random(options.seed, static_cast<std::uint64_t>(slot.batch.epoch),
                                       wanted_index, RandomUse::replacing, attempt);
        const std::uint64_t word = (std::uint64_t{words[0]} << 32) | words[1];
        index = members[static_cast<std::size_t>(word % members.size())];
    }
    fail(ErrorKind::format, attempts, " examples of ", data->source(),
         " in turn could not be read, among them: ", why.empty() ? data->name(index) : why);
}

void Loader::Impl::read_one(LoaderSlot& slot, std::int64_t at, std::int64_t index) {
    Batch& batch = slot.batch;
    const std::int64_t each = augmenter.shape().numel();
    std::int32_t* mask = nullptr;
    if (data->target_kind() == TargetKind::mask)
        mask = batch.labels.data() + at * (each / augmenter.shape()[0]);
    const Example example = augmenter.make(*data, index, static_cast<std::uint64_t>(batch.epoch),
                                           batch.inputs.data() + at * each, mask);
    batch.examples[static_cast<std::size_t>(at)] = index;
    if (data->target_kind() == TargetKind::label)
        batch.labels[static_cast<std::size_t>(at)] = example.label;
    if (data->target_kind() == TargetKind::values)
        std::copy(example.target.begin(), example.target.end(),
                  batch.targets.begin() + at * data->target_size());
}

/// What needs all examples of a batch: leaving out absent ones, and mixing.
void Loader::Impl::finish(LoaderSlot& slot) const {
    Batch& batch = slot.batch;
    const std::size_t all = slot.indices.size();
    const auto pack = [&](auto& values) {
        const std::size_t each = values.size() / all;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < all; ++i) {
            if (slot.absent[i]) continue;
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i * each), each,
                        values.begin() + static_cast<std::ptrdiff_t>(kept++ * each));
        }
        values.resize(kept * each);
    };
    const auto absent = std::count(slot.absent.begin(), slot.absent.end(), 1);
    if (absent > 0) {
        pack(batch.inputs);
        pack(batch.labels);
        pack(batch.targets);
        pack(batch.examples);
        batch.count -= absent;
    }
    if (options.one_hot) make_one_hot(batch, options.classes);
    if (options.training && augmenter.options().mixup > 0)
        mix_up(batch, augmenter.options().mixup, options.seed);
}

Loader::Loader(std::shared_ptr<const Dataset> data, std::vector<std::int64_t> members,
               const AugmentOptions& augmentation, const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(data), std::move(members), augmentation, options)) {
    require(options.batch > 0, "a batch has at least one example");
    require(impl_->batches() > 0, "there are ", impl_->members.size(),
            " examples to train on, fewer than a batch of ", options.batch);
    require(!options.training || augmentation.mixup == 0 || options.one_hot ||
                impl_->data->target_kind() == TargetKind::values,
            "augmentation.mixup mixes targets, which needs a loss whose targets are float, a row "
            "for each example; leave mixup out, or use such a loss");
}

Loader::~Loader() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->work_waits.notify_all();
    for (std::thread& thread : impl_->threads) thread.join();
}

std::int64_t Loader::size() const {
    return static_cast<std::int64_t>(impl_->members.size());
}
std::int64_t Loader::batches() const {
    return impl_->batches();
}
const Shape& Loader::input_shape() const {
    return impl_->augmenter.shape();
}
const Dataset& Loader::data() const {
    return *impl_->data;
}

void Loader::start(std::int64_t epoch, std::int64_t batch) {
    impl_->start(epoch * impl_->batches() + batch);
}
const Batch& Loader::next() {
    return impl_->next();
}

std::string text_of(const LoaderWaits& waits) {
    if (std::max(waits.for_data, waits.for_device) < 1) return "";
    return cat("the device waited ", fixed(waits.for_data, 1), " s for data, and data waited ",
               fixed(waits.for_device, 1), " s for the device");
}

LoaderWaits Loader::waits() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->waits;
}

std::map<std::int64_t, std::string> Loader::broken() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->broken;
}

}  // namespace dlprim

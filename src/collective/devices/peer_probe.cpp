// SPDX-License-Identifier: MIT
// The probe of memory that several devices reach. Every context writes to memory of every device,
// in turn by a copy and by a kernel, and after each write all contexts read all of it, by a copy
// and by a kernel. Each write has other values, so that what stayed in a cache is noticed.
#include "base/text.hpp"
#include "collective/devices/mover.hpp"
#include "collective/devices/peer_memory.hpp"
#include "collective/devices/places.hpp"
#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

namespace {

/// More than one page of a GPU (2 MiB), and no whole number of them.
constexpr std::int64_t probe_count = (1 << 19) + 4096;
constexpr std::uint64_t probe_bytes = probe_count * sizeof(float);

/// Whole numbers, whose sums are exact.
std::vector<float> probe_pattern(std::uint32_t seed) {
    std::vector<float> values(probe_count);
    std::uint32_t state = seed * 2654435761u + 1;
    for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 12);
    }
    return values;
}

class Probe {
  public:
    Probe(std::shared_ptr<PeerSource> source, const std::vector<Context>& contexts, AddPair add)
        : source_(std::move(source)), contexts_(contexts), add_(std::move(add)) {
        for (const Context& context : contexts_)
            scratch_.push_back({tensor_of(context), tensor_of(context)});
    }

    std::string run() {
        std::uint32_t seed = 1;
        for (std::size_t owner = 0; owner < contexts_.size(); ++owner) {
            const std::shared_ptr<PeerMemory> memory = source_->make(owner, probe_bytes);
            for (const bool by_kernel : {false, true, false, true})
                for (std::size_t writer = 0; writer < contexts_.size(); ++writer) {
                    const std::vector<float> values = probe_pattern(seed++);
                    write(*memory, writer, values, by_kernel);
                    for (std::size_t reader = 0; reader < contexts_.size(); ++reader)
                        for (const bool reads_by_kernel : {false, true})
                            if (read(*memory, reader, reads_by_kernel) != values)
                                return cat("what ", name(writer), " wrote to memory of ",
                                           name(owner), by_kernel ? " by a kernel" : " by a copy",
                                           " did not arrive at ", name(reader));
                }
        }
        return "";
    }

  private:
    static Tensor tensor_of(const Context& context) {
        return Tensor(context, Shape{probe_count}, DType::f32);
    }
    std::string name(std::size_t index) const { return contexts_[index].info().str(); }
    Queue& queue(std::size_t index) const { return Access::impl(contexts_[index]).queue(); }
    Tensor view(PeerMemory& memory, std::size_t index) const {
        return Access::tensor(contexts_[index], memory.in(index), 0, Shape{probe_count},
                              DType::f32);
    }
    void set(const Tensor& tensor, std::size_t index, const std::vector<float>& values) const {
        queue(index).write(place_of(tensor), values.data(), probe_bytes, true);
    }

    void write(PeerMemory& memory, std::size_t index, const std::vector<float>& values,
               bool by_kernel) const {
        const auto& [first, second] = scratch_[index];
        set(first, index, values);
        set(second, index, std::vector<float>(probe_count, 0.0f));
        const Tensor target = view(memory, index);
        if (by_kernel)
            add_(first, second, {target}, 1);
        else
            queue(index).copy(place_of(first), place_of(target), probe_bytes);
        queue(index).finish();
    }

    std::vector<float> read(PeerMemory& memory, std::size_t index, bool by_kernel) const {
        const auto& [first, second] = scratch_[index];
        set(first, index, std::vector<float>(probe_count, by_kernel ? 0.0f : -1.0f));
        const Tensor source = view(memory, index);
        if (by_kernel)
            add_(first, source, {first}, 1);
        else
            queue(index).copy(place_of(source), place_of(first), probe_bytes);
        std::vector<float> values(probe_count);
        queue(index).read(place_of(first), values.data(), probe_bytes, true);
        return values;
    }

    std::shared_ptr<PeerSource> source_;
    std::vector<Context> contexts_;
    AddPair add_;
    std::vector<std::pair<Tensor, Tensor>> scratch_;
};

}  // namespace

std::string trouble_of(const std::shared_ptr<PeerSource>& source,
                       const std::vector<Context>& contexts, const AddPair& add,
                       std::chrono::duration<double> patience) {
    // A driver that hangs keeps the thread, and the thread what it uses.
    const auto found = std::make_shared<std::string>();
    Mover thread(patience);
    thread.post([=] {
        try {
            *found = Probe(source, contexts, add).run();
        } catch (const Error& error) {
            *found = error.what();
        }
    });
    try {
        thread.wait();
    } catch (const Error&) {
        return cat("a probe of it has not ended after ", patience.count(), " seconds");
    }
    return *found;
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// Interprets jobs on the host: each instruction of the tape is applied to a chunk of elements.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif
#include "engine/pointwise/host_run.hpp"

#include "base/scalar_value.hpp"
#include "engine/pointwise/host_lines.hpp"
#include "engine/pointwise/host_sums.hpp"
#include "engine/pointwise/philox.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dlprim::pointwise {
namespace {

using namespace lines;

constexpr std::int64_t chunk_size = 512;

/// Consecutive elements along the innermost dimension.
struct Run {
    std::int64_t at;  ///< first element's position in the chunk
    std::int64_t length;
    const std::int64_t* offsets;  ///< by class: offset of the first element
};

template <typename T>
class Worker {
  public:
    Worker(const HostJob& host, std::span<const BufferRef> operands,
           std::span<const Scalar> scalars, std::vector<Sums<T>>& sums)
        : host_(host), job_(host.job()), operands_(operands), scalars_(scalars), sums_(sums) {
        const std::size_t count = job_.tape.code.size();
        buffers_.resize(count * chunk_size);
        values_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Instruction& in = job_.tape.code[i];
            T* buffer = buffers_.data() + i * chunk_size;
            values_[i] = buffer;
            if (in.op == Op::constant)
                std::fill_n(buffer, chunk_size, saturated<T>(in.value));
            else if (in.op == Op::scalar)
                std::fill_n(buffer, chunk_size, value_of<T>(scalar(in.number)));
            else if (in.op == Op::size)
                std::fill_n(
                    buffer, chunk_size,
                    static_cast<T>(
                        job_.shape[in.number < 0 ? in.number + job_.shape.rank() : in.number]));
        }
        find_shown();
        coordinates_.resize(job_.sizes.size());
        offsets_.resize(job_.classes.size());
        run_offsets_.resize(static_cast<std::size_t>(chunk_size) * job_.classes.size());
    }

    /// Processes elements [begin, end) of the walk. Reductions go to `part`.
    void process(std::int64_t begin, std::int64_t end, std::int64_t part) {
        seek(begin);
        const auto last = job_.sizes.size() - 1;
        const std::size_t classes = job_.classes.size();
        std::int64_t position = begin;
        while (position < end) {
            std::int64_t n = 0;
            runs_.clear();
            while (n < chunk_size && position < end) {
                const std::int64_t length = std::min(
                    {job_.sizes[last] - coordinates_[last], chunk_size - n, end - position});
                std::int64_t* offsets = run_offsets_.data() + runs_.size() * classes;
                std::copy(offsets_.begin(), offsets_.end(), offsets);
                runs_.push_back({n, length, offsets});
                n += length;
                position += length;
                advance(length);
            }
            evaluate(n);
            put(n, part);
        }
    }

  private:
    const HostJob& host_;
    const Job& job_;
    std::span<const BufferRef> operands_;
    std::span<const Scalar> scalars_;
    std::vector<Sums<T>>& sums_;
    std::vector<T> buffers_;
    std::vector<const T*> values_;
    std::vector<char> shown_;
    std::vector<std::int64_t> coordinates_, offsets_, run_offsets_;
    std::vector<Run> runs_;
    std::vector<double> scratch_;

    /// Marks instructions whose value is directly an output, if several outputs are stored. An
    /// output that is stored earlier may overwrite an input in place, so such a value must be
    /// copied before, and not be read from the input when it is stored.
    void find_shown() {
        shown_.assign(job_.tape.code.size(), 0);
        const bool stores = std::any_of(job_.outputs.begin(), job_.outputs.end(),
                                        [](const JobOutput& out) { return !out.reduces(); });
        if (!stores || job_.outputs.size() < 2) return;
        for (const JobOutput& out : job_.outputs) shown_[static_cast<std::size_t>(out.value)] = 1;
    }

    std::int64_t inner(int klass) const {
        return job_.classes[static_cast<std::size_t>(klass)].back();
    }

    void seek(std::int64_t position) {
        for (std::size_t d = job_.sizes.size(); d-- > 0;) {
            coordinates_[d] = position % job_.sizes[d];
            position /= job_.sizes[d];
        }
        for (std::size_t c = 0; c < job_.classes.size(); ++c) {
            offsets_[c] = 0;
            for (std::size_t d = 0; d < job_.sizes.size(); ++d)
                offsets_[c] += coordinates_[d] * job_.classes[c][d];
        }
    }

    void advance(std::int64_t by) {
        std::size_t d = job_.sizes.size() - 1;
        coordinates_[d] += by;
        for (std::size_t c = 0; c < job_.classes.size(); ++c)
            offsets_[c] += by * job_.classes[c][d];
        while (coordinates_[d] == job_.sizes[d]) {
            coordinates_[d] = 0;
            for (std::size_t c = 0; c < job_.classes.size(); ++c)
                offsets_[c] -= job_.sizes[d] * job_.classes[c][d];
            if (d == 0) return;
            --d;
            ++coordinates_[d];
            for (std::size_t c = 0; c < job_.classes.size(); ++c) offsets_[c] += job_.classes[c][d];
        }
    }

    const JobInput& input(int number) const {
        for (const JobInput& in : job_.inputs)
            if (in.number == number) return in;
        return job_.inputs.front();
    }

    const Scalar& scalar(int number) const { return scalars_[static_cast<std::size_t>(number)]; }

    std::uint64_t whole_number(int instruction) const {
        const Instruction& in = job_.tape.code[static_cast<std::size_t>(instruction)];
        if (in.op == Op::input) {
            const JobInput& source = input(in.number);
            if (!is_float(source.dtype)) {
                std::int64_t value = 0;
                load(operands_[static_cast<std::size_t>(source.operand)].host(), source.dtype, 0, 0,
                     1, &value);
                return static_cast<std::uint64_t>(value);
            }
        }
        if (in.op == Op::constant)
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(in.value));
        if (in.op == Op::scalar)
            return static_cast<std::uint64_t>(value_of<std::int64_t>(scalar(in.number)));
        return static_cast<std::uint64_t>(
            static_cast<std::int64_t>(values_[static_cast<std::size_t>(instruction)][0]));
    }

    template <typename Number>
    void draw(const Instruction& in, T* y, Number&& number) {
        const RandomKey key{whole_number(in.a), whole_number(in.b), whole_number(in.c)};
        const auto klass = static_cast<std::size_t>(job_.linear_class);
        for (const Run& run : runs_)
            for (std::int64_t j = 0; j < run.length; ++j) {
                const std::int64_t element = run.offsets[klass] + j * inner(job_.linear_class);
                y[run.at + j] = static_cast<T>(number(key, static_cast<std::uint64_t>(element)));
            }
    }

    void evaluate(std::int64_t n) {
        for (std::size_t i = 0; i < job_.tape.code.size(); ++i) {
            const Instruction& in = job_.tape.code[i];
            T* y = buffers_.data() + i * chunk_size;
            const auto arg = [&](int a) {
                return a < 0 ? nullptr : values_[static_cast<std::size_t>(a)];
            };
            switch (in.op) {
                case Op::constant:
                case Op::scalar:
                case Op::size:
                    break;
                case Op::input: {
                    const JobInput& source = input(in.number);
                    const std::byte* base =
                        operands_[static_cast<std::size_t>(source.operand)].host();
                    const std::int64_t stride = inner(source.klass);
                    const auto klass = static_cast<std::size_t>(source.klass);
                    const bool direct =
                        std::is_same_v<T, float> && source.dtype == DType::f32 && !shown_[i];
                    if (direct && stride == 1 && runs_.size() == 1) {
                        values_[i] = reinterpret_cast<const T*>(base) + runs_[0].offsets[klass];
                        break;
                    }
                    values_[i] = y;
                    for (const Run& run : runs_)
                        load(base, source.dtype, run.offsets[klass], stride,
                             std::min(run.length, readable(run)), y + run.at);
                    break;
                }
                case Op::index: {
                    const int klass = job_.class_of_index(in.number);
                    for (const Run& run : runs_)
                        for (std::int64_t j = 0; j < run.length; ++j)
                            y[run.at + j] = static_cast<T>(
                                run.offsets[static_cast<std::size_t>(klass)] + j * inner(klass));
                    break;
                }
                case Op::uniform:
                    draw(in, y,
                         [](const RandomKey& key, auto element) { return uniform(key, element); });
                    break;
                case Op::normal:
                    draw(in, y,
                         [](const RandomKey& key, auto element) { return normal(key, element); });
                    break;
                case Op::random:
                    draw(in, y, [](const RandomKey& key, auto element) {
                        return random_words(key, element)[0];
                    });
                    break;
                default:
                    compute(in.op, arg(in.a), arg(in.b), arg(in.c), y, n);
            }
        }
    }

    /// The elements of a run that are not padding.
    std::int64_t live(const Run& run) const {
        if (job_.channel_class < 0) return run.length;
        const std::int64_t first = run.offsets[static_cast<std::size_t>(job_.channel_class)];
        if (inner(job_.channel_class) == 0) return first < job_.channels ? run.length : 0;
        return std::clamp<std::int64_t>(job_.channels - first, 0, run.length);
    }
    /// Small operands end after the last channel and must not be read beyond it.
    std::int64_t readable(const Run& run) const {
        return job_.channel_class < 0 ? run.length : live(run);
    }

    void put(std::int64_t, std::int64_t part) {
        for (std::size_t k = 0; k < job_.outputs.size(); ++k) {
            const JobOutput& out = job_.outputs[k];
            const T* v = values_[static_cast<std::size_t>(out.value)];
            if (!out.reduces()) {
                std::byte* base = operands_[static_cast<std::size_t>(out.operand)].host();
                const std::int64_t stride = inner(out.klass);
                for (const Run& run : runs_) {
                    const std::int64_t offset = run.offsets[static_cast<std::size_t>(out.klass)];
                    const std::int64_t lanes = live(run);
                    store(base, out.dtype, offset, stride, lanes, v + run.at);
                    if (lanes < run.length) {
                        const std::vector<T> zeros(static_cast<std::size_t>(run.length - lanes),
                                                   T(0));
                        store(base, out.dtype, offset + lanes * stride, stride, run.length - lanes,
                              zeros.data());
                    }
                }
                continue;
            }
            Sums<T>& sums = sums_[k];
            const std::int64_t stride = inner(host_.kept_class());
            for (const Run& run : runs_) {
                const std::int64_t place =
                    part * host_.results() +
                    run.offsets[static_cast<std::size_t>(host_.kept_class())];
                reduce(out, sums, static_cast<std::size_t>(place), static_cast<std::size_t>(stride),
                       v + run.at, live(run), scratch_);
            }
        }
    }
};

/// Stores results [begin, end), which are those of their parts together.
template <typename T>
void finish(const HostJob& host, std::span<const BufferRef> operands,
            const std::vector<Sums<T>>& sums, std::int64_t begin, std::int64_t end) {
    using A = Sum<T>;
    const Job& job = host.job();
    std::vector<double> scratch;
    std::vector<std::int64_t> coordinates(job.sizes.size(), 0);
    std::int64_t rest = begin;
    for (std::size_t d = job.sizes.size(); d-- > 0;) {
        if (job.reduced[d]) continue;
        coordinates[d] = rest % job.sizes[d];
        rest /= job.sizes[d];
    }
    for (std::int64_t r = begin; r < end; ++r) {
        const auto offset = [&](int klass) {
            std::int64_t at = 0;
            for (std::size_t d = 0; d < job.sizes.size(); ++d)
                at += coordinates[d] * job.classes[static_cast<std::size_t>(klass)][d];
            return at;
        };
        const auto place = static_cast<std::size_t>(offset(host.kept_class()));
        const bool padding = job.channel_class >= 0 && offset(job.channel_class) >= job.channels;
        for (std::size_t k = 0; k < job.outputs.size() && !padding; ++k) {
            const JobOutput& out = job.outputs[k];
            if (!out.reduces()) continue;
            A total = start<T>(out);
            bool has = out.kind != Output::Kind::custom;
            for (std::int64_t p = 0; p < host.parts(); ++p) {
                const std::size_t at = static_cast<std::size_t>(p * host.results()) + place;
                if (out.kind == Output::Kind::custom) {
                    if (!sums[k].has[at]) continue;
                    total =
                        has ? fold<A>(out, total, sums[k].values[at], scratch) : sums[k].values[at];
                    has = true;
                } else {
                    total = fold<A>(out, total, sums[k].values[at], scratch);
                }
            }
            if (out.has_init) {
                const A init = static_cast<A>(out.init);
                total = has ? fold<A>(out, init, total, scratch) : init;
            }
            if (out.scale != 1) total = static_cast<A>(static_cast<double>(total) * out.scale);
            const T value = static_cast<T>(total);
            store(operands[static_cast<std::size_t>(out.operand)].host(), out.dtype,
                  offset(out.klass), 0, 1, &value);
        }
        for (std::size_t d = job.sizes.size(); d-- > 0;) {
            if (job.reduced[d]) continue;
            if (++coordinates[d] < job.sizes[d]) break;
            coordinates[d] = 0;
        }
    }
}

template <typename T>
void run_as(const HostJob& host, HostPool& pool, std::span<const BufferRef> operands,
            std::span<const Scalar> scalars) {
    const Job& job = host.job();
    std::vector<Sums<T>> sums(job.outputs.size());
    for (std::size_t k = 0; k < sums.size(); ++k) {
        const JobOutput& out = job.outputs[k];
        if (!out.reduces()) continue;
        const auto places = static_cast<std::size_t>(host.parts() * host.results());
        sums[k].values.assign(places, start<T>(out));
        if (out.kind == Output::Kind::custom) sums[k].has.assign(places, 0);
    }
    if (host.units() > 0 && host.unit_elements() > 0) {
        const std::int64_t parts = host.parts();
        const std::int64_t pieces = host.unit_elements() / host.grain();
        const std::int64_t per_task =
            std::max<std::int64_t>(1, 16384 * parts / host.unit_elements());
        pool.parallel_for(
            host.units() * parts, per_task, [&](std::int64_t begin, std::int64_t end) {
                Worker<T> worker(host, operands, scalars, sums);
                // With one part per unit, consecutive units form one range.
                if (parts == 1) {
                    worker.process(begin * host.unit_elements(), end * host.unit_elements(), 0);
                    return;
                }
                for (std::int64_t task = begin; task < end; ++task) {
                    const std::int64_t unit = task / parts, part = task % parts;
                    const std::int64_t from = pieces * part / parts * host.grain();
                    const std::int64_t to = pieces * (part + 1) / parts * host.grain();
                    const std::int64_t base = unit * host.unit_elements();
                    worker.process(base + from, base + to, part);
                }
            });
    }
    if (!job.reduces()) return;
    pool.parallel_for(host.results(), 1024, [&](std::int64_t begin, std::int64_t end) {
        finish<T>(host, operands, sums, begin, end);
    });
}

}  // namespace

void HostJob::run(HostPool& pool, std::span<const BufferRef> operands,
                  std::span<const Scalar> scalars) const {
    if (!job_.arguments) scalars = job_.scalars;
    switch (job_.type) {
        case Compute::f32:
            run_as<float>(*this, pool, operands, scalars);
            break;
        case Compute::f64:
            run_as<double>(*this, pool, operands, scalars);
            break;
        case Compute::i64:
            run_as<std::int64_t>(*this, pool, operands, scalars);
            break;
        case Compute::u64:
            run_as<std::uint64_t>(*this, pool, operands, scalars);
            break;
    }
}

}  // namespace dlprim::pointwise

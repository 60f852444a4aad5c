// SPDX-License-Identifier: MIT
// Interprets jobs on the host: each instruction of the tape is applied to a chunk of elements.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno", "no-trapping-math")
#endif
#include "engine/pointwise/host_run.hpp"

#include "engine/pointwise/host_lines.hpp"
#include "engine/pointwise/philox.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

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
using Sum = std::conditional_t<std::is_same_v<T, std::int64_t>, std::int64_t, double>;

template <typename T>
Sum<T> start(const JobOutput& out) {
    using A = Sum<T>;
    using Limits = std::numeric_limits<A>;
    switch (out.kind) {
        case Output::Kind::prod:
            return A(1);
        case Output::Kind::max:
            return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        case Output::Kind::min:
            return Limits::has_infinity ? Limits::infinity() : Limits::max();
        default:
            return A(0);
    }
}

template <typename A>
A fold(const JobOutput& out, A a, A b, std::vector<double>& scratch) {
    switch (out.kind) {
        case Output::Kind::prod:
            return a * b;
        case Output::Kind::max:
            return a > b || a != a ? a : b;
        case Output::Kind::min:
            return a < b || a != a ? a : b;
        case Output::Kind::custom: {
            const double both[] = {static_cast<double>(a), static_cast<double>(b)};
            const Shape shape;
            pointwise::run(*out.combine, {both, nullptr, nullptr, &shape, 0}, scratch);
            return static_cast<A>(scratch[static_cast<std::size_t>(out.combine->results[0])]);
        }
        default:
            return a + b;
    }
}

/// Results of one output, one per result and part.
template <typename T>
struct Sums {
    std::vector<Sum<T>> values;
    std::vector<std::uint8_t> has;  ///< for custom reductions: whether there is a value
};

template <typename T>
class Worker {
  public:
    Worker(const HostJob& host, std::span<const BufferRef> operands, std::vector<Sums<T>>& sums)
        : host_(host), job_(host.job()), operands_(operands), sums_(sums) {
        const std::size_t count = job_.tape.code.size();
        buffers_.resize(count * chunk_size);
        values_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Instruction& in = job_.tape.code[i];
            T* buffer = buffers_.data() + i * chunk_size;
            values_[i] = buffer;
            double value = 0;
            if (in.op == Op::constant)
                value = in.value;
            else if (in.op == Op::scalar)
                value = job_.scalars[static_cast<std::size_t>(in.number)];
            else if (in.op == Op::size)
                value = static_cast<double>(
                    job_.shape[in.number < 0 ? in.number + job_.shape.rank() : in.number]);
            else
                continue;
            std::fill_n(buffer, chunk_size, narrowed<T>(value));
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
            return static_cast<std::uint64_t>(
                static_cast<std::int64_t>(job_.scalars[static_cast<std::size_t>(in.number)]));
        return static_cast<std::uint64_t>(
            static_cast<std::int64_t>(values_[static_cast<std::size_t>(instruction)][0]));
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
                case Op::uniform: {
                    const std::uint64_t seed = whole_number(in.a), step = whole_number(in.b),
                                        id = whole_number(in.c);
                    const auto klass = static_cast<std::size_t>(job_.linear_class);
                    for (const Run& run : runs_)
                        for (std::int64_t j = 0; j < run.length; ++j)
                            y[run.at + j] = static_cast<T>(
                                uniform(seed, step, id,
                                        static_cast<std::uint64_t>(run.offsets[klass] +
                                                                   j * inner(job_.linear_class))));
                    break;
                }
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
                       v + run.at, live(run));
            }
        }
    }

    void reduce(const JobOutput& out, Sums<T>& sums, std::size_t place, std::size_t stride,
                const T* v, std::int64_t n) {
        using A = Sum<T>;
        A* into = sums.values.data() + place;
        if (out.kind == Output::Kind::custom) {
            for (std::int64_t j = 0; j < n; ++j) {
                const std::size_t at = static_cast<std::size_t>(j) * stride;
                std::uint8_t& has = sums.has[place + at];
                into[at] = has ? fold<A>(out, into[at], static_cast<A>(v[j]), scratch_)
                               : static_cast<A>(v[j]);
                has = 1;
            }
            return;
        }
        if (stride != 0) {
            if (out.kind == Output::Kind::sum && stride == 1) {
                for (std::int64_t j = 0; j < n; ++j) into[j] += static_cast<A>(v[j]);
                return;
            }
            for (std::int64_t j = 0; j < n; ++j) {
                A& to = into[static_cast<std::size_t>(j) * stride];
                to = fold<A>(out, to, static_cast<A>(v[j]), scratch_);
            }
            return;
        }
        if (out.kind == Output::Kind::sum) {
            A lanes[8] = {};
            std::int64_t j = 0;
            for (; j + 8 <= n; j += 8)
                for (int l = 0; l < 8; ++l) lanes[l] += static_cast<A>(v[j + l]);
            for (; j < n; ++j) lanes[0] += static_cast<A>(v[j]);
            *into += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
                     ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
            return;
        }
        A total = *into;
        for (std::int64_t j = 0; j < n; ++j)
            total = fold<A>(out, total, static_cast<A>(v[j]), scratch_);
        *into = total;
    }
};

template <typename T>
void finish(const HostJob& host, std::span<const BufferRef> operands, std::vector<Sums<T>>& sums) {
    using A = Sum<T>;
    const Job& job = host.job();
    std::vector<double> scratch;
    std::vector<std::int64_t> coordinates(job.sizes.size(), 0);
    for (std::int64_t r = 0; r < host.results(); ++r) {
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
void run_as(const HostJob& host, HostPool& pool, std::span<const BufferRef> operands) {
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
                Worker<T> worker(host, operands, sums);
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
    if (job.reduces()) finish<T>(host, operands, sums);
}

}  // namespace

HostJob::HostJob(Job job) : job_(std::move(job)) {
    const bool reduces = job_.reduces();
    // The offset of a result, over the kept dimensions in order.
    std::vector<std::int64_t> place(job_.sizes.size(), 0);
    std::int64_t below = 1;
    for (std::size_t d = job_.sizes.size(); d-- > 0;)
        if (!job_.reduced[d]) {
            place[d] = below;
            below *= job_.sizes[d];
        }
    results_ = reduces ? below : 0;
    if (reduces) {
        kept_class_ = static_cast<int>(job_.classes.size());
        job_.classes.push_back(place);
        // Kept dimensions come first, except an innermost one.
        const std::size_t count = job_.sizes.size();
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d + 1 < count; ++d)
            if (!job_.reduced[d]) order.push_back(d);
        if (!job_.reduced[count - 1] && order.size() + 1 == count) order.push_back(count - 1);
        const std::size_t outer = order.size();
        for (std::size_t d = 0; d < count; ++d)
            if (job_.reduced[d]) order.push_back(d);
        if (order.size() < count) order.push_back(count - 1);
        Job sorted = job_;
        for (std::size_t d = 0; d < count; ++d) {
            sorted.sizes[d] = job_.sizes[order[d]];
            sorted.reduced[d] = job_.reduced[order[d]];
            for (std::size_t c = 0; c < job_.classes.size(); ++c)
                sorted.classes[c][d] = job_.classes[c][order[d]];
        }
        units_ = 1;
        for (std::size_t d = 0; d < outer; ++d) units_ *= sorted.sizes[d];
        unit_elements_ = 1;
        for (std::size_t d = outer; d < count; ++d) unit_elements_ *= sorted.sizes[d];
        grain_ = sorted.reduced[count - 1] || outer == count ? 1 : sorted.sizes[count - 1];
        job_ = std::move(sorted);
        if (units_ < 16 && grain_ > 0)
            parts_ = std::clamp<std::int64_t>(
                units_ * unit_elements_ / 32768, 1,
                std::max<std::int64_t>(1, std::min<std::int64_t>(16, unit_elements_ / grain_)));
        if (parts_ * results_ > 4'000'000) parts_ = 1;
    } else {
        unit_elements_ = 1;
        units_ = job_.kept() * job_.reduction();
    }
}

void HostJob::run(HostPool& pool, std::span<const BufferRef> operands) const {
    switch (job_.type) {
        case Compute::f32:
            run_as<float>(*this, pool, operands);
            break;
        case Compute::f64:
            run_as<double>(*this, pool, operands);
            break;
        case Compute::i64:
            run_as<std::int64_t>(*this, pool, operands);
            break;
    }
}

}  // namespace dlprim::pointwise

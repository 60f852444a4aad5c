// SPDX-License-Identifier: MIT
// ShardSum and its engines: values that a batch norm with the option "sync" takes of the whole
// batch, each of whose shards is computed by a rank of its own. They go through the host, which
// adds them in double, in the order of ShardTree: a few numbers per channel.
#include "base/shard_tree.hpp"
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/reached_by.hpp"
#include "graph/declared_operator.hpp"
#include "ops/batchnorm/operator.hpp"
#include "runtime/shard_meeting.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace dlprim::batchnorm {

namespace {

struct ShardSumOptions {
    static constexpr std::string_view type = shard_sum_type;
    std::string what = {};
    bool moments = false;
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&ShardSumOptions::what>("which values these are, in errors"),
            ops::option<&ShardSumOptions::moments>("whether they are moments about a shift"));
    }
};

/// With `moments` the three inputs are a shift, the mean of x minus the shift, and the mean of its
/// square; the outputs are the same of all shards, with the first one's shift. Otherwise the
/// outputs are sums of the inputs over shards.
class ShardSum final : public InternalOperator<ShardSumOptions> {
  public:
    int max_inputs() const override { return 3; }
    int outputs(const Attrs& attrs) const override { return attrs.boolean("moments") ? 3 : 2; }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {inputs.begin(), inputs.end()};
    }
};

using Values = std::vector<double>;

Values add_in_tree(std::vector<Values> terms) {
    ShardTree tree(static_cast<int>(terms.size()));
    std::vector<Values> sums;
    for (std::size_t shard = 0; shard < terms.size(); ++shard) {
        std::size_t joined = tree.take({static_cast<int>(shard), 1});
        sums.push_back(std::move(terms[shard]));
        for (; joined > 0; --joined) {
            const Values right = std::move(sums.back());
            sums.pop_back();
            for (std::size_t i = 0; i < right.size(); ++i) sums.back()[i] += right[i];
        }
    }
    return std::move(sums.front());
}

/// Moments of all shards about the shift of the first one. [shift, mean, mean of squares].
Values join_moments(std::vector<Values> all) {
    const std::size_t channels = all.front().size() / 3;
    const auto shards = static_cast<double>(all.size());
    const Values first(all.front().begin(),
                       all.front().begin() + static_cast<std::ptrdiff_t>(channels));
    for (Values& shard : all) {
        for (std::size_t c = 0; c < channels; ++c) {
            const double moved = shard[c] - first[c];
            double &mean = shard[channels + c], &square = shard[2 * channels + c];
            square += moved * (2 * mean + moved);
            mean += moved;
        }
    }
    Values joined = add_in_tree(std::move(all));
    for (double& value : joined) value /= shards;
    std::copy(first.begin(), first.end(), joined.begin());
    return joined;
}

class Meeting final : public Launch {
  public:
    Meeting(ContextImpl& context, const Problem& problem)
        : context_(context),
          what_(problem.attrs.text("what")),
          moments_(problem.attrs.boolean("moments")),
          dtype_(problem.inputs[0].dtype),
          tensors_(problem.inputs.size()),
          elements_(static_cast<std::size_t>(problem.inputs[0].shape.numel())),
          bytes_(tensors_ * elements_ * size_of(dtype_)) {}

    /// Unlike other launches it waits: for the device and for the other shards. Without a meeting,
    /// as where engines are tried, each shard keeps its own values.
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const std::size_t each = elements_ * size_of(dtype_);
        ShardMeeting* const meeting = context_.meeting();
        if (meeting == nullptr) {
            for (std::size_t i = 0; i < tensors_; ++i)
                queue.copy(operands[i], operands[tensors_ + i], each);
            return;
        }
        for (std::size_t i = 0; i < tensors_; ++i)
            queue.read(operands[i], bytes_.data() + i * each, each, i + 1 == tensors_);
        std::vector<Values> all = meeting->gather(what_, read());
        write(moments_ ? join_moments(std::move(all)) : add_in_tree(std::move(all)));
        // The next call waits for the queue before it changes the bytes.
        for (std::size_t i = 0; i < tensors_; ++i)
            queue.write(operands[tensors_ + i], bytes_.data() + i * each, each, false);
    }

  private:
    Values read() const {
        Values values(tensors_ * elements_);
        if (dtype_ == DType::f64) {
            std::memcpy(values.data(), bytes_.data(), bytes_.size());
            return values;
        }
        std::vector<float> floats(values.size());
        std::memcpy(floats.data(), bytes_.data(), bytes_.size());
        std::copy(floats.begin(), floats.end(), values.begin());
        return values;
    }
    void write(const Values& values) {
        if (dtype_ == DType::f64) {
            std::memcpy(bytes_.data(), values.data(), bytes_.size());
            return;
        }
        std::vector<float> floats(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
        std::memcpy(bytes_.data(), floats.data(), bytes_.size());
    }

    ContextImpl& context_;
    const std::string what_;
    const bool moments_;
    const DType dtype_;
    const std::size_t tensors_, elements_;
    std::vector<std::byte> bytes_;
};

/// The same on the host and on OpenCL devices.
class ShardSumEngine final : public Engine, public ReachedBy {
  public:
    explicit ShardSumEngine(bool on_host)
        : Engine(on_host ? "batchnorm.shard_sum_host" : "batchnorm.shard_sum", shard_sum_type,
                 on_host) {}
    std::string_view reached_by() const override { return "steps of teams"; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        for (const Operand& input : problem.inputs)
            if ((input.dtype != DType::f32 && input.dtype != DType::f64) ||
                input.dtype != problem.inputs[0].dtype ||
                input.shape.numel() != problem.inputs[0].shape.numel())
                return Verdict::no("it adds float or double values, as many of each");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem&, const Tuning&) const override {
        return 50e-6 + device.launch_us * 1e-6;
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<Meeting>(context, problem);
    }
};

}  // namespace

std::unique_ptr<Operator> make_shard_sum() {
    return std::make_unique<ShardSum>();
}

void add_shard_sum_engines(EngineRegistry& engines) {
    engines.add(std::make_unique<ShardSumEngine>(true));
    engines.add(std::make_unique<ShardSumEngine>(false));
}

}  // namespace dlprim::batchnorm

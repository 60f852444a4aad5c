// SPDX-License-Identifier: MIT
// EngineByHost: copies, and a launch of the host's engine between them.
#include "plan/engine_by_host.hpp"

#include "engine/laid_out.hpp"
#include "plan/choose.hpp"
#include "runtime/devices.hpp"
#include "runtime/refusals.hpp"
#include "runtime/wait_before.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace dlprim {

namespace {

/// Bytes per second of copies between the device and the host, for estimates.
constexpr double copy_rate = 5e9;

std::uint64_t plain_bytes(const Operand& operand) {
    return static_cast<std::uint64_t>(operand.shape.numel()) * size_of(operand.dtype);
}

/// The problem as the host's engines take it.
Problem for_host(const Problem& problem) {
    Problem plain = plain_problem(problem);
    plain.precision = Precision::fp32;
    for (Operand& input : plain.inputs) input.constant = false;
    return plain;
}

class LaunchByHost : public Launch {
  public:
    LaunchByHost(std::shared_ptr<ContextImpl> host, const Engine& engine, const Problem& problem)
        : host_(std::move(host)), inputs_(problem.inputs.size()) {
        const Tuning tuning = engine.default_tuning(host_->traits(), problem);
        launch_ = engine.build(*host_, problem, tuning);
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands) bytes_.push_back(plain_bytes(operand));
        workspace_ = engine.workspace_bytes(host_->traits(), problem, tuning);
    }

    /// Waits, other than most launches. What work before it has refused is told by the next wait.
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const WaitBefore before(queue);
        std::vector<std::shared_ptr<Buffer>> memory;
        std::vector<BufferRef> places;
        const auto add = [&](std::uint64_t bytes) {
            memory.push_back(host_->allocate_cached(bytes));
            places.push_back({memory.back().get(), 0});
        };
        for (const std::uint64_t bytes : bytes_) add(bytes);
        if (workspace_ > 0) add(workspace_);
        for (std::size_t i = 0; i < inputs_; ++i)
            queue.read(operands[i], places[i].host(), bytes_[i], true);
        try {
            launch_->enqueue(host_->queue(), places);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::invalid_argument) throw;
            // An index that is out of range is told as the device's kernels tell it.
            queue.throw_later(std::make_exception_ptr(RefusedIndex(owner_ + error.what())));
            return;
        }
        for (std::size_t i = inputs_; i < bytes_.size(); ++i)
            queue.write(operands[i], places[i].host(), bytes_[i], true);
    }
    void set_scalars(std::span<const Scalar> values) override { launch_->set_scalars(values); }
    void set_owner(const std::string& who) override { owner_ = who; }

  private:
    std::shared_ptr<ContextImpl> host_;
    std::unique_ptr<Launch> launch_;
    std::size_t inputs_;
    std::vector<std::uint64_t> bytes_;  ///< of the inputs and outputs
    std::uint64_t workspace_ = 0;
    std::string owner_;
};

class EngineByHost : public Engine {
  public:
    explicit EngineByHost(const Engine& engine)
        : Engine(std::string(engine.name()), engine.op(), false),
          engine_(engine),
          host_(make_host_context()) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        const Problem plain = for_host(problem);
        if (Verdict verdict = engine_.is_applicable(host_->traits(), plain); !verdict)
            return verdict;
        for (const LayoutChoice& choice : engine_.layouts(host_->traits(), plain))
            if (with_layouts(plain, choice).key() == plain.key()) return Verdict::yes();
        return Verdict::no("it takes no plain layouts");
    }
    double estimate(const Traits&, const Problem& problem, const Tuning&) const override {
        double bytes = 0;
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands)
                bytes += static_cast<double>(plain_bytes(operand));
        const Problem plain = for_host(problem);
        return engine_.estimate(host_->traits(), plain,
                                engine_.default_tuning(host_->traits(), plain)) +
               bytes / copy_rate;
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<LaunchByHost>(host_, engine_, for_host(problem));
    }

  private:
    const Engine& engine_;
    std::shared_ptr<ContextImpl> host_;
};

/// The engine's only EngineByHost.
const Engine& by_host(const Engine& engine) {
    static std::mutex mutex;
    static auto* const all = new std::map<const Engine*, std::unique_ptr<EngineByHost>>;
    const std::lock_guard lock(mutex);
    auto& made = (*all)[&engine];
    if (!made) made = std::make_unique<EngineByHost>(engine);
    return *made;
}

}  // namespace

std::vector<const Engine*> engines_by_host(const Problem& problem) {
    std::vector<std::pair<double, const Engine*>> found;
    const Traits unused;
    for (const Engine* engine : EngineRegistry::instance().of(problem.op, true)) {
        const Engine& made = by_host(*engine);
        if (made.is_applicable(unused, problem))
            found.emplace_back(made.estimate(unused, problem, {}), &made);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const Engine*> engines;
    for (const auto& [seconds, engine] : found) engines.push_back(engine);
    return engines;
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// check_engines(): which uses are checked, and what is remembered.
#include "plan/trust/trust.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "check/engine_check.hpp"
#include "check/small_problem.hpp"
#include "engine/disabled.hpp"
#include "engine/laid_out.hpp"
#include "plan/engine_failed.hpp"
#include "plan/trust/trust_store.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"
#include "runtime/queue.hpp"
#include "runtime/refusals.hpp"
#include "runtime/wait_before.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <memory>
#include <set>

namespace dlprim {

namespace {

/// The longest that a check may take on the host by estimate, and the largest sum of its operands.
constexpr double most_seconds = 0.5;
constexpr std::int64_t most_elements = 1 << 27;

/// Before the key of a disabled engine: a check has found it wrong.
const std::string distrust_key = "distrusted\n";

/// Whether a check covers problems of one class of sizes: engines of the host have no programs that
/// would say what else it covers.
bool covers_one_class(const EngineUse& use) {
    return use.engine->on_host() && !use.any_size;
}

/// The size that stands for a class. Sizes up to 16 are classes of their own. Of larger ones, those
/// of as many bits that the same power of two divides, up to 64, are one: a loop over vectors and
/// tiles does the same with them, up to how often it runs.
std::int64_t class_of(std::int64_t size) {
    if (size <= 16) return size;
    const auto bits = static_cast<std::uint64_t>(size);
    const std::uint64_t top = std::bit_floor(bits);
    return static_cast<std::int64_t>(top | std::min<std::uint64_t>(bits & (~bits + 1), 64));
}

/// The text of all problems whose sizes are of the same classes.
std::string class_text(const Problem& problem) {
    Problem classes = problem;
    for (auto* operands : {&classes.inputs, &classes.outputs})
        for (Operand& operand : *operands) {
            std::vector<std::int64_t> dims = operand.shape.to_vector();
            std::transform(dims.begin(), dims.end(), dims.begin(), class_of);
            operand.shape = Shape(dims);
        }
    for (const auto& [name, value] : problem.attrs.items()) {
        if (const auto* number = std::get_if<std::int64_t>(&value); number && *number > 16)
            classes.attrs.set(name, class_of(*number));
        const auto* numbers = std::get_if<Ints>(&value);
        if (numbers == nullptr || numbers->empty()) continue;
        Ints all = *numbers;
        std::transform(all.begin(), all.end(), all.begin(), class_of);
        classes.attrs.set(name, std::move(all));
    }
    return classes.key();
}

/// What a check covers: the engine with these programs, on operands of these types and kinds of
/// layouts. Where it covers one class, that is the one of the problem.
std::string key_of(const EngineUse& use, const Problem& problem) {
    TextWriter out;
    out << use.engine->name() << use.engine->version() << '\n' << problem.op << '\n';
    if (use.engine->on_host()) {
        if (covers_one_class(use)) out << class_text(problem);
        out << '\n' << text_of(use.tuning);
    }
    for (const auto* operands : {&problem.inputs, &problem.outputs}) {
        for (const Operand& operand : *operands)
            out << name_of(operand.dtype) << operand.shape.rank() << ' '
                << static_cast<int>(operand.layout.kind) << ' ' << operand.layout.block << ' '
                << operand.layout.tag << ',';
        out << '\n';
    }
    for (const EpilogueStage& stage : problem.epilogue)
        out << static_cast<int>(stage.kind) << stage.activation << ' ';
    out << name_of(problem.precision);
    for (const auto& program : use.programs) out << '\n' << program->text_hash();
    return hash_hex(std::move(out).str());
}

bool is_compiled(const PendingPrograms& programs) {
    return std::all_of(programs.begin(), programs.end(),
                       [](const auto& program) { return program->compiled(); });
}

bool same_programs(const PendingPrograms& a, const PendingPrograms& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& one, const auto& other) {
                          return one->text().options == other->text().options &&
                                 one->text().source == other->text().source;
                      });
}

class Checker {
  public:
    explicit Checker(ContextImpl& context, EngineRun::Runner runner = {})
        : context_(context), store_(TrustStore::of(context)), runner_(std::move(runner)) {}

    CheckedEngines run(const std::vector<EngineUse>& uses) {
        const auto start = std::chrono::steady_clock::now();
        for (const EngineUse& use : uses) look_at(use);
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        if (checks_ > 0)
            log(LogLevel::info,
                cat("checked ", checks_, " uses of engines in ", seconds.count(), " s"));
        return std::move(all_);
    }

  private:
    /// Whether the engine is the one with which others of the host are compared.
    bool is_last_of_host(const EngineUse& use) const {
        const Problem plain = plain_problem(use.problem);
        const Engine* last = nullptr;
        for (const Engine* engine : EngineRegistry::instance().of(plain.op, true))
            if (engine->is_applicable(context_.traits(), plain)) last = engine;
        return last == use.engine || last == nullptr;
    }

    void look_at(const EngineUse& use) {
        const auto& outputs = use.problem.outputs;
        if (std::all_of(outputs.begin(), outputs.end(),
                        [](const Operand& output) { return output.shape.numel() == 0; }))
            return;  // it computes nothing
        if (use.engine->on_host() && is_last_of_host(use)) return;
        // Making the smaller problem takes longer than the look at what is known of this one.
        const std::string whole = key_of(use, use.problem);
        std::optional<Trust> trust = store_.find(whole);
        const std::string key =
            trust || !covers_one_class(use) ? whole : key_of(use, problem_for(use));
        if (!trust && key != whole) trust = store_.find(key);
        if (!trust) {
            // Its program would be compiled for the check alone.
            if (!runner_ && !is_compiled(use.programs)) return all_.later.push_back(use);
            const WaitBefore before(context_.queue());
            EngineCheck::Finding found;
            try {
                found = check(use);
            } catch (const RefusedIndex&) {
                // Another thread's kernel has refused something meanwhile. The engine is used for
                // now, and checked where it is planned with again.
                context_.queue().throw_later(std::current_exception());
                return;
            }
            // What fails may work another time, with more memory or another compiler.
            if (found.outcome == EngineCheck::Outcome::failed) return distrust(use, found.why);
            trust = {static_cast<Trust::Kind>(found.outcome), std::string(use.engine->name()),
                     found.why};
            store_.add(key, *trust);
        }
        if (key != whole) store_.remember(whole, *trust);
        if (trust->kind == Trust::Kind::wrong) distrust(use, trust->why);
    }

    void distrust(const EngineUse& use, const std::string& why) {
        all_.wrong.push_back({disable_key(*use.engine, use.problem), why});
    }

    /// The problem on which the engine is checked: a smaller one if that needs no other programs.
    Problem problem_for(const EngineUse& use) {
        const auto suits = [&](const Problem& small) {
            try {
                const NotedBuilds noted;
                use.engine->build(context_, small, use.tuning);
                // A runner has the programs of the given problem.
                return runner_ ? same_programs(noted.programs(), use.programs)
                               : is_compiled(noted.programs());
            } catch (const Error&) {
                return false;
            }
        };
        return smaller_problem(context_.traits(), *use.engine, use.problem, use.tuning,
                               !use.engine->on_host(), suits)
            .value_or(use.problem);
    }

    EngineCheck::Finding check(const EngineUse& use) {
        const std::string name(use.engine->name());
        if (!host_) host_ = make_host_context();
        EngineCheck check(context_, *host_, runner_);
        const auto start = std::chrono::steady_clock::now();
        const Problem problem = problem_for(use);
        EngineCheck::Finding found;
        if (elements_of(problem) > most_elements ||
            (problem.op != "Reorder" && check.host_seconds(problem) > most_seconds))
            found.why = "the host would take too long for it";
        else
            found = try_check(check, use, problem);
        ++checks_;
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        log(LogLevel::debug,
            cat("checked engine ", name, " for ", use.where, "in ", seconds.count(), " s"));
        if (found.outcome == EngineCheck::Outcome::unknown)
            log(LogLevel::info, cat("engine ", name, " is not checked: ", found.why));
        return found;
    }

    EngineCheck::Finding try_check(EngineCheck& check, const EngineUse& use,
                                   const Problem& problem) {
        try {
            return check.run(*use.engine, problem, use.tuning);
        } catch (const RefusedIndex&) {
            throw;
        } catch (const Error& error) {
            return {EngineCheck::Outcome::unknown, error.what()};
        }
    }

    ContextImpl& context_;
    TrustStore& store_;
    Uncounted uncounted_;  ///< checks are not the program's work
    std::shared_ptr<ContextImpl> host_;
    EngineRun::Runner runner_;
    CheckedEngines all_;
    int checks_ = 0;
};

}  // namespace

bool checks_engines() {
    return !EnginesUnchecked::active() && env("DLPRIM_TRUST").value_or("1") != "0";
}

CheckedEngines check_engines(ContextImpl& context, const std::vector<EngineUse>& uses) {
    return Checker(context).run(uses);
}

std::vector<FailedEngine> check_engines_by(
    ContextImpl& context, const std::vector<EngineUse>& uses,
    const std::function<bool(Launch&, std::span<const BufferRef>)>& run) {
    return Checker(context, run).run(uses).wrong;
}

bool disable_distrusted(ContextImpl& context, const std::vector<FailedEngine>& wrong) {
    std::set<std::string> logged;
    bool any = false;
    for (const FailedEngine& engine : wrong) {
        disable(context, distrust_key + engine.key, engine.why, true);
        const bool first = logged.insert(engine.key.substr(0, engine.key.find('\n'))).second;
        any = disable(context, engine.key, engine.why, !first) || any;
    }
    return any;
}

bool is_distrusted(ContextImpl& context, const Engine& engine, const Problem& problem) {
    return has_failed(context, distrust_key + disable_key(engine, problem));
}

void refuse_distrusted(std::vector<FailedEngine> wrong) {
    if (wrong.empty()) return;
    const std::string what = cat("engine ", wrong[0].key.substr(0, wrong[0].key.find('\n')),
                                 " cannot be trusted: ", wrong[0].why);
    throw EngineFailed(EngineFailed::Kind::wrong, Error(ErrorKind::device, what), std::move(wrong));
}

}  // namespace dlprim

// SPDX-License-Identifier: MIT
// engine_row_programs: prints as JSON which programs the engines of shipped rows compile, for
// scripts/redate_rows.py. It needs no device: a context that notes programs stands in for the
// rows'.
//
//     engine_row_programs > programs.json
//
// {"sources": {engine: source_hash()}, "programs": [{"name", "options", "source"}, ...],
//  "rows": [[indices of programs], ...] in the order of shipped_database()}
#include "engine/shipped_row.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/recorded_program.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace dlprim;

namespace {

/// Has a device's traits and notes what is to be compiled. It can do nothing else.
class NotingContext : public ContextImpl {
  public:
    explicit NotingContext(const Traits& traits) { traits_ = traits; }
    std::shared_ptr<Program> build(const ProgramSource& source) override {
        noted.push_back(source);
        return std::make_shared<RecordedProgram>(source);
    }
    std::vector<ProgramSource> noted;

    std::shared_ptr<ContextImpl> self() override { none(); }
    std::shared_ptr<Buffer> allocate(std::uint64_t) override { none(); }
    std::shared_ptr<Buffer> allocate_cached(std::uint64_t) override { none(); }
    std::uint64_t trim() override { none(); }
    MemoryUse memory() override { none(); }
    void reset_memory_peaks() override { none(); }
    std::shared_ptr<Buffer> wrap(void*, std::uint64_t) override { none(); }
    Queue& queue() override { none(); }
    HostPool& pool() override { none(); }
    std::shared_ptr<EventImpl> record(EventOptions) override { none(); }
    std::shared_ptr<std::byte> make_pinned(std::uint64_t) override { none(); }
    std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer>, std::uint64_t,
                                         std::uint64_t) override {
        none();
    }
    std::unique_ptr<Readback> make_readback(std::uint64_t) override { none(); }

  private:
    [[noreturn]] static void none() {
        fail(ErrorKind::unsupported, "an engine asks a device for more than programs");
    }
};

/// What the row's engine compiles: the operator's programs, and those that pack its inputs.
std::vector<ProgramSource> programs_of(const DatabaseRow& row) {
    const Engine* engine = EngineRegistry::instance().find(row.row.engine);
    require(engine != nullptr, "there is no engine '", row.row.engine, "'");
    const Traits& device = row_devices.at(row.device);
    const auto problem = laid_problem(*engine, device, row);
    require(problem.has_value(), row.row.engine, " has no layout '", row.row.layout, "'");
    NotingContext context(device);
    engine->build(context, *problem, row.row.tuning);
    for (std::size_t i = 0; i < problem->inputs.size(); ++i)
        if (problem->inputs[i].layout.kind == Layout::Kind::packed)
            engine->build_packing(context, *problem, row.row.tuning, static_cast<int>(i));
    return context.noted;
}

}  // namespace

int main() {
    OperatorRegistry::instance();  // registers the engines, too
    nlohmann::json result = {{"sources", nlohmann::json::object()},
                             {"programs", nlohmann::json::array()},
                             {"rows", nlohmann::json::array()}};
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
    for (const DatabaseRow& row : shipped_database()) {
        nlohmann::json indices = nlohmann::json::array();
        for (const ProgramSource& program : programs_of(row)) {
            const auto [at, added] =
                known.try_emplace({program.name, program.options, program.source}, known.size());
            if (added)
                result["programs"].push_back({{"name", program.name},
                                              {"options", program.options},
                                              {"source", program.source}});
            indices.push_back(at->second);
        }
        result["rows"].push_back(indices);
        result["sources"][row.row.engine] =
            source_hash(*EngineRegistry::instance().find(row.row.engine));
    }
    std::cout << result.dump() << '\n';
}

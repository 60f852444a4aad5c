// SPDX-License-Identifier: MIT
// The library's self-test: it has a case for every operator, all engines pass, and an engine that
// is wrong or fails is found.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <dlprim/diagnosis.hpp>

#include <set>
#include <stdexcept>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

enum class Fault { none, wrong, fails };
Fault fault = Fault::none;

class FaultyLaunch : public Launch {
  public:
    explicit FaultyLaunch(std::uint64_t bytes) : bytes_(bytes) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const float two = 2;
        queue.fill(operands[operands.size() - 1], bytes_, &two, sizeof(two));
    }

  private:
    std::uint64_t bytes_;
};

/// An engine of flips that applies only while it has a fault, and is chosen by nobody.
class Faulty : public Engine {
  public:
    explicit Faulty(bool on_host)
        : Engine(on_host ? "flip.faulty_host" : "flip.faulty", "Flip", on_host) {}
    Verdict is_applicable(const Traits&, const Problem&) const override {
        return fault == Fault::none ? Verdict::no("it is not under test") : Verdict::yes();
    }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return 1e9; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        if (fault == Fault::fails) fail(ErrorKind::build, "the faulty engine does not build");
        return std::make_unique<FaultyLaunch>(
            static_cast<std::uint64_t>(problem.outputs[0].shape.numel()) * 4);
    }
};

}  // namespace

TEST_CASE("the self-test has a case for every operator", "[self_test]") {
    std::set<std::string> covered, seen;
    for (const SelfTestCase& one : self_test_cases()) {
        covered.insert(OperatorRegistry::instance().type_of(one.type));
        CHECK(seen.insert(one.type + '/' + one.name).second);
    }
    for (const std::string& type : OperatorRegistry::instance().types()) {
        INFO(type);
        // A constant has no operand that an eager call could know its device by.
        const bool is_left_out = type == "Constant" || type.ends_with("Backward");
        CHECK((covered.count(type) > 0 || is_left_out));
    }
}

TEST_CASE("the self-test finds no fault in the host's engines", "[self_test]") {
    const Context host("cpu");
    std::set<std::string> ran;
    for (const SelfTestCase& one : self_test_cases())
        for (const SelfTestRow& row : self_test(host, one)) {
            INFO(one.type << '/' << one.name << ' ' << row.engine << ": " << row.reason);
            CHECK(row.outcome == SelfTestRow::Outcome::right);
            ran.insert(row.ran.begin(), row.ran.end());
        }
    CHECK(ran.size() > 30);
    CHECK_THROWS_AS(self_test(host, {"Flip", "no such case"}), Error);
}

TEST_CASE("the self-test finds an engine that is wrong or fails", "[self_test]") {
    OperatorRegistry::instance();
    for (const bool on_host : {false, true})
        EngineRegistry::instance().add(std::make_unique<Faulty>(on_host));
    for (const Context& device : test_devices()) {
        INFO(device.info().str());
        for (const Fault kind : {Fault::wrong, Fault::fails}) {
            fault = kind;
            const Context fresh(device.info().id);  // without plans of other faults
            bool found = false;
            for (const SelfTestRow& row : self_test(fresh, {"Flip", "several"})) {
                if (row.engine.find("faulty") == std::string::npos) {
                    CHECK(row.outcome == SelfTestRow::Outcome::right);
                    continue;
                }
                found = true;
                INFO(row.reason);
                CHECK(row.outcome == (kind == Fault::wrong ? SelfTestRow::Outcome::wrong
                                                           : SelfTestRow::Outcome::failed));
                CHECK(row.reason.find(kind == Fault::wrong ? "is off by" : "does not build") !=
                      std::string::npos);
            }
            CHECK(found);
        }
        fault = Fault::none;
    }
}

TEST_CASE("peaks are measured", "[self_test]") {
    for (const Context& device : test_devices()) {
        const Peaks peaks = measure_peaks(device);
        CHECK(peaks.gflops > 0.1);
        CHECK(peaks.gbytes_per_s > 0.1);
        if (!device.traits().host) CHECK(peaks.launch_us > 0);
    }
}

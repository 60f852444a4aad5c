// SPDX-License-Identifier: MIT
// Checks of engines draw the edges of what a problem allows, and where all engines of an operator
// are wrong, the host computes in their place.
#include "base/text.hpp"
#include "engine/engine.hpp"
#include "engine/pointwise/functions.hpp"
#include "graph/operator.hpp"
#include "net/eager_support.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include <unistd.h>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// What the engines below get wrong, and how often they have run.
enum class Fault { off, none, negative, last, infinite, everything };
struct Script {
    Fault fault = Fault::off;
    int launches = 0;
};
Script script;

/// Computes by reading and writing device memory from here.
class ByHand : public Launch {
  public:
    using Work = std::function<void(std::vector<std::vector<std::byte>>&)>;
    ByHand(const Problem& problem, Work work) : work_(std::move(work)) {
        for (const auto* operands : {&problem.inputs, &problem.outputs})
            for (const Operand& operand : *operands)
                bytes_.push_back(static_cast<std::size_t>(operand.shape.numel()) *
                                 size_of(operand.dtype));
    }
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        ++script.launches;
        std::vector<std::vector<std::byte>> memory;
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            memory.emplace_back(bytes_[i]);
            queue.read(operands[i], memory[i].data(), bytes_[i], true);
        }
        work_(memory);
        queue.write(operands[bytes_.size() - 1], memory.back().data(), bytes_.back(), true);
    }

  private:
    Work work_;
    std::vector<std::size_t> bytes_;
};

/// Engines promise to be the fastest by far. Their names are others than in earlier runs of this
/// program, whose checks are in the cache.
class Scripted : public Engine {
  public:
    Scripted(Fault fault, std::string_view what, std::string_view op)
        : Engine(cat("test.", what, static_cast<int>(fault), '_', ::getpid()), op, false),
          fault_(fault) {}
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return -1; }

  protected:
    Fault fault_;
};

/// Takes elements of a vector, and reads element 0 for indices that it does not understand.
class TakeElements : public Scripted {
  public:
    explicit TakeElements(Fault fault) : Scripted(fault, "take", "Gather") {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        const bool applies = script.fault == fault_ && problem.inputs[0].shape.rank() == 1 &&
                             problem.inputs[0].dtype == DType::f32 &&
                             problem.inputs[1].dtype == DType::i32;
        return applies ? Verdict::yes() : Verdict::no("it is not under test");
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<ByHand>(
            problem, [fault = fault_](std::vector<std::vector<std::byte>>& memory) {
                const auto size = static_cast<std::int32_t>(memory[0].size() / 4);
                for (std::size_t i = 0; i < memory[1].size(); i += 4) {
                    std::int32_t index = 0;
                    std::memcpy(&index, &memory[1][i], 4);
                    if (fault == Fault::negative && index < 0) index = 0;
                    if (fault == Fault::last && (index == size - 1 || index == -1)) index = 0;
                    const std::int32_t at = index < 0 ? index + size : index;
                    std::memcpy(&memory[2][i], &memory[0][static_cast<std::size_t>(at) * 4], 4);
                }
            });
    }
};

/// The program "y0 = x0 + 1", which a compiler that assumes finite numbers gets wrong.
class AddOne : public Scripted {
  public:
    explicit AddOne(Fault fault) : Scripted(fault, "add", "Pointwise") {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        const bool applies = script.fault == fault_ &&
                             problem.attrs.text("code") == "y0 = x0 + 1" &&
                             problem.inputs[0].dtype == DType::f32;
        return applies ? Verdict::yes() : Verdict::no("it is not under test");
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<ByHand>(
            problem, [fault = fault_](std::vector<std::vector<std::byte>>& memory) {
                for (std::size_t i = 0; i < memory[0].size(); i += 4) {
                    float x = 0;
                    std::memcpy(&x, &memory[0][i], 4);
                    float y = x + 1;
                    if (fault == Fault::infinite && std::isinf(y)) y = 0;
                    std::memcpy(&memory[1][i], &y, 4);
                }
            });
    }
};

/// An operator that doubles, whose only engine of devices writes what it reads.
class Twice : public Operator {
  public:
    std::string_view type() const override { return "TestTwice"; }
    const Schema& schema() const override {
        static const Schema schema;
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> in) const override {
        return {in[0]};
    }
};

class TwiceOnDevices : public Scripted {
  public:
    TwiceOnDevices() : Scripted(Fault::everything, "twice", "TestTwice") {}
    Verdict is_applicable(const Traits&, const Problem&) const override { return Verdict::yes(); }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<ByHand>(
            problem, [](std::vector<std::vector<std::byte>>& memory) { memory[1] = memory[0]; });
    }
};

class TwiceOnHost : public Engine {
  public:
    TwiceOnHost() : Engine("test.twice_host", "TestTwice", true) {}
    Verdict is_applicable(const Traits&, const Problem&) const override { return Verdict::yes(); }
    double estimate(const Traits&, const Problem&, const Tuning&) const override { return 1e-6; }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const auto count = static_cast<std::size_t>(problem.inputs[0].shape.numel());
        return std::make_unique<HostLaunch>(
            [count](HostPool&, std::span<const BufferRef> operands) {
                const auto* const x = reinterpret_cast<const float*>(operands[0].host());
                auto* const y = reinterpret_cast<float*>(operands[1].host());
                for (std::size_t i = 0; i < count; ++i) y[i] = 2 * x[i];
            });
    }
};

/// Before the library's engines, of which the last stays the one with which others are compared.
const bool registered = [] {
    auto& engines = EngineRegistry::instance();
    for (const Fault fault : {Fault::none, Fault::negative, Fault::last})
        engines.add(std::make_unique<TakeElements>(fault));
    for (const Fault fault : {Fault::none, Fault::infinite})
        engines.add(std::make_unique<AddOne>(fault));
    engines.add(std::make_unique<TwiceOnDevices>());
    engines.add(std::make_unique<TwiceOnHost>());
    return true;
}();

/// Lets engines with this fault apply during its lifetime.
class WithFault {
  public:
    explicit WithFault(Fault fault) { script = {fault, 0}; }
    ~WithFault() { script = {}; }
    WithFault(const WithFault&) = delete;
    WithFault& operator=(const WithFault&) = delete;
};

template <typename T>
Tensor vector_of(const Context& context, DType dtype, const std::vector<T>& values) {
    Tensor tensor(context, {static_cast<std::int64_t>(values.size())}, dtype);
    tensor.copy_from_host(values.data(), values.size() * sizeof(T));
    return tensor;
}

/// Whether one of the lines has all these words.
bool has_line(const std::vector<std::string>& lines, std::initializer_list<const char*> words) {
    for (const std::string& line : lines) {
        bool all = true;
        for (const char* word : words) all = all && line.find(word) != std::string::npos;
        if (all) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("a check draws first, last and negative indices", "[trust_edges]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) return;
        for (const Fault fault : {Fault::none, Fault::negative, Fault::last}) {
            INFO("fault " << static_cast<int>(fault));
            // One index as well as many: draws take turns then.
            for (const std::vector<std::int32_t>& places :
                 {std::vector<std::int32_t>{-2},
                  std::vector<std::int32_t>{4, -1, 0, -5, 4, 2, 1}}) {
                const Context context(device.info().id);
                const WithFault with(fault);
                const Warnings warnings;
                const Tensor x = vector_of<float>(context, DType::f32, {10, 11, 12, 13, 14});
                const Tensor y =
                    ops::call("Gather", "{}", {x, vector_of(context, DType::i32, places)}, {})[0];
                std::vector<float> wanted;
                for (const std::int32_t place : places)
                    wanted.push_back(static_cast<float>(10 + (place < 0 ? place + 5 : place)));
                CHECK(y.to_floats() == wanted);
                CHECK(has_line(warnings.lines, {"is disabled: its results are wrong"}) ==
                      (fault != Fault::none));
                // The check of one index takes a turn for each edge, and covers the calls after it.
                if (fault == Fault::none) CHECK(script.launches > (places.size() == 1 ? 5 : 0));
            }
        }
    }
}

TEST_CASE("a check draws infinities where the operator defines them", "[trust_edges]") {
    ON_EVERY_DEVICE(device) {
        if (device.traits().host) return;
        for (const Fault fault : {Fault::none, Fault::infinite}) {
            INFO("fault " << static_cast<int>(fault));
            const Context context(device.info().id);
            const WithFault with(fault);
            const Warnings warnings;
            std::vector<float> values(40, 1.5f);
            values[3] = INFINITY;
            const Tensor x = vector_of(context, DType::f32, values);
            const std::vector<float> y =
                ops::call("Pointwise", R"({"code": "y0 = x0 + 1"})", {x}, {})[0].to_floats();
            CHECK(y[0] == 2.5f);
            CHECK(std::isinf(y[3]));
            CHECK(has_line(warnings.lines, {"is disabled: its results are wrong", "edges"}) ==
                  (fault != Fault::none));
        }
    }
}

TEST_CASE("the host computes where all engines are wrong", "[trust_edges]") {
    static const bool once = [] {
        OperatorRegistry::instance().add(std::make_unique<Twice>());
        return true;
    }();
    CHECK((once && registered));
    constexpr const char* text = R"({"inputs": [{"name": "x", "shape": [3, 4]}], "outputs": ["z"],
        "operators": [{"name": "y", "type": "TestTwice", "inputs": ["x"], "outputs": ["y"]},
                      {"name": "z", "type": "TestTwice", "inputs": ["y"], "outputs": ["z"]}]})";
    ON_EVERY_DEVICE(device) {
        const bool falls_back = !device.traits().host;
        const std::vector<float> values = random_floats(12, 5);
        std::vector<float> twice, four_times;
        for (const float value : values) {
            twice.push_back(2 * value);
            four_times.push_back(4 * value);
        }
        {
            const Warnings warnings;
            Net net = Net::from_json(Context(device.info().id), text);
            net.initialize();
            net.input("x").copy_from_host(values.data(), values.size() * sizeof(float));
            for (int run = 0; run < 2; ++run) {
                net.forward();
                CHECK(net.output("z").to_floats() == four_times);
            }
            CHECK(has_line(net.notes(), {"[TestTwice 'z'] is computed on the host",
                                         "its results are wrong"}) == falls_back);
            CHECK(has_line(warnings.lines, {"is computed on the host"}) == falls_back);
        }
        // Eager calls: a view as input, and one line for all sizes.
        const Context context(device.info().id);
        const Warnings warnings;
        const Tensor x(context, {3, 4}, values);
        CHECK(ops::call("TestTwice", "{}", {x}, {})[0].to_floats() == twice);
        const std::vector<float> turned =
            ops::call("TestTwice", "{}", {x.transpose(0, 1)}, {})[0].to_floats();
        CHECK(turned[1] == twice[4]);
        CHECK(std::count_if(warnings.lines.begin(), warnings.lines.end(), [](const auto& line) {
                  return line.find("is computed on the host") != std::string::npos;
              }) == (falls_back ? 1 : 0));
    }
}

TEST_CASE("the functions of programs agree with the host's at their edges", "[trust_edges]") {
    std::vector<std::string> names;
    for (const std::string& name : pointwise::callable_names())
        if (!pointwise::is_random(pointwise::find_function(name)->op)) names.push_back(name);
    ON_EVERY_DEVICE(device) {
        for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64}) {
            if (dtype == DType::f64 && !device.traits().fp64) continue;
            INFO(name_of(dtype));
            constexpr std::size_t together = 8;  // in one kernel
            for (std::size_t first = 0; first < names.size(); first += together) {
                std::string code;
                for (std::size_t i = first; i < std::min(first + together, names.size()); ++i) {
                    const int arity = pointwise::find_function(names[i])->arity;
                    code += cat(i == first ? "y" : "; y", i - first, " = ", names[i], "(x0",
                                arity > 1 ? ", x1" : "", arity > 2 ? ", x2" : "", ")");
                }
                INFO(code);
                const Warnings warnings;
                std::vector<Tensor> inputs;
                for (int i = 0; i < 3; ++i) {
                    inputs.emplace_back(device, Shape{400}, dtype);
                    inputs.back().fill(1);
                }
                ops::call("Pointwise", cat(R"({"code": ")", code, R"("})"), inputs, {});
                for (const std::string& line : warnings.lines) UNSCOPED_INFO(line);
                CHECK(warnings.lines.empty());
            }
        }
    }
}

// SPDX-License-Identifier: MIT
// Engine: the contract of everything that computes one kind of problem in one way.
//
// An engine is stateless and lives for the whole process. To add one, write a .cpp in src/ops/<op>/
// and a .cl of the same stem in kernels/<op>/, and add a line to the operator's register_<op>().
#pragma once

#include "engine/launch.hpp"
#include "engine/problem.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dlprim {

/// Whether an engine supports a problem. If not, the reason is a sentence that a user can act on.
struct Verdict {
    bool ok = true;
    std::string reason;
    static Verdict yes() { return {}; }
    static Verdict no(std::string reason) { return {false, std::move(reason)}; }
    explicit operator bool() const { return ok; }
};

/// Layouts of all inputs and outputs that an engine supports together. If the layout of an input is
/// packed, Engine::build_packing makes it: once if the input is constant, and otherwise in every
/// run.
struct LayoutChoice {
    std::vector<Layout> inputs;
    std::vector<Layout> outputs;
    /// Distinguishes several ways of packing: "4x4".
    std::string variant = {};

    /// All operands in the same layout.
    static LayoutChoice all(const Problem& problem, const Layout& layout = Layout::plain()) {
        return {std::vector(problem.inputs.size(), layout),
                std::vector(problem.outputs.size(), layout)};
    }

    /// The name in databases: "nchw, packed 4x4 -> nchw". The names of an engine's choices for a
    /// problem are distinct.
    std::string name() const;
};

/// Values of an engine's tuning parameters by name ("rows" -> 64). Databases store them, so a value
/// must say what it sets (rows, columns, stages, threads) and must not be a position in a table.
using Tuning = std::map<std::string, std::int64_t>;

/// What a tuner may try: every combination of the parameters' values and the tiles. A tile sets
/// several parameters that depend on each other, such as rows and columns. All tiles of a space set
/// the same parameters.
struct TuneSpace {
    using Values = std::map<std::string, std::vector<std::int64_t>>;
    Values values;
    std::vector<Tuning> tiles;

    TuneSpace() = default;
    TuneSpace(std::initializer_list<Values::value_type> all) : values(all) {}
    std::vector<std::int64_t>& operator[](const std::string& name) { return values[name]; }
};

class Engine {
  public:
    Engine(std::string name, std::string_view op, bool on_host)
        : name_(std::move(name)), op_(op), on_host_(on_host) {}
    virtual ~Engine() = default;

    /// The operator's folder and the method: "conv2d.implicit_gemm".
    std::string_view name() const { return name_; }
    /// The operator type of its problems: "Convolution2D".
    std::string_view op() const { return op_; }
    /// Whether it runs on the host device (true) or on OpenCL devices (false).
    bool on_host() const { return on_host_; }

    /// Whether it supports the problem, judged by shapes, dtypes, attrs, epilogue and traits, but
    /// not by operand layouts. Must be cheap. No other code chooses or rules out an engine.
    virtual Verdict is_applicable(const Traits& device, const Problem& problem) const = 0;

    /// Whether it has a separate implementation for problems of that precision. If not, it computes
    /// them as fp32. A problem becomes fp32 if none of the device's engines has an implementation
    /// for its precision.
    virtual bool computes_in(Precision precision) const { return precision == Precision::fp32; }

    /// The layouts that it supports, the preferred first. Never empty for an applicable problem. By
    /// default everything is plain.
    virtual std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const;

    /// Whether build() also supports strided layouts of operands that layouts() lists as plain.
    virtual bool addresses_strides() const { return false; }

    /// Bytes of scratch memory, bound after the outputs.
    virtual std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                          const Tuning& tuning) const;

    /// Estimated seconds: nominal work over the traits' rates. It only has to rank engines, and
    /// compare them with layout conversions. `problem` has its layouts set.
    virtual double estimate(const Traits& device, const Problem& problem,
                            const Tuning& tuning) const = 0;

    /// The tunings to try, at most most_tunings per problem over all layouts. `problem` has its
    /// layouts set, also in default_tuning(). All other methods get only tunings of tunings_of().
    virtual TuneSpace tune_space(const Traits& device, const Problem& problem) const;
    virtual Tuning default_tuning(const Traits& device, const Problem& problem) const;

    /// Compiles the kernels and sets all arguments that do not change. `problem` has its layouts
    /// set to one of layouts().
    virtual std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                          const Tuning& tuning) const = 0;

    /// The launch that converts input `index` from plain to its packed layout (operands: plain
    /// input, packed output). Called only for inputs with a packed layout, which is `packed`.
    virtual std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                                  const Tuning& tuning, int index) const;

    /// The kernel files that it compiles (paths under kernels/), without those that these include.
    /// The hash of all of their tokens tells whether its database rows are up to date.
    virtual std::vector<std::string> sources() const { return {}; }
    /// The other library that computes, with its version; empty if it is this one. Database rows
    /// and checks are valid for one version.
    virtual std::string version() const { return {}; }

  private:
    const std::string name_, op_;
    const bool on_host_;
};

/// The most tunings of a problem that an engine may have, over all layouts.
constexpr std::size_t most_tunings = 100;
/// Throws Error(unsupported), which names the engine, if `count` is larger than that.
void check_tuning_count(const Engine& engine, std::size_t count, const Problem& problem);

/// All tunings of an engine for a problem with its layouts set: the default first, then its tuning
/// space. Throws Error(unsupported) if there are more than most_tunings.
std::vector<Tuning> tunings_of(const Engine& engine, const Traits& device, const Problem& laid);
/// Whether `tuning` is one of tunings_of(). Tunings from database files must be checked, because
/// engines trust what they are built with.
Verdict offers(const Engine& engine, const Traits& device, const Problem& laid,
               const Tuning& tuning);
/// "columns=256 rows=128".
std::string text_of(const Tuning& tuning);

/// The estimate that simple engines share: the larger of two times plus one launch. The times are
/// `flops` over a share of the device's peak, and the bytes of all operands over a share of its
/// bandwidth.
double roofline_seconds(const Traits& device, const Problem& problem, double flops,
                        double share_of_peak, double share_of_bandwidth = 0.7);

/// A lower bound for the estimate of an engine whose work-items each compute one element in a loop
/// of `steps` dependent steps. Such a loop has a fixed latency, however few elements there are. On
/// a GPU each step waits for memory (0.2 to 0.9 us, measured on an H200 with the reference
/// convolutions). On a CPU, caches and out-of-order execution hide most of it.
double serial_loop_seconds(const Traits& device, double steps);

/// Whether an engine is its operator's reference: the simplest one, which comes last.
bool is_reference(const Engine& engine);

/// All engines by operator type, in order of registration, references last.
class EngineRegistry {
  public:
    static EngineRegistry& instance();
    void add(std::unique_ptr<Engine> engine);
    void add_first(std::unique_ptr<Engine> engine);
    const std::vector<const Engine*>& of(std::string_view op, bool on_host) const;
    const Engine* find(std::string_view name) const;
    std::vector<std::string> names() const;

  private:
    void index(std::string_view op, bool on_host);

    std::vector<std::unique_ptr<Engine>> engines_;
    /// By operator type: engines of OpenCL devices, and of the host.
    std::unordered_map<std::string_view, std::array<std::vector<const Engine*>, 2>> by_op_;
    std::unordered_map<std::string_view, const Engine*> by_name_;
};

}  // namespace dlprim

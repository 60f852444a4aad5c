// SPDX-License-Identifier: MIT
// Engine: the contract of everything that computes one kind of problem in one way.
//
// An engine is stateless and lives for the whole process. Adding one is a .cpp in src/ops/<op>/, a
// .cl in kernels/<op>/ with the same stem, and a line in the operator's register.cpp.
#pragma once

#include "engine/launch.hpp"
#include "engine/problem.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Whether an engine can do a problem; the reason is a sentence a user can act on.
struct Verdict {
    bool ok = true;
    std::string reason;
    static Verdict yes() { return {}; }
    static Verdict no(std::string reason) { return {false, std::move(reason)}; }
    explicit operator bool() const { return ok; }
};

/// Layouts for every input and output that an engine can work with at once. A packed layout on an
/// input asks for Engine::build_packing: done once where the input is constant, a launch a run
/// where it is not.
struct LayoutChoice {
    std::vector<Layout> inputs;
    std::vector<Layout> outputs;
    /// What is packed, where an engine packs in several ways: "4x4".
    std::string variant = {};

    /// What databases call it: "nchw, packed 4x4 -> nchw". No two choices that an engine has for a
    /// problem are called the same.
    std::string name() const;
};

/// Values of an engine's tuning parameters by name ("rows" -> 64). Databases keep them, so a value
/// says what it sets (rows, columns, stages, threads), and is never a place in a table.
using Tuning = std::map<std::string, std::int64_t>;

/// What a tuner may try: each value of each parameter with each of the tiles. A tile sets several
/// parameters that only make sense together, such as rows and columns of which an engine has some
/// pairs; all tiles of a space set the same ones.
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
    virtual ~Engine() = default;

    /// "conv2d.implicit_gemm": the operator's folder, then the way.
    virtual std::string_view name() const = 0;
    /// The operator type whose problems it solves: "Convolution2D".
    virtual std::string_view op() const = 0;
    /// Whether it runs on the host device (true) or on OpenCL devices (false).
    virtual bool on_host() const = 0;

    /// Cheap. Looks at shapes, dtypes, attrs, epilogue and traits; not at operand layouts. No
    /// engine is chosen, or ruled out, by an if anywhere else.
    virtual Verdict is_applicable(const Traits& device, const Problem& problem) const = 0;

    /// Whether it has a way of its own for problems of that precision. One that has not computes
    /// them as those of fp32, and problems that none of a device's engines has a way for are posed
    /// in fp32.
    virtual bool computes_in(Precision precision) const { return precision == Precision::fp32; }

    /// What it can read and write, the preferred first; never empty for an applicable problem. The
    /// default: everything plain.
    virtual std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const;

    /// Bytes of scratch memory, bound after the outputs.
    virtual std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                          const Tuning& tuning) const;

    /// Seconds, from a model: nominal work over the traits' rates. Only its order among engines
    /// and against layout conversions matters. `problem` has its layouts set.
    virtual double estimate(const Traits& device, const Problem& problem,
                            const Tuning& tuning) const = 0;

    /// At most most_tunings a problem, in all layouts together. `problem` has its layouts set, here
    /// and in default_tuning(). All other methods get a tuning of tunings_of() alone.
    virtual TuneSpace tune_space(const Traits& device, const Problem& problem) const;
    virtual Tuning default_tuning(const Traits& device, const Problem& problem) const;

    /// Compiles and settles everything. `problem` has its layouts set to one of layouts().
    virtual std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                          const Tuning& tuning) const = 0;

    /// The launch that turns input `index` from plain into its packed layout (operands: plain
    /// input, packed output). Called only for inputs whose layout is packed. `packed` is that
    /// layout.
    virtual std::unique_ptr<Launch> build_packing(ContextImpl& context, const Problem& problem,
                                                  const Tuning& tuning, int index) const;

    /// The kernel files it compiles (paths under kernels/), whose hash dates its database rows.
    virtual std::vector<std::string> sources() const { return {}; }
};

/// The most tunings of a problem that an engine may offer, in all layouts together. More are an
/// Error(unsupported) that names the engine.
constexpr std::size_t most_tunings = 100;
/// Throws that, where `count` are too many.
void check_tuning_count(const Engine& engine, std::size_t count, const Problem& problem);

/// What an engine offers for a problem with its layouts set: its default, which is the first, and
/// all of its tuning space over that. Throws Error(unsupported) where they are more than
/// most_tunings.
std::vector<Tuning> tunings_of(const Engine& engine, const Traits& device, const Problem& laid);
/// Whether that is one of them. Databases are files, and engines trust what they are built with.
Verdict offers(const Engine& engine, const Traits& device, const Problem& laid,
               const Tuning& tuning);
/// "columns=256 rows=128".
std::string text_of(const Tuning& tuning);

/// Reference estimate shared by simple engines: the larger of flops over a share of the device's
/// peak and bytes of all operands over its bandwidth, plus one launch.
double roofline_seconds(const Traits& device, const Problem& problem, double flops,
                        double share_of_peak, double share_of_bandwidth = 0.7);

/// A floor under the estimate of an engine whose work-items each make one element alone, by a loop
/// of `steps` of which each waits for what it reads: however few elements there are, such a loop
/// takes its time. On a GPU a step waits for memory (measured on an H200 with the reference
/// convolutions: 0.2 to 0.9 us); a processor's caches and reordering hide most of that.
double serial_loop_seconds(const Traits& device, double steps);

/// Whether an engine is its operator's reference: the simplest one, which comes last.
bool is_reference(const Engine& engine);

/// All engines, by operator type, in order of registration; references come last.
class EngineRegistry {
  public:
    static EngineRegistry& instance();
    void add(std::unique_ptr<Engine> engine);
    std::vector<const Engine*> of(std::string_view op, bool on_host) const;
    const Engine* find(std::string_view name) const;
    std::vector<std::string> names() const;

  private:
    std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace dlprim

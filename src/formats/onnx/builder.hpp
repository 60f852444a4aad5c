// SPDX-License-Identifier: MIT
// Builder: builds a network operator by operator. Shapes and types are known after every operator,
// and operators whose inputs are all constants are computed on the host at once (constant folding).
// It knows nothing of ONNX.
//
// A Ref identifies a value and is valid as long as its Builder. A known value (a constant) takes no
// part in the network until an operator reads it: it then becomes that operator's parameter, a
// Constant or a Parameter.
//
// The operators become networks part by part (Part, net_writer.hpp). A static model is one part. If
// the import cannot continue without the contents of a computed value, know() asks a StageRunner to
// run the part that computes it.
#pragma once

#include "base/text.hpp"
#include "graph/description.hpp"

#include <dlprim/tensor_file.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dlprim::onnx {

using HostValue = std::shared_ptr<const HostTensor>;

struct BuiltValue {
    TensorSpec spec;
    HostValue known;       ///< null: computed while the network runs
    bool stored = false;   ///< known, and an initialiser of the model: a solver may change it
    bool strings = false;  ///< its numbers stand for strings (Builder::text)
    int producer = -1;     ///< the operator that makes it
    int fed = -1;          ///< the number of the input if the value is an input; else -1
    int index = 0;         ///< values are numbered in the order in which they are made
};
using Ref = const BuiltValue*;

/// An operator of the network that is built.
struct BuiltOperator {
    std::string type, name;
    Attrs options;
    std::vector<Ref> inputs, params, outputs;
};

/// Operators that become one network. Its inputs are fed or come from earlier parts.
struct Part {
    std::vector<BuiltOperator> operators;
    std::vector<Ref> inputs, outputs;
};

/// Computes results from known values on the host, where their shapes depend on those values.
using HostFunction = std::function<std::vector<HostValue>(const std::vector<HostValue>&)>;

/// Runs parts while the import continues.
class StageRunner {
  public:
    virtual ~StageRunner() = default;
    /// Runs the part and returns the contents of `wanted`: a value of this part or of an earlier
    /// one, or an input.
    virtual HostValue read(const Part& part, Ref wanted) = 0;
    /// Runs the part, reads the values `wanted`, some of which may be known, and calls the function
    /// with them. Its results become inputs of later parts. Returns their specs.
    virtual std::vector<TensorSpec> call(const Part& part, const std::vector<Ref>& wanted,
                                         const HostFunction& function) = 0;
};

/// Copies of a model's values in another order, shape or type, as long as somebody holds them: an
/// import for other input shapes takes those of an earlier one, so that their memory on devices and
/// what is packed of them is shared, too.
class ValueCopies {
  public:
    /// The copy of that kind, or null.
    HostValue find(const HostValue& from, const std::string& kind) const;
    void add(const HostValue& from, const std::string& kind, const HostValue& copy);

  private:
    struct Known {
        std::weak_ptr<const HostTensor> from, copy;
    };
    std::map<std::pair<const HostTensor*, std::string>, Known> known_;
    std::size_t alive_ = 64;  ///< when those that are gone were last forgotten, at least
};

/// A set of distinct names. A wanted name that is taken gets a number appended: "x#2".
class Names {
  public:
    bool has(const std::string& name) const { return taken_.count(name) > 0; }
    void insert(const std::string& name) { taken_.insert(name); }
    /// The wanted name, with a number appended if it is taken. This call does not take it.
    std::string unused(const std::string& wanted) {
        if (!has(wanted)) return wanted;
        int& next = next_.try_emplace(wanted, 2).first->second;
        while (has(cat(wanted, "#", next))) ++next;
        return cat(wanted, "#", next);
    }
    /// Takes the name that unused() returns, and returns it.
    std::string take(const std::string& wanted) { return *taken_.insert(unused(wanted)).first; }

  private:
    std::unordered_set<std::string> taken_;
    /// The next number to try for a name. Thousands of nodes may have the same name.
    std::unordered_map<std::string, int> next_;
};

class Builder {
  public:
    /// With a runner, know() finds the contents of computed values. `live` adds to a set the values
    /// that later nodes may read, so that the part which is run keeps them.
    void run_stages_by(StageRunner& runner, std::function<void(std::set<Ref>&)> live);
    /// Takes copies of known values from `copies`, which outlives the builder, and adds new ones.
    void share_copies(ValueCopies& copies) { copies_ = &copies; }
    /// Sets how many bytes of known values may be made; see allocate().
    void limit_known_bytes(std::uint64_t most) { most_known_bytes_ = most; }

    Ref input(const std::string& name, const TensorSpec& spec);
    /// A value that is known. `stored`: an initialiser, which may be trained.
    Ref constant(const std::string& name, HostValue value, bool stored = false);
    Ref integers(const std::string& name, const std::vector<std::int64_t>& values);
    /// A known tensor of strings: int64 numbers that stand for them.
    Ref strings(const std::string& name, const Shape& shape,
                const std::vector<std::string>& values);
    /// The same value, whose numbers stand for strings.
    Ref as_strings(Ref value);
    /// The strings of a known value.
    std::vector<std::string> texts(Ref value);

    /// Allocates memory for a known value, filled with zeros. Throws Error(unsupported) if all such
    /// values together would take more than limit_known_bytes(), so that a small file cannot use up
    /// the host's memory.
    std::shared_ptr<HostTensor> allocate(const Shape& shape, DType dtype);
    /// Raises that limit by eight times the bytes of an initialiser, for copies of it.
    void allow_copies_of(std::uint64_t bytes);
    /// Counts the memory of a known value that the caller allocates itself. Throws as allocate().
    void claim(const Shape& shape, DType dtype);

    /// The next operators get this name, or names that begin with it.
    void begin(const std::string& name) { at_ = name; }

    /// Adds an operator and returns its outputs. `params`: its parameters in the order of weights
    /// files; they may be known or computed. Where all is known and small, or the result has no
    /// elements, nothing is added: the operator's oracle computes the outputs here. Throws
    /// Error(invalid_argument), which names the operator, as build_graph() does.
    std::vector<Ref> add(std::string_view type, const std::vector<Ref>& inputs,
                         const Attrs& options = {}, const std::vector<Ref>& params = {});
    /// add() for an operator of one output that stays in the network even if all is known, because
    /// the types of its inputs tell passes what its result holds.
    Ref add_unfolded(std::string_view type, const std::vector<Ref>& inputs, const Attrs& options);
    /// add() for an operator of one output.
    Ref add1(std::string_view type, const std::vector<Ref>& inputs, const Attrs& options = {},
             const std::vector<Ref>& params = {});
    /// A Pointwise operator of one output. Without `dtype` its result is float, or of the inputs'
    /// type.
    Ref pointwise(std::string_view code, const std::vector<Ref>& inputs,
                  const std::vector<double>& scalars = {}, std::optional<DType> dtype = {});
    Ref pointwise(std::string_view code, const std::vector<Ref>& inputs, DType dtype);
    /// The same whose result has this shape, to which the inputs are broadcast.
    Ref pointwise_of(const Shape& shape, std::string_view code, const std::vector<Ref>& inputs,
                     std::optional<DType> dtype = {}, const std::vector<double>& scalars = {});
    /// A view of another shape; the value itself where it has that shape. The operator deduces
    /// dimension `deduced`, so that the network may be given another batch.
    Ref reshape(Ref value, const Shape& shape, int deduced = -1);
    Ref cast(Ref value, DType dtype);
    Ref transpose(Ref value, const std::vector<std::int64_t>& order);
    /// Places [begin, end) of dimension `axis`, which may count from the end: the value itself
    /// where these are all, and a known value without elements where there are none.
    Ref slice(Ref value, int axis, std::int64_t begin, std::int64_t end);
    /// The parts behind each other along `axis`: a single one itself.
    Ref concat(const std::vector<Ref>& parts, int axis);
    /// The known value as `fill` makes it of its contents, or the copy of this kind that there is.
    Ref copy(Ref value, const std::string& kind, const Shape& shape, DType dtype,
             const std::function<void(HostTensor& made)>& fill);

    /// A matrix that is made of known integers, scales and perhaps zero points: scale * (integer -
    /// zero). `block` neighbours along dimension `axis` of the integers share a scale and a zero.
    struct Dequantized {
        Ref integers, scale, zero;
        int axis;
        std::int64_t block;
        bool is_transposed = false;  ///< the value is the transpose of what these make
    };
    /// Notes where a value comes from, for products that read the integers themselves. Transposes
    /// of the value are noted as well.
    void note(Ref value, const Dequantized& from) { dequantized_.emplace(value, from); }
    /// Null if nothing is noted.
    const Dequantized* note_of(Ref value) const {
        const auto found = dequantized_.find(value);
        return found == dequantized_.end() ? nullptr : &found->second;
    }

    /// Whether the value is known, or became known: a runner ran the part that computes it.
    bool know(Ref value);
    /// What a function of the host makes of these values. Where they are known, so are the results;
    /// else they are computed in every run, and have the shapes of this one. Empty where they are
    /// not known and there is no runner.
    std::vector<Ref> call_host(const std::vector<Ref>& inputs, const HostFunction& function);

    /// Names the value as the model does; the first name counts.
    void name(Ref value, const std::string& name);
    /// "" where it has none.
    std::string name_of(Ref value) const;
    /// How many values there are: those made later have at least this index.
    int values() const { return static_cast<int>(values_.size()); }
    Ref value(int index) const { return &values_[static_cast<std::size_t>(index)]; }
    const std::vector<Ref>& inputs() const { return inputs_; }

    /// The operators that these values need and no part before had. Those are also outputs of the
    /// part that `live` values and operators outside of it need later. Values that are known or fed
    /// are no outputs.
    Part take_part(const std::vector<Ref>& wanted, const std::set<Ref>& live = {});

  private:
    std::vector<Ref> add(std::string_view type, const std::vector<Ref>& inputs,
                         const Attrs& options, const std::vector<Ref>& params, bool folds);
    BuiltValue& make(const TensorSpec& spec, const std::string& name = {});
    Ref fed(const TensorSpec& spec, const std::string& name);
    std::vector<Ref> known_results(const std::vector<TensorSpec>& outputs,
                                   std::vector<HostValue> values);
    /// By operator: whether these values need it and no part has it yet.
    std::vector<bool> pending_for(const std::vector<Ref>& wanted) const;

    std::string at_;
    std::deque<BuiltValue> values_;
    std::vector<BuiltOperator> made_;
    std::vector<bool> taken_;           ///< by operator: whether a part has it, or nobody needs it
    std::vector<std::size_t> pending_;  ///< operators that are not taken
    std::vector<Ref> inputs_;
    int fed_ = 0;
    Names operator_names_;
    std::unordered_map<Ref, std::string> names_;  ///< what the model calls values
    std::unordered_map<Ref, Dequantized> dequantized_;
    std::vector<std::string> texts_;
    std::map<std::string, std::int64_t> text_numbers_;
    ValueCopies own_copies_;
    ValueCopies* copies_ = &own_copies_;
    std::uint64_t known_bytes_ = 0, most_known_bytes_ = std::uint64_t{1} << 30;
    StageRunner* runner_ = nullptr;
    std::function<void(std::set<Ref>&)> live_;
};

/// What the operator makes of known values, by its oracle: one tensor an output; empty where the
/// result would be too large to be worth it, or an integer would lose digits in a double.
std::vector<HostValue> fold(const Operator& op, const Attrs& options,
                            const std::vector<HostValue>& inputs,
                            const std::vector<TensorSpec>& outputs);

/// Values of one dimension as integers; a number is a list of one. Throws Error(invalid_argument)
/// for floats.
std::vector<std::int64_t> to_integers(const HostTensor& value);
std::vector<double> to_numbers(const HostTensor& value);
HostValue host_integers(const Shape& shape, const std::vector<std::int64_t>& values,
                        DType dtype = DType::i64);
HostValue host_numbers(const Shape& shape, const std::vector<double>& values, DType dtype);

}  // namespace dlprim::onnx

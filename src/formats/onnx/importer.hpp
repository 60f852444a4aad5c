// SPDX-License-Identifier: MIT
// Importer: imports a model's nodes in order, each by the rule of its type (call.hpp). Values may
// be known, such as constants, or computed by the network.
//
// The inputs are made first (import_inputs.cpp). Then run() imports the graph's nodes; a node that
// calls a function or owns graphs stands for their nodes (importer.cpp).
#pragma once

#include "formats/onnx/call.hpp"
#include "formats/onnx/import.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace dlprim::onnx {

/// What the importer must know of a value that a run gives to an input: the shape and type of a
/// tensor (its contents are not needed), strings, a sequence, or none.
struct Fed {
    using Sequence = std::vector<Fed>;
    std::variant<std::monostate, TensorSpec, HostStrings, Sequence> data;

    const TensorSpec* tensor() const { return std::get_if<TensorSpec>(&data); }
    const HostStrings* strings() const { return std::get_if<HostStrings>(&data); }
    const Sequence* sequence() const { return std::get_if<Sequence>(&data); }

    /// For messages: "float [2, 3]", "string [4]", "a sequence of 2", "nothing".
    std::string str() const {
        if (tensor()) return cat(name_of(tensor()->dtype), " ", tensor()->shape.str());
        if (strings()) return cat("string ", strings()->shape.str());
        return sequence() ? cat("a sequence of ", sequence()->size()) : "nothing";
    }
};

class Importer : public GraphRunner {
  public:
    /// The model and the limits must outlive the importer.
    Importer(const Model& model, const ImportLimits& limits);

    /// Sets the runner of parts, for values that must be known; see Builder.
    void run_stages_by(StageRunner& runner);
    /// Makes the inputs that a caller has to give (fed_inputs()), with their declared shapes. Sizes
    /// that the model leaves open come from `shapes` and `batch`; see import_model().
    void make_declared_inputs(const std::map<std::string, Shape>& shapes, std::int64_t batch);
    /// Makes the inputs that are given, after checking them against their declarations. An input
    /// replaces an initialiser of the same name.
    void make_fed_inputs(const std::map<std::string, Fed>& inputs);
    /// The graph's outputs, by name. Throws Error, as import_model() does.
    std::vector<std::pair<std::string, AnyValue>> run();

    Builder& builder() { return build_; }
    /// The number of nodes of the model's graph that became no operator, because their results are
    /// known, are shapes or views, or are computed by a function on the host.
    std::int64_t host_nodes() const { return host_nodes_; }

    std::vector<AnyValue> run_graph(const Graph& graph,
                                    const std::vector<AnyValue>& inputs) override;
    std::int64_t max_iterations() const override { return limits_.iterations; }

  private:
    /// By name, the last node that reads a value; the number of nodes for an output.
    using LastUses = std::unordered_map<std::string, std::size_t>;

    using Values = std::unordered_map<std::string, AnyValue>;

    /// The values by name that nodes of one graph or function can read.
    struct Scope {
        Values values;
        const Scope* parent = nullptr;           ///< of the graph around this one
        const Attributes* attributes = nullptr;  ///< of the function's node, inside a function
        const std::map<std::string, std::int64_t, std::less<>>* opsets = nullptr;
        int depth = 0;  ///< of functions
        bool is_main = false;
        std::size_t at = 0;  ///< the node that is imported now
        const LastUses* last_uses = nullptr;
    };

    void check_opset(const std::map<std::string, std::int64_t, std::less<>>& opsets,
                     const std::string& what) const;
    void add_initializers(const Graph& graph, Scope& scope);
    void check_input_names() const;
    std::string where_input(const ValueInfo& info) const;
    Shape declared_shape(const ValueInfo& info, const std::map<std::string, Shape>& shapes,
                         std::int64_t batch);
    void bind_symbol(const ValueInfo& info, const Dimension& dim, std::int64_t size);
    void check_fed(const ValueInfo& info, const Fed& fed);
    AnyValue make_input(const std::string& name, const Fed& fed);

    const AnyValue* look_up(const Scope& scope, const std::string& name) const;
    AnyValue find(const Scope& scope, const std::string& name, const char* what) const;
    void add_nodes(const std::vector<Node>& nodes, const std::vector<std::string>& outputs,
                   Scope& scope);
    void add_node(const Node& node, Scope& scope);
    /// Counts a node of a function or graph, and a run of a graph. Throws where there are too many.
    void count_inner_node();
    /// Counts a node of the model's graph by whether an operator made one of its results.
    void count_node(const std::vector<std::optional<AnyValue>>& results, const Scope& scope);
    std::vector<std::optional<AnyValue>> import_node(const Node& node,
                                                     const std::vector<AnyValue>& inputs,
                                                     Scope& scope);
    std::vector<std::optional<AnyValue>> run_function(const Function& function, const Node& node,
                                                      const std::vector<AnyValue>& inputs,
                                                      const Scope& outer);
    const Function* find_function(const Node& node) const;
    void check_declared(const ValueInfo& info, const AnyValue& value) const;
    const LastUses& last_uses(const std::vector<Node>& nodes,
                              const std::vector<std::string>& outputs);
    void add_live(std::set<Ref>& live) const;

    const Model& model_;
    const ImportLimits& limits_;
    Builder build_;
    Scope main_;
    bool checks_shapes_ = true;  ///< whether declared shapes of results must agree
    std::int64_t nodes_ = 0;     ///< of functions, branches and loops, and runs of their graphs
    std::int64_t host_nodes_ = 0;
    int last_operator_ = -1;  ///< the newest one that made a result
    std::vector<Scope*> active_;
    std::vector<const Call*> calls_;
    int first_of_node_ = 0;  ///< the first value that the innermost node may have made
    std::map<const Node*, LastUses> last_uses_;
    /// By domain and name; null: the model has several.
    std::map<std::pair<std::string, std::string>, const Function*> functions_;
    /// Initialisers of graphs that nodes own, which loops need more than once.
    std::map<const Graph*, Values> initializers_;
    /// By symbol: its size, and the first input that has it.
    std::map<std::string, std::pair<std::int64_t, std::string>> symbols_;
    std::map<std::string, std::string> refused_;  ///< values that cannot be had, and why
};

}  // namespace dlprim::onnx

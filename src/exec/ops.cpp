// SPDX-License-Identifier: MIT
// dp::ops: the public face of eager calls.
#include <dlprim/ops.hpp>

#include "base/text.hpp"
#include "exec/eager.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"

#include <mutex>
#include <unordered_map>

namespace dlprim::ops {

namespace {

using Options = std::shared_ptr<const EagerOptions>;

/// Options by their text, so that one is parsed once.
class KnownOptions {
  public:
    template <typename Parse>
    Options find(std::string_view text, Parse&& parse) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = known_.find(text); found != known_.end()) return found->second;
        }
        Options options = eager_options(parse());
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most) known_.clear();
        known_.insert_or_assign(std::string(text), options);
        return options;
    }

  private:
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    static constexpr std::size_t most = 4096;
    std::mutex mutex_;
    std::unordered_map<std::string, Options, Hash, std::equal_to<>> known_;
};

Options parsed(std::string_view json) {
    static auto* known = new KnownOptions;
    return known->find(json, [&] { return parse_options_json(json); });
}

Options pointwise_options(std::string_view code, const std::vector<double>& scalars) {
    static auto* known = new KnownOptions;
    std::string text(code);
    text.append(1, '\0');
    text.append(reinterpret_cast<const char*>(scalars.data()), scalars.size() * sizeof(double));
    return known->find(text, [&] {
        return Attrs{{"code", std::string(code)}, {"scalars", Doubles(scalars)}};
    });
}

}  // namespace

std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                         const CallOptions& options) {
    return eager_call(type, *parsed(options_json), inputs, params, options);
}

std::vector<Tensor> backward(std::string_view type, std::string_view options_json,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients,
                             const CallOptions& options) {
    return eager_backward(type, *parsed(options_json), inputs, params, output_gradients, options);
}

std::vector<std::size_t> written_params(std::string_view type, std::string_view options_json) {
    const Operator& op = OperatorRegistry::instance().get(type);
    return op.written_params(
        op.schema().complete(parsed(options_json)->attrs, cat("[", type, "] ")));
}

std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars, const CallOptions& options) {
    return eager_call("Pointwise", *pointwise_options(code, scalars), inputs, {}, options);
}

Tensor relu(const Tensor& x) {
    return call("Activation", R"({"activation": "relu"})", {x}).at(0);
}
Tensor add(const Tensor& a, const Tensor& b) {
    return call("Elementwise", "{}", {a, b}).at(0);
}
Tensor matmul(const Tensor& a, const Tensor& b) {
    return call("MatMul", "{}", {a, b}).at(0);
}
Tensor softmax(const Tensor& x) {
    return call("Softmax", "{}", {x}).at(0);
}

}  // namespace dlprim::ops

// SPDX-License-Identifier: MIT
// Random chains of views, copies and calls on three memories, against a naive model on the host.
#include "net/support.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A view of one of the model's memories: plain numbers.
struct ViewModel {
    std::size_t memory;
    std::vector<std::int64_t> shape, strides;
    std::int64_t offset;

    std::int64_t count() const {
        std::int64_t product = 1;
        for (const std::int64_t size : shape) product *= size;
        return product;
    }
    /// The place of element number `n` in row-major order.
    std::size_t place(std::int64_t n) const {
        std::int64_t at = offset;
        for (std::size_t d = shape.size(); d-- > 0;) {
            at += n % shape[d] * strides[d];
            n /= shape[d];
        }
        return static_cast<std::size_t>(at);
    }
};

struct Viewed {
    Tensor tensor;
    ViewModel model;
};

class Chains {
  public:
    Chains(const Context& device, unsigned seed) : device_(device), random_(seed) {
        for (const DType dtype : {DType::f32, DType::i32, DType::f32}) {
            std::vector<float> values(elements);
            for (float& value : values) value = static_cast<float>(pick(0, 50));
            memories_.emplace_back(device, Shape{elements}, values, dtype);
            model_.push_back(values);
        }
    }

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            const Viewed to = random_view(false);
            const Viewed from = matching(to);
            switch (pick(0, 3)) {
                case 0:
                    fill(to);
                    break;
                case 1:
                    add(from, to);
                    break;
                default:
                    copy(from, to);
            }
        }
    }

    void check() const {
        for (std::size_t i = 0; i < memories_.size(); ++i)
            CHECK(memories_[i].to_floats() == model_[i]);
    }

  private:
    static constexpr std::int64_t elements = 300;

    std::int64_t pick(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(random_() % static_cast<unsigned>(high - low + 1));
    }

    Viewed whole(std::size_t memory) { return {memories_[memory], {memory, {elements}, {1}, 0}}; }

    /// A chain of views. Only what is read may have expanded dimensions.
    Viewed random_view(bool expands) {
        Viewed view = whole(static_cast<std::size_t>(pick(0, 2)));
        const std::int64_t a = pick(1, 5), b = pick(1, 6), c = pick(1, 300 / (a * b));
        const std::int64_t offset = pick(0, 300 - a * b * c);
        view.tensor = view.tensor.slice(0, offset, offset + a * b * c).reshape({a, b, c});
        view.model = {view.model.memory, {a, b, c}, {b * c, c, 1}, offset};
        for (std::int64_t n = pick(0, 4); n > 0; --n) change(view, expands);
        return view;
    }

    void change(Viewed& view, bool expands) {
        ViewModel& model = view.model;
        const auto d = static_cast<std::size_t>(pick(0, 2)),
                   e = static_cast<std::size_t>(pick(0, 2));
        switch (pick(0, 3)) {
            case 0: {
                view.tensor = view.tensor.transpose(static_cast<int>(d), static_cast<int>(e));
                std::swap(model.shape[d], model.shape[e]);
                std::swap(model.strides[d], model.strides[e]);
                break;
            }
            case 1: {
                const std::int64_t begin = pick(0, model.shape[d]),
                                   end = pick(begin, model.shape[d]);
                view.tensor = view.tensor.slice(static_cast<int>(d), begin, end);
                model.shape[d] = end - begin;
                model.offset += begin * model.strides[d];
                break;
            }
            case 2: {  // every second element
                if (model.count() == 0) break;
                model.shape[d] = (model.shape[d] + 1) / 2;
                model.strides[d] *= 2;
                view.tensor = view.tensor.view(Shape(model.shape), model.strides);
                break;
            }
            default: {
                if (!expands || model.shape[d] != 1) break;
                model.shape[d] = pick(0, 4);
                model.strides[d] = 0;
                view.tensor = view.tensor.expand(Shape(model.shape));
            }
        }
    }

    /// A view that broadcasts to the shape of `to`.
    Viewed matching(const Viewed& to) {
        for (int attempt = 0; attempt < 200; ++attempt) {
            Viewed view = random_view(true);
            bool fits = true;
            for (std::size_t d = 0; d < 3; ++d) {
                const std::int64_t size = view.model.shape[d], wanted = to.model.shape[d];
                if (size > wanted && wanted > 0) {
                    view.tensor = view.tensor.slice(static_cast<int>(d), 0, wanted);
                    view.model.shape[d] = wanted;
                } else {
                    fits = fits && (size == wanted || size == 1);
                }
            }
            if (!fits) continue;
            for (std::size_t d = 0; d < 3; ++d)
                if (view.model.shape[d] != to.model.shape[d]) {
                    view.model.shape[d] = to.model.shape[d];
                    view.model.strides[d] = 0;
                }
            return view;  // the tensor is not expanded: that is the call's work
        }
        return to;
    }

    std::vector<float> read(const ViewModel& from) const {
        std::vector<float> values;
        for (std::int64_t n = 0; n < from.count(); ++n)
            values.push_back(model_[from.memory][from.place(n)]);
        return values;
    }
    void write(const ViewModel& to, const std::vector<float>& values) {
        for (std::int64_t n = 0; n < to.count(); ++n)
            model_[to.memory][to.place(n)] = values[static_cast<std::size_t>(n)];
    }

    void fill(Viewed to) {
        const auto value = static_cast<float>(pick(0, 50));
        to.tensor.fill(value);
        write(to.model, std::vector<float>(static_cast<std::size_t>(to.model.count()), value));
    }
    void copy(const Viewed& from, const Viewed& to) {
        ops::copy(from.tensor, to.tensor);
        write(to.model, read(from.model));
    }
    /// to = from + to, modulo a number that keeps values small.
    void add(const Viewed& from, const Viewed& to) {
        ops::CallOptions how{.out = {to.tensor}};
        ops::call("Pointwise",
                  R"json({"code": "s = x0 + x1; y0 = s > 60 ? s - 60 : s", "dtypes": [")json" +
                      std::string(name_of(to.tensor.dtype())) + "\"]}",
                  {from.tensor, to.tensor}, {}, how);
        std::vector<float> values = read(from.model);
        const std::vector<float> others = read(to.model);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const float sum = values[i] + others[i];
            values[i] = sum > 60 ? sum - 60 : sum;
        }
        write(to.model, values);
    }

    Context device_;
    std::mt19937 random_;
    std::vector<Tensor> memories_;
    std::vector<std::vector<float>> model_;
};

}  // namespace

TEST_CASE("chains of views, copies and calls do what a model does", "[view_chains]") {
    ON_EVERY_DEVICE(device) {
        for (unsigned seed = 1; seed <= 8; ++seed) {
            INFO("seed " << seed);
            Chains chains(device, seed);
            for (int round = 0; round < 10; ++round) {
                chains.run(5);
                chains.check();
            }
        }
    }
}

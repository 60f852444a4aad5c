// SPDX-License-Identifier: MIT
// Expressions to tapes, and their evaluation in double.
#include "engine/pointwise/tape.hpp"

#include "base/scalar_value.hpp"
#include "base/text.hpp"
#include "engine/pointwise/philox.hpp"

#include <array>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>

namespace dlprim::pointwise {
namespace {

struct Compiler {
    Tape tape;
    std::unordered_map<const Expr*, int> done;
    using Key = std::tuple<Op, int, int, int, std::uint64_t, int>;
    std::map<Key, int> known;

    int emit(const Instruction& in) {
        std::uint64_t bits;
        std::memcpy(&bits, &in.value, 8);
        const Key key{in.op, in.a, in.b, in.c, bits, in.number};
        const auto [at, inserted] = known.try_emplace(key, static_cast<int>(tape.code.size()));
        if (inserted) tape.code.push_back(in);
        return at->second;
    }

    int visit(const ExprPtr& expr) {
        if (const auto found = done.find(expr.get()); found != done.end()) return found->second;
        Instruction in;
        switch (expr->kind) {
            case Expr::Kind::constant:
                in.value = expr->value;
                break;
            case Expr::Kind::input:
                in.op = Op::input;
                in.number = expr->number;
                break;
            case Expr::Kind::scalar:
                in.op = Op::scalar;
                in.number = expr->number;
                break;
            case Expr::Kind::index:
                in.op = Op::index;
                in.number = expr->number;
                break;
            case Expr::Kind::size:
                in.op = Op::size;
                in.number = expr->number;
                break;
            case Expr::Kind::call: {
                const Function* f = find_function(expr->function);
                require(f && static_cast<int>(expr->args.size()) == f->arity, "pointwise: '",
                        expr->function, "' is not a function of ", expr->args.size(), " arguments");
                in.op = f->op;
                int* slots[] = {&in.a, &in.b, &in.c};
                for (std::size_t i = 0; i < expr->args.size(); ++i)
                    *slots[i] = visit(expr->args[i]);
                break;
            }
        }
        const int at = emit(in);
        done.emplace(expr.get(), at);
        return at;
    }
};

double random_number(Op op, const std::array<double, 3>& key, std::uint64_t element) {
    const auto whole = [&](std::size_t i) { return static_cast<std::uint64_t>(whole_of(key[i])); };
    const RandomKey by{whole(0), whole(1), whole(2)};
    if (op == Op::normal) return normal(by, element);
    if (op == Op::uniform) return uniform(by, element);
    return random_words(by, element)[0];
}

}  // namespace

Tape compile(std::span<const ExprPtr> roots) {
    Compiler compiler;
    for (const ExprPtr& root : roots) {
        const int at = compiler.visit(root);
        compiler.tape.results.push_back(at);
    }
    return std::move(compiler.tape);
}

void run(const Tape& tape, const Point& point, std::vector<double>& values) {
    values.resize(tape.code.size());
    const auto at = [&](int i) { return i < 0 ? 0.0 : values[static_cast<std::size_t>(i)]; };
    for (std::size_t i = 0; i < tape.code.size(); ++i) {
        const Instruction& in = tape.code[i];
        switch (in.op) {
            case Op::constant:
                values[i] = in.value;
                break;
            case Op::input:
                values[i] = point.inputs[in.number];
                break;
            case Op::scalar:
                values[i] = point.scalars[in.number];
                break;
            case Op::index: {
                const int rank = point.shape->rank();
                const int d = in.number < 0 ? in.number + rank : in.number;
                values[i] = d >= 0 && d < rank ? static_cast<double>(point.index[d]) : 0.0;
                break;
            }
            case Op::size: {
                const int rank = point.shape->rank();
                const int d = in.number < 0 ? in.number + rank : in.number;
                values[i] = d >= 0 && d < rank ? static_cast<double>((*point.shape)[d]) : 1.0;
                break;
            }
            case Op::uniform:
            case Op::normal:
            case Op::random:
                values[i] = random_number(in.op, {at(in.a), at(in.b), at(in.c)},
                                          static_cast<std::uint64_t>(point.linear));
                break;
            default:
                values[i] =
                    (point.whole ? apply_whole : apply)(in.op, at(in.a), at(in.b), at(in.c));
        }
    }
}

double evaluate(const ExprPtr& expr, const std::vector<double>& at,
                const std::vector<double>& scalars, const std::vector<std::int64_t>& index,
                const Shape& broadcast) {
    const Tape tape = compile(std::span(&expr, 1));
    std::int64_t linear = 0;
    for (int d = 0; d < broadcast.rank(); ++d)
        linear = linear * broadcast[d] + index[static_cast<std::size_t>(d)];
    std::vector<double> values;
    run(tape, {at.data(), scalars.data(), index.data(), &broadcast, linear}, values);
    return values[static_cast<std::size_t>(tape.results[0])];
}

}  // namespace dlprim::pointwise

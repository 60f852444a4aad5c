// SPDX-License-Identifier: MIT
// Builders of expressions, constant folding with a few identities, substitution and counting. All
// functions process a shared subexpression only once.
#include "base/text.hpp"
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace dlprim::pointwise {
namespace {

bool is(const ExprPtr& expr, double value) {
    return expr->kind == Expr::Kind::constant && expr->value == value;
}
bool is_call(const ExprPtr& expr, std::string_view function) {
    return expr->kind == Expr::Kind::call && expr->function == function;
}

/// Whether a program on integers may give another result than double: behind 2^53, and for a
/// quotient by 0. Kernels compute such an expression in their own type.
bool differs_in_integers(const Function& f, const std::vector<ExprPtr>& args, double result) {
    if (!f.integral) return false;
    for (const ExprPtr& arg : args)
        if (arg->value != std::trunc(arg->value) || std::fabs(arg->value) > 0x1p63) return false;
    return !(std::fabs(result) <= 0x1p53);
}

/// Simplifies one node whose arguments are already simplified.
ExprPtr fold(const ExprPtr& expr) {
    const Function* f = find_function(expr->function);
    const auto& args = expr->args;
    if (!f || is_random(f->op)) return expr;
    bool constants = true, bound = false;
    for (const ExprPtr& arg : args) {
        constants = constants && arg->kind == Expr::Kind::constant;
        bound = bound || arg->bound;
    }
    const auto value = [&](std::size_t i) { return i < args.size() ? args[i]->value : 0.0; };
    if (constants) {
        const double result = apply(f->op, value(0), value(1), value(2));
        if (!differs_in_integers(*f, args, result)) return constant(result, bound);
    }
    switch (f->op) {
        case Op::add:
            if (is(args[0], 0)) return args[1];
            if (is(args[1], 0)) return args[0];
            if (is_call(args[1], "neg")) return call("sub", {args[0], args[1]->args[0]});
            break;
        case Op::sub:
            if (is(args[1], 0)) return args[0];
            if (is(args[0], 0)) return fold(call("neg", {args[1]}));
            if (is_call(args[1], "neg")) return call("add", {args[0], args[1]->args[0]});
            break;
        case Op::mul:
            if (is(args[0], 0) || is(args[1], 0)) return constant(0);
            if (is(args[0], 1)) return args[1];
            if (is(args[1], 1)) return args[0];
            if (is(args[0], -1)) return fold(call("neg", {args[1]}));
            if (is(args[1], -1)) return fold(call("neg", {args[0]}));
            break;
        case Op::div:
            if (is(args[1], 1)) return args[0];
            break;
        case Op::neg:
            if (is_call(args[0], "neg")) return args[0]->args[0];
            break;
        case Op::select:
            if (args[0]->kind == Expr::Kind::constant)
                return args[0]->value != 0 ? args[1] : args[2];
            if (args[1] == args[2]) return args[1];
            break;
        case Op::pow:
            if (is(args[1], 1)) return args[0];
            if (is(args[1], 2)) return call("mul", {args[0], args[0]});
            if (is(args[1], 0.5)) return call("sqrt", {args[0]});
            if (is(args[1], -1)) return call("div", {constant(1), args[0]});
            break;
        default:
            break;
    }
    return expr;
}

}  // namespace

ExprPtr constant(double value, bool bound) {
    auto expr = std::make_shared<Expr>();
    expr->kind = Expr::Kind::constant;
    expr->value = value;
    expr->bound = bound;
    return expr;
}

ExprPtr input(int number) {
    auto expr = std::make_shared<Expr>();
    expr->kind = Expr::Kind::input;
    expr->number = number;
    return expr;
}

ExprPtr scalar(int number) {
    auto expr = std::make_shared<Expr>();
    expr->kind = Expr::Kind::scalar;
    expr->number = number;
    return expr;
}

ExprPtr call(std::string function, std::vector<ExprPtr> args) {
    auto expr = std::make_shared<Expr>();
    expr->kind = Expr::Kind::call;
    expr->function = std::move(function);
    expr->args = std::move(args);
    return expr;
}

namespace {

/// Rebuilds an expression bottom-up. `change` returns the replacement of a node and is called once
/// per shared node.
ExprPtr rewrite(const ExprPtr& root, const std::function<ExprPtr(const ExprPtr&)>& change) {
    std::unordered_map<const Expr*, ExprPtr> done;
    const std::function<ExprPtr(const ExprPtr&)> visit = [&](const ExprPtr& expr) -> ExprPtr {
        if (const auto found = done.find(expr.get()); found != done.end()) return found->second;
        ExprPtr result = expr;
        if (expr->kind == Expr::Kind::call) {
            std::vector<ExprPtr> args;
            bool same = true;
            for (const ExprPtr& arg : expr->args) {
                args.push_back(visit(arg));
                same = same && args.back() == arg;
            }
            if (!same) result = call(expr->function, std::move(args));
        }
        result = change(result);
        done.emplace(expr.get(), result);
        return result;
    };
    return visit(root);
}

void walk(const ExprPtr& root, const std::function<void(const Expr&)>& see) {
    std::unordered_set<const Expr*> seen;
    std::vector<const Expr*> stack{root.get()};
    while (!stack.empty()) {
        const Expr* expr = stack.back();
        stack.pop_back();
        if (!seen.insert(expr).second) continue;
        see(*expr);
        for (const ExprPtr& arg : expr->args) stack.push_back(arg.get());
    }
}

}  // namespace

ExprPtr simplify(const ExprPtr& expr) {
    return rewrite(expr,
                   [](const ExprPtr& e) { return e->kind == Expr::Kind::call ? fold(e) : e; });
}

ExprPtr substitute(const ExprPtr& expr, const std::vector<ExprPtr>& inputs,
                   const std::vector<ExprPtr>& scalars) {
    return rewrite(expr, [&](const ExprPtr& e) {
        const auto n = static_cast<std::size_t>(e->number);
        if (e->kind == Expr::Kind::input && n < inputs.size() && inputs[n]) return inputs[n];
        if (e->kind == Expr::Kind::scalar && n < scalars.size() && scalars[n]) return scalars[n];
        return e;
    });
}

ExprPtr lift_scalars(const ExprPtr& expr, std::vector<double>& values) {
    return rewrite(expr, [&](const ExprPtr& e) {
        if (!e->bound) return e;
        // By bits, because 0 and -0 are two numbers.
        const auto found = std::find_if(values.begin(), values.end(), [&](double value) {
            return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(e->value);
        });
        const auto number = static_cast<int>(found - values.begin());
        if (found == values.end()) values.push_back(e->value);
        return scalar(number);
    });
}

bool uses_input(const ExprPtr& expr, int number) {
    bool found = false;
    walk(expr, [&](const Expr& e) {
        found = found || (e.kind == Expr::Kind::input && e.number == number);
    });
    return found;
}

int node_count(const ExprPtr& expr) {
    int count = 0;
    walk(expr, [&](const Expr&) { ++count; });
    return count;
}

}  // namespace dlprim::pointwise

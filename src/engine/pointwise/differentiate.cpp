// SPDX-License-Identifier: MIT
// Symbolic differentiation. The derivative of a branch is a select() of the branches' derivatives,
// never a product with a truth value. So NaN or infinity from the branch that is not taken does not
// reach the result.
#include "base/text.hpp"
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"

#include <unordered_map>

namespace dlprim::pointwise {
namespace {

ExprPtr make(const char* function, std::vector<ExprPtr> args) {
    return call(function, std::move(args));
}
ExprPtr mul(const ExprPtr& a, const ExprPtr& b) {
    return make("mul", {a, b});
}
ExprPtr div(const ExprPtr& a, const ExprPtr& b) {
    return make("div", {a, b});
}
ExprPtr add(const ExprPtr& a, const ExprPtr& b) {
    return make("add", {a, b});
}
ExprPtr sub(const ExprPtr& a, const ExprPtr& b) {
    return make("sub", {a, b});
}
ExprPtr neg(const ExprPtr& a) {
    return make("neg", {a});
}
ExprPtr one() {
    return constant(1);
}

bool is_one(const ExprPtr& e) {
    return e->kind == Expr::Kind::constant && e->value == 1;
}

/// The derivative of a function y of one argument a: that of a, times or divided by an expression.
struct Derivative {
    Op op;
    const char* text;
    bool divides = false;
};

constexpr Derivative derivatives[] = {
    {Op::exp, "y"},
    {Op::log, "a", true},
    {Op::log1p, "1 + a", true},
    {Op::expm1, "exp(a)"},
    {Op::sqrt, "0.5 / y"},
    {Op::rsqrt, "-0.5 * (y * (y * y))"},
    {Op::abs, "sign(a)"},
    {Op::sin, "cos(a)"},
    {Op::cos, "-sin(a)"},
    {Op::tan, "1 + y * y"},
    {Op::asin, "rsqrt(1 - a * a)"},
    {Op::acos, "-rsqrt(1 - a * a)"},
    {Op::atan, "1 + a * a", true},
    {Op::sinh, "cosh(a)"},
    {Op::cosh, "sinh(a)"},
    {Op::tanh, "1 - y * y"},
    {Op::asinh, "rsqrt(a * a + 1)"},
    {Op::acosh, "rsqrt(a * a - 1)"},
    {Op::atanh, "1 - a * a", true},
    {Op::erf, "1.1283791670955126 * exp(-(a * a))"},
    {Op::erfc, "-1.1283791670955126 * exp(-(a * a))"},
    {Op::erfinv, "0.8862269254527580 * exp(y * y)"},
    {Op::exp2, "0.6931471805599453 * y"},
    {Op::log2, "0.6931471805599453 * a", true},
    {Op::log10, "2.302585092994046 * a", true},
    {Op::lgamma, "digamma(a)"},
    {Op::digamma, "trigamma(a)"},
    {Op::sigmoid, "y * (1 - y)"},
};

struct Differentiator {
    int number;
    std::unordered_map<const Expr*, ExprPtr> done;

    /// a * b, where either may be zero (nullptr) or one.
    static ExprPtr product(const ExprPtr& a, const ExprPtr& b) {
        if (!a || !b) return nullptr;
        if (is_one(a)) return b;
        if (is_one(b)) return a;
        return mul(a, b);
    }
    static ExprPtr sum(const ExprPtr& a, const ExprPtr& b) {
        if (!a) return b;
        if (!b) return a;
        return add(a, b);
    }
    static ExprPtr branch(const ExprPtr& condition, const ExprPtr& a, const ExprPtr& b) {
        if (!a && !b) return nullptr;
        return make("select", {condition, a ? a : constant(0), b ? b : constant(0)});
    }

    ExprPtr visit(const ExprPtr& expr) {
        if (expr->kind == Expr::Kind::input) return expr->number == number ? one() : nullptr;
        if (expr->kind != Expr::Kind::call) return nullptr;
        if (const auto found = done.find(expr.get()); found != done.end()) return found->second;
        ExprPtr result = rule(expr);
        done.emplace(expr.get(), result);
        return result;
    }

    ExprPtr rule(const ExprPtr& y) {
        const Function* f = find_function(y->function);
        if (!f || is_truth(f->op) || is_bitwise(f->op)) return nullptr;
        const auto& args = y->args;
        const ExprPtr a = args[0];
        const ExprPtr b = args.size() > 1 ? args[1] : nullptr;
        const ExprPtr c = args.size() > 2 ? args[2] : nullptr;
        switch (f->op) {
            case Op::floor:
            case Op::ceil:
            case Op::round:
            case Op::trunc:
            case Op::sign:
            case Op::nextafter:
            case Op::floordiv:
            case Op::truncdiv:
            case Op::uniform:
            case Op::normal:
            case Op::random:
                return nullptr;
            case Op::select:
                return branch(a, visit(b), visit(c));
            default:
                break;
        }
        const ExprPtr da = visit(a);
        const ExprPtr db = b ? visit(b) : nullptr;
        const ExprPtr dc = c ? visit(c) : nullptr;
        if (!da && !db && !dc) return nullptr;
        switch (f->op) {
            case Op::add:
                return sum(da, db);
            case Op::sub:
                return !db ? da : !da ? neg(db) : sub(da, db);
            case Op::mul:
                return sum(product(da, b), product(a, db));
            case Op::div: {
                const ExprPtr left = da ? div(da, b) : nullptr;
                const ExprPtr right = db ? product(div(y, b), db) : nullptr;
                return !right ? left : !left ? neg(right) : sub(left, right);
            }
            case Op::neg:
                return neg(da);
            case Op::max:
                return branch(make("greater_equal", {a, b}), da, db);
            case Op::min:
                return branch(make("less_equal", {a, b}), da, db);
            case Op::fma:
                return sum(sum(product(da, b), product(a, db)), dc);
            case Op::pow: {
                ExprPtr left, right;
                if (da) left = product(mul(b, make("pow", {a, simplify(sub(b, one()))})), da);
                if (db)
                    right = product(
                        make("select", {make("and", {make("equal", {a, constant(0)}),
                                                     make("greater_equal", {b, constant(0)})}),
                                        constant(0), mul(y, make("log", {a}))}),
                        db);
                return sum(left, right);
            }
            case Op::fmod:
            case Op::remainder: {
                const char* const whole = f->op == Op::fmod ? "truncdiv" : "floordiv";
                const ExprPtr right = product(neg(make(whole, {a, b})), db);
                return sum(da, right);
            }
            case Op::atan2: {
                const ExprPtr square = add(mul(a, a), mul(b, b));
                const ExprPtr left = product(div(b, square), da);
                const ExprPtr right = product(div(neg(a), square), db);
                return sum(left, right);
            }
            case Op::hypot:
                return sum(product(div(a, y), da), product(div(b, y), db));
            case Op::copysign: {
                // 0 where a is 0, as for abs.
                if (!da) return nullptr;
                return product(mul(make("sign", {a}), make("copysign", {one(), b})), da);
            }
            default:
                return of_one(f->op, y, a, da);
        }
    }

    /// The derivative of y, a function of one argument a. The derivative of a is da.
    static ExprPtr of_one(Op op, const ExprPtr& y, const ExprPtr& a, const ExprPtr& da) {
        if (op == Op::trigamma) fail(ErrorKind::unsupported, "trigamma() has no gradient");
        for (const Derivative& row : derivatives) {
            if (row.op != op) continue;
            const Program program = parse(cat("a = x0; y = x1; y0 = ", row.text));
            const ExprPtr with = substitute(program.outputs[0].value, {a, y}, {});
            return row.divides ? div(da, with) : product(with, da);
        }
        return nullptr;
    }
};

}  // namespace

ExprPtr differentiate(const ExprPtr& expr, int number) {
    const ExprPtr result = Differentiator{number, {}}.visit(expr);
    if (!result) return nullptr;
    ExprPtr simple = simplify(result);
    if (simple->kind == Expr::Kind::constant && simple->value == 0) return nullptr;
    return simple;
}

Output::Kind combination(const Output& output) {
    if (output.kind != Output::Kind::custom) return output.kind;
    const Expr& combine = *simplify(output.combine);
    const auto is = [](const ExprPtr& e, int name) {
        return e->kind == Expr::Kind::input && e->number == name;
    };
    if (combine.kind != Expr::Kind::call || combine.args.size() != 2) return output.kind;
    const ExprPtr &a = combine.args[0], &b = combine.args[1];
    if (!(is(a, 0) && is(b, 1)) && !(is(a, 1) && is(b, 0))) return output.kind;
    if (combine.function == "add") return Output::Kind::sum;
    if (combine.function == "mul") return Output::Kind::prod;
    if (combine.function == "max") return Output::Kind::max;
    if (combine.function == "min") return Output::Kind::min;
    return output.kind;
}

}  // namespace dlprim::pointwise

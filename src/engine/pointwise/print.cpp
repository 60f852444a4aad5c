// SPDX-License-Identifier: MIT
// Prints programs as text that parse() reads back. Shared subexpressions get a name, so the text is
// no longer than the program.
#include "base/text.hpp"
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace dlprim::pointwise {
namespace {

std::string literal(double value) {
    if (std::isnan(value)) return "(0 / 0)";
    if (std::isinf(value)) return value > 0 ? "inf" : "(-inf)";
    char buffer[40];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    const std::string text(buffer, end);
    return value < 0 || std::signbit(value) ? "(" + text + ")" : text;
}

class Printer {
  public:
    std::string text;  ///< statements that define names

    void count(const ExprPtr& expr) {
        if (++uses_[expr.get()] > 1) return;
        for (const ExprPtr& arg : expr->args) count(arg);
    }
    /// `combine`: inputs 0 and 1 are printed as a and b.
    std::string show(const ExprPtr& expr, bool combine = false) {
        if (const auto known = names_.find(expr.get()); known != names_.end()) return known->second;
        std::string result;
        switch (expr->kind) {
            case Expr::Kind::constant:
                return literal(expr->value);
            case Expr::Kind::input:
                return combine ? (expr->number ? "b" : "a") : cat("x", expr->number);
            case Expr::Kind::scalar:
                return cat("p", expr->number);
            case Expr::Kind::index:
                return cat("index(", expr->number, ")");
            case Expr::Kind::size:
                return cat("size(", expr->number, ")");
            case Expr::Kind::call:
                result = call_text(*expr, combine);
        }
        int depth = 0;
        for (const ExprPtr& arg : expr->args) depth = std::max(depth, depths_[arg.get()]);
        depths_[expr.get()] = depth + 1;
        const auto found = uses_.find(expr.get());
        const bool bind = found != uses_.end() && (found->second > 1 || depth >= 100);
        if (!bind || combine) return result;
        depths_[expr.get()] = 0;
        std::string name = "v_";
        for (std::size_t n = names_.size() + 1; n > 0; n = (n - 1) / 26)
            name += static_cast<char>('a' + (n - 1) % 26);
        text += name + " = " + result + "; ";
        names_.emplace(expr.get(), name);
        return name;
    }

  private:
    std::unordered_map<const Expr*, int> uses_;
    std::unordered_map<const Expr*, std::string> names_;
    std::unordered_map<const Expr*, int> depths_;

    std::string call_text(const Expr& expr, bool combine) {
        const Function* f = find_function(expr.function);
        std::vector<std::string> args;
        for (const ExprPtr& arg : expr.args) args.push_back(show(arg, combine));
        if (f && !f->text.empty()) {
            if (args.size() == 1) return cat("(", f->text, args[0], ")");
            return cat("(", args[0], " ", f->text, " ", args[1], ")");
        }
        return cat(expr.function, "(", join(args, ", "), ")");
    }
};

}  // namespace

std::string print(const ExprPtr& expr) {
    return Printer().show(expr);
}

std::string print(const Program& program) {
    Printer printer;
    for (const Output& output : program.outputs) printer.count(output.value);
    std::string outputs;
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
        const Output& output = program.outputs[i];
        std::vector<std::string> axes;
        for (std::int64_t axis : output.axes) axes.push_back(cat(axis));
        const char* names[] = {"", "sum", "prod", "max", "min", "mean", "reduce"};
        std::string right = printer.show(output.value);
        if (output.kind != Output::Kind::elementwise) {
            std::string head = cat(names[static_cast<int>(output.kind)], "[", join(axes, ","));
            if (output.kind == Output::Kind::custom) {
                std::string init = literal(output.init);
                if (init[0] == '(') init = init.substr(1, init.size() - 2);
                head += cat("; ", init, "; ", Printer().show(output.combine, true));
            }
            right = cat(head, "](", right, ")");
        }
        outputs += cat(i ? "; " : "", "y", i, " = ", right);
    }
    return printer.text + outputs;
}

}  // namespace dlprim::pointwise

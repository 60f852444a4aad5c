// SPDX-License-Identifier: MIT
// Parses the text of the pointwise language: a recursive-descent parser that limits depth and size,
// because its input may come from an untrusted file.
#include "base/text.hpp"
#include "engine/pointwise/functions.hpp"
#include "engine/pointwise/program.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

namespace dlprim::pointwise {
namespace {

constexpr int max_depth = 200;
constexpr int max_nodes = 10000;
constexpr int max_inputs = 64;
constexpr int max_scalars = 256;

/// Operators between two values, by precedence from the lowest on; all of them associate to the
/// left. Of those of one level the longer ones come first.
struct Infix {
    std::string_view symbol, function;
};
constexpr Infix infix_levels[][4] = {
    {{"||", "or"}},
    {{"&&", "and"}},
    {{"==", "equal"}, {"!=", "not_equal"}},
    {{"<=", "less_equal"}, {">=", "greater_equal"}, {"<", "less"}, {">", "greater"}},
    {{"+", "add"}, {"-", "sub"}},
    {{"*", "mul"}, {"/", "div"}},
};

bool letter(char c) {
    return ascii::is_letter(c) || c == '_';
}
bool digit(char c) {
    return ascii::is_digit(c);
}

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Program program() {
        space();
        while (at_ < text_.size()) {
            if (!take(";")) statement();
            space();
        }
        require(!outputs_.empty(), "pointwise: the program has no output; write y0 = ...");
        Program result;
        result.inputs = inputs_;
        result.scalars = scalars_;
        for (auto& [number, output] : outputs_) {
            require(number == static_cast<int>(result.outputs.size()), "pointwise: output y",
                    result.outputs.size(),
                    " is missing; outputs are numbered from y0 without gaps");
            result.outputs.push_back(std::move(output));
        }
        return result;
    }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0, nodes_ = 0, inputs_ = 0, scalars_ = 0;
    std::map<std::string, ExprPtr, std::less<>> names_;
    std::map<int, Output> outputs_;
    bool combining_ = false;  ///< inside combine: a and b are names, and inputs are not

    [[noreturn]] void error(const std::string& what) const {
        const std::string near(text_.substr(std::min(at_, text_.size()), 12));
        fail(ErrorKind::invalid_argument, "pointwise: column ", at_ + 1, ": ", what,
             near.empty() ? " at the end" : " at '" + near + "'");
    }
    void space() {
        while (at_ < text_.size() && ascii::is_space(text_[at_])) ++at_;
    }
    bool take(std::string_view token) {
        space();
        if (text_.substr(at_, token.size()) != token) return false;
        at_ += token.size();
        return true;
    }
    void expect(std::string_view token) {
        if (!take(token)) error(cat("expected '", token, "'"));
    }
    std::string name() {
        space();
        const std::size_t begin = at_;
        if (at_ < text_.size() && letter(text_[at_]))
            while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }
    /// The number in a name such as x12, or nothing.
    static std::optional<int> numbered(std::string_view word, char first) {
        if (word.size() < 2 || word.size() > 5 || word[0] != first) return {};
        int value = 0;
        for (char c : word.substr(1)) {
            if (!digit(c)) return {};
            value = value * 10 + (c - '0');
        }
        return value;
    }
    ExprPtr count(ExprPtr expr) {
        if (++nodes_ > max_nodes) error(cat("the program has more than ", max_nodes, " nodes"));
        return expr;
    }
    ExprPtr make(std::string_view function, std::vector<ExprPtr> args) {
        return count(call(std::string(function), std::move(args)));
    }

    void statement() {
        space();
        const std::size_t begin = at_;
        const std::string target = name();
        if (target.empty()) error("expected a name to assign to, such as y0");
        expect("=");
        if (at_ < text_.size() && text_[at_] == '=') error("expected one '='");
        if (const auto number = numbered(target, 'y')) {
            if (outputs_.count(*number)) {
                at_ = begin;
                error(cat(target, " is assigned twice"));
            }
            Output output = right_side();
            if (output.kind == Output::Kind::elementwise) names_[target] = output.value;
            outputs_.emplace(*number, std::move(output));
        } else {
            if (numbered(target, 'x') || numbered(target, 'p') || find_function(target) ||
                target == "index" || target == "size" || target == "inf" || reduction(target)) {
                at_ = begin;
                error(cat("'", target, "' may not be assigned to"));
            }
            names_[target] = expression();
        }
        space();
        if (at_ < text_.size() && text_[at_] != ';') error("expected ';' or an operator");
    }

    static std::optional<Output::Kind> reduction(std::string_view word) {
        if (word == "sum") return Output::Kind::sum;
        if (word == "prod") return Output::Kind::prod;
        if (word == "max") return Output::Kind::max;
        if (word == "min") return Output::Kind::min;
        if (word == "mean") return Output::Kind::mean;
        if (word == "reduce") return Output::Kind::custom;
        return {};
    }

    Output right_side() {
        Output output;
        const std::size_t begin = at_;
        const std::string word = name();
        const auto kind = reduction(word);
        if (kind && take("[")) {
            output.kind = *kind;
            space();
            if (at_ < text_.size() && (text_[at_] == ']' || text_[at_] == ';')) {
                output.all_axes = true;
            } else {
                do output.axes.push_back(integer("an axis"));
                while (take(","));
            }
            if (*kind == Output::Kind::custom) {
                expect(";");
                const bool minus = take("-");
                output.init = (minus ? -1.0 : 1.0) * number();
                expect(";");
                combining_ = true;
                output.combine = expression();
                combining_ = false;
            }
            expect("]");
            expect("(");
            output.value = expression();
            expect(")");
            return output;
        }
        at_ = begin;
        output.value = expression();
        return output;
    }

    std::int64_t integer(std::string_view what) {
        space();
        const bool minus = take("-");
        space();
        std::int64_t value = 0;
        const auto [end, code] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (code != std::errc() || value > 64) error(cat("expected ", what, ", a small integer"));
        at_ = static_cast<std::size_t>(end - text_.data());
        return minus ? -value : value;
    }
    double number() {
        space();
        const std::size_t begin = at_;
        if (name() == "inf") return std::numeric_limits<double>::infinity();
        at_ = begin;
        double value = 0;
        const auto [end, code] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        const bool runs_on = end != text_.data() + text_.size() && (letter(*end) || *end == '.');
        if (code != std::errc() || text_[at_] == '-' || runs_on) error("expected a number");
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    ExprPtr expression() {
        if (++depth_ > max_depth)
            error(cat("the program is nested deeper than ", max_depth, " levels"));
        ExprPtr condition = infix();
        if (take("?")) {
            ExprPtr yes = expression();
            expect(":");
            ExprPtr no = expression();
            condition = make("select", {condition, yes, no});
        }
        --depth_;
        return condition;
    }
    /// Operators between values from this level of precedence on, and what binds more tightly.
    ExprPtr infix(std::size_t level = 0) {
        if (level == std::size(infix_levels)) return unary();
        ExprPtr left = infix(level + 1);
        for (;;) {
            const auto& operators = infix_levels[level];
            const auto found = std::find_if(
                std::begin(operators), std::end(operators),
                [&](const Infix& each) { return !each.symbol.empty() && take(each.symbol); });
            if (found == std::end(operators)) return left;
            left = make(found->function, {left, infix(level + 1)});
        }
    }
    ExprPtr prefixed() {
        if (++depth_ > max_depth)
            error(cat("the program is nested deeper than ", max_depth, " levels"));
        ExprPtr result = unary();
        --depth_;
        return result;
    }
    ExprPtr unary() {
        if (take("-")) {
            ExprPtr inner = prefixed();
            return inner->kind == Expr::Kind::constant ? count(constant(-inner->value))
                                                       : make("neg", {inner});
        }
        if (take("+")) return prefixed();
        space();
        if (text_.substr(at_, 2) != "!=" && take("!")) return make("not", {prefixed()});
        return primary();
    }
    ExprPtr primary() {
        space();
        if (take("(")) {
            ExprPtr inner = expression();
            expect(")");
            return inner;
        }
        if (at_ < text_.size() && (digit(text_[at_]) || text_[at_] == '.'))
            return count(constant(number()));
        const std::size_t begin = at_;
        const std::string word = name();
        if (word.empty()) error("expected a value");
        if (word == "inf") return count(constant(std::numeric_limits<double>::infinity()));
        if (combining_ && (word == "a" || word == "b")) return count(input(word == "b"));
        if (take("(")) return function(word, begin);
        if (const auto x = numbered(word, 'x')) {
            if (combining_) {
                at_ = begin;
                error("the combination of a reduction can use only a and b");
            }
            if (*x >= max_inputs)
                error(
                    cat("a program has at most ", max_inputs, " inputs, x0 to x", max_inputs - 1));
            inputs_ = std::max(inputs_, *x + 1);
            return count(input(*x));
        }
        if (const auto p = numbered(word, 'p')) {
            if (combining_) {
                at_ = begin;
                error("the combination of a reduction can use only a and b");
            }
            if (*p >= max_scalars) error(cat("a program has at most ", max_scalars, " scalars"));
            scalars_ = std::max(scalars_, *p + 1);
            return count(scalar(*p));
        }
        if (const auto known = names_.find(word); known != names_.end() && !combining_)
            return known->second;
        at_ = begin;
        std::vector<std::string> candidates = callable_names();
        for (const auto& [known, value] : names_) candidates.push_back(known);
        error(cat("'", word, "' is not known here", did_you_mean(word, candidates)));
    }
    ExprPtr function(const std::string& word, std::size_t begin) {
        if (word == "index" || word == "size") {
            const auto dimension = static_cast<int>(integer("a dimension"));
            expect(")");
            auto expr = std::make_shared<Expr>();
            expr->kind = word == "index" ? Expr::Kind::index : Expr::Kind::size;
            expr->number = dimension;
            if (combining_) error("the combination of a reduction can use only a and b");
            return count(expr);
        }
        const Function* f = find_function(word);
        if (!f || !f->callable) {
            at_ = begin;
            const auto candidates = callable_names();
            error(cat("'", word, "' is no function", did_you_mean(word, candidates)));
        }
        std::vector<ExprPtr> args;
        do args.push_back(expression());
        while (take(","));
        expect(")");
        if (static_cast<int>(args.size()) != f->arity) {
            at_ = begin;
            error(cat("'", word, "' takes ", f->arity, f->arity == 1 ? " argument" : " arguments",
                      ", not ", args.size()));
        }
        return make(word, std::move(args));
    }
};

}  // namespace

namespace {

/// What is made of texts, by text.
class Texts {
  public:
    using Made = std::shared_ptr<const Program>;

    template <typename Make>
    Made of(std::string_view code, const Make& make) {
        constexpr std::size_t most_kept = 4096;
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = known_.find(code); found != known_.end()) return found->second;
        }
        const Made made = std::make_shared<const Program>(make());
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most_kept) known_.clear();
        return known_.emplace(code, made).first->second;
    }

  private:
    std::mutex mutex_;
    std::map<std::string, Made, std::less<>> known_;
};

}  // namespace

// A plan asks for the program of each node many times: passes, engines and memory planning read it
// from the node's text. Expressions do not change, so programs of one text share them.
std::shared_ptr<const Program> parsed(std::string_view code) {
    static auto* const known = new Texts;
    return known->of(code, [&] { return Parser(code).program(); });
}

std::shared_ptr<const Program> parsed_simple(std::string_view code) {
    static auto* const known = new Texts;
    return known->of(code, [&] {
        Program program = parse(code);
        for (Output& output : program.outputs) output.value = simplify(output.value);
        return program;
    });
}

Program parse(std::string_view code) {
    return *parsed(code);
}

}  // namespace dlprim::pointwise

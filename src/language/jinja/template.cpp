// SPDX-License-Identifier: MIT
// Rendering: an interpreter that walks over the tree.
#include "language/jinja/template.hpp"

#include "language/jinja/builtins.hpp"
#include "language/jinja/parser.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace dlprim::language::jinja {

namespace {

constexpr std::size_t most_template = std::size_t{1} << 20;  ///< bytes of a template
constexpr std::uint64_t step_units = 16;

using Of = Expression::Kind;

class Interpreter {
  public:
    Interpreter(Run& run, const std::tm& now) : run_(run), now_(now) { scopes_.emplace_back(); }

    void set(const std::string& name, Value value) { scopes_.back()[name] = std::move(value); }
    std::string render(const Body& body) {
        run(body);
        return std::move(out_);
    }

  private:
    enum class Flow { on, leave, next };
    using Scope = std::map<std::string, Value, std::less<>>;

    class Deeper {
      public:
        explicit Deeper(Interpreter& of) : of_(of) {
            of_.run_.spend(step_units);
            of_.run_.require(++of_.depth_ <= of_.run_.limits().depth, "it is nested too deep");
        }
        ~Deeper() { --of_.depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;

      private:
        Interpreter& of_;
    };

    void write(std::string_view text) {
        run_.spend(text.size());
        run_.require(out_.size() + text.size() <= run_.limits().output, "it writes more than ",
                     run_.limits().output, " bytes");
        out_ += text;
    }

    /// What a body writes, in place of the output.
    std::string written(const Body& body) {
        std::string kept = std::exchange(out_, {});
        run(body);
        return std::exchange(out_, std::move(kept));
    }

    // Statements.

    Flow run(const Body& body) {
        const Deeper deeper(*this);
        for (const Statement& statement : body) {
            run_.line = statement.line;
            const Flow flow = run(statement);
            if (flow != Flow::on) return flow;
        }
        return Flow::on;
    }

    Flow run(const Statement& statement) {
        run_.spend(step_units);
        switch (statement.kind) {
            case Statement::Kind::text:
                write(statement.text);
                break;
            case Statement::Kind::output:
                write(to_text(run_, value_of(*statement.value)));
                break;
            case Statement::Kind::assignment:
                assign(statement.target, value_of(*statement.value));
                break;
            case Statement::Kind::capture:
                capture(statement);
                break;
            case Statement::Kind::choice:
                for (const Branch& branch : statement.branches)
                    if (!branch.condition || truth(value_of(*branch.condition)))
                        return run(branch.body);
                break;
            case Statement::Kind::loop:
                return loop(statement);
            case Statement::Kind::macro:
                set(statement.macro->name, std::make_shared<const Function>(Function{
                                               statement.macro.get(), statement.macro->name, {}}));
                break;
            case Statement::Kind::group:
                return run(statement.branches[0].body);
            case Statement::Kind::leave:
                return Flow::leave;
            case Statement::Kind::next:
                return Flow::next;
        }
        return Flow::on;
    }

    void assign(const Target& target, Value value) {
        if (!target.member.empty()) {
            Namespace* const names = variable(target.names[0]).names();
            if (names == nullptr) run_.fail("'", target.names[0], "' is no namespace");
            run_.require(value.names() == nullptr, "a namespace holds no other");
            names->members[target.member] = std::move(value);
            return;
        }
        if (target.names.size() == 1) return set(target.names[0], std::move(value));
        const std::vector<Value> values = elements(run_, value);
        run_.require(values.size() == target.names.size(), kind_of(value), " of ", values.size(),
                     " elements is unpacked to ", target.names.size(), " variables");
        for (std::size_t i = 0; i < values.size(); ++i) set(target.names[i], values[i]);
    }

    void capture(const Statement& statement) {
        scopes_.emplace_back();
        Value value = written(statement.branches[0].body);
        if (statement.value) {
            set("<written>", std::move(value));
            value = value_of(*statement.value);
        }
        scopes_.pop_back();
        if (statement.target.names.empty())
            write(to_text(run_, value));
        else
            assign(statement.target, std::move(value));
    }

    Flow loop(const Statement& statement) {
        std::vector<Value> items = elements(run_, value_of(*statement.value));
        if (statement.condition) {
            scopes_.emplace_back();
            std::erase_if(items, [&](const Value& item) {
                assign(statement.target, item);
                return !truth(value_of(*statement.condition));
            });
            scopes_.pop_back();
        }
        const auto all = std::make_shared<const std::vector<Value>>(std::move(items));
        for (std::size_t i = 0; i < all->size(); ++i) {
            run_.spend(step_units);
            scopes_.emplace_back();
            set("loop", std::make_shared<const Loop>(Loop{all, i}));
            assign(statement.target, (*all)[i]);
            const Flow flow = run(statement.branches[0].body);
            scopes_.pop_back();
            if (flow == Flow::leave) return Flow::on;
        }
        if (!all->empty() || statement.branches.size() < 2) return Flow::on;
        return run(statement.branches[1].body);
    }

    // Variables and calls.

    Value variable(const std::string& name) const {
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const auto found = scope->find(name); found != scope->end()) return found->second;
        if (is_function(name)) return std::make_shared<const Function>(Function{nullptr, name, {}});
        return Value::undefined(name);
    }

    Arguments arguments_of(const Expression& expression) {
        Arguments arguments;
        for (std::size_t i = 1; i < expression.parts.size(); ++i)
            arguments.values.push_back(value_of(*expression.parts[i]));
        for (const auto& [name, part] : expression.named)
            arguments.named.emplace_back(name, value_of(*part));
        return arguments;
    }

    Value call(const Expression& expression) {
        const Value callee = value_of(*expression.parts[0]);
        const Function* const function = callee.function();
        run_.require(function != nullptr, kind_of(callee), callee.is_undefined() ? "," : "",
                     " cannot be called");
        const Arguments arguments = arguments_of(expression);
        run_.line = expression.line;
        if (function->macro != nullptr) return call_macro(*function->macro, arguments);
        if (function->self.is_undefined())
            return call_function(run_, function->name, arguments, now_);
        return call_method(run_, function->self, function->name, arguments);
    }

    /// A macro sees its parameters and the variables of the whole template.
    Value call_macro(const Macro& macro, const Arguments& arguments) {
        const std::size_t count = macro.parameters.size();
        run_.require(arguments.values.size() <= count, macro.name, "() takes ", count,
                     " arguments at most");
        std::vector<Scope> hidden;
        std::move(scopes_.begin() + 1, scopes_.end(), std::back_inserter(hidden));
        scopes_.resize(1);
        scopes_.emplace_back();
        for (std::size_t i = 0; i < arguments.values.size(); ++i)
            set(macro.parameters[i], arguments.values[i]);
        for (const auto& [name, value] : arguments.named) {
            run_.require(std::find(macro.parameters.begin(), macro.parameters.end(), name) !=
                             macro.parameters.end(),
                         macro.name, "() has no parameter '", name, "'");
            set(name, value);
        }
        const std::size_t plain = count - macro.defaults.size();
        for (std::size_t i = 0; i < count; ++i) {
            const std::string& name = macro.parameters[i];
            if (scopes_.back().count(name) > 0) continue;
            set(name, i >= plain ? value_of(*macro.defaults[i - plain]) : Value::undefined(name));
        }
        std::string text = written(macro.body);
        scopes_.resize(1);
        std::move(hidden.begin(), hidden.end(), std::back_inserter(scopes_));
        return text;
    }

    // Expressions.

    Value value_of(const Expression& expression) {
        const Deeper deeper(*this);
        run_.line = expression.line;
        const auto part = [&](std::size_t i) { return value_of(*expression.parts[i]); };
        switch (expression.kind) {
            case Of::constant:
                return expression.constant;
            case Of::name:
                return variable(expression.name);
            case Of::list:
            case Of::tuple:
                return make_list(run_, values_of(expression.parts), expression.kind == Of::tuple);
            case Of::map:
                return map(expression);
            case Of::attribute:
                return attribute_of(run_, part(0), expression.name);
            case Of::item: {
                const Value of = part(0);
                return item_of(run_, of, part(1));
            }
            case Of::slice:
                return slice(expression);
            case Of::call:
                return call(expression);
            case Of::filter: {
                const Value input = part(0);
                return apply_filter(run_, expression.name, input, arguments_of(expression));
            }
            case Of::test: {
                const Value input = part(0);
                return apply_test(run_, expression.name, input, arguments_of(expression));
            }
            case Of::negation:
                return !truth(part(0));
            case Of::conjunction: {
                Value left = part(0);
                return truth(left) ? part(1) : left;
            }
            case Of::disjunction: {
                Value left = part(0);
                return truth(left) ? left : part(1);
            }
            case Of::conditional:
                if (truth(part(1))) return part(0);
                return expression.parts[2] ? part(2) : Value::undefined("the value without else");
            case Of::comparison:
                return comparison(expression);
            default:
                return arithmetic(expression);
        }
    }

    std::vector<Value> values_of(const std::vector<ExpressionPointer>& parts) {
        std::vector<Value> values;
        values.reserve(parts.size());
        for (const ExpressionPointer& part : parts) values.push_back(value_of(*part));
        return values;
    }

    Value map(const Expression& expression) {
        std::vector<std::pair<std::string, Value>> members;
        for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
            const Value key = value_of(*expression.parts[i]);
            run_.require(key.is_text(), "keys of maps are texts here, not ", kind_of(key));
            members.emplace_back(key.text(), value_of(*expression.parts[i + 1]));
        }
        return make_map(run_, std::move(members));
    }

    Value slice(const Expression& expression) {
        const Value of = value_of(*expression.parts[0]);
        const auto bound = [&](std::size_t i, std::int64_t otherwise) {
            if (!expression.parts[i]) return otherwise;
            const Value value = value_of(*expression.parts[i]);
            if (value.is_none()) return otherwise;
            run_.require(value.is_integer(), "a slice has integers, not ", kind_of(value));
            return value.integer();
        };
        const std::int64_t step = bound(3, 1);
        run_.require(step != 0, "a slice has a step of 0");
        run_.require(of.is_text() || of.list() != nullptr, kind_of(of), " has no slices");
        std::vector<Value> all = elements(run_, of);
        const auto count = std::ssize(all);
        constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
        const auto place = [&](std::int64_t i) {  // from the end if it is negative
            if (i == far) return step > 0 ? count : count - 1;
            const std::int64_t at = i < 0 ? i + count : i;
            return step > 0 ? std::clamp<std::int64_t>(at, 0, count)
                            : std::clamp<std::int64_t>(at, -1, count - 1);
        };
        const std::int64_t begin = step > 0 ? place(bound(1, 0)) : place(bound(1, far));
        const std::int64_t stop = bound(2, far);
        const std::int64_t end = stop == far ? (step > 0 ? count : -1) : place(stop);
        const std::int64_t stride = std::clamp<std::int64_t>(step, -count - 1, count + 1);
        std::vector<Value> taken;
        for (std::int64_t i = begin; stride > 0 ? i < end : i > end; i += stride)
            taken.push_back(all[static_cast<std::size_t>(i)]);
        if (!of.is_text()) return make_list(run_, std::move(taken), of.list()->tuple);
        std::string text;
        for (const Value& character : taken) text += character.text();
        return text;
    }

    Value comparison(const Expression& expression) {
        Value left = value_of(*expression.parts[0]);
        for (std::size_t i = 0; i < expression.operators.size(); ++i) {
            Value right = value_of(*expression.parts[i + 1]);
            run_.line = expression.line;
            if (!holds(expression.operators[i], left, right)) return false;
            left = std::move(right);
        }
        return true;
    }

    bool holds(const std::string& sign, const Value& left, const Value& right) {
        if (sign == "==") return equal(run_, left, right);
        if (sign == "!=") return !equal(run_, left, right);
        if (sign == "in") return contains(run_, right, left);
        if (sign == "not in") return !contains(run_, right, left);
        if (sign == "<") return less(run_, left, right);
        if (sign == ">") return less(run_, right, left);
        return sign == "<=" ? !less(run_, right, left) : !less(run_, left, right);
    }

    Value arithmetic(const Expression& expression) {
        Value left = value_of(*expression.parts[0]);
        if (expression.kind == Of::negative || expression.kind == Of::positive) {
            run_.require(left.is_number(), kind_of(left), " has no sign");
            if (expression.kind == Of::positive) return left;
            return calculate("-", std::int64_t{0}, left);
        }
        const Value right = value_of(*expression.parts[1]);
        run_.line = expression.line;
        const std::string& sign = expression.name;
        if (sign == "~") return joined(to_text(run_, left), to_text(run_, right));
        if (sign == "+" && left.is_text() && right.is_text())
            return joined(left.text(), right.text());
        if (sign == "+" && left.list() != nullptr && right.list() != nullptr) {
            std::vector<Value> all = elements(run_, left);
            for (Value& item : elements(run_, right)) all.push_back(std::move(item));
            return make_list(run_, std::move(all), left.list()->tuple);
        }
        if (sign == "*" && left.is_text() && right.is_integer())
            return repeated(left.text(), right.integer());
        run_.require(left.is_number() && right.is_number(), kind_of(left), " ", sign, " ",
                     kind_of(right), " has no meaning");
        return calculate(sign, left, right);
    }

    Value joined(const std::string& left, const std::string& right) {
        run_.spend(left.size() + right.size());
        return left + right;
    }

    Value repeated(const std::string& text, std::int64_t count) {
        std::string all;
        for (std::int64_t i = 0; i < count && !text.empty(); ++i) {
            run_.spend(text.size());
            all += text;
        }
        return all;
    }

    Value calculate(const std::string& sign, const Value& left, const Value& right) {
        const bool divides = sign == "/" || sign == "//" || sign == "%";
        run_.require(!divides || right.number() != 0, "a division by 0");
        if (left.is_integer() && right.is_integer() && sign != "/" && sign != "**")
            return calculate_integers(sign, left.integer(), right.integer());
        const double a = left.number(), b = right.number();
        if (sign == "+") return a + b;
        if (sign == "-") return a - b;
        if (sign == "*") return a * b;
        if (sign == "/") return a / b;
        if (sign == "//") return std::floor(a / b);
        if (sign == "%") return a - b * std::floor(a / b);
        const double power = std::pow(a, b);
        if (left.is_integer() && right.is_integer() && b >= 0) {
            run_.require(std::abs(power) < 0x1p53, "a number is too large");
            return static_cast<std::int64_t>(power);
        }
        return power;
    }

    Value calculate_integers(const std::string& sign, std::int64_t a, std::int64_t b) {
        std::int64_t result = 0;
        bool overflows = false;
        if (sign == "+") {
            overflows = __builtin_add_overflow(a, b, &result);
        } else if (sign == "-") {
            overflows = __builtin_sub_overflow(a, b, &result);
        } else if (sign == "*") {
            overflows = __builtin_mul_overflow(a, b, &result);
        } else if (b == -1) {  // which the smallest number overflows
            overflows = sign == "//" && __builtin_sub_overflow(std::int64_t{0}, a, &result);
        } else {
            const std::int64_t rest = a % b;
            const bool below = rest != 0 && (rest < 0) != (b < 0);
            result = sign == "//" ? a / b - (below ? 1 : 0) : rest + (below ? b : 0);
        }
        run_.require(!overflows, "a number is too large");
        return result;
    }

    Run& run_;
    const std::tm& now_;
    std::vector<Scope> scopes_;  ///< the outermost first
    std::string out_;
    int depth_ = 0;
};

Body parse_whole(std::string_view text, const std::string& source) {
    Run run(source, {});
    run.require(text.size() <= most_template, "it has ", text.size(), " bytes, and at most ",
                most_template, " are read");
    return parse(run, text);
}

}  // namespace

Template::Template(std::string_view text, std::string source)
    : source_(std::move(source)), body_(parse_whole(text, source_)) {}

std::string Template::render(const Variables& variables, const std::tm& now,
                             const Limits& limits) const {
    Run run(source_, limits);
    Interpreter interpreter(run, now);
    for (const auto& [name, value] : variables) interpreter.set(name, value);
    return interpreter.render(body_);
}

}  // namespace dlprim::language::jinja

// SPDX-License-Identifier: MIT
// Parser of templates, by recursive descent.
#include "language/jinja/parser.hpp"

#include "language/jinja/lexer.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace dlprim::language::jinja {

namespace {

using Kind = Expression::Kind;
using Does = Statement::Kind;

constexpr int most_height = 250;  ///< of an expression, and of statements within each other

class Parser {
  public:
    Parser(Run& run, std::vector<Token> tokens) : run_(run), tokens_(std::move(tokens)) {}

    Body all() {
        Body body = statements({});
        return body;
    }

  private:
    /// Counts how deep the parser is within its own calls.
    class Deeper {
      public:
        explicit Deeper(Parser& parser) : parser_(parser) {
            parser_.run_.require(++parser_.depth_ <= most_height, "it is nested more than ",
                                 most_height, " deep");
        }
        ~Deeper() { --parser_.depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;

      private:
        Parser& parser_;
    };

    // Tokens.

    const Token& now() const { return tokens_[at_]; }
    const Token& behind() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
    Token take() {
        run_.line = now().line;
        Token token = now();
        if (at_ + 1 < tokens_.size()) ++at_;
        return token;
    }
    static bool is(const Token& token, Token::Kind kind, std::string_view text) {
        return token.kind == kind && token.text == text;
    }
    bool sees_sign(std::string_view sign) const { return is(now(), Token::Kind::sign, sign); }
    bool sees_word(std::string_view word) const { return is(now(), Token::Kind::name, word); }
    bool skip_sign(std::string_view sign) {
        if (!sees_sign(sign)) return false;
        take();
        return true;
    }
    bool skip_word(std::string_view word) {
        if (!sees_word(word)) return false;
        take();
        return true;
    }
    std::string describe(const Token& token) const {
        switch (token.kind) {
            case Token::Kind::text:
                return "text";
            case Token::Kind::output_begin:
                return "'{{'";
            case Token::Kind::output_end:
                return "'}}'";
            case Token::Kind::block_begin:
                return "'{%'";
            case Token::Kind::block_end:
                return "'%}'";
            case Token::Kind::end:
                return "its end";
            default:
                return "'" + token.text.substr(0, 40) + "'";
        }
    }
    [[noreturn]] void fail_expecting(std::string_view what) {
        run_.line = now().line;
        run_.fail("expected ", what, ", found ", describe(now()));
    }
    void expect_sign(std::string_view sign) {
        if (!skip_sign(sign)) fail_expecting("'" + std::string(sign) + "'");
    }
    void expect_word(std::string_view word) {
        if (!skip_word(word)) fail_expecting("'" + std::string(word) + "'");
    }
    std::string expect_name(std::string_view what) {
        if (now().kind != Token::Kind::name) fail_expecting(what);
        return take().text;
    }
    void expect(Token::Kind kind, std::string_view what) {
        if (now().kind != kind) fail_expecting(what);
        take();
    }
    void end_tag() { expect(Token::Kind::block_end, "'%}'"); }

    // Statements.

    /// Up to a tag of one of these names, which is left for the caller, or to the end of the text.
    Body statements(std::initializer_list<std::string_view> ends) {
        const Deeper deeper(*this);
        Body body;
        for (;;) {
            const Token token = now();
            run_.line = token.line;
            if (token.kind == Token::Kind::end) {
                run_.require(ends.size() == 0, "a tag ", ends.size() > 0 ? *(ends.end() - 1) : "",
                             " is missing");
                return body;
            }
            if (token.kind == Token::Kind::text) {
                body.push_back({Does::text, token.line, take().text});
            } else if (token.kind == Token::Kind::output_begin) {
                take();
                Statement output{Does::output, token.line};
                output.value = tuple_expression(true);
                expect(Token::Kind::output_end, "'}}'");
                body.push_back(std::move(output));
            } else {
                if (behind().kind == Token::Kind::name &&
                    std::find(ends.begin(), ends.end(), behind().text) != ends.end())
                    return body;
                take();
                body.push_back(statement());
            }
        }
    }

    Statement statement() {
        const std::string name = expect_name("a statement");
        const std::size_t line = run_.line;
        if (name == "if") return choice(line);
        if (name == "for") return loop(line);
        if (name == "set") return assignment(line);
        if (name == "macro") return macro(line);
        if (name == "generation") {
            end_tag();
            Statement group{Does::group, line};
            group.branches.push_back({nullptr, body_until("endgeneration")});
            return group;
        }
        if (name == "filter") return filtered(line);
        if (name == "break" || name == "continue") {
            run_.require(loops_ > 0, "'", name, "' is not in a for statement");
            end_tag();
            return {name == "break" ? Does::leave : Does::next, line};
        }
        if (name.starts_with("end") || name == "else" || name == "elif")
            run_.fail("'", name, "' ends nothing");
        run_.fail("the statement '", name, "' is not supported");
    }

    /// Statements and the tag that ends them.
    Body body_until(std::string_view end) {
        Body body = statements({end});
        take();
        take();
        end_tag();
        return body;
    }

    Statement choice(std::size_t line) {
        Statement statement{Does::choice, line};
        for (bool has_condition = true;;) {
            Branch branch;
            if (has_condition) branch.condition = tuple_expression(false);
            end_tag();
            branch.body =
                has_condition ? statements({"elif", "else", "endif"}) : statements({"endif"});
            statement.branches.push_back(std::move(branch));
            take();
            const std::string next = take().text;
            if (next == "endif") break;
            has_condition = next == "elif";
        }
        end_tag();
        return statement;
    }

    Statement loop(std::size_t line) {
        Statement statement{Does::loop, line};
        statement.target.names = target_names();
        expect_word("in");
        statement.value = tuple_expression(false);
        if (skip_word("if")) statement.condition = expression();
        run_.require(!sees_word("recursive"), "recursive for statements are not supported");
        end_tag();
        ++loops_;
        Branch rounds;
        rounds.body = statements({"else", "endfor"});
        --loops_;
        statement.branches.push_back(std::move(rounds));
        take();
        if (take().text == "else") {
            end_tag();
            statement.branches.push_back({nullptr, body_until("endfor")});
        } else {
            end_tag();
        }
        return statement;
    }

    std::vector<std::string> target_names() {
        std::vector<std::string> names;
        const bool bracket = skip_sign("(");
        do {
            if (!names.empty() && (sees_sign(")") || sees_sign("=") || sees_word("in"))) break;
            names.push_back(expect_name("a variable"));
            run_.require(names.back() != "loop", "'loop' cannot be assigned");
        } while (skip_sign(","));
        if (bracket) expect_sign(")");
        return names;
    }

    Statement assignment(std::size_t line) {
        Statement statement{Does::assignment, line};
        statement.target.names = target_names();
        if (skip_sign(".")) statement.target.member = expect_name("a member's name");
        if (skip_sign("=")) {
            statement.value = tuple_expression(true);
            end_tag();
            return statement;
        }
        statement.kind = Does::capture;
        if (sees_sign("|")) statement.value = filters(make(Kind::name, "<written>"));
        end_tag();
        statement.branches.push_back({nullptr, body_until("endset")});
        return statement;
    }

    /// {% filter upper %}...{% endfilter %}: a capture whose result is written.
    Statement filtered(std::size_t line) {
        Statement statement{Does::capture, line};
        statement.value = filters(one_filter(make(Kind::name, "<written>")));
        end_tag();
        statement.branches.push_back({nullptr, body_until("endfilter")});
        return statement;
    }

    Statement macro(std::size_t line) {
        auto made = std::make_shared<Macro>();
        made->name = expect_name("the macro's name");
        expect_sign("(");
        while (!skip_sign(")")) {
            if (!made->parameters.empty()) expect_sign(",");
            made->parameters.push_back(expect_name("a parameter"));
            if (skip_sign("="))
                made->defaults.push_back(expression());
            else
                run_.require(made->defaults.empty(), "parameter '", made->parameters.back(),
                             "' has no default, one before it has");
        }
        end_tag();
        const int loops = std::exchange(loops_, 0);
        made->body = body_until("endmacro");
        loops_ = loops;
        Statement statement{Does::macro, line};
        statement.macro = std::move(made);
        return statement;
    }

    // Expressions.

    ExpressionPointer make(Kind kind, std::string name = {}) {
        auto made = std::make_unique<Expression>(Expression{kind, run_.line, std::move(name)});
        return made;
    }
    /// Appends a part, null if it is not given.
    void append(Expression& to, ExpressionPointer part) {
        if (part) to.height = std::max(to.height, part->height + 1);
        run_.require(to.height <= most_height, "an expression is nested more than ", most_height,
                     " deep");
        to.parts.push_back(std::move(part));
    }
    template <typename... Parts>
    ExpressionPointer make_of(Kind kind, std::string name, Parts... parts) {
        ExpressionPointer made = make(kind, std::move(name));
        (append(*made, std::move(parts)), ...);
        return made;
    }

    bool ends_tuple() const {
        return now().kind == Token::Kind::output_end || now().kind == Token::Kind::block_end ||
               sees_sign(")");
    }

    /// An expression, or several behind commas, which are a tuple.
    ExpressionPointer tuple_expression(bool conditional) {
        const auto one = [&] { return conditional ? expression() : disjunction(); };
        ExpressionPointer first = one();
        if (!sees_sign(",")) return first;
        ExpressionPointer tuple = make_of(Kind::tuple, "", std::move(first));
        while (skip_sign(",") && !ends_tuple()) append(*tuple, one());
        return tuple;
    }

    ExpressionPointer expression() {
        const Deeper deeper(*this);
        ExpressionPointer value = disjunction();
        while (skip_word("if")) {
            ExpressionPointer condition = disjunction();
            ExpressionPointer otherwise = skip_word("else") ? expression() : nullptr;
            value = make_of(Kind::conditional, "", std::move(value), std::move(condition),
                            std::move(otherwise));
        }
        return value;
    }

    ExpressionPointer disjunction() {
        ExpressionPointer left = conjunction();
        while (skip_word("or"))
            left = make_of(Kind::disjunction, "", std::move(left), conjunction());
        return left;
    }

    ExpressionPointer conjunction() {
        ExpressionPointer left = negation();
        while (skip_word("and")) left = make_of(Kind::conjunction, "", std::move(left), negation());
        return left;
    }

    ExpressionPointer negation() {
        const Deeper deeper(*this);
        if (!skip_word("not")) return comparison();
        return make_of(Kind::negation, "", negation());
    }

    /// The comparison that stands here, which is taken; empty if there is none.
    std::string comparison_operator() {
        for (const char* const sign : {"==", "!=", "<", "<=", ">", ">="})
            if (skip_sign(sign)) return sign;
        if (skip_word("in")) return "in";
        if (sees_word("not") && is(behind(), Token::Kind::name, "in")) {
            take();
            take();
            return "not in";
        }
        return "";
    }

    ExpressionPointer comparison() {
        ExpressionPointer first = arithmetic(0);
        std::string sign = comparison_operator();
        if (sign.empty()) return first;
        ExpressionPointer made = make_of(Kind::comparison, "", std::move(first));
        for (; !sign.empty(); sign = comparison_operator()) {
            made->operators.push_back(sign);
            append(*made, arithmetic(0));
        }
        return made;
    }

    /// Operators by precedence: sums, then joined texts, then products, then powers.
    ExpressionPointer arithmetic(int level) {
        static const std::vector<std::vector<std::string_view>> levels = {
            {"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
        const auto operand = [&] {
            return level + 1 < static_cast<int>(levels.size()) ? arithmetic(level + 1)
                                                               : unary(true);
        };
        ExpressionPointer left = operand();
        for (;;) {
            const auto& signs = levels[static_cast<std::size_t>(level)];
            const auto found = std::find_if(signs.begin(), signs.end(),
                                            [&](std::string_view sign) { return sees_sign(sign); });
            if (found == signs.end()) return left;
            take();
            left = make_of(Kind::arithmetic, std::string(*found), std::move(left), operand());
        }
    }

    ExpressionPointer unary(bool with_filters) {
        const Deeper deeper(*this);
        ExpressionPointer value;
        if (skip_sign("-"))
            value = make_of(Kind::negative, "", unary(false));
        else if (skip_sign("+"))
            value = make_of(Kind::positive, "", unary(false));
        else
            value = primary();
        value = postfix(std::move(value));
        return with_filters ? filters(std::move(value)) : std::move(value);
    }

    ExpressionPointer constant(Value value) {
        ExpressionPointer made = make(Kind::constant);
        made->constant = std::move(value);
        return made;
    }

    ExpressionPointer primary() {
        const Token token = now();
        run_.line = token.line;
        switch (token.kind) {
            case Token::Kind::name:
                take();
                if (token.text == "true" || token.text == "True") return constant(true);
                if (token.text == "false" || token.text == "False") return constant(false);
                if (token.text == "none" || token.text == "None") return constant(None{});
                return make(Kind::name, token.text);
            case Token::Kind::string: {
                std::string text = take().text;
                while (now().kind == Token::Kind::string) text += take().text;
                return constant(std::move(text));
            }
            case Token::Kind::integer:
                return constant(take().integer);
            case Token::Kind::number:
                return constant(take().number);
            default:
                break;
        }
        if (skip_sign("(")) {
            ExpressionPointer inside = sees_sign(")") ? make(Kind::tuple) : tuple_expression(true);
            expect_sign(")");
            return inside;
        }
        if (skip_sign("[")) return list();
        if (skip_sign("{")) return map();
        fail_expecting("a value");
    }

    ExpressionPointer list() {
        ExpressionPointer made = make(Kind::list);
        while (!skip_sign("]")) {
            if (!made->parts.empty()) {
                expect_sign(",");
                if (skip_sign("]")) break;
            }
            append(*made, expression());
        }
        return made;
    }

    ExpressionPointer map() {
        ExpressionPointer made = make(Kind::map);
        while (!skip_sign("}")) {
            if (!made->parts.empty()) {
                expect_sign(",");
                if (skip_sign("}")) break;
            }
            append(*made, expression());
            expect_sign(":");
            append(*made, expression());
        }
        return made;
    }

    ExpressionPointer postfix(ExpressionPointer value) {
        for (;;) {
            if (skip_sign(".")) {
                if (now().kind == Token::Kind::integer)
                    value = make_of(Kind::item, "", std::move(value), constant(take().integer));
                else
                    value = make_of(Kind::attribute, expect_name("an attribute's name"),
                                    std::move(value));
            } else if (skip_sign("[")) {
                value = subscript(std::move(value));
            } else if (sees_sign("(")) {
                value = make_of(Kind::call, "", std::move(value));
                arguments(*value);
            } else {
                return value;
            }
        }
    }

    ExpressionPointer subscript(ExpressionPointer value) {
        ExpressionPointer made = make_of(Kind::item, "", std::move(value));
        const auto part = [&]() -> ExpressionPointer {
            return sees_sign(":") || sees_sign("]") ? nullptr : expression();
        };
        append(*made, part());
        while (skip_sign(":")) {
            made->kind = Kind::slice;
            append(*made, part());
        }
        const std::size_t most = made->kind == Kind::slice ? 4 : 2;
        run_.require(made->parts.size() <= most && (most == 4 || made->parts[1]),
                     "what stands in [] is no index and no slice");
        made->parts.resize(most);
        expect_sign("]");
        return made;
    }

    void arguments(Expression& of) {
        expect_sign("(");
        while (!skip_sign(")")) {
            if (of.parts.size() + of.named.size() > 1) {
                expect_sign(",");
                if (skip_sign(")")) return;
            }
            run_.require(!sees_sign("*") && !sees_sign("**"), "arguments by * are not supported");
            if (now().kind == Token::Kind::name && is(behind(), Token::Kind::sign, "=")) {
                std::string name = take().text;
                take();
                ExpressionPointer value = expression();
                of.height = std::max(of.height, value->height + 1);
                run_.require(of.height <= most_height, "an expression is nested more than ",
                             most_height, " deep");
                of.named.emplace_back(std::move(name), std::move(value));
            } else {
                run_.require(of.named.empty(), "an argument without a name is behind one with it");
                append(of, expression());
            }
        }
    }

    ExpressionPointer one_filter(ExpressionPointer value) {
        ExpressionPointer made = make_of(Kind::filter, expect_name("a filter"), std::move(value));
        if (sees_sign("(")) arguments(*made);
        return made;
    }

    ExpressionPointer filters(ExpressionPointer value) {
        for (;;) {
            if (skip_sign("|")) {
                value = one_filter(std::move(value));
            } else if (skip_word("is")) {
                value = test(std::move(value));
            } else if (sees_sign("(")) {
                value = make_of(Kind::call, "", std::move(value));
                arguments(*value);
            } else {
                return value;
            }
        }
    }

    ExpressionPointer test(ExpressionPointer value) {
        const bool negated = skip_word("not");
        ExpressionPointer made = make_of(Kind::test, expect_name("a test"), std::move(value));
        const Token::Kind kind = now().kind;
        const bool word = kind == Token::Kind::name;
        const bool joins = sees_word("else") || sees_word("or") || sees_word("and") ||
                           sees_word("if") || sees_word("is") || sees_word("in") ||
                           sees_word("not");
        if (sees_sign("("))
            arguments(*made);
        else if ((word && !joins) || kind == Token::Kind::string || kind == Token::Kind::integer ||
                 kind == Token::Kind::number || sees_sign("[") || sees_sign("{"))
            append(*made, postfix(primary()));
        return negated ? make_of(Kind::negation, "", std::move(made)) : std::move(made);
    }

    Run& run_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int depth_ = 0, loops_ = 0;
};

}  // namespace

Body parse(Run& run, std::string_view text) {
    std::vector<Token> tokens = tokens_of(run, text);
    return Parser(run, std::move(tokens)).all();
}

}  // namespace dlprim::language::jinja

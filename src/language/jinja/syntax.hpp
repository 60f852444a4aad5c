// SPDX-License-Identifier: MIT
// The tree of a parsed template. A node's height is limited by the parser, so that recursion over
// the tree ends.
#pragma once

#include "language/jinja/value.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim::language::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Expression {
    enum class Kind {
        constant,     ///< `constant`
        name,         ///< the variable `name`
        list,         ///< parts
        tuple,        ///< parts
        map,          ///< parts: key, value, key, value, ...
        attribute,    ///< parts[0].name
        item,         ///< parts[0][parts[1]]
        slice,        ///< parts[0][parts[1]:parts[2]:parts[3]], each of the three may be null
        call,         ///< parts[0](parts[1], ..., named)
        filter,       ///< parts[0] | name(parts[1], ..., named)
        test,         ///< parts[0] is name(parts[1], ...)
        negative,     ///< - parts[0]
        positive,     ///< + parts[0]
        negation,     ///< not parts[0]
        conjunction,  ///< parts[0] and parts[1]
        disjunction,  ///< parts[0] or parts[1]
        arithmetic,   ///< parts[0] name parts[1]
        comparison,   ///< parts[0] operators[0] parts[1] operators[1] parts[2] ...
        conditional,  ///< parts[0] if parts[1] else parts[2], which may be null
    };
    Kind kind;
    std::size_t line;
    std::string name = {};
    Value constant = {};
    std::vector<ExpressionPointer> parts = {};
    std::vector<std::pair<std::string, ExpressionPointer>> named = {};
    std::vector<std::string> operators = {};
    int height = 1;
};

/// What a value is stored in: variables, of which several unpack it, or a namespace's member.
struct Target {
    std::vector<std::string> names;
    std::string member;
};

struct Statement;
using Body = std::vector<Statement>;

/// What if and elif stand before; an else has no condition.
struct Branch {
    ExpressionPointer condition;
    Body body;
};

struct Macro {
    std::string name;
    std::vector<std::string> parameters;
    std::vector<ExpressionPointer> defaults;  ///< of the last parameters
    Body body;
};

struct Statement {
    enum class Kind {
        text,        ///< `text`
        output,      ///< value
        assignment,  ///< target = value
        capture,     ///< target = what branches[0] writes, through the filters of value if any
        choice,      ///< branches
        loop,        ///< for target in value if condition: branches[0], else branches[1]
        macro,       ///< `macro`
        group,       ///< branches[0]
        leave,       ///< break
        next,        ///< continue
    };
    Kind kind;
    std::size_t line;
    std::string text = {};
    Target target = {};
    ExpressionPointer value = {}, condition = {};
    std::vector<Branch> branches = {};
    std::shared_ptr<const Macro> macro = {};
};

}  // namespace dlprim::language::jinja

// SPDX-License-Identifier: MIT
// Filters and tests.
#include "language/jinja/builtins.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::language::jinja {

namespace {

using Filter = Value (*)(Run&, const Value& input, const Arguments&);

struct NamedFilter {
    std::string_view name;
    Filter apply;
};

/// The elements of a list, and of what a list can be made of.
std::vector<Value> all_of(Run& run, const Value& value) {
    return elements(run, value);
}

Value trim(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "trim", arguments, {"chars"});
    const bool has = given.find(0) != nullptr && !given.at(0).is_none();
    const std::string text = to_text(run, input);
    return std::string(stripped(run, text, has ? &given.text(0) : nullptr, true, true));
}

Value json(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "tojson", arguments,
                      {"ensure_ascii", "indent", "separators", "sort_keys"});
    run.require(!given.truth(0, false) && !given.truth(2, false),
                "tojson with ensure_ascii or separators is not supported");
    return to_json(run, input, given.integer(1, -1), given.truth(3, false));
}

Value length(Run& run, const Value& input, const Arguments&) {
    if (input.is_text()) return static_cast<std::int64_t>(characters(run, input.text()));
    if (input.list() != nullptr) return std::ssize(input.list()->items);
    if (input.map() != nullptr) return std::ssize(input.map()->members);
    run.require(input.is_undefined(), kind_of(input), " has no length");
    return std::int64_t{0};
}

Value default_value(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "default", arguments, {"default_value", "boolean"});
    const bool use = input.is_undefined() || (given.truth(1, false) && !truth(input));
    if (!use) return input;
    return given.find(0) != nullptr ? given.at(0) : Value("");
}

template <bool is_upper>
Value case_filter(Run& run, const Value& input, const Arguments&) {
    return in_case(run, to_text(run, input), is_upper);
}

template <bool each>
Value capital_filter(Run& run, const Value& input, const Arguments&) {
    return capitalized(run, to_text(run, input), each);
}

Value replace_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "replace", arguments, {"old", "new", "count"}, 2);
    return replaced(run, to_text(run, input), given.text(0), given.text(1), given.integer(2, -1));
}

template <bool last>
Value end_element(Run& run, const Value& input, const Arguments&) {
    const std::vector<Value> all = all_of(run, input);
    if (all.empty()) return Value::undefined("element");
    return last ? all.back() : all.front();
}

Value join_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "join", arguments, {"d", "attribute"});
    const std::string separator = given.find(0) != nullptr ? to_text(run, given.at(0)) : "";
    std::string out;
    bool first = true;
    for (const Value& item : all_of(run, input)) {
        if (!first) {
            run.spend(separator.size());
            out += separator;
        }
        first = false;
        out += to_text(run, given.find(1) != nullptr ? item_of(run, item, given.at(1)) : item);
    }
    return out;
}

Value list_filter(Run& run, const Value& input, const Arguments&) {
    return make_list(run, all_of(run, input));
}

Value text_filter(Run& run, const Value& input, const Arguments&) {
    return to_text(run, input);
}

Value same(Run&, const Value& input, const Arguments&) {
    return input;
}

Value integer_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "int", arguments, {"default"});
    if (input.is_integer()) return input.integer();
    if (input.is_number() && std::abs(input.number()) < 9e18)
        return static_cast<std::int64_t>(input.number());
    if (input.is_text()) {
        const std::string_view text = stripped(run, input.text(), nullptr, true, true);
        const double value = leading_number<double>(text, std::nan(""));
        if (std::abs(value) < 9e18) return static_cast<std::int64_t>(value);
    }
    return given.integer(0, 0);
}

Value number_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "float", arguments, {"default"});
    if (input.is_number()) return input.number();
    const double otherwise =
        given.find(0) != nullptr && given.at(0).is_number() ? given.at(0).number() : 0.0;
    if (!input.is_text()) return otherwise;
    return leading_number<double>(stripped(run, input.text(), nullptr, true, true), otherwise);
}

Value absolute(Run& run, const Value& input, const Arguments&) {
    run.require(input.is_number(), "abs takes a number, not ", kind_of(input));
    if (!input.is_integer()) return std::abs(input.number());
    run.require(input.integer() != INT64_MIN, "a number is too large");
    return std::abs(input.integer());
}

Value round_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "round", arguments, {"precision"});
    run.require(input.is_number(), "round takes a number, not ", kind_of(input));
    const std::int64_t digits = given.integer(0, 0);
    run.require(digits >= 0 && digits <= 15, "round keeps 0 to 15 digits");
    const double scale = std::pow(10.0, static_cast<double>(digits));
    return std::nearbyint(input.number() * scale) / scale;
}

Value reversed(Run& run, const Value& input, const Arguments&) {
    std::vector<Value> all = all_of(run, input);
    std::reverse(all.begin(), all.end());
    if (!input.is_text()) return make_list(run, std::move(all));
    std::string out;
    for (const Value& character : all) out += character.text();
    return out;
}

Value items(Run& run, const Value& input, const Arguments&) {
    if (input.is_undefined()) return make_list(run, {});
    run.require(input.map() != nullptr, "items takes a map, not ", kind_of(input));
    std::vector<Value> pairs;
    for (const auto& [key, value] : input.map()->members)
        pairs.push_back(make_list(run, {key, value}, true));
    return make_list(run, std::move(pairs));
}

/// What a list is sorted by: texts without their case, unless it counts.
Value sort_key(Run& run, const Value& value, bool with_case) {
    return with_case || !value.is_text() ? value : Value(in_case(run, value.text(), false));
}

Value sorted_by(Run& run, std::vector<Value> all, bool reverse, const std::vector<Value>& keys) {
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return reverse ? less(run, keys[b], keys[a]) : less(run, keys[a], keys[b]);
    });
    std::vector<Value> sorted;
    sorted.reserve(all.size());
    for (const std::size_t i : order) sorted.push_back(all[i]);
    return make_list(run, std::move(sorted));
}

Value sort_filter(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
    std::vector<Value> all = all_of(run, input), keys;
    for (const Value& item : all)
        keys.push_back(sort_key(run,
                                given.find(2) != nullptr ? item_of(run, item, given.at(2)) : item,
                                given.truth(1, false)));
    return sorted_by(run, std::move(all), given.truth(0, false), keys);
}

Value sort_map(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
    const bool by_value = given.find(1) != nullptr && given.text(1) == "value";
    const Value pairs = items(run, input, {});
    std::vector<Value> all = pairs.list()->items, keys;
    for (const Value& pair : all)
        keys.push_back(sort_key(run, pair.list()->items[by_value ? 1 : 0], given.truth(0, false)));
    return sorted_by(run, std::move(all), given.truth(2, false), keys);
}

Value unique(Run& run, const Value& input, const Arguments&) {
    std::vector<Value> kept;
    for (const Value& item : all_of(run, input)) {
        const Value key = sort_key(run, item, false);
        const bool known = std::any_of(kept.begin(), kept.end(), [&](const Value& other) {
            return equal(run, sort_key(run, other, false), key);
        });
        if (!known) kept.push_back(item);
    }
    return make_list(run, std::move(kept));
}

Value map_filter(Run& run, const Value& input, const Arguments& arguments) {
    std::vector<Value> made;
    if (!arguments.named.empty()) {
        const Given given(run, "map", arguments, {"attribute", "default"}, 1);
        for (const Value& item : all_of(run, input)) {
            Value value = item_of(run, item, given.at(0));
            if (value.is_undefined() && given.find(1) != nullptr) value = given.at(1);
            made.push_back(std::move(value));
        }
        return make_list(run, std::move(made));
    }
    run.require(!arguments.values.empty() && arguments.values[0].is_text(),
                "map takes the name of a filter, or attribute=");
    const Arguments rest{{arguments.values.begin() + 1, arguments.values.end()}, {}};
    for (const Value& item : all_of(run, input))
        made.push_back(apply_filter(run, arguments.values[0].text(), item, rest));
    return make_list(run, std::move(made));
}

/// select, reject, selectattr, rejectattr: by a test, or by whether it counts as true.
template <bool by_attribute, bool wanted>
Value select(Run& run, const Value& input, const Arguments& arguments) {
    std::vector<Value> values = arguments.values;
    run.require(!by_attribute || !values.empty(), "selectattr and rejectattr take an attribute");
    Value attribute;
    if (by_attribute) {
        attribute = values.front();
        values.erase(values.begin());
    }
    const bool by_test = !values.empty();
    run.require(!by_test || values[0].is_text(), "a test is chosen by its name");
    const std::string test = by_test ? values[0].text() : "";
    if (by_test) values.erase(values.begin());
    const Arguments rest{values, {}};
    std::vector<Value> kept;
    for (const Value& item : all_of(run, input)) {
        const Value value = by_attribute ? item_of(run, item, attribute) : item;
        if ((by_test ? apply_test(run, test, value, rest) : truth(value)) == wanted)
            kept.push_back(item);
    }
    return make_list(run, std::move(kept));
}

Value indent(Run& run, const Value& input, const Arguments& arguments) {
    const Given given(run, "indent", arguments, {"width", "first", "blank"});
    const std::int64_t width = given.integer(0, 4);
    run.require(width >= 0 && width <= 64, "indent takes 0 to 64 blanks");
    const std::string blanks(static_cast<std::size_t>(width), ' '), text = to_text(run, input);
    std::string out = given.truth(1, false) ? blanks : "";
    for (std::size_t i = 0; i < text.size(); ++i) {
        out += text[i];
        const bool line_follows = text[i] == '\n' && i + 1 < text.size();
        if (line_follows && (text[i + 1] != '\n' || given.truth(2, false))) {
            run.spend(blanks.size());
            out += blanks;
        }
    }
    return out;
}

template <bool greatest>
Value extreme(Run& run, const Value& input, const Arguments&) {
    const std::vector<Value> all = all_of(run, input);
    if (all.empty()) return Value::undefined("element");
    const auto order = [&](const Value& a, const Value& b) {
        return less(run, sort_key(run, a, false), sort_key(run, b, false));
    };
    return greatest ? *std::max_element(all.begin(), all.end(), order)
                    : *std::min_element(all.begin(), all.end(), order);
}

constexpr NamedFilter filters[] = {
    {"trim", trim},
    {"tojson", json},
    {"length", length},
    {"count", length},
    {"default", default_value},
    {"d", default_value},
    {"upper", case_filter<true>},
    {"lower", case_filter<false>},
    {"capitalize", capital_filter<false>},
    {"title", capital_filter<true>},
    {"replace", replace_filter},
    {"first", end_element<false>},
    {"last", end_element<true>},
    {"join", join_filter},
    {"list", list_filter},
    {"string", text_filter},
    {"safe", same},
    {"int", integer_filter},
    {"float", number_filter},
    {"abs", absolute},
    {"round", round_filter},
    {"reverse", reversed},
    {"items", items},
    {"dictsort", sort_map},
    {"sort", sort_filter},
    {"unique", unique},
    {"map", map_filter},
    {"select", select<false, true>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<true, false>},
    {"indent", indent},
    {"max", extreme<true>},
    {"min", extreme<false>},
};

using Test = bool (*)(Run&, const Value&, const Arguments&);

struct NamedTest {
    std::string_view name;
    bool (*holds)(Run& run, const Value& value, const Value* other);
    bool takes_other = false;
};

bool is_whole(const Value& value) {
    return value.is_integer() && !value.is_bool();
}

constexpr NamedTest tests[] = {
    {"defined", [](Run&, const Value& v, const Value*) { return !v.is_undefined(); }},
    {"undefined", [](Run&, const Value& v, const Value*) { return v.is_undefined(); }},
    {"none", [](Run&, const Value& v, const Value*) { return v.is_none(); }},
    {"string", [](Run&, const Value& v, const Value*) { return v.is_text(); }},
    {"mapping", [](Run&, const Value& v, const Value*) { return v.map() != nullptr; }},
    {"sequence",
     [](Run&, const Value& v, const Value*) {
         return v.is_text() || v.list() != nullptr || v.map() != nullptr || v.is_undefined();
     }},
    {"iterable",
     [](Run&, const Value& v, const Value*) {
         return v.is_text() || v.list() != nullptr || v.map() != nullptr || v.is_undefined();
     }},
    {"number", [](Run&, const Value& v, const Value*) { return v.is_number(); }},
    {"integer", [](Run&, const Value& v, const Value*) { return is_whole(v); }},
    {"float", [](Run&, const Value& v, const Value*) { return v.is_number() && !v.is_integer(); }},
    {"boolean", [](Run&, const Value& v, const Value*) { return v.is_bool(); }},
    {"true", [](Run&, const Value& v, const Value*) { return v.is_bool() && truth(v); }},
    {"false", [](Run&, const Value& v, const Value*) { return v.is_bool() && !truth(v); }},
    {"callable", [](Run&, const Value& v, const Value*) { return v.function() != nullptr; }},
    {"odd",
     [](Run&, const Value& v, const Value*) { return v.is_integer() && v.integer() % 2 != 0; }},
    {"even",
     [](Run&, const Value& v, const Value*) { return v.is_integer() && v.integer() % 2 == 0; }},
    {"equalto", [](Run& r, const Value& v, const Value* o) { return equal(r, v, *o); }, true},
    {"eq", [](Run& r, const Value& v, const Value* o) { return equal(r, v, *o); }, true},
    {"==", [](Run& r, const Value& v, const Value* o) { return equal(r, v, *o); }, true},
    {"sameas", [](Run& r, const Value& v, const Value* o) { return equal(r, v, *o); }, true},
    {"ne", [](Run& r, const Value& v, const Value* o) { return !equal(r, v, *o); }, true},
    {"!=", [](Run& r, const Value& v, const Value* o) { return !equal(r, v, *o); }, true},
    {"lt", [](Run& r, const Value& v, const Value* o) { return less(r, v, *o); }, true},
    {"gt", [](Run& r, const Value& v, const Value* o) { return less(r, *o, v); }, true},
    {"le", [](Run& r, const Value& v, const Value* o) { return !less(r, *o, v); }, true},
    {"ge", [](Run& r, const Value& v, const Value* o) { return !less(r, v, *o); }, true},
    {"in", [](Run& r, const Value& v, const Value* o) { return contains(r, *o, v); }, true},
    {"divisibleby",
     [](Run& r, const Value& v, const Value* o) {
         r.require(v.is_integer() && o->is_integer() && o->integer() > 0,
                   "divisibleby takes a positive integer");
         return v.integer() % o->integer() == 0;
     },
     true},
    {"upper",
     [](Run& r, const Value& v, const Value*) {
         return v.is_text() && in_case(r, v.text(), true) == v.text() &&
                in_case(r, v.text(), false) != v.text();
     }},
    {"lower",
     [](Run& r, const Value& v, const Value*) {
         return v.is_text() && in_case(r, v.text(), false) == v.text() &&
                in_case(r, v.text(), true) != v.text();
     }},
};

}  // namespace

Value apply_filter(Run& run, const std::string& name, const Value& input,
                   const Arguments& arguments) {
    for (const NamedFilter& filter : filters) {
        if (filter.name != name) continue;
        run.spend(16);
        return filter.apply(run, input, arguments);
    }
    std::vector<std::string> known;
    for (const NamedFilter& filter : filters) known.emplace_back(filter.name);
    run.fail("the filter '", name, "' is not supported", did_you_mean(name, known));
}

bool apply_test(Run& run, const std::string& name, const Value& value, const Arguments& arguments) {
    for (const NamedTest& test : tests) {
        if (test.name != name) continue;
        run.spend(16);
        run.require(
            arguments.named.empty() && arguments.values.size() == (test.takes_other ? 1u : 0u),
            "the test '", name, "' takes ", test.takes_other ? "one" : "no", " argument");
        return test.holds(run, value, test.takes_other ? &arguments.values[0] : nullptr);
    }
    run.fail("the test '", name, "' is not supported");
}

}  // namespace dlprim::language::jinja

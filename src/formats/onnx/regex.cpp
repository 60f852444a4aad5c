// SPDX-License-Identifier: MIT
// Regex: a parser by descent that makes states, and their simulation; see regex.hpp.
#include "formats/onnx/regex.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

constexpr std::size_t most_states = 1 << 16;
constexpr int deepest = 64;
constexpr std::uint32_t largest_point = 0x10ffff;

/// The code points of UTF-8. A byte that is none stands for itself.
std::vector<std::uint32_t> points_of(std::string_view text) {
    std::vector<std::uint32_t> points;
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
        std::uint32_t point = length == 1 ? first : first & (0x7fu >> length);
        bool is_whole = i + length <= text.size();
        for (std::size_t k = 1; is_whole && k < length; ++k) {
            const auto byte = static_cast<unsigned char>(text[i + k]);
            is_whole = (byte & 0xc0) == 0x80;
            point = point << 6 | (byte & 0x3fu);
        }
        points.push_back(is_whole ? point : first);
        i += is_whole ? length : 1;
    }
    return points;
}

bool is_word(std::uint32_t point) {
    return point < 0x80 && (point == '_' || ascii::is_letter(static_cast<char>(point)) ||
                            ascii::is_digit(static_cast<char>(point)));
}

/// Whether a word begins or ends in front of the code point number `at`.
bool is_edge(const std::vector<std::uint32_t>& points, std::size_t at) {
    return (at > 0 && is_word(points[at - 1])) != (at < points.size() && is_word(points[at]));
}

}  // namespace

/// Parses into states. A fragment's states stand in a row; it begins at its first one, and goes on
/// behind its last one.
class RegexParser {
  public:
    using Set = Regex::Set;
    using State = Regex::State;
    using Kind = State::Kind;
    using States = std::vector<State>;

    explicit RegexParser(std::string_view pattern)
        : pattern_(pattern), points_(points_of(pattern)) {}

    States parse() {
        States all = alternatives(0);
        if (!done()) refuse("a parenthesis too many");
        all.push_back({Kind::match, {}, 0, 0});
        return all;
    }

  private:
    [[noreturn]] void refuse(std::string_view why) const {
        fail(ErrorKind::unsupported, "the pattern '", pattern_.substr(0, 80),
             "' is not supported: ", why);
    }
    bool done() const { return at_ == points_.size(); }
    bool sees(char c) const { return !done() && points_[at_] == static_cast<std::uint32_t>(c); }
    bool takes(char c) {
        if (!sees(c)) return false;
        ++at_;
        return true;
    }
    std::uint32_t take() {
        if (done()) refuse("it ends too early");
        return points_[at_++];
    }

    /// States are numbered from the fragment's beginning; those of `more` move behind `all`.
    void append(States& all, States more) const {
        if (all.size() + more.size() > most_states) refuse("it is too large");
        const std::size_t shift = all.size();
        for (State& state : more) {
            state.next += shift;
            state.other += shift;
            all.push_back(std::move(state));
        }
    }
    static State both(std::size_t next, std::size_t other) { return {Kind::both, {}, next, other}; }

    States alternatives(int depth) {
        if (depth > deepest) refuse("its groups nest too deep");
        States all = sequence(depth);
        while (takes('|')) {
            States other = sequence(depth), joined;
            const std::size_t end = 1 + all.size() + 1 + other.size();
            joined.push_back(both(1, 2 + all.size()));
            append(joined, std::move(all));
            joined.push_back({Kind::next, {}, end, 0});
            append(joined, std::move(other));
            all = std::move(joined);
        }
        return all;
    }

    States sequence(int depth) {
        States all;
        while (!done() && !sees('|') && !sees(')')) append(all, repeated(depth));
        return all;
    }

    States repeated(int depth) {
        States one = single(depth);
        while (!done()) {
            std::int64_t least = 0, most = -1;  // -1: any number
            if (takes('*')) {
            } else if (takes('+')) {
                least = 1;
            } else if (takes('?')) {
                most = 1;
            } else if (sees('{')) {
                ++at_;
                least = number();
                most = takes(',') ? (sees('}') ? -1 : number()) : least;
                if (!takes('}') || (most >= 0 && most < least)) refuse("a repetition is not right");
            } else {
                break;
            }
            takes('?');  // a lazy one matches the same whole texts
            one = times(one, least, most);
        }
        return one;
    }

    std::int64_t number() {
        std::int64_t value = 0;
        const std::size_t begin = at_;
        while (!done() && points_[at_] >= '0' && points_[at_] <= '9') {
            value = value * 10 + (points_[at_++] - '0');
            if (value > 1000) refuse("more than 1000 repetitions");
        }
        if (begin == at_) refuse("a repetition is not right");
        return value;
    }

    States times(const States& one, std::int64_t least, std::int64_t most) const {
        States all;
        for (std::int64_t i = 0; i < least; ++i) append(all, one);
        if (most < 0) {
            States loop{both(1, one.size() + 2)};
            append(loop, one);
            loop.push_back({Kind::next, {}, 0, 0});
            append(all, std::move(loop));
        }
        for (std::int64_t i = least; i < most; ++i) {
            States maybe{both(1, one.size() + 1)};
            append(maybe, one);
            append(all, std::move(maybe));
        }
        return all;
    }

    States single(int depth) {
        const std::uint32_t point = take();
        switch (point) {
            case '(': {
                if (takes('?') && !takes(':')) refuse("a group of this kind");
                States group = alternatives(depth + 1);
                if (!takes(')')) refuse("a parenthesis is missing");
                return group;
            }
            case '[':
                return {{Kind::set, bracket(), 1, 0}};
            case '.':
                return {{Kind::set, {{0, '\n' - 1}, {'\n' + 1, largest_point}}, 1, 0}};
            case '^':
                return {{Kind::begin, {}, 1, 0}};
            case '$':
                return {{Kind::end, {}, 1, 0}};
            case '\\':
                if (takes('b')) return {{Kind::edge, {}, 1, 0}};
                if (takes('B')) return {{Kind::no_edge, {}, 1, 0}};
                return {{Kind::set, escape(), 1, 0}};
            case '*':
            case '+':
            case '?':
                refuse("a repetition of nothing");
            default:
                return {{Kind::set, {{point, point}}, 1, 0}};
        }
    }

    static Set without(Set set) {
        std::sort(set.begin(), set.end());
        Set rest;
        std::uint32_t next = 0;
        for (const auto& [first, last] : set) {
            if (first > next) rest.emplace_back(next, first - 1);
            next = std::max(next, last + 1);
        }
        if (next <= largest_point) rest.emplace_back(next, largest_point);
        return rest;
    }

    /// What stands behind a backslash.
    Set escape() {
        const std::uint32_t point = take();
        Set digits{{'0', '9'}}, words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
            blanks{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        switch (point) {
            case 'd':
                return digits;
            case 'D':
                return without(digits);
            case 'w':
                return words;
            case 'W':
                return without(words);
            case 's':
                return blanks;
            case 'S':
                return without(blanks);
            case 'n':
                return {{'\n', '\n'}};
            case 't':
                return {{'\t', '\t'}};
            case 'r':
                return {{'\r', '\r'}};
            case 'f':
                return {{'\f', '\f'}};
            case 'v':
                return {{'\v', '\v'}};
            default:
                if (point < 0x80 && (ascii::is_letter(static_cast<char>(point)) ||
                                     ascii::is_digit(static_cast<char>(point))))
                    refuse("an escape that is not known");
                return {{point, point}};
        }
    }

    Set bracket() {
        const bool negated = takes('^');
        Set all;
        for (bool is_first = true; is_first || !sees(']'); is_first = false) {
            const std::uint32_t point = take();
            if (point == '[' && sees(':')) refuse("a named class");
            Set part = point == '\\' ? escape() : Set{{point, point}};
            const bool is_range = part.size() == 1 && part[0].first == part[0].second &&
                                  sees('-') && at_ + 1 < points_.size() && points_[at_ + 1] != ']';
            if (is_range) {
                ++at_;
                const std::uint32_t last = take();
                const Set end = last == '\\' ? escape() : Set{{last, last}};
                if (end.size() != 1 || end[0].first != end[0].second ||
                    end[0].first < part[0].first)
                    refuse("a range is not right");
                part[0].second = end[0].first;
            }
            all.insert(all.end(), part.begin(), part.end());
        }
        ++at_;
        return negated ? without(std::move(all)) : all;
    }

    std::string_view pattern_;
    std::vector<std::uint32_t> points_;
    std::size_t at_ = 0;
};

Regex::Regex(std::string_view pattern) : states_(RegexParser(pattern).parse()) {}

/// Adds the states that read or match, to which `state` leads without reading. `seen` holds, by
/// state, the last position at which it was reached, plus 1.
void Regex::follow(std::size_t state, std::size_t at, const std::vector<std::uint32_t>& points,
                   std::vector<std::size_t>& active, std::vector<std::size_t>& seen) const {
    std::vector<std::size_t> waiting{state};
    while (!waiting.empty()) {
        const std::size_t now = waiting.back();
        waiting.pop_back();
        if (seen[now] == at + 1) continue;
        seen[now] = at + 1;
        const State& one = states_[now];
        switch (one.kind) {
            case State::Kind::both:
                waiting.push_back(one.other);
                waiting.push_back(one.next);
                break;
            case State::Kind::begin:
                if (at == 0) waiting.push_back(one.next);
                break;
            case State::Kind::end:
                if (at == points.size()) waiting.push_back(one.next);
                break;
            case State::Kind::edge:
            case State::Kind::no_edge:
                if (is_edge(points, at) == (one.kind == State::Kind::edge))
                    waiting.push_back(one.next);
                break;
            case State::Kind::next:
                waiting.push_back(one.next);
                break;
            default:
                active.push_back(now);
        }
    }
}

bool Regex::matches(std::string_view text) const {
    const std::vector<std::uint32_t> points = points_of(text);
    std::vector<std::size_t> active, next, seen(states_.size(), 0);
    follow(0, 0, points, active, seen);
    for (std::size_t i = 0; i < points.size() && !active.empty(); ++i) {
        next.clear();
        for (const std::size_t state : active) {
            const State& one = states_[state];
            if (one.kind != State::Kind::set) continue;
            const auto has = [&](const auto& range) {
                return range.first <= points[i] && points[i] <= range.second;
            };
            if (std::any_of(one.set.begin(), one.set.end(), has))
                follow(one.next, i + 1, points, next, seen);
        }
        active.swap(next);
    }
    return std::any_of(active.begin(), active.end(), [&](std::size_t state) {
        return states_[state].kind == State::Kind::match;
    });
}

}  // namespace dlprim::onnx

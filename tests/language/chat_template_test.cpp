// SPDX-License-Identifier: MIT
// Templates of chats: what Python's jinja2 makes of them (golden_chats.py), and hostile ones.
#include "language/chat_template.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>

using namespace dlprim;
using namespace dlprim::testing;
using language::ChatTemplate;
using language::jinja::Limits;
using language::jinja::Template;

namespace {

/// 2026-11-29 15:04:05, a Sunday, as golden_chats.py has it.
std::tm golden_time() {
    std::tm now{};
    now.tm_year = 126;
    now.tm_mon = 10;
    now.tm_mday = 29;
    now.tm_hour = 15;
    now.tm_min = 4;
    now.tm_sec = 5;
    now.tm_yday = 332;
    return now;
}

std::string render(const std::string& text, const std::string& variables = "") {
    return ChatTemplate(text, "test", "<s>", "</s>").render({}, {true, variables}, golden_time());
}

std::string error_of(const std::string& text) {
    return message_of([&] { render(text); });
}

std::string repeated(const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
}

}  // namespace

TEST_CASE("Templates write what Python's jinja2 writes", "[chat_template]") {
    const char* const other = std::getenv("DLPRIM_GOLDEN_CHATS");
    std::ifstream file(other != nullptr ? other : DLPRIM_GOLDEN_CHATS, std::ios::binary);
    const auto golden = nlohmann::ordered_json::parse(file);
    for (const auto& one : golden["cases"]) {
        // A template of a file by its name, a snippet as it is.
        const auto name = one["template"].get<std::string>();
        const std::string source = golden["templates"].value(name, name);
        INFO(name << ", " << one["conversation"].get<std::string>());
        const auto& variables = golden["conversations"][one["conversation"].get<std::string>()];
        std::string text, error;
        try {
            text = render(source, variables.dump());
        } catch (const Error& thrown) {
            error = thrown.what();
        }
        INFO(error);
        CHECK(error.empty() == !one["text"].is_null());
        if (!one["text"].is_null()) CHECK(text == one["text"].get<std::string>());
    }
}

TEST_CASE("Messages are the variables of a template", "[chat_template]") {
    const ChatTemplate chat(
        "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ bos_token }}"
        "{{ eos_token }}{{ add_generation_prompt }}{{ extra }}",
        "test", "<s>", "</s>");
    CHECK(chat.render({{"user", "{{ 1 }}"}, {"x", ""}}, {false, R"({"extra": [1, "a"]})"},
                      golden_time()) == "user:{{ 1 }};x:;<s></s>False[1, 'a']");
    check_error(ErrorKind::format, {"variables of the chat template"}, [&] {
        chat.render({}, {true, "[1]"}, golden_time());
    });
}

TEST_CASE("Errors of a template name its file and line", "[chat_template]") {
    CHECK(error_of("a\n{% if x %}\nb") ==
          "the chat template of 'test', line 3: a tag endif is missing");
    CHECK(error_of("a\n\n{{ x.y }}").find("'test', line 3: 'x', which is undefined") !=
          std::string::npos);
    CHECK(error_of("{{ 1 | upercase }}").find("'upercase' is not supported") != std::string::npos);
    check_error(ErrorKind::invalid_argument, {"line 2, does not take this conversation: only two"},
                [] { render("\n{{ raise_exception('only two') }}"); });
    check_error(ErrorKind::format, {"'include' is not supported"},
                [] { render("{% include 'a' %}"); });
}

TEST_CASE("A hostile template ends with an error", "[chat_template]") {
    const std::string templates[] = {
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'aaaaaaaaaaaaaaaa' }}{% endfor "
        "%}{% endfor %}",
        "{% set ns = namespace(a='xxxxxxxx') %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a "
        "%}{% endfor %}",
        "{% set ns = namespace(a=[1]) %}{% for i in range(999) %}{% set ns.a = [ns.a] %}{% endfor "
        "%}",
        "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% "
        "endfor %}{{ ns.a }}",
        "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% "
        "endfor %}{{ ns.a | tojson }}",
        "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% "
        "endfor %}{{ ns.a == ns.a | list }}",
        "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}{% "
        "endfor %}",
        "{% set ns = namespace() %}{% set ns.a = ns %}",
        "{% set ns = namespace() %}{% set ns.a = [ns] %}",
        "{% for i in [1] %}{% set x = [loop] %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 'a' * 9223372036854775807 }}",
        "{{ '' * 9223372036854775807 }}{{ 'abc' | indent(width=999999999) }}",
        "{{ [1] | tojson(indent=999999999) }}",
        "{{ range(999999999999) }}",
        "{{ range(-9223372036854775807, 9223372036854775807) }}",
        "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 10 ** 400 }}",
        "{{ 1 // 0 }}",
        "{{ 1 % 0 }}",
        "{{ 99999999999999999999 }}",
        "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
        "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
        "{{ " + repeated("not ", 5000) + "1 }}",
        "{{ " + repeated("-", 5000) + "1 }}",
        "{{ a" + repeated(".b", 5000) + " }}",
        "{{ 1" + repeated(" + 1", 5000) + " }}",
        "{{ 1" + repeated(" | abs", 5000) + " }}",
        "{{ 1" + repeated(" if 1 else 1", 5000) + " }}",
        repeated("{% if true %}", 5000) + repeated("{% endif %}", 5000),
        repeated("{% for i in [1] %}", 5000) + repeated("{% endfor %}", 5000),
        std::string(std::size_t{2} << 20, 'a'),
        "{{ '\\ud800' }}",
        "{{ '\\xg0' }}",
        "{{ 'abc'.replace('', 'x') }}",
        "{{ 'abc'.split('') }}",
        "{{ [1, 'a'] | sort }}",
        "{{ [1, 2, 3][::0] }}",
        "{% set loop = 1 %}",
        "{% break %}",
        "{% raw %}",
        "{# ",
        "{{",
        "{%",
        "{{ 'a",
    };
    for (const std::string& text : templates) {
        INFO(text.substr(0, 200));
        const std::string error = error_of(text);
        INFO(error);
        CHECK(error.find("the chat template of 'test', line") == 0);
    }
    // What is taken is little, and ends.
    for (int end = 0; end < 60; ++end)
        message_of([&] {
            render(std::string("{% for m in messages %}{{ m['a'][1:-1] | trim }}{% endfor %}")
                       .substr(0, static_cast<std::size_t>(end)));
        });
    const Template writes("{% for i in range(100) %}{{ 'abcdefghij' }}{% endfor %}", "t");
    CHECK(writes.render({}, golden_time()).size() == 1000);
    check_error(ErrorKind::format, {"t, line 1", "more than 999 bytes"},
                [&] { writes.render({}, golden_time(), Limits{.output = 999}); });
    check_error(ErrorKind::format, {"takes too long"},
                [&] { writes.render({}, golden_time(), Limits{.units = 2000}); });
}

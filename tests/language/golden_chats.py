#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_chats.json for chat_template_test.cpp: what PyPI's `jinja2` makes of templates, set up as Hugging Face's
apply_chat_template() does: those in chat_templates, which are written in the ways of SmolLM2 (chatml), Llama 3
(headers), Qwen 3 (thinking), Mistral (instructions), Gemma (turns) and Phi 3 (roles), and snippets of the language.

Usage: golden_chats.py [FILE.jinja...] > golden_chats.json, with jinja2 installed. With files, these templates take the
place of those in chat_templates; the test reads the result where DLPRIM_GOLDEN_CHATS names it.
"""

import datetime
import json
import pathlib
import sys
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 11, 29, 15, 4, 5)
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": 'It\'s "the" <weather> & é', "parameters": {"n": [1, 2.5, None, True]}},
}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"n": 1}}}]}


def chat(*contents: str, system: str | None = None) -> list[dict[str, str]]:
    messages = [] if system is None else [{"role": "system", "content": system}]
    return messages + [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


TURNS = chat("Hi", "Hello!  ", "é世界 'q' \"d\"\n\nsecond ", "<think>\nhm\n</think>\n\nYes", "bye\u3000", system=" Be kind. ")
CONVERSATIONS: dict[str, dict[str, Any]] = {
    "one": {"messages": chat("Hello, how are you?")},
    "system": {"messages": chat(" What is 1+1?\n", system="  You are helpful. ")},
    "turns": {"messages": TURNS},
    "prefill": {"messages": chat("Hi", "<think>a</think>Hello"), "add_generation_prompt": False},
    "tools": {"messages": TURNS, "tools": [TOOL], "date_string": "today"},
    "called": {"messages": [*chat("weather?"), CALL, {"role": "tool", "content": "22"}]},
    "plain": {"messages": TURNS, "enable_thinking": False},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": " look "}, {"type": "image"}]}]},
    "wrong": {"messages": chat("a", "b")[1:]},
    "none": {"messages": []},
}
SNIPPETS = r"""
{{ [1, 2.5, "a'b", none, true, (1,), {'a': [1]}] }} {{ "a\n\t'\"\\" | list }}
{{ "héllo"[1:3] }}|{{ "héllo"[::-1] }}|{{ [1,2,3][-2:] }}|{{ [1,2,3][::-2] }}|{{ "abc"[5:] }}|{{ [1,2,3][:-1] }}
{% for i in range(5) if i % 2 == 0 %}{{ loop.index }}/{{ loop.length }}:{{ i }} {% else %}none{% endfor %}
{% for i in [] %}x{% else %}none{% endfor %}
{% set ns = namespace(a=1) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% set b = i %}{% endfor %}{{ ns.a }}{{ b is defined }}
{% macro f(a, b=2) %}[{{ a }}-{{ b }}]{% endmacro %}{{ f(1) }}{{ f(1, b=3) }}{{ f(b=5, a=4) }}{{ f() }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 1.0 }} {{ 1e-7 }} {{ 12345678901234568.0 }}
{{ "a,b,,c".split(",") }} {{ " a  b ".split() }} {{ "a b c d".split(" ", 2) }} {{ "a b c".split(none, 1) }}
{{ "x" if false }}|{{ "x" if true else "y" }}|{{ missing }}|{{ missing is defined }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ "a" in "abc" }} {{ "z" not in ["a"] }} {{ 1 == 1.0 }} {{ true == 1 }} {{ [1] == (1,) }}
{{ {"b": 1, "a": {"c": "é\n\"\\"}} | tojson }} {{ {"b": 1, "a": [1, {}], "e": []} | tojson(indent=2) }} {{ {"b":1,"a":2} | tojson(sort_keys=true) }}
{% raw %}{{ not }} {% endraw %}x
a {%- if true -%}   b   {%- endif -%}  c
{{ "  a " | trim }}|{{ "xxaxx".strip("x") }}|{{ "xxa".lstrip("x") }}|{{ "a\u3000" | trim }}|{{ "\u00a0a\x1c".strip() }}|
{{ [3,1,2] | sort }} {{ [3,1,2] | sort(reverse=true) | join(", ") }} {{ ["b","A","c"] | sort }} {{ {"b":1,"A":2} | dictsort }}
{{ [{"a":1},{"a":2},{"b":3}] | selectattr("a", "defined") | map(attribute="a") | list }} {{ [1,none,2] | reject("none") | list }} {{ ["a","b"] | map("upper") | join }}
{{ "abc" | length }} {{ "日本" | length }} {{ [] | length }} {{ {"a":1} | length }} {{ missing | length }}
{{ "Hello World" | lower }} {{ "hello world" | title }} {{ "hELLO" | capitalize }} {{ "a-b" | replace("-", "+") }}
{% set x %}captured {{ 1 + 1 }}{% endset %}[{{ x }}]{% filter upper %}abc{% endfilter %}
{% for k, v in {"a": 1, "b": 2}.items() %}{{ k }}={{ v }};{% endfor %}
{% for m in ["a","b","c"] %}{{ loop.previtem }}<{{ m }}>{{ loop.nextitem }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }} {% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{{ "a" ~ 1 ~ none ~ true ~ [1] }} {{ -3 | abs }} {{ 2 * 3 + 4 * -1 }} {{ not true or true and false }}
{{ "a\tb\x41\u00e9\101\q" }} {{ 'it\'s' }} {{ "a" "b" 'c' }}
{{ missing.y.z }}
{{ none.a }}|{{ "abc"[10] }}|{{ [1][5] }}|{{ {"a":1}["b"] }}|{{ {"a":1}.a }}|{{ {"items":1}.items is callable }}|{{ {"items":1}["items"] }}
{{ 1 + "a" }}
{{ "ab" * 3 }} {{ [1] + [2, 3] }} {{ (1, 2) }} {{ 1, 2 }} {{ () }} {{ [] }} {{ {} }}
{{ 10 is divisibleby 5 }} {{ 3 is odd }} {{ "a" is string }} {{ 1 is number and 1.0 is float }} {{ missing is none }} {{ 2 is in [1, 2] }} {{ 1 is eq 1 }}
{{ [1,2,3] | first }} {{ [1,2,3] | last }} {{ "abc" | first }} {{ [1,2] | max }} {{ [2,1] | min }} {{ [1,1,2] | unique | list }}
{{ "3.7" | int }} {{ "x" | int(5) }} {{ 3.9 | int }} {{ "2.5" | float }} {{ 3.14159 | round(2) }} {{ 2.5 | round }}
{{ {"a": 1}.get("z", "d") }} {{ {"a": 1}.get("z") }} {{ {"a":1}.keys() | list }} {{ {"a":1}.values() | list }} {{ dict(a=1).a }}
{{ "a\nb\n\nc" | indent(2) }} {{ "a\nb" | indent(2, first=true) }}
{{ "<a>" | safe }} {{ ["x", "y"] | string }} {{ "abc".find("c") }} {{ "abcabc".count("b") }} {{ ",".join(["a","b"]) }} {{ "a.b".startswith(("x", "a")) }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{{ strftime_now("%d %b %Y %H:%M:%S %A %B %j %y %I %p %a %%") }}
{{ range(3) | list }} {{ range(1, 10, 3) | list }} {{ range(5, 0, -2) | list }}
{{ "a" | default("b") }} {{ u | default("b") }} {{ "" | default("b", true) }} {{ u | d }}
{% for i in [1,2] %}{% for j in [3,4] %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{{ loop.index }} {% endfor %}
{{ {} is mapping }} {{ [] is iterable }} {{ "s" is sequence }} {{ 1 is sequence }} {{ "x y" is lower }} {{ "A" is upper }}
{{ {'a':{'b':{'c':1}}}.a.b.c }} {{ {'a':{'b':1}} }} {{ true and "x" or "y" }} {{ none or 0 or "" }}| {{ [] and 1 }}
{% generation %}x{% endgeneration %}
{{ raise_exception("no") }}
{{ foo( }}
{% if %}
{% for x in y %}
{{ "unterminated }}
{{ [1,2 }}
{% endif %}
{{ 1 | nofilter }}
{% include "x" %}
""".strip("\n").split("\n")
LINES = [
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "{% for i in [1,2] %}\n  {{ i }}\n{% endfor %}\n\nend\n\n",
    "  {#- c #}\n  {%+ if true %}\nx\n  {%- endif +%}\ny",
    "{{ 1 }}\n{{ 2 }}\r\n{{ 3 }}\n",
    "a\r\nb{% set x = 1 %}\r\n c",
    "{% raw -%}\n  {{ a }}\n{%- endraw %}\n z",
    "x\n\t {# several\n lines #}\n y {# a #} z",
    "{{- 'a' }} {{ 'b' -}}   c",
]


class Generation(Extension):
    """{% generation %}, which Hugging Face marks the assistant's text by."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Any) -> Any:
        return caller()


def refuse(message: str) -> None:
    raise jinja2.exceptions.TemplateError(message)


def to_json(value: Any, indent: int | None = None, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys)


def main() -> None:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": NOW.strftime}

    def render(text: str, variables: dict[str, Any]) -> str | None:
        try:
            return environment.from_string(text).render(**variables)
        except (jinja2.exceptions.TemplateError, TypeError):
            return None

    paths = [pathlib.Path(name) for name in sys.argv[1:]]
    paths = paths or sorted((pathlib.Path(__file__).parent / "chat_templates").glob("*.jinja"))
    always = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    conversations = {name: always | variables for name, variables in CONVERSATIONS.items()}
    cases = []
    for path in paths:
        text = path.read_bytes().decode()
        for name, variables in conversations.items():
            cases.append({"name": f"{path.name}, {name}", "template": text, "conversation": name, "text": render(text, variables)})
    for text in SNIPPETS + LINES:
        cases.append({"name": text, "template": text, "conversation": "one", "text": render(text, conversations["one"])})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    print(f'{{"conversations": {json.dumps(conversations, ensure_ascii=False)},\n"cases": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()

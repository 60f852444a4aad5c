#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_chats.json for chat_template_test.cpp: what PyPI's `jinja2` makes of templates, set up as by Hugging
Face's apply_chat_template(): those in chat_templates, which are written in the ways of SmolLM2 (chatml), Llama 3
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
    "function": {
        "name": "weather",
        "description": 'It\'s "the" <weather> & é',
        "parameters": {"n": [1, 2.5, None, True]},
    },
}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "weather", "arguments": {"n": 1}}}]}


def chat(*contents: str, system: str | None = None) -> list[dict[str, str]]:
    messages = [] if system is None else [{"role": "system", "content": system}]
    return messages + [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)]


TURNS = chat(
    "Hi", "Hello!  ", "é世界 'q' \"d\"\n\nsecond ", "<think>\nhm\n</think>\n\nYes", "bye\u3000", system=" Be kind. "
)
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
FOLDER = pathlib.Path(__file__).parent / "chat_templates"
SNIPPETS = (FOLDER / "snippets.txt").read_text(encoding="utf-8").splitlines()
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


def to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, sort_keys=sort_keys)


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
    paths = paths or sorted(FOLDER.glob("*.jinja"))
    always = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"}
    conversations = {name: always | variables for name, variables in CONVERSATIONS.items()}
    templates = {path.name: path.read_bytes().decode() for path in paths}
    cases = [
        {"template": template, "conversation": conversation, "text": render(text, variables)}
        for template, text in templates.items()
        for conversation, variables in conversations.items()
    ]
    one = conversations["one"]
    cases += [{"template": text, "conversation": "one", "text": render(text, one)} for text in SNIPPETS + LINES]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    parts = ",\n".join(
        f'"{name}": {json.dumps(part, ensure_ascii=False)}'
        for name, part in (("templates", templates), ("conversations", conversations))
    )
    print(f'{{{parts},\n"cases": [\n{lines}\n]}}')


if __name__ == "__main__":
    main()

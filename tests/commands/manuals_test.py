#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every option of every command is in its manual page and in the completions of bash, zsh and fish, which are made from the
command's own table; man, groff and the shells accept them, and bash completes. What is not installed is left out and named.

    manuals_test.py FOLDER COMMAND...       FOLDER holds man, bash, zsh and fish; COMMANDs are programs
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import unittest

FOLDER, COMMANDS = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
ENDINGS = {"man": "man/{}.1", "bash": "bash/{}", "zsh": "zsh/_{}", "fish": "fish/{}.fish"}


def table(command):
    done = subprocess.run([command, "--help-json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def read(kind, command):
    return (FOLDER / ENDINGS[kind].format(command.name)).read_text()


def run(*arguments, text=None):
    return subprocess.run(arguments, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


def completions(command, line):
    """What bash offers behind a command line, whose last word is the one to be completed."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in [command.name, *words])
    script = f"""
        . {FOLDER}/bash/{command.name}
        compopt() {{ COMPREPLY=(FILES); }}
        COMP_WORDS=({quoted}) COMP_CWORD={len(words)}
        $(complete -p {command.name} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = run("bash", "-euc", script)
    assert done.returncode == 0, done.stdout
    return done.stdout.split()


def names_of(command):
    return [name for option in table(command)["options"] for name in option["names"]]


class Manuals(unittest.TestCase):
    longMessage = True

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"there is no {program} here")

    def test_the_table_has_what_help_shows(self):
        """The table comes from CLI11, and so does --help: neither may know more than the other."""
        for command in COMMANDS:
            with self.subTest(command.name):
                shown = re.findall(r"^  (-\S+)", run(str(command), "--help").stdout, re.MULTILINE)
                self.assertGreater(len(shown), 2)
                self.assertEqual({name for names in shown for name in names.split(",")}, set(names_of(command)))

    def test_every_option_is_in_the_page_and_the_completions(self):
        for command in COMMANDS:
            page = read("man", command).replace("\\-", "-")
            fish = read("fish", command)
            for option in table(command)["options"]:
                for name in option["names"]:
                    with self.subTest(f"{command.name} {name}"):
                        self.assertIn(f"\\fB{name}\\fR", page)
                        self.assertIn(name, completions(command, name))
                        self.assertRegex(read("zsh", command), rf"[)*]{name}[+=]?\[")
                        self.assertRegex(fish, rf" -l {name[2:]} " if name[1] == "-" else rf" -s {name[1:]} ")
                if "argument" in option:
                    self.assertIn(f"\\fI{option['argument']}\\fR", page)

    def test_groff_and_man_find_nothing_to_complain_about(self):
        self.need("groff")
        for command in COMMANDS:
            with self.subTest(command.name):
                page = FOLDER / ENDINGS["man"].format(command.name)
                done = run("groff", "-ww", "-man", "-Tutf8", "-z", str(page))
                self.assertEqual((done.returncode, done.stdout), (0, ""))
                if shutil.which("man"):
                    done = run("man", "--warnings", "-l", str(page))
                    self.assertEqual(done.returncode, 0, done.stdout)
                    self.assertNotIn("warning", done.stdout.split("NAME")[0])
                    self.assertIn(command.name, done.stdout)
                if shutil.which("lexgrog"):
                    self.assertRegex(run("lexgrog", str(page)).stdout, rf'"{command.name} - \w')

    def test_bash_completes(self):
        for command in COMMANDS:
            with self.subTest(command.name):
                names = names_of(command)
                self.assertEqual(sorted(completions(command, "-")), sorted(names))
                self.assertEqual(completions(command, "--vers"), ["--version"])
                for option in table(command)["options"]:
                    for name in option["names"]:
                        words = {"DEVICE": ["cpu", "gpu", "opencl"], "PRECISION": ["fp32", "tf32", "fp16", "bf16"],
                                 "TEXT": ["FILES"], "INT": []}.get(option["type"])
                        if option["type"] and words is not None:
                            self.assertEqual(completions(command, f"{name} "), words, name)
                            self.assertEqual(completions(command, f"{name} = "), words, name)
        benchmark = [command for command in COMMANDS if command.name == "dlprim_benchmark"][0]
        self.assertEqual(completions(benchmark, "c"), ["cpu"])
        self.assertEqual(completions(benchmark, "-t -B 8 o"), ["opencl"])
        self.assertEqual(completions(benchmark, "cpu ne"), ["FILES"])

    def test_the_tab_key_completes(self):
        """As a person does: bash on a terminal, a word that is unique, and Tab. The command runs with the whole word."""
        train = [command for command in COMMANDS if command.name == "dlprim_train"][0]
        child, terminal = pty.fork()
        if child == 0:
            environment = os.environ | {"PATH": f"{train.parent}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "$ "}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        os.write(terminal, f". {FOLDER}/bash/dlprim_train\ndlprim_train --vers\t\n".encode())
        shown, end = "", time.monotonic() + 50
        while "(commit" not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096).decode("utf-8", "replace")
        os.close(terminal)  # which ends bash
        os.waitpid(child, 0)
        self.assertIn("--version", shown)
        self.assertRegex(shown, r"dlprim [0-9.]+ \(commit")

    def test_zsh_and_fish_read_their_files(self):
        for shell in ("zsh", "fish"):
            if shutil.which(shell) is None:
                print(f"left out: there is no {shell} here")
                continue
            for command in COMMANDS:
                with self.subTest(f"{shell} {command.name}"):
                    done = run(shell, "-n", str(FOLDER / ENDINGS[shell].format(command.name)))
                    self.assertEqual((done.returncode, done.stdout), (0, ""))
                    if shell == "fish":
                        line = f"source {FOLDER}/fish/{command.name}.fish; complete -C '{command.name} --vers'"
                        self.assertRegex(run("fish", "-c", line).stdout, "^--version\t")

    def test_names_are_refused_that_are_not_the_commands(self):
        make = pathlib.Path(__file__).resolve().parents[2] / "tools/manuals/make.py"
        done = run(sys.executable, "-B", str(make), str(COMMANDS[0]), "other", str(FOLDER / "nowhere"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("not 'other'", done.stdout)


assert COMMANDS
unittest.main(argv=sys.argv[:1], verbosity=2)

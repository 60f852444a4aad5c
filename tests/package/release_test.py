#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the source archive of a commit is not the same twice, lacks a file, holds another or does not know its commit, or
when scripts/release.sh makes a release of a tree with changes or of a commit that the version's tag does not name. It works in a
repository of its own.

    release_test.py
"""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHO = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{role}_{what}": text for role in ("AUTHOR", "COMMITTER") for what, text in (("NAME", "A"), ("EMAIL", "a@b.example"))}


def run(*command, folder, fails=False):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, env={**os.environ, **WHO})
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def small_repository(folder):
    """A repository with the scripts, the version and something to leave out."""
    for name in ("scripts/release.sh", "scripts/source_archive.sh", "include/dlprim/version.hpp", ".gitattributes",
                 "cmake/archive_commit.txt", "cmake/write_commit_script.cmake"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / ".ci").mkdir()
    (folder / ".ci/run").write_text("left out\n")
    run("git", "init", "-q", "-b", "main", folder=folder)
    run("git", "add", "-A", folder=folder)
    run("git", "commit", "-qm", "One", folder=folder)


def built_commit(source):
    """The source of C++ that a build would have of the commit."""
    output = source / "commit.cpp"
    run("cmake", f"-DROOT={source}", f"-DOUTPUT={output}", "-P", source / "cmake/write_commit_script.cmake", folder=source)
    return output.read_text()


def refuses(folder, says):
    printed = run("bash", "scripts/release.sh", "--no-test", folder=folder, fails=True)
    assert says in printed and len(printed.splitlines()) == 1, printed
    assert not (folder / "build-release").exists(), "a refused release has left a folder behind"


def main():
    version = (ROOT / "include/dlprim/version.hpp").read_text().split('DLPRIM_VERSION "')[1].split('"')[0]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "tree"
        folder.mkdir()
        small_repository(folder)

        archives = [pathlib.Path(temporary) / name for name in ("one.tar.gz", "two.tar.gz")]
        for archive in archives:
            run("bash", "scripts/source_archive.sh", "HEAD", archive, folder=folder)
            time.sleep(1.1)  # a time of day in it would differ
            (folder / "scripts/release.sh").touch()
        assert archives[0].read_bytes() == archives[1].read_bytes(), "the source archive is not the same twice"
        with tarfile.open(archives[0]) as tar:
            names = {one.name for one in tar if one.isfile()}
        tracked = run("git", "ls-files", folder=folder).split()
        assert names == {f"dlprim-{version}/{name}" for name in tracked if not name.startswith(".ci/")}, names

        with tarfile.open(archives[0]) as tar:
            tar.extractall(temporary)
        unpacked = pathlib.Path(temporary) / f"dlprim-{version}"
        commit = run("git", "rev-parse", "HEAD", folder=folder)[:10]
        assert f'"{commit}"' in built_commit(unpacked), "a build of the source archive does not know its commit"
        (unpacked / "cmake/archive_commit.txt").write_bytes((ROOT / "cmake/archive_commit.txt").read_bytes())
        assert '"unknown"' in built_commit(unpacked), "a commit is known without git and without an archive's"

        refuses(folder, f"there is no tag v{version}")
        run("git", "tag", f"v{version}", folder=folder)
        (folder / "new.txt").write_text("new\n")
        refuses(folder, "The tree has changes")
        run("git", "add", "-A", folder=folder)
        run("git", "commit", "-qm", "Two", folder=folder)
        refuses(folder, f"The tag v{version} names another commit")
        assert "usage:" in run("bash", "scripts/release.sh", "--fast", folder=folder, fails=True)


main()
sys.exit(0)

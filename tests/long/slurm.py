#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train by a real Slurm of one machine: srun by each transport, and a job that is requeued when a process dies.

It starts munged, slurmctld and slurmd of its own, with files in a temporary folder, and ends them again. It needs root
and the packages slurmctld, slurmd, slurm-client and munge. DLPRIM_TOOLS is the folder of dlprim_train. The exit code is
0 if all runs end in the bits of one process.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from training import TRAIN, Start, bits, starters, write_training

WAIT = 120.0
CONFIGURATION = """ClusterName=faults
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
JobRequeue=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES OverSubscribe=FORCE:4 MaxTime=INFINITE State=UP
"""
BATCH = """#!/bin/bash
srun {options} -n $SLURM_NTASKS {command}
code=$?
echo "attempt ${{SLURM_RESTART_COUNT:-0}}: srun has ended with $code"
if [ $code = 75 ] || [ $code = 137 ]; then scontrol requeue $SLURM_JOB_ID; fi
exit $code
"""


class Cluster:
    """A Slurm of this machine alone; ends with the `with` block."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}

    def begin(self, *command: str) -> None:
        """Starts a daemon in the foreground."""
        log = open(self.folder / f"{pathlib.Path(command[0]).name}.out", "wb")
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                             stderr=log, start_new_session=True))

    def __enter__(self) -> Cluster:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname(), folder=self.folder, controller=starters.free_port(),
            daemon=starters.free_port()))
        self.begin("/usr/sbin/munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                   f"--key-file={key}", f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munge.seed",
                   f"--log-file={self.folder}/munged.log")
        time.sleep(1)
        self.begin("/usr/sbin/slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        time.sleep(2)
        self.begin("/usr/sbin/slurmd", "-D", "-f", str(self.folder / "slurm.conf"))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if "idle" in self.call("sinfo", "-h", "-o", "%T").stdout:
                return self
            time.sleep(0.5)
        self.__exit__()
        logs = "".join(path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.log"))
        raise RuntimeError(f"Slurm does not start: {logs}")

    def __exit__(self, *_: object) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def call(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a command of Slurm."""
        return subprocess.run(command, env=self.environment | more, capture_output=True, text=True, timeout=WAIT,
                              stdin=subprocess.DEVNULL)


def variables(mark: str) -> dict[str, str]:
    """Of all processes of a run."""
    return {"DLPRIM_THREADS": "1", "DLPRIM_AFFINITY": "0", "FAULTS_MARK": mark, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(starters.free_port()), "OMPI_MCA_btl_base_warn_component_unused": "0"}


def step(cluster: Cluster, kind: str, count: int, config: pathlib.Path, whole: str) -> bool:
    """One srun; whether it ends in the bits `whole`."""
    out = config.parent / f"srun-{kind}"
    begin = time.monotonic()
    done = cluster.call("srun", f"--mpi={kind}", "-n", str(count), "--overcommit", TRAIN, str(config), "-d", "cpu",
                        "--out", str(out), "--replace", **variables(kind))
    seconds = time.monotonic() - begin
    how = re.search(r"\d+ processes exchange their sums by .*", done.stdout)
    good = done.returncode == 0 and how is not None and bits(out) == whole
    print(f"srun --mpi={kind} -n {count}: code {done.returncode}, {seconds:.1f} s, {how.group(0) if how else 'no'}: "
          f"{'the bits of one process' if good else 'WRONG ' + done.stdout[-1500:] + done.stderr[-1500:]}", flush=True)
    return good


def requeued(cluster: Cluster, kind: str, config: pathlib.Path, whole: str) -> bool:
    """A batch job one of whose processes is killed: whether it begins again by itself, and ends in the bits `whole`."""
    folder = config.parent
    out, log, mark = folder / f"batch-{kind}", folder / f"batch-{kind}.log", f"batch{kind}{os.getpid()}"
    script = folder / f"batch-{kind}.sh"
    script.write_text(BATCH.format(options=f"--mpi={kind} --overcommit",
                                   command=f"{TRAIN} {config} -d cpu --out {out} --resume latest"))
    done = cluster.call("sbatch", "--parsable", "--requeue", "-n", "2", "--overcommit", "--open-mode=append",
                        f"--output={log}", str(script), **variables(mark))
    job = done.stdout.strip()
    finder = Start.__new__(Start)
    finder.mark = mark
    end = time.monotonic() + WAIT
    while time.monotonic() < end and not list(out.glob("checkpoint_*.h5")):
        time.sleep(0.05)
    ranks = finder.ranks()
    if 1 not in ranks:
        print(f"sbatch, --mpi={kind}: WRONG: the job does not run: {done.stderr} {ranks}")
        return False
    os.kill(ranks[1], signal.SIGKILL)
    began, released = time.monotonic(), False
    while time.monotonic() - began < WAIT:
        told = cluster.call("scontrol", "show", "job", job).stdout
        state = re.search(r"JobState=(\S+)", told)
        restarts = re.search(r"Restarts=(\d+)", told)
        if restarts and restarts.group(1) == "1" and state and state.group(1) == "PENDING" and not released:
            # Slurm waits for two minutes before it begins a job again.
            print(*re.findall(r"Reason=\S+|EligibleTime=\S+|StartTime=\S+", told), time.strftime("now %T"))
            released = cluster.call("scontrol", "update", f"JobId={job}", "StartTime=now").returncode == 0
        if state and state.group(1) in ("COMPLETED", "FAILED", "CANCELLED"):
            break
        time.sleep(0.3)
    text = log.read_text() if log.exists() else ""
    good = state is not None and state.group(1) == "COMPLETED" and (out / "model.h5").exists() and bits(out) == whole
    good = good and restarts is not None and restarts.group(1) == "1" and "ended without a word in step" in text
    told_lines = [line for line in text.splitlines() if re.search("dlprim_train: |srun|attempt|resum", line)]
    how = "the bits of one process" if good else f"WRONG {told}"
    print(f"sbatch, --mpi={kind}, rank 1 killed: {time.monotonic() - began:.1f} s to the end; {how}; its log says:",
          *told_lines, sep="\n    ", flush=True)
    return good and not finder.found()


def main() -> int:
    """Runs all."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "srun")):
        print("skipped: it needs root, and slurmctld, slurmd, slurm-client and munge")
        return 77
    with tempfile.TemporaryDirectory(prefix="dlprim-slurm-") as name:
        folder = pathlib.Path(name)
        config = write_training(folder / "train", 30)
        alone = Start("one", 1, [str(config), "-d", "cpu", "--out", str(folder / "train/one")])
        alone.ended(WAIT)
        alone.forget()
        whole = bits(folder / "train/one")
        (folder / "cluster").mkdir()
        with Cluster(folder / "cluster") as cluster:
            print(cluster.call("srun", "-V").stdout.strip(), cluster.call("srun", "--mpi=list").stdout, flush=True)
            good = [step(cluster, kind, count, config, whole)
                    for kind, count in (("none", 2), ("pmix", 2), ("pmi2", 2), ("pmix", 4))]
            good += [requeued(cluster, kind, config, whole) for kind in ("none", "pmix")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: MIT
"""GPT-2 with 4 layers learns a text in bfloat16 autocast with AdamW, on the device and on the CPU.

    PYTHONPATH=build/torch/python python torch/tests/check_gpt2.py [--steps 200] [TEXT...]

The text is the repository's documents by default, byte for byte. The mean loss of the last tenth of the steps must be
within 2 % of the CPU's; weights, batches and their order are the same.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import torch
from networks import torchvision_models


def train(device: str, text: torch.Tensor, steps: int) -> list[float]:
    """The losses of the steps."""
    torchvision_models()  # transformers imports torchvision, which may need help
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=256,
        n_positions=64,
        n_embd=128,
        n_layer=4,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.GPT2LMHeadModel(config).to(device).train()
    # At 1e-3, without a warm-up, the loss jumps up and down by itself, and rounding decides when.
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    starts = torch.randint(0, len(text) - 64, (steps, 8))
    losses = []
    for at in starts:
        words = torch.stack([text[i : i + 64] for i in at.tolist()]).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = model(words, labels=words).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def main() -> int:
    """Trains on both and compares."""
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="*", type=pathlib.Path, default=sorted((root / "docs").glob("*.md")))
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    text = torch.tensor(list(b"".join(path.read_bytes() for path in arguments.text)))
    last = max(1, arguments.steps // 10)
    means = {}
    for device in ("cpu", "ocl"):
        start = time.time()
        losses = train(device, text, arguments.steps)
        means[device] = sum(losses[-last:]) / last
        print(
            f"{device}: {losses[0]:.3f} at first, {means[device]:.4f} at the end, {time.time() - start:.0f} s",
            flush=True,
        )
    difference = means["ocl"] / means["cpu"] - 1
    print(f"{100 * difference:+.2f} %; fallbacks: {torch.ocl.fallbacks() or 'none'}")
    return 0 if abs(difference) < 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())

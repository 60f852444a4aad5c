# SPDX-License-Identifier: MIT
"""A training step of whole networks on the device, against float64 on the CPU.

    PYTHONPATH=build/torch/python python torch/tests/check_networks.py [--results FILE.jsonl] [NAME...]
    python torch/tests/check_networks.py --results FILE.jsonl --page docs/torch.md

Loss and every gradient are compared: the largest difference over the largest magnitude of the exact tensor, beside
that of PyTorch's own float32. A network passes plainly within 1e-4 or twice PyTorch's error; a fallback to the CPU is
an error. Names are those of torchvision's classification networks (all of them by default) and of OTHERS below. Dropout
and stochastic depth are left out. The cheapest networks come first.

A network is a line of FILE.jsonl, and one that FILE has is not run again; --retry runs those that did not pass. With
--page the page's table of networks is made anew from FILE, and nothing is run.

A network that does not pass plainly may pass matched: float64 evaluates it with the decisions of ReLU and max pooling
that the device took, and each that float64 would have taken otherwise must be marginal (decisions.py says why and how).
The table counts those.

--judge puts another computation of PyTorch's on the CPU in the place of the device, which shows what is chance.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import json
import pathlib
import re
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from decisions import Recorder, Replay
from networks import errors
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

Made = tuple[nn.Module, list[torch.Tensor], Callable[[nn.Module, list[torch.Tensor]], torch.Tensor]]

BATCH = 4
# Networks whose images have a size of their own.
SIZES = {"maxvit_t": 224, "vit_b_16": 224, "vit_b_32": 224, "vit_l_16": 224, "vit_l_32": 224, "vit_h_14": 224}


def images(name: str, classes: int = 1000) -> Made:
    """A network of torchvision's classification models."""
    import torchvision_net

    size = SIZES.get(name, 128)
    state = torch.get_rng_state()
    model = torchvision_net.make_model(name)  # which has a seed of its own
    torch.set_rng_state(state)
    labels = torch.randint(0, classes, (BATCH,))
    return (
        model,
        [torch.randn(BATCH, 3, size, size), labels],
        lambda model, x: nn.functional.cross_entropy(first(model(x[0])), x[1]),
    )


def first(result: object) -> torch.Tensor:
    """The main logits of networks that return more."""
    found = getattr(result, "logits", result)
    assert isinstance(found, torch.Tensor)
    return found


def segmentation(name: str) -> Made:
    """fcn_resnet50 and deeplabv3_resnet50."""
    import torchvision_net

    make = getattr(torchvision_net.torchvision.models.segmentation, name)
    model = make(weights=None, weights_backbone=None, num_classes=5)
    labels = torch.randint(0, 5, (BATCH, 96, 96))
    return (
        model,
        [torch.randn(BATCH, 3, 96, 96), labels],
        lambda model, x: nn.functional.cross_entropy(model(x[0])["out"], x[1]),
    )


def language(kind: str) -> Made:
    """BERT, GPT-2 and T5 of transformers, small, with random weights."""
    import torchvision_net  # first: transformers imports torchvision, which may need what this declares  # noqa: F401
    import transformers as t

    words = torch.randint(0, 500, (BATCH, 32))
    if kind == "bert":
        config = t.BertConfig(
            vocab_size=500, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        return t.BertForMaskedLM(config), [words], lambda model, x: model(input_ids=x[0], labels=x[0]).loss
    if kind == "t5":
        config = t.T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0)
        config.decoder_start_token_id = 0
        return (
            t.T5ForConditionalGeneration(config),
            [words],
            lambda model, x: model(input_ids=x[0], labels=x[0]).loss,
        )
    if kind == "llama":
        config = t.LlamaConfig(
            vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
        )
        return t.LlamaForCausalLM(config), [words], lambda model, x: model(input_ids=x[0], labels=x[0]).loss
    config = t.GPT2Config(
        vocab_size=500, n_embd=64, n_layer=3, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False
    )
    return t.GPT2LMHeadModel(config), [words], lambda model, x: model(x[0], labels=x[0]).loss


def transformer(_: str) -> Made:
    """PyTorch's own encoder and decoder."""
    model = nn.Transformer(32, 4, 2, 2, 64, dropout=0.0, batch_first=True)
    return (
        model,
        [torch.randn(BATCH, 10, 32), torch.randn(BATCH, 7, 32), torch.randn(BATCH, 7, 32)],
        lambda model, x: nn.functional.mse_loss(model(x[0], x[1]), x[2]),
    )


def recurrent(kind: str) -> Made:
    """Two layers of LSTM or GRU."""
    model = (nn.LSTM if kind == "lstm" else nn.GRU)(16, 32, 2, batch_first=True)
    return model, [torch.randn(BATCH, 12, 16)], lambda model, x: model(x[0])[0].square().mean()


class Autoencoder(nn.Module):
    """A variational autoencoder (Kingma and Welling, 2014) with its noise given."""

    def __init__(self) -> None:
        """Makes its layers."""
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """The loss."""
        mean, log_variance = self.encoder(x).chunk(2, 1)
        made = self.decoder(mean + noise * torch.exp(0.5 * log_variance))
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        return nn.functional.binary_cross_entropy(made, x.clamp(0, 1), reduction="sum") + divergence


def autoencoder(_: str) -> Made:
    """The VAE on random pictures."""
    return Autoencoder(), [torch.rand(BATCH, 64), torch.randn(BATCH, 8)], lambda model, x: model(x[0], x[1])


class Adversaries(nn.Module):
    """A small DCGAN (Radford et al., 2016): the discriminator's loss on made and on given images."""

    def __init__(self) -> None:
        """Makes both networks."""
        super().__init__()
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(8, 16, 4, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 3, 4, 2, 1),
            nn.Tanh(),
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4), nn.Flatten()
        )

    def forward(self, noise: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
        """The loss."""
        loss = nn.functional.binary_cross_entropy_with_logits
        made, true = self.discriminator(self.generator(noise)), self.discriminator(given)
        return loss(made, torch.zeros_like(made)) + loss(true, torch.ones_like(true))


def adversaries(_: str) -> Made:
    """The GAN on random pictures."""
    return (
        Adversaries(),
        [torch.randn(BATCH, 8, 1, 1), torch.randn(BATCH, 3, 8, 8)],
        lambda model, x: model(x[0], x[1]),
    )


OTHERS: dict[str, Callable[[str], Made]] = {
    "fcn_resnet50": segmentation,
    "deeplabv3_resnet50": segmentation,
    "transformer": transformer,
    "bert": language,
    "gpt2": language,
    "t5": language,
    "llama": language,
    "lstm": recurrent,
    "gru": recurrent,
    "vae": autoencoder,
    "gan": adversaries,
}


def without_chance(model: nn.Module) -> nn.Module:
    """In training mode, but without dropout and stochastic depth."""
    model.train()
    for module in model.modules():
        if "drop" in type(module).__name__.lower() or type(module).__name__ == "StochasticDepth":
            module.p = 0.0  # type: ignore[assignment]
            module.eval()
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def in_file(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU in a file without a name, which needs no memory where that is short."""
    if tensor.numel() == 0:
        return tensor.cpu()
    with tempfile.NamedTemporaryFile() as file:
        mapped = torch.from_file(file.name, shared=True, size=tensor.numel(), dtype=tensor.dtype)
    return mapped.view(tensor.shape).copy_(tensor)


def kept_in_files(model: nn.Module) -> contextlib.AbstractContextManager[object]:
    """While a forward runs, what its backward reads goes to files, where the model has so many parameters that both of
    them do not fit into memory in float64."""
    if sum(parameter.numel() for parameter in model.parameters()) < 4 * 10**8:
        return contextlib.nullcontext()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        stays = tensor.numel() < 2**16 or tensor.untyped_storage().data_ptr() in own
        return tensor if stays else in_file(tensor)

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)


def step(made: Made, device: str, dtype: torch.dtype, mode: TorchFunctionMode | None = None) -> dict[str, torch.Tensor]:
    """Loss and gradients, on the CPU; `mode` records or replaces decisions of the forward.

    The largest networks' gradients do not fit into memory thrice: each leaves the model for a file once it is complete.
    """
    model, inputs, loss_of = made
    model = without_chance(copy.deepcopy(model)).to(device, dtype)
    moved = [x.to(device, dtype if x.is_floating_point() else x.dtype) for x in inputs]
    results: dict[str, torch.Tensor] = {}

    def keep(name: str, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        results[name] = in_file(parameter.grad)
        parameter.grad = None

    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(functools.partial(keep, name))
    files = kept_in_files(model) if device == "cpu" else contextlib.nullcontext()
    with mode or contextlib.nullcontext(), files:
        loss = loss_of(model, moved)
    loss.backward()
    return {"loss": loss.detach().cpu()} | results


class Result(NamedTuple):
    """Of the worst tensor: its error here, that of PyTorch's float32, its name; whether all pass; and how."""

    error: float
    reference: float
    tensor: str
    passes: bool
    how: str


def compared(
    found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor], single: dict[str, torch.Tensor], how: str
) -> Result:
    """The device's tensors beside those of float64 and of PyTorch's float32."""
    assert found.keys() == exact.keys()
    reference, error = errors(single, exact), errors(found, exact)
    excess = {tensor: error[tensor] / max(1e-4, 2 * reference[tensor]) for tensor in exact}
    worst = max(excess, key=lambda tensor: excess[tensor])
    return Result(error[worst], reference[worst], worst, all(value <= 1 for value in excess.values()), how)


def judged(made: Made, judge: str, taken: Recorder) -> dict[str, torch.Tensor]:
    """The step that is compared with PyTorch's as it is."""
    if judge == "ocl":
        return step(made, "ocl", torch.float32, taken)
    if judge == "cpu-without-onednn":
        with torch.backends.mkldnn.flags(enabled=False):
            return step(made, "cpu", torch.float32, taken)
    model, inputs, loss_of = made
    last = torch.channels_last
    moved = [x.to(memory_format=last) if x.dim() == 4 else x for x in inputs]
    return step((copy.deepcopy(model).to(memory_format=last), moved, loss_of), "cpu", torch.float32, taken)


def check(name: str, seed: int, judge: str = "ocl") -> Result:
    """Plainly, and where that does not pass with the decisions that the device took."""
    torch.manual_seed(seed)
    made = OTHERS[name](name) if name in OTHERS else images(name)
    taken = Recorder()
    found = judged(made, judge, taken)
    plain = compared(found, step(made, "cpu", torch.float64), step(made, "cpu", torch.float32), "plainly")
    if plain.passes or not taken.taken:
        return plain
    exact = Replay(taken.taken)
    exact_step = step(made, "cpu", torch.float64, exact)
    single = Replay(taken.taken, exact)
    matched = compared(found, exact_step, step(made, "cpu", torch.float32, single), f"matched, {exact.turned} turned")
    far = exact.excess(single)
    return (
        matched if far <= 1 else matched._replace(passes=False, how=f"a decision {far:.1f} times too far from marginal")
    )


def record(name: str, seed: int, judge: str) -> dict[str, Any]:
    """A network's line of the results: how it passes, how it differs, or the error."""
    start = time.time()
    line: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "torch": torch.__version__,
        "device": torch.ocl.get_device_name() if judge == "ocl" else judge,
    }
    try:
        result = check(name, seed, judge)
        line |= result._asdict()
    except Exception as problem:  # one network's failure is a line of the table
        line |= {"passes": False, "failed": f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:200]}"}
    return line | {"seconds": round(time.time() - start)}


def state(line: dict[str, Any]) -> str:
    """What a line of the results says, in words."""
    if "failed" in line:
        return f"fails: {line['failed']}"
    if line["passes"]:
        return f"passes {line['how']}"
    return f"differs in {line['tensor']} ({line['how']})"


def read(path: pathlib.Path | None) -> dict[str, dict[str, Any]]:
    """The results by name; of two the later counts."""
    text = path.read_text() if path and path.exists() else ""
    return {line["name"]: line for line in map(json.loads, text.splitlines())}


def table(found: dict[str, dict[str, Any]]) -> str:
    """All networks and their state, also of those that were not run."""
    names = [*OTHERS, *all_networks()]
    lines = ["| network | worst error | of PyTorch's float32 | state |", "|---|---:|---:|---|"]
    for name in names:
        line = found.get(name, {})
        errors_ = [f"{line[key]:.1e}" if key in line else "" for key in ("error", "reference")]
        lines.append(f"| {name} | {errors_[0]} | {errors_[1]} | {state(line) if line else 'not run'} |")
    passed = [found[name]["how"] for name in names if found.get(name, {}).get("passes")]
    plainly, run = passed.count("plainly"), sum(name in found for name in names)
    summary = (
        f"Of {len(names)} networks {run} were run: {plainly} pass plainly, {len(passed) - plainly} matched, "
        f"{run - len(passed)} not."
    )
    return summary + "\n\n" + "\n".join(lines)


def write_page(page: pathlib.Path, found: dict[str, dict[str, Any]]) -> None:
    """Puts the table between the page's marks."""
    marks = r"(?s)(<!-- networks -->\n).*(<!-- end of networks -->)"
    text, count = re.subn(marks, lambda mark: f"{mark[1]}{table(found)}\n{mark[2]}", page.read_text())
    assert count == 1, f"{page} needs one pair of marks, <!-- networks --> and <!-- end of networks -->"
    page.write_text(text)


def cost(name: str) -> int:
    """The operations of a forward, as PyTorch counts them."""
    import torchvision_net

    if name in OTHERS:
        return 10**9 if "resnet" in name else 0
    model = torchvision_net.make_model(name, device="meta").to("meta").eval()
    size = SIZES.get(name, 128)
    with FlopCounterMode(display=False) as counter:
        model(torch.empty(1, 3, size, size, device="meta"))
    return counter.get_total_flops()


def all_networks() -> list[str]:
    """Those of torchvision."""
    import torchvision_net

    names: list[str] = torchvision_net.all_networks()
    return names


def main() -> int:
    """Checks the networks that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE.jsonl", help="a line for each network, continued")
    parser.add_argument("--retry", action="store_true", help="run those again that did not pass")
    parser.add_argument(
        "--page", type=pathlib.Path, help="write the table of the results into this page, and run nothing"
    )
    parser.add_argument("--seed", type=int, default=1, help="of inputs and weights")
    parser.add_argument("--judge", choices=["ocl", "cpu-without-onednn", "cpu-channels-last"], default="ocl")
    arguments = parser.parse_args()
    found = read(arguments.results)
    if arguments.page:
        write_page(arguments.page, found)
        return 0
    torch.ocl.set_fallback_mode("error")
    names = arguments.names or sorted([*OTHERS, *all_networks()], key=cost)
    for name in names:
        if name in found and (found[name]["passes"] or not arguments.retry):
            continue
        found[name] = line = record(name, arguments.seed, arguments.judge)
        times = f"{line['error'] / line['reference']:.2f} of PyTorch's error, " if line.get("reference") else ""
        print(f"{name}: {state(line)}, {times}{line['seconds']} s", flush=True)
        if arguments.results:
            with arguments.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
    failed = [name for name in names if not found[name]["passes"]]
    print(f"{len(failed)} differ or fail{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What merging adapters into bf16 weights does to what a model says: KL of its next tokens.

    python tests/benchmarks/merged_adapters.py

A random Qwen2 of 4 layers x 512, adapters of rank 16 whose second halves grow; 512 positions.
"""

# pyright: reportMissingImports=false

from typing import Any

import peft
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from podium.conductor.training.generation import MergedAdapters

GROWN = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


def logits(model: Any, ids: Any) -> Any:
    with torch.no_grad():
        return model(ids).logits.float()


def divergence(one: Any, other: Any) -> float:
    sure, said = one.log_softmax(-1), other.log_softmax(-1)
    return (sure.exp() * (sure - said)).sum(-1).mean().item()


def model_of(seed: int) -> Any:
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=2048,
        hidden_size=512,
        intermediate_size=1365,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        initializer_range=0.03,
    )
    return Qwen2ForCausalLM(config).to(torch.bfloat16).eval()


def main() -> None:
    torch.set_num_threads(1)
    ids = torch.randint(0, 2048, (8, 64), generator=torch.Generator().manual_seed(1))
    print("deviation of B | weights that change | KL to the bare model | KL to the merged one")
    for deviation in GROWN:
        model = model_of(0)
        bare = logits(model, ids)
        wanted = peft.LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
        adapted: Any = peft.get_peft_model(model, wanted).eval()
        for name, values in adapted.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(values, std=deviation)
        apart, merged = logits(adapted, ids), MergedAdapters(adapted)
        bases = [layer.get_base_layer() for layer in merged.layers]
        before = [base.weight.data for base in bases]
        with merged():
            together = logits(adapted, ids)
            moved = [
                (base.weight.data != old).float().mean().item()
                for base, old in zip(bases, before, strict=True)
            ]
        print(
            f"{deviation:.0e} | {sum(moved) / len(moved):.1%} | {divergence(apart, bare):.1e} | "
            f"{divergence(apart, together):.1e}"
        )


if __name__ == "__main__":
    main()

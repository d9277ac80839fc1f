"""A decode step in a CUDA graph: projection, rotation, attention, with positions that are updated in
device memory between replays, and slots of the batch that are empty.

Prints one JSON object: for 1 to 64 tokens the time of the fused rotation of q and k, and of the
step, launched eagerly and replayed. Needs a GPU; without one it says so and ends.
"""

import json
import statistics

import torch

import ropewalk

HEADS, KV_HEADS, HEAD_DIM, HIDDEN, CONTEXT = 32, 8, 128, 4096, 2048
PADDING = -1  # the position of an empty slot: its rows are passed through


class DecodeStep(torch.nn.Module):
    def __init__(self, slots: int) -> None:
        super().__init__()
        self.rotary = ropewalk.RotaryEmbedding(HEAD_DIM, base=500000.0, layout="bthd")
        width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
        self.qkv = torch.nn.Linear(HIDDEN, width, bias=False)
        self.out = torch.nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)
        shape = (slots, CONTEXT, KV_HEADS, HEAD_DIM)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)
        self.register_buffer("slot", torch.arange(slots), persistent=False)
        self.register_buffer("context", torch.arange(CONTEXT), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x (slot, 1, hidden), positions (slot, 1)."""
        qkv = self.qkv(x).unflatten(-1, (-1, HEAD_DIM))
        q, k, v = qkv.split([HEADS, KV_HEADS, KV_HEADS], dim=2)
        q, k = self.rotary(q, k, positions, inplace=True, padding=PADDING)
        row = positions[:, 0].clamp(min=0)
        self.keys[self.slot, row] = k[:, 0]
        self.values[self.slot, row] = v[:, 0]
        seen = self.context <= positions[:, :, None, None]
        seen = seen | (positions[:, :, None, None] == PADDING)  # a softmax over nothing is NaN
        attended = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), self.keys.transpose(1, 2), self.values.transpose(1, 2),
            attn_mask=seen, enable_gqa=True,
        )  # fmt: skip
        return self.out(attended.transpose(1, 2).flatten(2))


def captured(body):
    """A graph of body() and what it returned; run before, so that every plan is on the device."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            body()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = body()
    return graph, result


def microseconds(body, repeats: int = 30, inner: int = 20) -> float:
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(inner):
            body()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / inner)
    return statistics.median(times)


@torch.inference_mode()
def run(slots: int) -> dict:
    step = DecodeStep(slots).to("cuda", torch.bfloat16)
    step.slot, step.context = step.slot.long(), step.context.long()
    x = torch.randn(slots, 1, HIDDEN, device="cuda", dtype=torch.bfloat16)
    positions = torch.zeros(slots, 1, dtype=torch.int64, device="cuda")

    graph, y = captured(lambda: step(x, positions))
    for turn in range(4):
        positions.copy_(torch.randint(CONTEXT, (slots, 1)))
        if turn % 2 and slots > 1:
            positions[slots // 2 :] = PADDING
        x.copy_(torch.randn(slots, 1, HIDDEN))
        graph.replay()
        replayed = y.clone()
        assert torch.equal(replayed, step(x, positions)), f"the replay differs at {slots} tokens"
        assert replayed.isfinite().all()

    q = torch.randn(slots, 1, HEADS, HEAD_DIM, device="cuda", dtype=torch.bfloat16)
    k = torch.randn(slots, 1, KV_HEADS, HEAD_DIM, device="cuda", dtype=torch.bfloat16)
    positions.zero_()
    rotation, (q_out, k_out) = captured(lambda: step.rotary(q, k, positions, padding=PADDING))
    positions.copy_(torch.randint(2**30, (slots, 1)))
    positions[-1] = PADDING
    rotation.replay()
    for got, want in zip(
        (q_out, k_out), step.rotary(q, k, positions, padding=PADDING), strict=True
    ):
        assert torch.equal(got, want)
    assert torch.equal(q_out[-1], q[-1])

    positions.copy_(torch.randint(CONTEXT, (slots, 1)))  # the step looks them up in its cache
    times = {
        "rotation_eager_us": microseconds(lambda: step.rotary(q, k, positions, padding=PADDING)),
        "rotation_graph_us": microseconds(rotation.replay),
        "step_eager_us": microseconds(lambda: step(x, positions)),
        "step_graph_us": microseconds(graph.replay),
    }
    times["rotation_speed_up"] = times["rotation_eager_us"] / times["rotation_graph_us"]
    times["step_speed_up"] = times["step_eager_us"] / times["step_graph_us"]
    return {"tokens": slots, **times}


def main() -> None:
    if not torch.cuda.is_available():
        print("cuda_graph: needs a GPU, and PyTorch sees none")
        return
    torch.manual_seed(0)
    rows = [run(slots) for slots in (1, 2, 4, 8, 16, 32, 64)]
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "rows": rows}, indent=2))  # fmt: skip


if __name__ == "__main__":
    main()

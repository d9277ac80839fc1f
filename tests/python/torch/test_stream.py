"""stream_rotate: the bytes of one rotation, on any device, however short the memory."""

import pytest
import torch
from safetensors.torch import load_file, save_file

import ropewalk
import ropewalk.stream
from ropewalk import StreamError, stream_rotate


@pytest.fixture
def plan():
    return ropewalk.make_plan(16)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.safetensors"
    save_file(
        {
            "q": torch.randn(2, 40, 3, 16),
            "k": torch.randn(2, 40, 1, 16).bfloat16(),
            "ids": torch.randint(0, 2**30, (3, 2, 40)),
            "rest": torch.arange(1000),
        },
        path,
    )
    return path


@pytest.mark.parametrize("chunk", [1, 700, 1 << 20])
@pytest.mark.parametrize("inverse", [False, True])
def test_equal_to_rotating_at_once(plan, source, tmp_path, chunk, inverse):
    target = tmp_path / "out.safetensors"
    seen = []
    result = stream_rotate(
        plan, source, target, positions=77, inverse=inverse, chunk_bytes=chunk,
        progress=seen.append,
    )  # fmt: skip
    assert set(result.rotated) == {"q", "k"} and set(result.copied) == {"ids", "rest"}
    assert seen[-1].done == seen[-1].total == result.bytes
    before, after = load_file(source), load_file(target)
    for name in ("q", "k"):
        whole = ropewalk.rotate(
            before[name], plan=plan, offset=77, layout="bthd", inverse=inverse
        )  # fmt: skip
        assert torch.equal(after[name], whole)
    for name in ("ids", "rest"):
        assert torch.equal(after[name], before[name])


def elsewhere(monkeypatch, most: int):
    """Pieces go through rotate_piece as for another device, whose memory takes `most` bytes."""
    real = ropewalk.stream.rotate_piece

    def rotate_piece(piece, plan, device, inverse):
        assert device.type == "cuda"
        if piece.bytes > most:
            raise torch.OutOfMemoryError("no memory")
        real(piece, plan, torch.device("cpu"), inverse)

    monkeypatch.setattr(ropewalk.stream, "rotate_piece", rotate_piece)
    monkeypatch.setattr(ropewalk.stream, "load_plan", lambda plan, device: None)


@pytest.mark.parametrize("layout", ["bthd", "bhtd"])
@pytest.mark.parametrize("positions", ["5", "ids"])
def test_another_device_with_little_memory(
    configs, tmp_path, monkeypatch, layout, positions
):  # fmt: skip
    plan = ropewalk.plan_from_config(configs / "qwen2-vl-7b.json")
    source, target, once = (tmp_path / name for name in ("in", "out", "once"))
    shape = (2, 40, 3, plan.head_dim) if layout == "bthd" else (2, 3, 40, plan.head_dim)
    ids = torch.randint(0, 2**20, (3, 2, 40), dtype=torch.int32)
    save_file({"q": torch.randn(shape), "ids": ids}, source)
    stream_rotate(plan, source, once, positions=positions, layout=layout)
    elsewhere(monkeypatch, most=6000)
    seen = []
    result = stream_rotate(
        plan, source, target, positions=positions, layout=layout, device="cuda",
        progress=seen.append,
    )  # fmt: skip
    assert target.read_bytes() == once.read_bytes()
    assert any(p.halved_to for p in seen) and result.chunk_bytes <= 6000


def test_memory_too_short_for_a_token(plan, source, tmp_path, monkeypatch):
    elsewhere(monkeypatch, most=0)
    with pytest.raises(MemoryError, match="memory: not enough"):
        stream_rotate(plan, source, tmp_path / "out", device="cuda")
    assert not (tmp_path / "out").exists()


def test_an_exception_in_progress_stops_and_the_job_goes_on_later(plan, source, tmp_path):
    target, once = tmp_path / "out", tmp_path / "once"
    stream_rotate(plan, source, once)
    job = {"resume": True, "chunk_bytes": 1000}

    def stop(progress):
        if progress.done > 5000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream_rotate(plan, source, target, **job, progress=stop)
    assert not target.exists()
    with pytest.raises(StreamError, match="another job"):
        stream_rotate(plan, source, target, **job, positions=1)
    assert stream_rotate(plan, source, target, **job).resumed_at > 5000
    assert target.read_bytes() == once.read_bytes()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"tensors": ["none"]}, ValueError, "tensors: "),
        ({"layout": "dhtb"}, ValueError, "layout: "),
        ({"positions": "none"}, ValueError, "positions: "),
        ({"positions": 2**36}, ValueError, "position"),
        ({"chunk_bytes": 0}, ValueError, "chunk_bytes: "),
    ],
)
def test_wrong_options_are_named(plan, source, tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        stream_rotate(plan, source, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == [source]


def test_files(plan, source, tmp_path):
    with pytest.raises(StreamError, match="cannot open"):
        stream_rotate(plan, tmp_path / "none", tmp_path / "out")
    with pytest.raises(StreamError, match="output: "):
        stream_rotate(plan, source, tmp_path / "none" / "out")
    parity = ropewalk.plan_from_config(
        {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 2, "rope_theta": 1e4,
         "max_position_embeddings": 64}, arithmetic="parity_p2",
    )  # fmt: skip
    with pytest.raises(ValueError, match="device: a parity arithmetic"):
        stream_rotate(parity, source, tmp_path / "out", device="cuda")


def test_a_parity_table_is_kept_and_a_corrupt_one_refused(source, tmp_path):
    config = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 2,
              "rope_theta": 1e4, "max_position_embeddings": 64}  # fmt: skip
    plan = ropewalk.plan_from_config(config, arithmetic="parity_p2")
    target, table = tmp_path / "out", tmp_path / "table"
    for _ in range(2):  # made, then read
        stream_rotate(plan, source, target, tensors=["q"], positions=9, table_file=table)
        assert table.stat().st_size > 0
        first = target.read_bytes()
    data = bytearray(table.read_bytes())
    data[-1] ^= 1
    table.write_bytes(data)
    with pytest.raises(StreamError, match="table"):
        stream_rotate(plan, source, target, tensors=["q"], positions=9, table_file=table)
    assert target.read_bytes() == first
    stream_rotate(plan, source, target, tensors=["q"], positions=9)
    assert target.read_bytes() == first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("positions", ["5", "ids"])
def test_a_gpu_whose_memory_is_taken_halves_the_pieces(tmp_path, positions):
    plan = ropewalk.make_plan(128)
    source, target, once = (tmp_path / name for name in ("in", "out", "once"))
    q = torch.randn(2, 1 << 16, 8, 128, dtype=torch.bfloat16)  # 256 MiB
    save_file({"q": q, "ids": torch.randint(0, 2**30, (2, 1 << 16))}, source)
    stream_rotate(plan, source, once, positions=positions)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    left = 200 << 20
    taken = torch.empty(torch.cuda.mem_get_info()[0] - left, dtype=torch.uint8, device="cuda")
    seen = []
    result = stream_rotate(
        plan, source, target, positions=positions, chunk_bytes=q.nbytes, device="cuda",
        progress=seen.append,
    )  # fmt: skip
    del taken
    assert next(p.halved_to for p in seen if p.halved_to) == q.nbytes // 2
    assert result.chunk_bytes < left
    assert target.read_bytes() == once.read_bytes()

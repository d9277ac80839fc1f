"""patch and unpatch on tiny models with random weights."""

import copy
import types

import pytest
import torch

transformers = pytest.importorskip("transformers")

import hf_models
import ropewalk
from oracle import assert_rotated
from ropewalk import UnsupportedError

DTYPES = [torch.float32, torch.bfloat16]
LAYERS = 2


def tokens(rows=2, columns=21):
    return torch.randint(3, 99, (rows, columns))


def left_padding(ids, pads=5):
    mask = torch.ones_like(ids)
    mask[1, :pads] = 0
    return mask


@torch.no_grad()
def logits(model, ids, **inputs):
    return model(ids, **inputs).logits


def counted(call):
    """How often each operator ran."""
    with torch.no_grad(), torch.profiler.profile() as profile:
        call()
    counts = {}
    for event in profile.events():
        counts[event.name] = counts.get(event.name, 0) + 1
    return counts


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", hf_models.DECODERS)
def test_logits_keep_their_bits(model_type, dtype):
    model = hf_models.decoder(model_type, dtype)
    ids = tokens()
    mask = left_padding(ids)
    before = logits(model, ids, attention_mask=mask)
    assert ropewalk.patch(model) is model
    assert torch.equal(logits(model, ids, attention_mask=mask), before)
    ropewalk.unpatch(model)
    assert torch.equal(logits(model, ids, attention_mask=mask), before)


@pytest.mark.parametrize("model_type", ["llama", "gemma3_text", "deepseek_v3", "gptj", "phi3"])
def test_generation_keeps_its_tokens(model_type):
    model = hf_models.decoder(model_type)
    ids = tokens(columns=9)
    inputs = {"attention_mask": left_padding(ids), "do_sample": False, "max_new_tokens": 12,
              "output_logits": True, "return_dict_in_generate": True}  # fmt: skip
    before = model.generate(ids, **inputs)
    ropewalk.patch(model)
    after = model.generate(ids, **inputs)
    assert torch.equal(after.sequences, before.sequences)
    for a, b in zip(after.logits, before.logits, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("arithmetic", ["parity", "exact"])
def test_our_operator_runs_and_theirs_does_not(arithmetic):
    model = hf_models.decoder("llama")
    ids = tokens()
    before = counted(lambda: model(ids))
    ropewalk.patch(model, arithmetic)
    after = counted(lambda: model(ids))
    assert before.get("ropewalk::_rotate", 0) == 0
    # In exact the rotary module makes its tables with the operator too.
    assert after["ropewalk::_rotate"] == LAYERS + (arithmetic == "exact")
    # rotate_half negates, and each of q and k is multiplied by cos and by sin.
    assert before["aten::neg"] == 2 * LAYERS
    assert after.get("aten::neg", 0) == 0
    assert before["aten::mul"] - after["aten::mul"] >= 4 * LAYERS - 2 * (arithmetic == "exact")


def test_gradients_keep_their_bits():
    model = hf_models.decoder("llama")
    ids = tokens()

    def gradients():
        model.zero_grad()
        model(ids, labels=ids).loss.backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    before = gradients()
    ropewalk.patch(model)
    assert all(torch.equal(a, b) for a, b in zip(gradients(), before, strict=True))


@pytest.mark.parametrize("arithmetic", ["parity", "exact"])
def test_compiled(arithmetic):
    model = hf_models.decoder("llama")
    ids = tokens()
    ropewalk.patch(model, arithmetic)
    expected = logits(model, ids)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.equal(logits(compiled, ids), expected)


def test_other_models_are_untouched():
    patched, other = hf_models.decoder("llama"), hf_models.decoder("llama")
    names = dict(vars(transformers.models.llama.modeling_llama))
    ropewalk.patch(patched)
    assert "ropewalk::_rotate" not in counted(lambda: other(tokens()))
    assert vars(transformers.models.llama.modeling_llama) == names
    assert all("forward" not in module.__dict__ for module in other.modules())
    assert "ropewalk::_rotate" in counted(lambda: patched(tokens()))


def test_copies_of_a_patched_model_are_models_of_their_own():
    model = ropewalk.patch(hf_models.decoder("llama"))
    twin = copy.deepcopy(model)
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.model.layers[0].self_attn.q_proj.weight.zero_()
    assert logits(twin, tokens()).abs().max() > 0
    ropewalk.unpatch(twin)
    assert "ropewalk::_rotate" not in counted(lambda: twin(tokens()))
    assert "ropewalk::_rotate" in counted(lambda: model(tokens()))


def test_state_dict_is_the_same():
    model = hf_models.decoder("llama")
    keys = list(model.state_dict())
    assert list(ropewalk.patch(model).state_dict()) == keys


def test_a_second_patch_is_refused():
    model = ropewalk.patch(hf_models.decoder("llama"))
    with pytest.raises(
        UnsupportedError, match="it is patched already .parity.: call ropewalk.unpatch"
    ):
        ropewalk.patch(model, "exact")
    whole = torch.nn.ModuleDict({"inner": model})
    with pytest.raises(UnsupportedError, match="its module inner is patched already"):
        ropewalk.patch(whole)
    ropewalk.unpatch(model)
    with pytest.raises(UnsupportedError, match="LlamaForCausalLM is not patched"):
        ropewalk.unpatch(model)


def test_a_part_of_a_patched_model_is_refused():
    model = ropewalk.patch(hf_models.decoder("llama"))
    with pytest.raises(UnsupportedError, match="was replaced on this model by other code"):
        ropewalk.patch(model.model)


def test_an_unknown_arithmetic_is_refused():
    with pytest.raises(ValueError, match="arithmetic: expected one of parity, exact, got 'fast'"):
        ropewalk.patch(hf_models.decoder("llama"), "fast")


def unchanged(model):
    return all("forward" not in module.__dict__ for module in model.modules())


def test_a_model_without_rotary_embeddings_is_refused():
    model = transformers.AutoModel.from_config(hf_models.config("bert"))
    with pytest.raises(UnsupportedError, match="BertModel does not rotate"):
        ropewalk.patch(model)
    assert unchanged(model)


def apply_rotary_pos_emb(q, k, cos, sin):
    """Not a rotation: the sine is squared."""
    return q * cos + q * sin * sin, k * cos + k * sin * sin


class Squaring(torch.nn.Module):
    def forward(self, q, k, cos, sin):
        return apply_rotary_pos_emb(q, k, cos, sin)


def test_an_unknown_rotation_is_refused_by_name():
    model = torch.nn.Sequential(hf_models.decoder("llama"), Squaring())
    with pytest.raises(UnsupportedError, match="Squaring calls test_patch.apply_rotary_pos_emb"):
        ropewalk.patch(model)
    assert unchanged(model)


def test_exact_needs_frequencies():
    model = hf_models.decoder("gptj")
    with pytest.raises(UnsupportedError, match="GPTJForCausalLM: no module holds frequencies"):
        ropewalk.patch(model, "exact")
    assert unchanged(model)


class Wobbling(transformers.models.llama.modeling_llama.LlamaRotaryEmbedding):
    def forward(self, x, position_ids):
        cos, sin = super().forward(x, position_ids)
        return cos + 0.01, sin


def test_exact_needs_angles_that_are_products():
    model = hf_models.decoder("llama")
    model.model.rotary_emb = Wobbling(model.config)
    with pytest.raises(UnsupportedError, match="Wobbling: its angles are not positions times"):
        ropewalk.patch(model, "exact")
    assert unchanged(model)
    before = logits(model, ids := tokens())
    assert torch.equal(logits(ropewalk.patch(model), ids), before)


# Two keep no frequencies; PyTorch has no float64 product for the experts of the third; the fourth
# takes other frequencies far out.
NOT_HERE = ("codegen", "gptj", "gpt_oss", "phi3")


@pytest.mark.parametrize(
    "model_type", [name for name in hf_models.DECODERS if name not in NOT_HERE]
)
def test_exact_logits_do_not_drift_with_the_position(model_type):
    """Attention sees differences of positions. Far from 0 float32 angles lose them."""
    model = hf_models.decoder(model_type, torch.float64)
    ids = tokens(rows=1)
    near = torch.arange(ids.size(1))[None] + 500

    def drift():
        far = logits(model, ids, position_ids=near + 400_000)
        return (far - logits(model, ids, position_ids=near)).abs().max()

    eager = drift()
    ropewalk.patch(model, "exact")
    assert drift() < eager / 16


FAR = [0, 1, 499, 39_001, 131_071, 2**24 + 1, 2**31 - 1]


def replaced(model, name="apply_rotary_pos_emb"):
    """Ours, from the scope of a patched attention layer."""
    layers = [
        m for m in model.modules() if "forward" in m.__dict__ and "Attention" in type(m).__name__
    ]
    return layers[0].forward.__func__.__globals__[name]


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("model_type", ["llama", "gemma3_text", "glm4", "gpt_neox", "cohere"])
def test_exact_rotations_against_the_oracle(model_type, dtype):
    model = ropewalk.patch(hf_models.decoder(model_type, dtype), "exact")
    base = getattr(model, "model", None) or model.gpt_neox
    rotary = base.rotary_emb
    layers = ("full_attention",) if model_type == "gemma3_text" else ()
    omega = getattr(rotary, "full_attention_inv_freq" if layers else "inv_freq").float().numpy()
    positions = torch.tensor([FAR, FAR[::-1]])
    q, k = (torch.randn(2, heads, len(FAR), 16).to(dtype) for heads in (4, 2))
    cos, sin = rotary(torch.zeros(1, dtype=dtype), positions, *layers)
    pairing = "interleaved" if model_type in ("glm4", "cohere") else "half"
    for got, x in zip(replaced(model)(q, k, cos, sin), (q, k), strict=True):
        assert_rotated(got, x, positions.numpy(), omega, pairing)
    # A layer that cuts the tables gets the rotation by what is left of them.
    cut = replaced(model)(q[:, :, 3:], k[:, :, 3:], cos[:, 3:], sin[:, 3:])
    columns = slice(0, len(omega)) if model_type != "cohere" else slice(0, None, 2)
    tables = [t[:, 3:, columns] for t in (cos, sin)]
    plan = ropewalk.make_plan(16, rotary_dim=2 * len(omega), pairing=pairing)
    expected = ropewalk.rotate(q[:, :, 3:], k[:, :, 3:], plan=plan, cos=tables[0], sin=tables[1])
    assert all(torch.equal(a, b) for a, b in zip(cut, expected, strict=True))


def test_exact_follows_a_schedule_that_grows():
    model = ropewalk.patch(hf_models.decoder("phi3"), "exact")
    rotary = model.model.rotary_emb
    x = torch.zeros(1)
    short, _ = rotary(x, torch.arange(4)[None])
    long, _ = rotary(x, torch.tensor([[0, 1, 2, 3, 40]]))
    assert not torch.equal(short, long[:, :4])
    torch.testing.assert_close(
        long[0, 1, :8], torch.cos(rotary.inv_freq) * rotary.attention_scaling
    )


def test_compiled_follows_a_schedule_that_grows():
    model = ropewalk.patch(hf_models.decoder("phi3"), "exact")
    compiled = torch.compile(model, backend="aot_eager")
    for length in (8, 40, 8):
        ids = tokens(columns=length)
        assert torch.equal(logits(compiled, ids), logits(model, ids))


def test_exact_follows_frequencies_that_are_replaced():
    model = ropewalk.patch(hf_models.decoder("llama"), "exact")
    ids = tokens()
    before = logits(model, ids)
    rotary = model.model.rotary_emb
    rotary.inv_freq = rotary.inv_freq / 2
    halved = logits(model, ids)
    assert not torch.equal(halved, before)
    rotary.inv_freq.mul_(2)
    assert torch.equal(logits(model, ids), before)
    # A compiler keeps the frequencies of the time when it traced.
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert torch.equal(logits(compiled, ids), before)


def vision_language_model():
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99,
             "num_hidden_layers": 2, "num_key_value_heads": 2}  # fmt: skip
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    config = transformers.Qwen2VLConfig(
        text_config={**sizes, "rope_parameters": rope},
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": 64,
            "num_heads": 2,
            "mlp_ratio": 2,
        },
    )
    torch.manual_seed(20260101)
    return transformers.Qwen2VLModel(config).eval()


@pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "bfloat16"])
def test_three_axes_and_a_vision_tower(dtype):
    model = vision_language_model().to(dtype)
    grid = torch.tensor([[1, 4, 6]])
    patches = torch.randn(24, 3 * 2 * 14 * 14).to(dtype)
    positions = torch.randint(0, 50, (3, 2, 21))
    embeddings = torch.randn(2, 21, 64).to(dtype)

    @torch.no_grad()
    def outputs():
        tower = model.visual(patches, grid_thw=grid)
        text = model.language_model(inputs_embeds=embeddings, position_ids=positions)
        return tower.last_hidden_state, text.last_hidden_state

    before = outputs()
    ropewalk.patch(model)
    assert all(torch.equal(a, b) for a, b in zip(outputs(), before, strict=True))


def test_exact_with_three_axes_against_the_oracle():
    model = ropewalk.patch(vision_language_model(), "exact")
    rotary = model.language_model.rotary_emb
    positions = torch.randint(0, 2**20, (3, 2, 5))
    q, k = torch.randn(2, 4, 5, 16), torch.randn(2, 2, 5, 16)
    ours = replaced(model.language_model)(q, k, *rotary(torch.zeros(1), positions))
    omega = rotary.inv_freq.numpy()
    first = 0
    for axis, section in enumerate([2, 3, 3]):
        pairs = range(first, first + section)
        channels = [*pairs, *(8 + pair for pair in pairs)]
        for got, x in zip(ours, (q, k), strict=True):
            assert_rotated(
                got[..., channels], x[..., channels], positions[axis].numpy(), omega[pairs]
            )
        first += section


@pytest.mark.parametrize("name", ["clvp", "sam2_video", "edgetam_video", "vjepa2", "dinov3_vit",
                                  "muse_glimmer_assistant", "hunyuan_vl"])  # fmt: skip
def test_functions_that_take_more_than_one_row_per_token(name):
    import importlib

    from ropewalk.hf.special import special_function

    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    functions = [
        value for key, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__module__ == module.__name__
        and ("apply_rotary" in key or key == "rotate_queries_or_keys")
    ]  # fmt: skip
    assert any(special_function(function) for function in functions)

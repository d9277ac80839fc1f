"""Plans of towers and multi-axis models against transformers' own modules and formulas."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
plans = pytest.importorskip("ropewalk.plans")
recipes = pytest.importorskip("ropewalk.position_recipes")


def own(folder, config_class, rotary_class=None, **options):
    """A model's default config and its rotary module, without training noise."""
    base = f"transformers.models.{folder}"
    config_module = importlib.import_module(f"{base}.configuration_{folder}")
    config = getattr(config_module, config_class)(**options)
    if rotary_class is None:
        return config, None
    module = importlib.import_module(f"{base}.modeling_{folder}")
    return config, getattr(module, rotary_class)(config).eval()


def own_tables(module, positions):
    """cos, sin of the module for positions (tokens, axes), as a vision tower is called."""
    cos, sin = module(torch.zeros(1), torch.as_tensor(positions))
    return cos.reshape(len(positions), -1).numpy(), sin.reshape(len(positions), -1).numpy()


def planned_angles(plan, positions):
    """fl32(ω · p) of every pair, for positions (tokens, axes)."""
    omega = np.array(plan.model_frequencies, dtype=np.float32)
    return np.float32(positions)[:, plan.axis] * omega


AXIAL = {
    "qwen2_vl": ("Qwen2VLVisionConfig", "Qwen2VLVisionRotaryEmbedding"),
    "qwen2_5_vl": ("Qwen2_5_VLVisionConfig", "Qwen2_5_VLVisionRotaryEmbedding"),
    "qwen3_vl": ("Qwen3VLVisionConfig", "Qwen3VLVisionRotaryEmbedding"),
    "glm4v": ("Glm4vVisionConfig", "Glm4vVisionRotaryEmbedding"),
    "mlcd": ("MLCDVisionConfig", "MLCDRotaryEmbedding"),
    "step3p7": ("Step3p7VisionConfig", "Step3p7VisionRotaryEmbedding"),
    "kimi_k25": ("Kimi_K25VisionConfig", "Kimi_K25VisionRotaryEmbedding"),
    "sam2_video": ("Sam2VideoConfig", "Sam2VideoVisionRotaryEmbedding"),
    "sam3": ("Sam3ViTConfig", "Sam3ViTRotaryEmbedding"),
    "minimax_m3_vl": ("MiniMaxM3VLVisionConfig", "MiniMaxM3VLVisionRotaryEmbedding"),
}


@pytest.mark.parametrize("folder", AXIAL)
def test_axial_towers_have_the_models_table(folder):
    config, module = own(folder, *AXIAL[folder])
    plan = plans.plan_from_config(config, arithmetic="parity")
    positions = np.array([[0, 0], [1, 0], [0, 1], [17, 93], [613, 400]])
    cos, sin = own_tables(module, positions)
    angles = torch.from_numpy(planned_angles(plan, positions))
    pairs = slice(None, None, 2) if plan.pairing == "interleaved" else slice(plan.pairs)
    assert np.array_equal(cos[:, pairs], torch.cos(angles).numpy())
    assert np.array_equal(sin[:, pairs], torch.sin(angles).numpy())
    assert plan.axes == 2 and plan.rotary_dim == cos.shape[1]


def test_pixtral_deals_even_and_odd_frequencies():
    config, module = own("pixtral", "PixtralVisionConfig", "PixtralVisionRotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity")
    assert plan.model_frequencies == module.inv_freq.tolist()
    assert plan.axis == [0] * 16 + [1] * 16


def test_minimax_m3_vision_follows_the_checkpoint_in_exact():
    config, _ = own("minimax_m3_vl", "MiniMaxM3VLVisionConfig")
    plan = plans.plan_from_config(config)
    assert (plan.axes, plan.rotary_dim, plan.head_dim) == (3, 78, 80)
    assert plan.position_recipe == "patch_merged_frames"


def test_gemma4_vision_has_a_block_per_axis():
    config, module = own("gemma4", "Gemma4VisionConfig", "Gemma4VisionRotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity")
    assert plan.model_frequencies == 2 * module.inv_freq.tolist()
    assert (plan.block_width, plan.axis) == (32, [0] * 16 + [1] * 16)


def test_llama4_vision_is_its_complex_table():
    config, module = own("llama4", "Llama4VisionConfig", "Llama4VisionRotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity")
    side = config.image_size // config.patch_size
    table = module.freqs_ci.reshape(side * side + 1, -1).numpy()
    positions = recipes.positions(plan.position_recipe, side, side).T
    angles = torch.from_numpy(planned_angles(plan, positions))
    assert (plan.pairing, plan.pairs) == ("interleaved", table.shape[1])
    assert np.array_equal(table.real, torch.cos(angles).numpy())
    assert np.array_equal(table.imag, torch.sin(angles).numpy())


@pytest.mark.parametrize(
    "folder, names",
    [
        ("dinov3_vit", ("DINOv3ViTConfig", "DINOv3ViTRopePositionEmbedding")),
        ("eomt_dinov3", ("EomtDinov3Config", "EomtDinov3RotaryEmbedding")),
        ("sapiens2", ("Sapiens2Config", "Sapiens2RopePositionEmbedding")),
    ],
)
def test_normalised_coordinates(folder, names):
    config, module = own(folder, *names)
    plan = plans.plan_from_config(config, arithmetic="parity")
    rows, columns = 3, 5
    assert plan.model_frequencies == 2 * module.inv_freq.tolist()
    patch = config.patch_size
    cos, _ = module(torch.zeros(1, 3, rows * patch, columns * patch))
    positions = recipes.positions(plan.position_recipe, rows, columns).T
    angles = positions[:, plan.axis] * np.array(plan.model_frequencies)
    # Their coordinates and angles are float32: six roundings of angles up to 2π.
    bound = 6 * 2.0**-24 * 2 * np.pi
    assert np.abs(cos.numpy()[:, : plan.pairs] - np.cos(angles)).max() <= bound


def test_ernie_alternates_and_keeps_a_tail():
    config, module = own(
        "ernie4_5_vl_moe", "Ernie4_5_VLMoeTextConfig", "Ernie4_5_VLMoeTextRotaryEmbedding"
    )
    plan = plans.plan_from_config(config, arithmetic="parity")
    positions = np.array([[5, 700, 31], [9000, 2, 11]])
    cos, _ = module(torch.zeros(1), torch.from_numpy(positions.T[:, None]))
    angles = torch.from_numpy(planned_angles(plan, positions))
    assert np.array_equal(cos[0, :, ::2].numpy(), torch.cos(angles).numpy())
    assert (plan.pairing, plan.arithmetic) == ("interleaved", "parity_p2")


def test_cohere_compass_splits_and_keeps_a_tail():
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [22, 22, 20]}
    config, module = own(
        "cohere_compass",
        "CohereCompassTextConfig",
        "CohereCompassRotaryEmbedding",
        rope_parameters={"full_attention": rope},
    )
    plan = plans.plan_from_config(config, arithmetic="parity", layer_type="full_attention")
    positions = np.array([[5, 700, 31], [9000, 2, 11]])
    cos, _ = module(torch.zeros(1), torch.from_numpy(positions.T[:, None]), "full_attention")
    angles = torch.from_numpy(planned_angles(plan, positions))
    assert np.array_equal(cos[0, :, : plan.pairs].numpy(), torch.cos(angles).numpy())


@pytest.mark.parametrize("layer_type, pairs", [("full_attention", 8), ("sliding_attention", 32)])
def test_neomme_alternates_rows_and_columns(layer_type, pairs):
    config, module = own("neomme", "NeoMMEConfig", "NeoMMERotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity", layer_type=layer_type)
    assert plan.axis == [0, 1] * (pairs // 2)
    assert plan.model_frequencies == getattr(module, f"{layer_type}_inv_freq").tolist()


@pytest.mark.parametrize("label", ["main", "compress"])
def test_deepseek_v4_rotates_the_last_channels(label):
    config, module = own("deepseek_v4", "DeepseekV4Config", "DeepseekV4RotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity", layer_type=label)
    assert (plan.head_dim, plan.offset, plan.rotary_dim) == (512, 448, 64)
    assert plan.model_frequencies == getattr(module, f"{label}_inv_freq").tolist()
    assert (plan.pairing, plan.arithmetic) == ("interleaved", "parity_p1")
    assert plan.rotated == "q k, output back"


def test_hunyuan_vl_is_pair_consistent_in_exact_and_upstreams_in_parity():
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
    config, module = own(
        "hunyuan_vl", "HunYuanVLTextConfig", "HunYuanVLRotaryEmbedding", rope_parameters=rope
    )
    assert plans.plan_from_config(config).axis == [axis for axis in range(4) for _ in range(16)]
    positions = np.array([[3, 50, 700, 9000], [1, 2, 3, 4]])
    cos, _ = module(torch.zeros(1), torch.from_numpy(positions.T[:, None]))
    for half, channels in enumerate(("first", "second")):
        plan = plans.plan_from_config(config, arithmetic="parity", channels=channels)
        angles = torch.from_numpy(planned_angles(plan, positions))
        mine = cos[0, :, half * 64 : (half + 1) * 64].numpy()
        assert np.array_equal(mine, torch.cos(angles).numpy())
    with pytest.raises(plans.PlanError, match="channels"):
        plans.plan_from_config(config, arithmetic="parity")


def test_vjepa2_needs_a_plan_for_each_channel_of_a_pair():
    from transformers.models.vjepa2.modeling_vjepa2 import rotate_queries_or_keys

    config, _ = own("vjepa2", "VJEPA2Config")
    block = 20
    x = torch.randn(1, 1, 3, block, generator=torch.Generator().manual_seed(7))
    theirs = rotate_queries_or_keys(x, torch.tensor([0, 5, 211]))[0, 0].numpy()
    for channel, name in enumerate(("first", "second")):
        plan = plans.plan_from_config(config, arithmetic="parity", channels=name)
        assert (plan.axes, plan.rotary_dim, plan.head_dim) == (3, 60, 64)
        omega = np.array(plan.model_frequencies[: block // 2], dtype=np.float32)
        angle = torch.from_numpy(np.float32([[0], [5], [211]]) * omega)
        own_part, other = x[0, 0, :, channel::2], x[0, 0, :, 1 - channel :: 2]
        turned = -other if channel == 0 else other
        ours = own_part * torch.cos(angle) + turned * torch.sin(angle)
        assert np.array_equal(theirs[:, channel::2], ours.numpy())


def test_esmfold2_atoms_have_four_axes():
    config, module = own("esmfold2", "EsmFold2AtomEncoderConfig", "EsmFold2RotaryEmbedding")
    plan = plans.plan_from_config(
        config.to_dict() | {"model_type": "esmfold2"}, arithmetic="parity"
    )
    xyz = torch.tensor([[[1.5, -2.0, 30.25], [0.0, 4.0, 8.5]]])
    uid = torch.tensor([[3, 900]])
    cos, _ = module(xyz, uid, torch.float32)
    positions = recipes.positions(plan.position_recipe, xyz[0].tolist(), uid[0].tolist()).T
    angles = torch.from_numpy(planned_angles(plan, positions))
    assert plan.axes == 4
    assert np.array_equal(cos[0, :, : plan.pairs].numpy(), torch.cos(angles).numpy())


def test_efficientloftr_rotates_the_hidden_vector():
    config, module = own("efficientloftr", "EfficientLoFTRConfig", "EfficientLoFTRRotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity")
    inv_freq = module.inv_freq.tolist()
    assert plan.head_dim == plan.rotary_dim == config.hidden_size
    assert plan.model_frequencies == [omega for omega in inv_freq for _ in range(2)]
    assert plan.axis == [0, 1] * len(inv_freq)


def test_musicflamingo_rotates_frames_on_two_axes():
    config, module = own("musicflamingo", "MusicFlamingoConfig", "MusicFlamingoRotaryEmbedding")
    plan = plans.plan_from_config(config, part=".", arithmetic="parity")
    assert plan.model_frequencies == 2 * module.inv_freq.tolist()
    assert (plan.head_dim, plan.rotary_dim, plan.arithmetic) == (1280, 512, "parity_p4")


def test_small_differences():
    assert plans.plan_from_config(own("nanochat", "NanoChatConfig")[0]).sign == -1
    assert plans.plan_from_config(own("xcodec2", "Xcodec2Config")[0]).position_recipe == "head"
    clvp = plans.plan_from_config(own("clvp", "ClvpEncoderConfig")[0])
    assert (clvp.rotary_dim, clvp.rotated) == (32, "q k v")
    conformer = own("wav2vec2_conformer", "Wav2Vec2ConformerConfig")[0]
    assert not plans.plan_from_config(conformer).rotates
    conformer.position_embeddings_type = "rotary"
    assert plans.plan_from_config(conformer).rotated == "hidden"


def test_odd_widths_are_rounded_up_in_parity_alone():
    config, module = own("glm4_moe", "Glm4MoeConfig", "Glm4MoeRotaryEmbedding")
    plan = plans.plan_from_config(config, arithmetic="parity")
    assert plan.rotary_dim == 22
    assert plan.model_frequencies == module.inv_freq.tolist()
    with pytest.raises(plans.PlanError, match="21"):
        plans.plan_from_config(config)


def test_parts_of_composite_configs():
    config = own("qwen2_5_omni", "Qwen2_5OmniConfig")[0]
    facts = plans.config_facts(config)
    assert facts["part"] == "thinker_config.text_config"
    assert "thinker_config.vision_config" in facts["parts"]
    assert plans.config_facts(config, part="vision")["arithmetic"] == "parity_p2"
    assert plans.plan_from_config(config, part="vision").axes == 2
    dit = plans.plan_from_config(config, part="token2wav_config.dit_config")
    assert (dit.pairing, dit.rotated) == ("interleaved_to_half", "q k, head 0")


def test_old_vision_config_without_rope_keys():
    old = {
        "model_type": "qwen2_vl",
        "hidden_size": 1536,
        "num_attention_heads": 12,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "num_heads": 16},
    }
    plan = plans.plan_from_config(old, part="vision", arithmetic="parity")
    assert (plan.head_dim, plan.axes, plan.arithmetic) == (80, 2, "parity_p2")


def test_merged_patches_are_transformers():
    from transformers.vision_utils import get_vision_position_ids

    theirs = get_vision_position_ids(torch.tensor([[2, 4, 6]]), 2).T.numpy()
    assert np.array_equal(recipes.patch_merged(4, 6, merge=2, frames=2), theirs)
    with_time = get_vision_position_ids(torch.tensor([[2, 4, 6]]), 2, include_temporal=True)
    ours = recipes.patch_merged_frames(4, 6, merge=2, frames=2)
    assert np.array_equal(ours, with_time.T.numpy())


def test_dual_chunk_positions():
    got = recipes.chunked_query_positions(np.arange(0, 40, 7), chunk=16, local=4)
    assert got["key"].tolist() == [0, 7, 2, 9, 4, 11]
    assert got["successive"].tolist() == [12, 16, 14, 16, 16, 16]
    assert set(got["inter"].tolist()) == {16}
    assert got["successive_unclamped"].tolist() == [12, 19, 14, 21, 16, 23]
    assert got["inter_unclamped"].tolist() == [16, 23, 18, 25, 20, 27]

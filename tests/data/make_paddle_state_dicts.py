"""Writes paddle_state_dicts.json: names and shapes of what Paddle's own models keep.

Needs real Paddle (tests/requirements-peers.txt): `python tests/data/make_paddle_state_dicts.py`.
"""

import json
from pathlib import Path

MODELS = {
    "LeNet": {},
    "resnet18": {},
    "resnet50": {"num_classes": 10},
    "resnext50_32x4d": {"num_classes": 10},
    "wide_resnet50_2": {"num_classes": 10},
    "mobilenet_v2": {"scale": 0.5},
}


def main():
    import paddle

    found = {
        name: {
            "options": options,
            "state": {
                key: list(value.shape)
                for key, value in getattr(paddle.vision.models, name)(**options)
                .state_dict()
                .items()
            },
        }
        for name, options in MODELS.items()
    }
    text = json.dumps({"paddle_version": paddle.__version__, "models": found})
    Path(__file__).with_name("paddle_state_dicts.json").write_text(text + "\n")


if __name__ == "__main__":
    main()

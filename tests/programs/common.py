"""What programs share: numbers that need no random generator, and the list of all programs."""

from __future__ import annotations

import importlib
import inspect

import numpy as np

SUBJECTS = (
    "tensors",
    "arithmetic",
    "statistics",
    "inplace",
    "algebra",
    "gradients",
    "layers",
    "activations",
    "images",
    "sequences",
    "losses",
    "training",
    "optimizers",
    "generative",
    "learning",
    "data",
    "numerics",
    "randomness",
    "zoos",
)


def wave(*shape, phase=0.0, scale=1.0, dtype="float32"):
    """Numbers between -scale and scale, the same on every machine: no two rows alike."""
    n = np.arange(np.prod(shape, dtype=int), dtype="float64")
    return (scale * np.sin(1.7 * n + 0.3 * n**0.5 + phase)).reshape(shape).astype(dtype)


def set_weights(layer, scale=0.5):
    """Give every trained parameter of `layer` numbers of its own, in place of the random ones."""
    trained = [parameter for parameter in layer.parameters() if not parameter.stop_gradient]
    for k, parameter in enumerate(trained):
        shape = tuple(parameter.shape)
        parameter.set_value(wave(*shape, phase=k + 1.0, scale=scale, dtype="float32"))
    return layer


def blobs(count, classes=3, features=4):
    """A small classification problem: (inputs, labels), classes around different centres."""
    labels = np.arange(count) % classes
    centres = wave(classes, features, phase=2.0, scale=2.0)
    return centres[labels] + wave(count, features, phase=0.5, scale=0.4), labels.astype("int64")


def programs() -> dict:
    """Every program by name, such as `training.linear_regression`."""
    found = {}
    for subject in SUBJECTS:
        module = importlib.import_module(f"tests.programs.{subject}")
        for name, value in vars(module).items():
            if inspect.isfunction(value) and [*inspect.signature(value).parameters] == ["paddle"]:
                found[f"{subject}.{name}"] = value
    return found

"""The digits: what a sample is, and how train and test are told apart."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import minipaddle as paddle
from minipaddle.vision import datasets
from minipaddle.vision.datasets import Digits


def test_samples():
    image, label = Digits()[0]
    assert (image.shape, image.dtype, label.dtype) == ((1, 8, 8), np.float32, np.int64)
    np.testing.assert_array_equal(image[0] * 16, load_digits().images[0])
    assert label == load_digits().target[0]


def test_train_and_test_share_out_every_digit_of_every_class():
    train, test = Digits("train"), Digits("test")
    assert len(train) + len(test) == 1797
    both = np.concatenate([train.images, test.images]).reshape(1797, -1)
    everything = load_digits().data / 16
    np.testing.assert_array_equal(
        both[np.lexsort(both.T)], everything[np.lexsort(everything.T)].astype("float32")
    )
    for digit in range(10):
        in_test, whole = (test.labels == digit).sum(), (load_digits().target == digit).sum()
        assert in_test == whole // 5


def test_a_transform_sees_the_image_only():
    image, label = Digits("test", transform=lambda x: x[0] + 1)[3]
    assert image.shape == (8, 8)
    assert image.min() >= 1
    assert label.dtype == np.int64


def test_a_loader_makes_batches_of_them():
    images, labels = next(iter(paddle.io.DataLoader(Digits(), batch_size=32)))
    assert (images.shape, images.dtype) == ([32, 1, 8, 8], paddle.float32)
    assert (labels.shape, labels.dtype) == ([32], paddle.int64)


def test_another_mode():
    with pytest.raises(ValueError, match=r"mode='valid'.*\n  expected: 'train' or 'test'"):
        Digits("valid")


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install \"minipaddle\[book\]\""):
        Digits()


@pytest.mark.parametrize("name", ["vision.datasets.MNIST", "vision.datasets.Cifar10", "text.Imdb"])
def test_data_sets_that_would_be_downloaded(name):
    *path, last = name.split(".")
    space = paddle
    for part in path:
        space = getattr(space, part)
    with pytest.raises(AttributeError, match=f"paddle.{name}.*MiniPaddle downloads no data"):
        getattr(space, last)

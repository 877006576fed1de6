"""The digits: what a sample is, and how train and test are told apart."""

import gzip

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


@pytest.mark.parametrize(
    "name", ["vision.datasets.Flowers", "vision.datasets.Cifar10", "text.Imdb"]
)
def test_data_sets_that_would_be_downloaded(name):
    *path, last = name.split(".")
    space = paddle
    for part in path:
        space = getattr(space, part)
    with pytest.raises(AttributeError, match=f"paddle.{name}.*MiniPaddle downloads no data"):
        getattr(space, last)


# ---- MNIST -----------------------------------------------------------------------------------


def written(folder, pack, images, labels):
    """The two files of MNIST, as LeCun describes them."""
    paths = []
    for name, array in (("images", images), ("labels", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        data = head + array.astype("uint8").tobytes()
        path = folder / name
        path.write_bytes(gzip.compress(data) if pack else data)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("pack", [True, False])
def test_mnist_reads_files(tmp_path, pack):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (5, 28, 28)), np.arange(5)
    paths = written(tmp_path, pack, images, labels)
    data = paddle.vision.datasets.MNIST(*paths, backend="cv2")
    assert len(data) == 5
    np.testing.assert_array_equal(data[3][0], images[3])
    assert (data[3][0].dtype, data[3][1].tolist()) == (np.float32, [3])
    picture, label = paddle.vision.datasets.FashionMNIST(*paths, mode="test")[4]
    np.testing.assert_array_equal(np.asarray(picture), images[4])
    assert label.dtype == np.int64
    scaled = paddle.vision.datasets.MNIST(*paths, transform=paddle.vision.transforms.ToTensor())
    np.testing.assert_allclose(scaled[1][0].numpy()[0], images[1] / 255, rtol=1e-6)


def test_mnist_downloads_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    MNIST = paddle.vision.datasets.MNIST
    with pytest.raises(FileNotFoundError, match=r"mnist.train-images.*downloads no data"):
        MNIST()
    images, labels = written(tmp_path, False, np.zeros((2, 3, 3)), np.zeros(3))
    with pytest.raises(ValueError, match=r"3 labels in .* for 2 images"):
        MNIST(images, labels)
    with pytest.raises(ValueError, match=r"it begins with 00 00 08 01"):
        MNIST(labels, labels)

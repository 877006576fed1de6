"""Data sets, loaders, files, and `paddle.Model`."""

import os
import tempfile

import numpy as np

from tests.programs.common import blobs, set_weights, wave


def dataset_and_loader(paddle):
    """A map-style data set in batches, with and without the last one."""

    class Squares(paddle.io.Dataset):
        def __init__(self, count):
            super().__init__()
            self.count = count

        def __getitem__(self, k):
            return np.array([k, k * k], "float32"), k % 2

        def __len__(self):
            return self.count

    data = Squares(7)
    loader = paddle.io.DataLoader(data, batch_size=3, drop_last=False)
    batches = [[x, y] for x, y in loader]
    shuffled = paddle.io.DataLoader(data, batch_size=7, shuffle=True)
    (x, _) = next(iter(shuffled))
    return {
        "batches": batches,
        "length": [
            len(data),
            len(loader),
            len(paddle.io.DataLoader(data, batch_size=3, drop_last=True)),
        ],
        "complete": paddle.sort(x[:, 0]),
        "places": [type(v).__name__ for v in batches[0]],
    }


def collate(paddle):
    """Sequences of different length, padded to the longest of the batch."""
    words = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]

    class Words(paddle.io.Dataset):
        def __getitem__(self, k):
            return words[k]

        def __len__(self):
            return len(words)

    def pad(batch):
        longest = max(map(len, batch))
        rows = [row + [0] * (longest - len(row)) for row in batch]
        return paddle.to_tensor(rows), paddle.to_tensor([len(row) for row in batch])

    loader = paddle.io.DataLoader(Words(), batch_size=2, collate_fn=pad)
    found = []
    for ids, lengths in loader:
        mask = paddle.nn.functional.sequence_mask(lengths, maxlen=ids.shape[1], dtype="float32")
        found.append([ids, lengths, (ids.astype("float32") * mask).sum(axis=1)])
    return found


def streams_and_samplers(paddle):
    """Iterable data, tensors as a data set, batches chosen by hand."""
    io = paddle.io

    class Countdown(io.IterableDataset):
        def __iter__(self):
            for k in range(5, 0, -1):
                yield np.float32(k)

    table = io.TensorDataset([paddle.to_tensor(wave(4, 2)), paddle.arange(4)])
    first, second = io.random_split(table, [3, 1])
    sampler = io.BatchSampler(sampler=io.SequenceSampler(table), batch_size=3, drop_last=False)
    loader = io.DataLoader(table, batch_sampler=sampler)
    return {
        "stream": [batch * 2 for batch in io.DataLoader(Countdown(), batch_size=2)],
        "row": table[2],
        "sizes": [len(first), len(second), len(io.Subset(table, [0, 2]))],
        "batches": list(sampler),
        "labels": [y for _, y in loader],
        "nested": next(iter(io.DataLoader(Pairs(io), batch_size=2))),
    }


def Pairs(io):
    """A data set whose samples are dictionaries."""

    class Dictionaries(io.Dataset):
        def __getitem__(self, k):
            return {"x": np.full(2, k, "float32"), "y": float(k)}

        def __len__(self):
            return 2

    return Dictionaries()


def checkpoint(paddle):
    """Training is saved, goes on, and is put back: the second time is like the first."""
    nn, F = paddle.nn, paddle.nn.functional
    x, y = (paddle.to_tensor(v) for v in blobs(12))

    net = set_weights(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)))
    opt = paddle.optimizer.AdamW(0.05, parameters=net.parameters())

    def train(steps):
        for _ in range(steps):
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
        return loss.item()

    train(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        paddle.save(net.state_dict(), path + ".pdparams")
        paddle.save(opt.state_dict(), path + ".pdopt")
        straight = train(3)
        net.set_state_dict(paddle.load(path + ".pdparams"))
        opt.set_state_dict(paddle.load(path + ".pdopt"))
        resumed = train(3)
        names = sorted(os.listdir(folder))
    return straight, abs(straight - resumed) < 1e-6, names


def saving_objects(paddle):
    """Tensors in dictionaries and lists survive a file."""
    state = {"step": 3, "rate": 0.5, "name": "run", "weights": [paddle.ones([2]), wave(2)]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pd")
        paddle.save(state, path)
        back = paddle.load(path)
        arrays = paddle.load(path, return_numpy=True)
        paddle.save(paddle.arange(3), path)
        single = paddle.load(path)
    return back["step"], back["rate"], back["name"], back["weights"], single, arrays["weights"][0]


def model_fit(paddle):
    """`paddle.Model`: fit with a callback, evaluate, predict."""
    nn = paddle.nn

    class Blobs(paddle.io.Dataset):
        def __init__(self):
            self.x, self.y = blobs(20)

        def __getitem__(self, k):
            return self.x[k], self.y[k : k + 1]

        def __len__(self):
            return 20

    class Log(paddle.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.calls, self.losses = [], []

        def on_train_begin(self, logs=None):
            self.calls.append("begin")

        def on_epoch_end(self, epoch, logs=None):
            self.calls.append(f"epoch {epoch}")
            self.losses.append(float(np.asarray(logs["loss"]).reshape(-1)[0]))

        def on_train_end(self, logs=None):
            self.calls.append("end")

    net = set_weights(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)))
    model, log = paddle.Model(net), Log()
    opt = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    model.prepare(opt, nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    model.fit(Blobs(), epochs=3, batch_size=8, shuffle=False, verbose=0, callbacks=[log])
    scores = model.evaluate(Blobs(), batch_size=8, verbose=0)
    outputs = model.predict(Blobs(), batch_size=8, stack_outputs=True, verbose=0)
    return {
        "calls": log.calls,
        "losses": log.losses,
        "scores": [float(np.asarray(scores["loss"]).reshape(-1)[0]), float(scores["acc"])],
        "shape": list(outputs[0].shape),
        "head": outputs[0][:2],
        "batch": [
            float(v) for v in np.ravel(model.eval_batch([wave(2, 4)], [np.array([[0], [1]])])[0])
        ],
    }


def summary(paddle):
    """The table of layers."""
    nn = paddle.nn
    net = nn.Sequential(nn.Conv2D(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))
    found = paddle.summary(net, (1, 1, 6, 6))
    return {key: int(value) for key, value in found.items()}


def transforms(paddle):
    """Pictures become tensors."""
    t = paddle.vision.transforms
    picture = (wave(4, 6, 3) * 127 + 128).astype("uint8")
    to_tensor = t.ToTensor()(picture)
    normal = t.Normalize(mean=[0.5] * 3, std=[0.5] * 3)(to_tensor)
    composed = t.Compose([t.ToTensor(), t.Normalize(mean=[0.0] * 3, std=[2.0] * 3)])(picture)
    return to_tensor[0], normal[1], composed.mean(), t.Transpose()(picture).shape

"""GPT: PyTorch's numbers, no look into the future, and that it learns to write."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import minipaddle as paddle
from minipaddle.text.gpt import GPT

F = paddle.nn.functional


def small(**options):
    paddle.seed(0)
    return GPT(**{"vocab_size": 7, "width": 12, "layers": 2, "heads": 3, "context": 9, **options})


def tokens(rows=2, length=6):
    return np.random.default_rng(0).integers(0, 7, (rows, length))


def torch_gpt(x, w, heads=3, layers=2):
    """The same network as a formula."""

    def norm(x, name):
        return TF.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    h = w["tokens.weight"][x] + w["places.weight"][: x.shape[1]]
    for k in range(layers):
        b = f"blocks.{k}"
        q, k_, v = (
            part.unflatten(-1, (heads, -1)).transpose(1, 2)
            for part in linear(norm(h, f"{b}.norm1"), f"{b}.attention.qkv").chunk(3, -1)
        )
        mixed = TF.scaled_dot_product_attention(q, k_, v, is_causal=True)
        h = h + linear(mixed.transpose(1, 2).flatten(2), f"{b}.attention.out")
        h = h + linear(TF.gelu(linear(norm(h, f"{b}.norm2"), f"{b}.mlp.0")), f"{b}.mlp.2")
    h = norm(h, "norm")
    return h @ (w["head.weight"] if "head.weight" in w else w["tokens.weight"].T)


@pytest.mark.parametrize("tied", [True, False])
def test_scores_and_gradients_against_torch(tied):
    net = small(tied=tied)
    rng = np.random.default_rng(1)
    for p in net.parameters():
        p.set_value(rng.normal(scale=0.5, size=p.shape).astype("float32"))
    w = {k: torch.tensor(p.numpy(), requires_grad=True) for k, p in net.named_parameters()}
    x, y = tokens(), tokens()[:, ::-1].copy()
    ours, theirs = net(paddle.to_tensor(x)), torch_gpt(torch.tensor(x), w)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=1e-4)
    F.cross_entropy(ours, paddle.to_tensor(y)).backward()
    TF.cross_entropy(theirs.flatten(0, 1), torch.tensor(y).flatten()).backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(
            p.grad.numpy(), w[name].grad.numpy(), rtol=1e-3, atol=1e-5, err_msg=name
        )


def test_later_tokens_do_not_change_earlier_scores():
    net, x = small().eval(), tokens()
    before = net(paddle.to_tensor(x)).numpy()
    x[:, 4] = (x[:, 4] + 1) % 7
    after = net(paddle.to_tensor(x)).numpy()
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-7)
    assert abs(before[:, 4:] - after[:, 4:]).max(axis=(0, 2)).min() > 1e-5


def test_tied_weights_are_one_parameter():
    def count(net):
        return sum(p.size for p in net.parameters())

    assert count(small(tied=False)) - count(small(tied=True)) == 7 * 12


def test_fresh_weights_have_the_spread_of_the_paper():
    net = small(width=120, layers=8)
    assert net.blocks[0].attention.qkv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert net.blocks[0].mlp[2].weight.std().item() == pytest.approx(0.02 / 4, rel=0.05)
    assert paddle.nn.functional.softmax(net(paddle.to_tensor(tokens()))).max().item() < 0.5


def test_dropout_only_while_training():
    net, x = small(dropout=0.5), paddle.to_tensor(tokens())
    assert not paddle.allclose(net(x), net(x))
    net.eval()
    assert paddle.allclose(net(x), net(x))


def test_it_learns_to_repeat():
    net, x = small(), paddle.to_tensor([[0, 1, 2, 3] * 2])
    optimizer = paddle.optimizer.AdamW(0.02, parameters=net.parameters())
    first = None
    for _ in range(40):
        loss = F.cross_entropy(net(x[:, :-1]), x[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        first = first or loss.item()
    assert loss.item() < 0.1 < first
    written = net.generate(x[:, :2], 10, temperature=0)
    assert written.tolist() == [[0, 1, 2, 3] * 3]  # longer than the context of 9
    assert net.training
    assert all(p.grad is None or not p.grad.any() for p in net.parameters())


def test_generate_takes_the_likeliest_at_temperature_0():
    net, x = small(), paddle.to_tensor(tokens())
    net.eval()
    expected = net(x)[:, -1].argmax(-1)
    assert net.generate(x, 1, temperature=0)[:, -1].tolist() == expected.tolist()
    assert net.generate(x, 1, top_k=1)[:, -1].tolist() == expected.tolist()
    assert not net.training


def test_generate_follows_the_seed():
    net, x = small(), paddle.to_tensor(tokens())
    drawn = [paddle.seed(s) and net.generate(x, 8).tolist() for s in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: small(heads=5), "GPT of width 12\n  expected: a multiple of heads=5"),
        (lambda: small()(paddle.to_tensor(tokens(1, 10))), "10 tokens\n  expected: at most conte"),
        (lambda: small().generate(paddle.to_tensor(tokens()), 1, -1), "temperature=-1"),
    ],
)
def test_errors(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_a_missing_name():
    with pytest.raises(AttributeError, match=r"nearest name is paddle\.text\.GPT"):
        _ = paddle.text.Gpt2

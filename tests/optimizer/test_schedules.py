"""Schedules against the rates Paddle 3.3 gave (measured, in data/), and what they refuse."""

import json
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.optimizer import lr

MEASURED = json.loads((Path(__file__).parent / "data/paddle_schedules.json").read_text("utf-8"))


def made(case):
    """The schedule of a measured case; a list stands for a schedule within."""
    args = dict(case["args"])
    if isinstance(args.get("learning_rate"), list):
        kind, inner = args["learning_rate"]
        args["learning_rate"] = getattr(lr, kind)(**inner)
    return getattr(lr, case["class"])(**args)


@pytest.mark.parametrize("name", MEASURED)
def test_the_rates_are_paddles(name):
    case, rate = MEASURED[name], made(MEASURED[name])
    seen = [rate()]
    for _ in case["values"][1:]:
        rate.step()
        seen.append(rate())
    assert seen == pytest.approx(case["values"], rel=1e-9, abs=1e-12)
    rate.step(7)
    assert rate() == pytest.approx(case["at 7"], rel=1e-9)
    assert rate.last_epoch == 7


@pytest.mark.parametrize("name", MEASURED)
def test_a_saved_schedule_goes_on(name):
    rate, other = made(MEASURED[name]), made(MEASURED[name])
    for _ in range(7):
        rate.step()
    other.set_state_dict(json.loads(json.dumps(rate.state_dict())))
    assert other() == rate()
    rate.step()
    other.step()
    assert other() == rate()


METRICS = [1.0, 0.9, 0.9, 0.95, 0.9, 0.9, 0.9, 0.8, 0.85, 0.8, 0.8, 0.8, 0.8]


@pytest.mark.parametrize(
    ("options", "exponents"),
    [  # how often 0.5 was multiplied by 0.1, as measured
        ({"patience": 1}, [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4]),
        (
            {
                "patience": 0,
                "mode": "max",
                "threshold_mode": "abs",
                "threshold": 0.05,
                "cooldown": 2,
            },
            [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
        ),
    ],
)
def test_reduce_on_plateau_is_paddles(options, exponents):
    rate = lr.ReduceOnPlateau(0.5, **options)
    seen = []
    for metric in METRICS:
        rate.step(paddle.to_tensor(metric))
        seen.append(rate())
    assert seen == pytest.approx([0.5 * 0.1**e for e in exponents])
    assert sorted(rate.state_dict()) == sorted(
        ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
    )


def test_reduce_on_plateau_stops_at_the_lowest_rate(capsys):
    rate = lr.ReduceOnPlateau(0.5, patience=0, factor=0.5, min_lr=0.2, verbose=True)
    for _ in range(6):
        rate.step(1.0)
    assert rate() == 0.2
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 2: ReduceOnPlateau set learning rate to 0.25.",
        "Epoch 3: ReduceOnPlateau set learning rate to 0.2.",
    ]


def test_nan_is_no_improvement():
    rate = lr.ReduceOnPlateau(0.5, patience=1, factor=0.5)
    for metric in (float("nan"), float("nan"), 1.0):
        rate.step(metric)
    assert rate() == 0.25
    assert rate.best == 1.0


def test_functions_as_schedules():
    decay = lr.LambdaDecay(0.5, lambda t: 0.9**t)
    product = lr.MultiplicativeDecay(0.5, lambda t: 1 / t)
    for rate in (decay, product):
        for _ in range(3):
            rate.step()
    assert decay() == pytest.approx(0.5 * 0.9**3)
    assert product() == pytest.approx(0.5 / 6)


def test_a_cycle_of_ones_own():
    rate = lr.CyclicLR(0.0, 1.0, 1, scale_fn=lambda i: 1 / (i + 1), scale_mode="iterations")
    rate.step()
    assert rate() == 0.5


def test_verbose_says_each_rate(capsys):
    lr.StepDecay(0.1, 2, verbose=True).step()
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 0: StepDecay set learning rate to 0.1.",
        "Epoch 1: StepDecay set learning rate to 0.1.",
    ]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: lr.StepDecay(0.1, 2.5), TypeError, "step_size must be an int"),
        (lambda: lr.StepDecay(0.1, 2, gamma=1.5), ValueError, "gamma must be below 1"),
        (lambda: lr.StepDecay("a", 2), TypeError, "learning_rate must be a float"),
        (lambda: lr.StepDecay(-1.0, 2), ValueError, "negative"),
        (lambda: lr.MultiStepDecay(0.1, [3, 2]), ValueError, "must increase"),
        (lambda: lr.MultiStepDecay(0.1, 3), TypeError, "list or tuple"),
        (lambda: lr.MultiStepDecay(0.1, [2], 1.2), ValueError, "gamma"),
        (lambda: lr.LambdaDecay(0.1, 3), TypeError, "function"),
        (lambda: lr.NoamDecay(0, 1), ValueError, "d_model"),
        (lambda: lr.PolynomialDecay(0.1, 0), ValueError, "decay_steps"),
        (lambda: lr.PolynomialDecay(0.1, 2, power=0), ValueError, "power"),
        (lambda: lr.LinearWarmup(0.1, 5, 0.5, 0.1), ValueError, "greater than start_lr"),
        (lambda: lr.LinearWarmup("a", 5, 0.1, 0.5), TypeError, "schedule"),
        (lambda: lr.ExponentialDecay(0.1, 1.0), ValueError, "gamma"),
        (lambda: lr.PiecewiseDecay([1], [1.0]), ValueError, "2 pieces"),
        (lambda: lr.ReduceOnPlateau(0.1, mode="x"), ValueError, "mode must be one of"),
        (lambda: lr.ReduceOnPlateau(0.1, factor=1.5), ValueError, "factor"),
        (lambda: lr.ReduceOnPlateau(0.1).step("a"), TypeError, "metrics must be a number"),
        (lambda: lr.ReduceOnPlateau(0.1).step(), TypeError, "needs the number"),
        (lambda: lr.CosineAnnealingDecay(0.1, 0), ValueError, "T_max"),
        (lambda: lr.CosineAnnealingWarmRestarts(0.1, 0), ValueError, "T_0"),
        (lambda: lr.OneCycleLR(0.1, -1), ValueError, "total_steps"),
        (lambda: lr.OneCycleLR(0.1, 5, phase_pct=2), ValueError, "phase_pct"),
        (lambda: lr.OneCycleLR(0.1, 5, phase_pct=0.7, three_phase=True), ValueError, "at most"),
        (lambda: lr.OneCycleLR(0.1, 5, anneal_strategy="x"), ValueError, "'cos', 'linear'"),
        (lambda: lr.CyclicLR(0.1, 0.5, -3), ValueError, "step_size_up"),
        (lambda: lr.CyclicLR(0.1, 0.5, 3, mode="x"), ValueError, "mode"),
        (lambda: lr.LinearLR(0.1, 5, start_factor=2.0), ValueError, "start_factor"),
        (lambda: lr.LinearLR(0.1, 5, end_factor=2.0), ValueError, "end_factor"),
        (lambda: lr.LRScheduler(0.1), NotImplementedError, "get_lr"),
        (lambda: lr.StepDecay(0.1, 2).set_state_dict({}), RuntimeError, "lacks 'last_epoch'"),
    ],
)
def test_what_is_refused_is_explained(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_one_cycle_ends():
    rate = lr.OneCycleLR(0.1, 3)
    for _ in range(3):
        rate.step()
    with pytest.raises(ValueError, match="made for 3 steps"):
        rate.step()

"""The line that reports the progress of training, in Paddle's words."""

import time

WIDTH = 30


def format_value(name: str, value) -> str:
    """`- loss: 0.1234` for a number, or for a list of them."""
    values = value if isinstance(value, list | tuple) else [value]
    return f"- {name}: " + " ".join(map(number, values))


def number(value) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"
    return str(value)


def pace(seconds: float) -> str:
    """`2ms/step`."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.0f}{unit}/step"
    return f"{seconds * 1e6:.0f}us/step"


class ProgressLine:
    """The progress of one pass over `steps` batches (None if not known beforehand).

    With `live`, a bar that is redrawn on a terminal; elsewhere, and without it, plain lines.
    """

    def __init__(self, steps: int | None, live: bool):
        self.steps, self.live = steps, live
        self.start, self.bar = time.perf_counter(), None
        if live:
            self.draw_bar()

    def draw_bar(self) -> None:
        """Begin the bar, if this is a terminal."""
        from rich.console import Console  # takes a while to import
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(highlight=False, soft_wrap=True)
        if console.is_terminal:
            self.bar = Progress(
                TextColumn("step {task.completed}/{task.total}"),
                BarColumn(WIDTH),
                TextColumn("{task.fields[values]}"),
                console=console,
            )
            self.task = self.bar.add_task("", total=self.steps, values="")
            self.bar.start()

    def text(self, step: int, values: dict) -> str:
        """The text for `values` after `step` batches."""
        spent = (time.perf_counter() - self.start) / max(step, 1)
        return " ".join([*(format_value(k, v) for k, v in values.items()), f"- {pace(spent)}"])

    def update(self, step: int, values: dict) -> None:
        """Report the progress."""
        text = self.text(step, values)
        if self.bar is not None:
            self.bar.update(self.task, completed=step, values=text)
        elif not self.live:
            print(f"step {step}/{self.steps or 'Unknown'} {text}", flush=True)

    def close(self, step: int, values: dict) -> None:
        """Say it for the last time."""
        if self.bar is not None:
            self.update(step, values)
            self.bar.stop()
        elif self.live:
            full = f"[{'=' * WIDTH}]"
            print(f"step {step}/{self.steps or step} {full} {self.text(step, values)}", flush=True)
        else:
            self.update(step, values)

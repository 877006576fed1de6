"""The jobs of one stage of a schedule, on real micro-batches."""

from collections.abc import Callable
from time import perf_counter

from ...core.prelude import Recording, Tensor, current
from ..simulator.timeline import Activity
from .messages import Neighbours, make_like
from .parts import Part
from .schedules import Job, Schedule


class Runner:
    """The jobs of a stage.

    schedule: the jobs; `stage` is the number of this stage
    parts: this stage's parts of the model, by chunk
    neighbours: carries tensors to and from other stages
    start: called before each forward, with the micro-batch and the part
    """

    def __init__(
        self, schedule: Schedule, stage: int, parts: list[Part], neighbours: Neighbours,
        start: Callable = lambda micro_batch, part: None,
    ):  # fmt: skip
        self.schedule, self.stage, self.parts = schedule, stage, parts
        self.neighbours, self.start = neighbours, start
        self.spans: list[Activity] = []
        """The times of this stage's jobs of the last batch, in seconds of its clock."""

    def train(self, data_of: Callable, seed: float) -> list[Tensor]:
        """Do all jobs: add gradients to the weights'. Return the losses of the micro-batches in the
        last part's stage; [] elsewhere.

        data_of: called with a micro-batch and a part; the tensors of the data that the part takes
            after the results of the part before it
        seed: the gradient of each element of a loss
        """
        self.data_of, self.seed = data_of, seed
        self.here, self.likes, self.losses, self.spans = {}, {}, [], []
        for job in self.schedule.jobs[self.stage]:
            DO[job.kind](
                self, self.parts[job.chunk], job, self.schedule.find_part(self.stage, job.chunk)
            )
        self.neighbours.finish()
        return self.losses

    def evaluate(self, data_of: Callable) -> list[list[Tensor]]:
        """The results of the last part for each micro-batch, in its stage; [] elsewhere."""
        self.data_of, self.here, outputs = data_of, {}, []
        forwards = [job for job in self.schedule.jobs[self.stage] if job.kind == "F"]
        with Recording(False):
            for job in forwards:
                part = self.schedule.find_part(self.stage, job.chunk)
                results = self.results_of(self.parts[job.chunk], job, part)
                self.parts[job.chunk].kept.clear()
                outputs += [results] if part == self.schedule.parts - 1 else []
        self.neighbours.finish()
        return outputs

    # ---- jobs --------------------------------------------------------------------------------

    def forward(self, chunk: Part, job: Job, part: int) -> None:
        results = self.results_of(chunk, job, part)
        if part == self.schedule.parts - 1:
            self.losses.append(results[0].detach())
        self.likes[part] = [make_like(y) for y in results if not y.stop_gradient]

    def results_of(self, chunk: Part, job: Job, part: int) -> list[Tensor]:
        """Compute the result of a part for a micro-batch, and pass it on."""
        last, k = part == self.schedule.parts - 1, job.micro_batch
        inputs = self.take("F", k, part - 1, part) if part else []
        self.start(k, part)
        results = self.time_job(job, chunk.forward, k, [*inputs, *self.data_of(k, part)])
        if not last:
            self.pass_on("F", k, results, part, part + 1)
        return results

    def backward(self, chunk: Part, job: Job, part: int) -> None:
        method = chunk.backward if job.kind == "B" else chunk.backward_inputs
        if part == self.schedule.parts - 1:
            loss = self.losses[job.micro_batch]
            result_gradients = [current.top.full(loss.spec, self.seed, loss)]
        else:
            result_gradients = self.take("B", job.micro_batch, part + 1, part)
        gradients = self.time_job(job, method, job.micro_batch, result_gradients)
        if part:
            self.pass_on("B", job.micro_batch, gradients, part, part - 1)

    def backward_weights(self, chunk: Part, job: Job, part: int) -> None:
        self.time_job(job, chunk.backward_weights, job.micro_batch)

    def time_job(self, job: Job, function, *args):
        """The result of a job's computation; note its time."""
        start = perf_counter()
        result = function(*args)
        self.spans.append(Activity(self.stage, "compute", str(job), start, perf_counter()))
        return result

    # ---- tensors between parts ---------------------------------------------------------------

    def pass_on(self, way: str, k: int, tensors: list[Tensor], part: int, to: int) -> None:
        """Pass tensors to a neighbouring part, in this stage or in another."""
        stage, _ = self.schedule.locate(to)
        if stage == self.stage:
            self.here[way, k, to] = tensors
        else:
            self.neighbours.send(tensors, stage, tag_of(way, to), way == "F" and k == 0)

    def take(self, way: str, k: int, part: int, to: int) -> list[Tensor]:
        """Take the tensors of a neighbouring part."""
        stage, _ = self.schedule.locate(part)
        if stage == self.stage:
            return self.here.pop((way, k, to))
        likes = self.likes[to] if way == "B" else None
        return self.neighbours.receive(stage, tag_of(way, to), way == "F" and k == 0, likes)


DO = {
    "F": Runner.forward,
    "B": Runner.backward,
    "I": Runner.backward,
    "W": Runner.backward_weights,
}
"""The function that does a job, by its kind."""


def tag_of(way: str, part: int) -> int:
    """The tag of messages to a part, which arrive in their order: forwards, or backwards."""
    return 2 * part + (way == "B")

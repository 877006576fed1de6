"""Distillation: losses by which a student learns from a teacher.

A small network learns what a large one says, not what the label says. Write two losses, functions
of tensors that return a 0-D tensor. Gradients reach the student, never the teacher.

- `soft_label(teacher, student, teacher_temperature=1.0, student_temperature=1.0)`: both are scores
  [batch, classes], before softmax. Divide each by its temperature, make probabilities of the
  teacher's and logarithms of probabilities of the student's, and return the mean over the batch of
  the cross entropies, -Σ p log q. Scores may be large: a softmax may round to 0, whose logarithm is
  not to be taken; `F.log_softmax` is exact.
- `attention_transfer(teacher, student)`: both are features [batch, channels, height, width]; their
  channels may differ in number. The map of one image is the mean over the channels of the squares,
  laid flat, and divided by its length, so that only *where* counts, not how much. Return the mean
  square of the difference of the maps. `F.normalize` divides by the length and knows what to do
  with a map of zeros.

    teacher [[2.0, 0.0]], student [[2.0, 0.0]], both temperatures 2  ->  0.5822

Sources: Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015; Zagoruyko
and Komodakis, "Paying more attention to attention", 2017.
"""

import minipaddle.nn.functional as F


def soft_label(teacher, student, teacher_temperature=1.0, student_temperature=1.0):
    """The mean cross entropy of the softened scores."""
    raise NotImplementedError


def attention_transfer(teacher, student):
    """The mean square of the difference of the maps."""
    raise NotImplementedError

"""A beam: the likeliest letters, not the likeliest path.

A reader gives each column of a line probabilities of labels. To take the likeliest label of each
column is quick. But many paths spell the same letters, and their probabilities add up:

    two columns, each: blank 0.6, letter 1: 0.4
    the likeliest path is blank, blank: 0.36, no letter
    the paths 1 1, blank 1 and 1 blank all spell "1": 0.16 + 0.24 + 0.24 = 0.64

There are too many paths to list. So go column by column, and keep the `width` likeliest
*beginnings* of letters. Write `decode_beams(probabilities, width=8, blank=0)`: `probabilities` is
an array, or a list, [T, classes]. Return the `width` likeliest sequences of letters, best first, as
a list of pairs: a list of ints, and the log of the sum of the probabilities of its paths. What has
no probability is left out, so there may be fewer.

Keep two numbers for each beginning: the probability of its paths that end with a blank, and of
those that end with its last letter. At first there is one beginning, without letters: (1, 0). In a
column, for each beginning and each label with probability p:

- the blank: the same letters; both numbers times p come to the first one;
- the last letter again: the second number times p stays with the same letters, the first one times
  p comes to the letters with that letter once more;
- another letter: both numbers times p come to the letters with it at the end.

The same letters may be reached in several of these ways: add up. After each column keep the `width`
for which the sum of both numbers is largest. (What is forgotten is missing in later sums, which are
a little too small then. With a width that keeps all they are exact.)

A line may have hundreds of columns, and the product of so many probabilities is 0 for a float. So
calculate with logs: products become sums, and sums become `np.logaddexp(x, y)`, which takes -inf,
the log of 0, as well. numpy.log warns of 0: `with np.errstate(divide="ignore")`.

    decode_beams([[0.6, 0.4], [0.6, 0.4]])  ->  [([1], log 0.64), ([], log 0.36)]

Source: Graves and Jaitly, "Towards end-to-end speech recognition with recurrent neural networks"
(2014), algorithm 1.
"""

import numpy as np


def decode_beams(probabilities, width=8, blank=0):
    """The likeliest letters, each with the log of its probability, best first."""
    with np.errstate(divide="ignore"):
        columns = np.log(np.asarray(probabilities, "float64"))
    beams = {(): (0.0, -np.inf)}
    for column in columns:
        grown = {}
        for letters, (at_blank, at_letter) in beams.items():
            both = np.logaddexp(at_blank, at_letter)
            for label, p in enumerate(column):
                if label == blank:
                    _add(grown, letters, both + p, -np.inf)
                elif letters and label == letters[-1]:
                    _add(grown, letters, -np.inf, at_letter + p)
                    _add(grown, (*letters, label), -np.inf, at_blank + p)
                else:
                    _add(grown, (*letters, label), -np.inf, both + p)
        likely = sorted(grown, key=lambda letters: -np.logaddexp(*grown[letters]))
        beams = {letters: grown[letters] for letters in likely[:width]}
    scores = [(list(letters), float(np.logaddexp(*both))) for letters, both in beams.items()]
    return [(letters, score) for letters, score in scores if score > -np.inf]


def _add(beams, letters, at_blank, at_letter):
    """Add to both numbers of a beginning."""
    before = beams.get(letters, (-np.inf, -np.inf))
    beams[letters] = np.logaddexp(before[0], at_blank), np.logaddexp(before[1], at_letter)

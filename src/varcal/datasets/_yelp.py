"""Yelp sentences, with the out-of-sample predictions of a fine-tuned transformer."""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray
from varcal.datasets._dataset import Dataset, bundled

COUNTS = ("length", "special_characters", "words")
#: Each proportion, and the stored count that is divided by the number of words.
PROPORTIONS = {
    f"{word}_proportion": f"{word}s"
    for word in ("stop_word", "noun", "verb", "adjective", "adverb", "pronoun", "determiner")
} | {"preposition_proportion": "prepositions"}

DESCRIPTION = (
    "Sentences from Yelp reviews: is the sentence from a positive review? p is P(positive) of a "
    "MiniLM transformer that was fine-tuned on 70,500 other sentences. Numbers only, no text."
)
SOURCE = (
    "Sentences of the Yelp sentiment corpus of Shen, T., Lei, T., Barzilay, R. & Jaakkola, T. "
    "(2017), Style Transfer from Non-Parallel Text by Cross-Alignment, taken from the Yelp "
    "Dataset, https://www.yelp.com/dataset; numbers computed by tools/train_yelp.py."
)
LICENCE = (
    "The numbers are under the licence of varcal. The sentences, which are subject to the terms of "
    "the Yelp Dataset, are not included and cannot be restored from the numbers."
)


def load_yelp() -> Dataset:
    r"""Return 29,500 sentences from Yelp reviews, as numbers, with a transformer's predictions.

    This is a rerun of the paper's Yelp experiment, whose outputs are not public: a transformer
    fine-tuned to classify reviews as positive or negative, with the paper's numbers of rows (70,500
    for training, 10,000 for calibration, 19,500 for testing). There are two differences. The rows
    are single sentences of at most 15 words with the label of their review; the paper has whole
    reviews. And the model is MiniLM (6 layers) instead of BERT; all its layers were trained for one
    epoch. Each sentence occurs only once, so none of these rows was used for training. Like the
    paper's, the model is nearly always right, but overconfident: it is right in 96.8 % of the test
    rows, with a mean confidence of 98.0 %. ``tools/train_yelp.py`` in the source repository creates
    the file.

    Returns
    -------
    Dataset
        y is 1 if the review is positive; p is P(y = 1), computed from a stored logit, so that 1 − p
        is precise as well. split is "calibration" or "test". X has the variables

        - length: characters of the tokenized sentence, spaces included;
        - special_characters: characters other than letters, digits and spaces;
        - words: tokens with a letter or a digit in them;
        - stop_word_proportion: the share of the words that are in scikit-learn's English list;
        - noun_, verb_, adjective_, adverb_, pronoun_, determiner_ and preposition_proportion: their
          shares of the words, by TextBlob's PatternTagger.

        The proportions of a sentence without words are 0. The paper's count of named entities is
        missing: no recognizer was found that pip installs together with its model.

    References
    ----------
    Shen, Lei, Barzilay & Jaakkola (2017), Style Transfer from Non-Parallel Text by Cross-Alignment
    (the sentences). Kelly & Smyth (2023), Variable-Based Calibration for Machine Learning
    Classifiers.

    Examples
    --------
    >>> yelp = load_yelp()
    >>> yelp
    Dataset('yelp', 29,500 rows, 11 variables)
    >>> fit, held = yelp.part("calibration"), yelp.part("test")
    >>> len(fit), len(held)
    (10000, 19500)
    """
    stored = bundled("yelp")
    words = np.maximum(stored["words"].astype(np.int64), 1)
    X: dict[str, AnyArray] = {name: stored[name].astype(np.int64) for name in COUNTS}
    X |= {name: stored[count] / words for name, count in PROPORTIONS.items()}
    return Dataset(
        *("yelp", DESCRIPTION, SOURCE, LICENCE),
        y=stored["y"].astype(np.int64),
        p=1 / (1 + np.exp(-stored["logit"].astype(np.float64))),
        X=X,
        split=stored["split"],
    )

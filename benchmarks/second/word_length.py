"""Chapter 10's lengths of words, told from the letters around: scikit-learn, and rows in turn.

Run: python -m benchmarks.second word_length
"""

import re

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import OneHotEncoder

from benchmarks.bert import page_definitions


def main() -> None:
    page = page_definitions()
    text = [page["text_of"](row) for row in page["probe_rows"]]
    around, length, row = [], [], []
    for number, line in enumerate(text):
        wide = "\0" * 3 + line + "\0" * 3
        for word in re.finditer("[a-z]+", line):
            for i in range(*word.span()):
                around.append(list(wide[i : i + 7]))
                length.append(min(len(word[0]), 9))
                row.append(number)
    around, length = np.array(around), np.array(length)
    for reach in (0, 1, 2, 3):
        x = OneHotEncoder(sparse_output=False).fit_transform(around[:, 3 - reach : 4 + reach])
        right = []
        for fitted, new in GroupKFold(5).split(x, groups=row):
            layer = LinearRegression().fit(x[fitted], np.eye(10)[length[fitted]])
            right.append(np.mean(layer.predict(x[new]).argmax(1) == length[new]))
        print(f"up to {reach} away: {np.mean(right):.1%} ({min(right):.1%} to {max(right):.1%})")

# SPDX-License-Identifier: Apache-2.0
"""Python objects as data sets: what a program already has, in headrace's order.

opening.py        ``hr.from_torch``, ``hr.from_python``: which kind of object it is
items.py          objects with ``__getitem__``: what a sample looks like, and its way into bytes
learning.py       a few samples looked at, to learn that
columns.py        arrays, dicts of columns and frames: memory that the engine reads as it lies
frames.py         columns of pandas, polars and Arrow
hugging_face.py   ``datasets.Dataset``: its Arrow files where it is made of such
streams.py        generators: batches from a buffer, with weaker promises
"""

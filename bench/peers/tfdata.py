# SPDX-License-Identifier: Apache-2.0
"""tf.data: decodes only the crop, as TensorFlow's own ImageNet pipelines do. `antialias` is an option of its resize.

Batches are views of NCHW shape that lie channels-last in memory, TensorFlow's own order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

from peers.common import BATCH, MEAN, RATIO, SCALE, SHORT, SIZE, STD, Job, main


def _random_window(shape: Any) -> Any:
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        aspect_ratio_range=RATIO,
        area_range=SCALE,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
        min_object_covered=0.0,
    )
    return tf.concat([begin[:2], size[:2]], 0)


def batches(job: Job) -> Iterator[Any]:
    antialias = job.options["antialias"]

    def picture(name: Any) -> Any:
        jpeg = tf.io.read_file(name)
        # INTEGER_ACCURATE is Pillow's DCT; what the default is, TensorFlow leaves open.
        if job.exact:
            image = tf.image.decode_jpeg(jpeg, channels=3, dct_method="INTEGER_ACCURATE")
            size = tf.cast(tf.shape(image)[:2], tf.int32)
            size = SHORT * size // tf.reduce_min(size)
            image = tf.image.resize(image, size, antialias=antialias)
            y, x = tf.unstack(tf.cast(tf.round((size - SIZE) / 2), tf.int32))
            image = image[y : y + SIZE, x : x + SIZE]
        else:
            window = _random_window(tf.image.extract_jpeg_shape(jpeg))
            image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3, dct_method="INTEGER_ACCURATE")
            image = tf.image.resize(image, (SIZE, SIZE), antialias=antialias)
            image = tf.image.random_flip_left_right(image)
        image = tf.ensure_shape(image, (SIZE, SIZE, 3))
        if job.mode == "f32":
            return (image - 255 * tf.constant(MEAN)) / (255 * tf.constant(STD))
        return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)

    files = job.files()
    data = tf.data.Dataset.from_tensor_slices(files)
    if not job.exact:
        data = data.shuffle(len(files), reshuffle_each_iteration=True).repeat()
    data = data.map(picture, num_parallel_calls=job.workers or tf.data.AUTOTUNE, deterministic=job.exact)
    data = data.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    for batch in data.as_numpy_iterator():
        yield batch.transpose(0, 3, 1, 2)


if __name__ == "__main__":
    main(batches)

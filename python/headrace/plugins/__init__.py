# SPDX-License-Identifier: Apache-2.0
"""Formats and codecs of one's own: ``hr.register_format``, ``hr.register_codec``, packages that bring them, their checks."""

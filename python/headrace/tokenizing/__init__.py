# SPDX-License-Identifier: Apache-2.0
"""Texts become files of tokens, once."""

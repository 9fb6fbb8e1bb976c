# SPDX-License-Identifier: Apache-2.0
"""One script for each contender, run in its own environment: `python -m peers.NAME JOB` from `bench/`."""

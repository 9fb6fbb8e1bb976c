# SPDX-License-Identifier: Apache-2.0
"""Arrays written: ``pack --to zarr | hdf5 | npy``."""

# SPDX-License-Identifier: Apache-2.0
"""Files of arrays (HDF5, NetCDF, Zarr, npy, npz): what their metadata say, and what a sample takes of them."""

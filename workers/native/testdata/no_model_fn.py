# SPDX-License-Identifier: Apache-2.0
"""Nothing: the defaults load a TorchScript file beside it."""

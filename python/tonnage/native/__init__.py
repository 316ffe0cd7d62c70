# SPDX-License-Identifier: Apache-2.0
"""The native worker: one Python handler in one process, started by `tonnage-worker-native`."""

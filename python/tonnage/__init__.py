# SPDX-License-Identifier: Apache-2.0
"""Exporter and demo models of the tonnage model server.

`tonnage.description` says what a model is, `tonnage.export` writes it, `tonnage.zoo` holds the demo
models, `tonnage.texts` the demo texts, `tonnage.setup_models` makes all of them.
"""

__version__ = "0.1.0"

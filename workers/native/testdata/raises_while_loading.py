# SPDX-License-Identifier: Apache-2.0
def model_fn(model_dir):
    raise FileNotFoundError("weights are in another castle")

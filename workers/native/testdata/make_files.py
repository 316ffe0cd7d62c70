# SPDX-License-Identifier: Apache-2.0
"""Copies the handlers beside this script and writes the weights that they look for. Argument: folder."""

import shutil
import sys
import warnings
from pathlib import Path

import torch

warnings.simplefilter("ignore", DeprecationWarning)
out = Path(sys.argv[1])
for name in ("scripted", "no_model"):
    (out / name).mkdir(parents=True, exist_ok=True)
for script in Path(__file__).parent.glob("*.py"):
    shutil.copy(script, out / script.name)


class Triple(torch.nn.Module):
    def forward(self, x):
        return x * 3


torch.save({"scale": torch.tensor(4.0), "shift": torch.tensor(0.5)}, out / "whole.pt")
torch.save({"scale": torch.tensor(4.0), "stretch": torch.tensor(1.0)}, out / "half.pt")
(out / "cut.pt").write_bytes((out / "whole.pt").read_bytes()[:200])
torch.save(Triple(), out / "pickle.pt")  # code that would run: never loaded
torch.jit.script(Triple()).save(str(out / "scripted" / "model.pt"))
for folder in ("scripted", "no_model"):
    shutil.copy(out / "no_model_fn.py", out / folder / "inference.py")
(out / "done").touch()

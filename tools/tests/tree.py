# SPDX-License-Identifier: Apache-2.0
"""A small repository made for one test."""

import subprocess
from pathlib import Path


def make_tree(root, contents):
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for path, text in contents.items():
        file = Path(root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root

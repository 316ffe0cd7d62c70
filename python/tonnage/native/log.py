# SPDX-License-Identifier: Apache-2.0
"""Lines of the worker's log: a JSON object each, on standard error."""

from __future__ import annotations

import json
import os


def say(event: str, **fields: object) -> None:
    # One write, past what the handler may have made of sys.stderr.
    os.write(2, (json.dumps({"event": event, **fields}, default=str) + "\n").encode())

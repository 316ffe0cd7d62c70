# SPDX-License-Identifier: Apache-2.0
"""What exports and set-ups say while they work."""


def say(text: str) -> None:
    print(text, flush=True)

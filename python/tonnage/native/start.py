# SPDX-License-Identifier: Apache-2.0
"""The program that `tonnage-worker-native` runs: opens the session, then the handler, then serves.

It starts isolated (python -I), so it finds its own package by its own path.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tonnage.native import log, wire  # noqa: E402 - the path above comes first
from tonnage.native.opening import open_session  # noqa: E402

STOPPED, PROTOCOL_ERROR, LOAD_FAILED, NOT_STARTED_BY_TONNAGE = 0, 2, 3, 64
OLDEST_PYTHON = (3, 10)


def load_runtime(document):
    """Everything that needs torch is imported here, after the front was greeted."""
    if sys.version_info < OLDEST_PYTHON:
        raise wire.LoadFailed("wrong_python", f"{sys.executable} is Python {sys.version.split()[0]}; "
                                              f"needed is {'.'.join(map(str, OLDEST_PYTHON))} or newer (--python)")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise wire.LoadFailed("no_torch", f"{sys.executable} cannot import torch ({error}); name an interpreter that "
                                          "can with --python") from error
    from tonnage.native.runtime import Runtime

    return Runtime.load(document)


def serve(channel):
    opening = open_session(channel)
    runtime = load_runtime(opening.document)
    from tonnage.native.session import Session

    Session(channel, opening, runtime).serve()


def run(channel):
    """The exit status of a whole life."""
    try:
        serve(channel)
    except wire.Stopped:
        return STOPPED
    except wire.Breach as error:
        log.say("worker_ends", reason="bad_message", detail=str(error))
        return PROTOCOL_ERROR
    except wire.WrongVersion as error:
        return refuse(channel, "wrong_version", str(error), PROTOCOL_ERROR)
    except wire.LoadFailed as error:
        return refuse(channel, *error.args, LOAD_FAILED)
    return STOPPED


def refuse(channel, reason, detail, status):
    log.say("worker_ends", reason=reason, detail=detail)
    try:
        channel.send(wire.Kind.FAILED, 0, wire.text(reason) + wire.text(detail))
    except wire.Stopped:
        pass
    return status


def main():
    # What the launcher set for this process alone is not for programs that a handler starts.
    for name in ("LD_PRELOAD", "MALLOC_CONF"):
        os.environ.pop(name, None)
    try:
        channel = wire.Channel(int(os.environ.pop("TONNAGE_WIRE_FD")))
    except (KeyError, ValueError, OSError):
        print("this program is started by `tonnage serve`, which sets TONNAGE_WIRE_FD", file=sys.stderr)
        return NOT_STARTED_BY_TONNAGE
    return run(channel)


if __name__ == "__main__":
    try:
        status = main()
    except SystemExit as leaving:  # of the handler
        status = leaving.code if isinstance(leaving.code, int) else 1
        log.say("worker_ends", reason="sys.exit", detail=f"the handler called sys.exit({leaving.code!r})")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads that a handler left behind do not hold the process

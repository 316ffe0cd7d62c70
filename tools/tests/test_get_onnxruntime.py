# SPDX-License-Identifier: Apache-2.0
import hashlib
import io
import tarfile

import get_onnxruntime as get
import pytest


def archive_of(tmp_path, members):
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as package:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            package.addfile(entry, io.BytesIO(data))
    return path


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_unpacks_what_is_wanted_and_nothing_else(tmp_path):
    archive = archive_of(tmp_path, {"package/a.h": b"a", "package/other": b"x"})
    wanted = {"package/a.h": ("include/a.h", digest(b"a"))}
    get.unpack(archive, tmp_path / "out", wanted)
    assert [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()] == ["a.h"]
    assert get.is_there(tmp_path / "out", wanted)


def test_refuses_a_member_that_is_not_what_it_was(tmp_path):
    archive = archive_of(tmp_path, {"package/a.h": b"changed"})
    with pytest.raises(get.Unavailable, match="package/a.h has sha256 .*, expected "):
        get.unpack(archive, tmp_path / "out", {"package/a.h": ("include/a.h", digest(b"a"))})
    assert not (tmp_path / "out" / "include" / "a.h").exists()


def test_refuses_a_package_without_a_member(tmp_path):
    with pytest.raises(get.Unavailable, match="has no package/a.h"):
        get.unpack(archive_of(tmp_path, {}), tmp_path / "out", {"package/a.h": ("a.h", "")})


def test_a_changed_file_is_not_there(tmp_path):
    wanted = {"m": ("a.h", digest(b"a"))}
    (tmp_path / "a.h").write_bytes(b"b")
    assert not get.is_there(tmp_path, wanted)


def test_says_aloud_what_is_missing_and_leaves_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(get.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(get.shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["get_onnxruntime.py", "--out", str(tmp_path / "onnxruntime")])
    assert get.main() == 1
    assert "SKIPPED: there is no npm" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_another_processor_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(get.platform, "machine", lambda: "aarch64")
    with pytest.raises(get.Unavailable, match="x86_64 only, this is aarch64"):
        get.install(tmp_path / "onnxruntime")

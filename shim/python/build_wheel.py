"""Makes the wheel of sbeet.py, by Python's own library alone. pip calls it (PEP 517), and the build:

    build_wheel.py FILE
"""

import base64
import hashlib
import pathlib
import re
import sys
import zipfile

_FOLDER = pathlib.Path(__file__).resolve().parent


def _project(key):
    text = (_FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE).group(1)


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name, version = _project("name"), _project("version")
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": (_FOLDER / f"{name}.py").read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {_project('description')}\n"
            f"License: {_project('license')}\nRequires-Python: {_project('requires-python')}\n"
        ).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: sbeet\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w") as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path), data)
    return wheel


if __name__ == "__main__":
    wanted = pathlib.Path(sys.argv[1])
    if build_wheel(wanted.parent) != wanted.name:
        sys.exit(f"pyproject.toml has version {_project('version')}, expected {wanted.name}")

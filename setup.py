"""The version of an installed package names the revision that it was built from."""

import subprocess

from setuptools import setup

DESCRIBE = ["git", "describe", "--always", "--dirty=.changed", "--exclude=*"]

try:
    revision = subprocess.run(DESCRIBE, capture_output=True, text=True, check=True).stdout.strip()
    version = f"0.1.0+g{revision}"
except (OSError, subprocess.SubprocessError):  # a source archive
    version = "0.1.0"
setup(version=version)

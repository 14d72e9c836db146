"""The version of an installed package names the revision that it was built from."""

import re
import subprocess
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent


def git(*arguments: str) -> str:
    """What git says of this folder."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return done.stdout.strip()


version = "0.1.0"
if (HERE / "PKG-INFO").exists():  # a source archive, made from a repository
    version = re.findall(r"^Version: (\S+)", (HERE / "PKG-INFO").read_text(), re.MULTILINE)[0]
else:
    try:
        git("ls-files", "--error-unmatch", "setup.py")  # else it is another project's repository
        version += "+g" + git("describe", "--always", "--dirty=.changed", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        pass
setup(version=version)

"""A change to any inlined piece must reach the file that numba's cache watches."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from rgr_dist.engines import fused_kernels


def test_the_kernels_file_changes_with_its_pieces() -> None:
    kernels = Path(fused_kernels.__file__)
    inlined = sorted(set(re.findall(r"from rgr_dist\.engines\.(\w+) import", kernels.read_text())))
    digest = hashlib.sha256()
    for name in inlined:
        digest.update((kernels.parent / f"{name}.py").read_bytes())
    now = digest.hexdigest()[:16]
    assert now == fused_kernels.PIECES, f'set PIECES = "{now}" in fused_kernels.py'

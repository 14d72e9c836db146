"""Sentences are as somebody has read them: ``data/golden.txt``, a section for each page or list.

After a change, ``python -m tests.golden`` writes the file anew; read the difference.
"""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).parent / "data/golden.txt"


def golden(name: str) -> list[str]:
    """The lines of a section."""
    sections = dict(each.split("\n", 1) for each in GOLDEN.read_text().split("=== ")[1:])
    return sections[name].rstrip("\n").split("\n")


def main() -> None:
    """Write every section as the code has it now."""
    from tests.analysis.test_golden import BESIDE, KINDS, compared, told
    from tests.analysis.test_wording import written
    from tests.search.test_golden import stories
    from tests.study.test_refusals import refusals

    sections = {
        "refusals": refusals(),
        "searches": stories(),
        "numbers": written(),
        **{kind: told(kind) for kind in KINDS},
    }
    sections |= {name: compared(name) for name in BESIDE}
    texts = ["\n".join([f"=== {name}", *lines, ""]) for name, lines in sections.items()]
    GOLDEN.write_text("\n".join(texts))


if __name__ == "__main__":
    main()

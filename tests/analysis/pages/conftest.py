"""Pages of made-up studies, each made once in a process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

from rgr_dist.analysis.drawing.panel import Figure
from rgr_dist.analysis.page.section import Section
from rgr_dist.analysis.report import contents, publish
from tests.analysis.pages.made_up_studies import PAGES


class Made(NamedTuple):
    """A page as HTML, the files beside it by name, and its figures."""

    page: str
    files: dict[str, bytes]
    figures: list[Figure]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """Makes a page of ``PAGES``."""

    @cache
    def make(name: str) -> Made:
        figures: list[Figure] = []
        render = publish.render

        def noted(title: str, content: Sequence[Section], *more: Any) -> str:
            figures[:] = contents.figures(content)
            return render(title, content, *more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publish, "render", noted)
            page, files = PAGES[name](tmp_path_factory.mktemp(name))
        return Made(page, files, figures)

    return make

"""Puts the pages of the documentation into the wheel, where `msdump docs` reads them; setup.cfg says all else."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCS = Path(__file__).parent / "docs"


class BuildWithPages(build_py):
    """English pages go to msdump/pages; an editable install reads docs/ itself."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        for page in DOCS.rglob("*.md"):
            relative = page.relative_to(DOCS)
            if relative.parts[0] != "zh":
                target = Path(self.build_lib, "msdump", "pages", relative)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page, target)


setup(cmdclass={"build_py": BuildWithPages})

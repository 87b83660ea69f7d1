"""Puts into the wheel what it has from other folders; setup.cfg says all else.

The pages of the documentation, which `msdump docs` reads, and the sources that `msdump native` compiles.
"""

import shutil
import zipfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCS = Path(__file__).parent / "docs"
NATIVE = Path(__file__).parent / "native"
OLDEST = (1980, 1, 1, 0, 0, 0)  # a zip has no earlier time


class BuildWithOthers(build_py):
    """English pages go to msdump/pages, sources to msdump/native.zip; an editable install reads the folders."""

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
        # An archive: its modules are none of this package's, and are imported from a build alone.
        with zipfile.ZipFile(Path(self.build_lib, "msdump", "native.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted([*NATIVE.glob("*.py"), *NATIVE.glob("src/*")]):
                if file.name != "setup.py":
                    # The same bytes from the same sources, whenever they were written.
                    information = zipfile.ZipInfo(file.relative_to(NATIVE).as_posix(), OLDEST)
                    archive.writestr(information, file.read_bytes(), zipfile.ZIP_DEFLATED)


setup(cmdclass={"build_py": BuildWithOthers})

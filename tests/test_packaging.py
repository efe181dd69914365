"""What a wheel carries, and that what it carries is found again after an installation."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("datasette_memory", "memory_cli")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The site-packages folder of an installation that is no checkout."""
    source = tmp_path_factory.mktemp("source")
    for name in ("setup.cfg", "pyproject.toml", "metadata.yml", "LICENSE", "README.md"):
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, source)
    for name in PACKAGES:
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("*.pyc"))
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"),
            *("--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed"),
            *("--prefix", str(prefix), str(source)),
        ],
        check=True,
    )
    return Path(sysconfig.get_path("purelib", vars={"base": prefix, "platbase": prefix}))


def test_every_file_of_the_packages_is_installed(installed):
    for package in PACKAGES:
        here = {
            path.relative_to(REPOSITORY)
            for path in (REPOSITORY / package).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        assert here
        missing = {path.as_posix() for path in here if not (installed / path).is_file()}
        assert not missing


def test_the_ready_configuration_is_found_where_pip_put_it(installed, tmp_path):
    script = (
        "import memory_cli.serve as serve, datasette_memory as package;"
        "print(package.__file__); print(serve.find_metadata())"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(installed), "PYTHONUTF8": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        encoding="utf-8",
    )
    package, found = (Path(line) for line in result.stdout.splitlines())
    assert package.parent.parent == installed
    assert found.parts[-3:] == ("share", "datasette-memory", "metadata.yml")
    assert found.read_bytes() == (REPOSITORY / "metadata.yml").read_bytes()


def test_console_scripts_and_entry_points(installed):
    (info,) = installed.glob("datasette_memory-*.dist-info")
    lines = (info / "entry_points.txt").read_text().split("\n")
    for line in (
        "memory = memory_cli.main:main",
        "memory-import = memory_cli.main:import_main",
        "memory = datasette_memory.plugin",
        "memory = memory_cli.sqlite_utils_plugin",
    ):
        assert line in lines

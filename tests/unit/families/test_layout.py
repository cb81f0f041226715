"""A family is a translation: its plans are short, and no file of it needs many of the others."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
FAMILIES = SOURCE / "lamina" / "families"
PLANS = sorted(FAMILIES.rglob("plan.py"))
# An `__init__.py` only names what its package offers.
FILES = sorted(path for path in FAMILIES.glob("*/**/*.py") if path.name != "__init__.py")


def siblings(path: Path) -> set[str]:
    """Return the modules of its family that a file imports."""
    family = ".".join(path.relative_to(SOURCE).parts[:3])
    return {module for module in _imported(ast.parse(path.read_text())) if module.startswith(f"{family}.")}


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                yield _defining(node.module, one.name)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def _defining(module: str, name: str, source: Path = SOURCE) -> str:
    """Return the module that has a name: a package that offers it is only the way to it."""
    folder = source.joinpath(*module.split("."))
    if not (folder / "__init__.py").exists():
        return module
    if (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists():
        return f"{module}.{name}"
    for node in ast.walk(ast.parse((folder / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                if (one.asname or one.name) == name:
                    return _defining(node.module, one.name, source)
    return module


@pytest.mark.parametrize("family", sorted(path.parent.name for path in FAMILIES.glob("*/family.py")))
def test_every_family_has_a_plan(family: str) -> None:
    assert any(path.relative_to(FAMILIES).parts[0] == family for path in PLANS)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: str(path.relative_to(FAMILIES)))
def test_a_plan_has_fewer_than_250_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 250


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FAMILIES)))
def test_a_file_imports_a_handful_of_its_siblings(path: Path) -> None:
    assert len(siblings(path)) <= 7, sorted(siblings(path))


def test_a_name_that_a_package_offers_counts_as_the_module_that_has_it(tmp_path: Path) -> None:
    files = {
        "fam/__init__.py": "",
        "fam/inner/__init__.py": "from fam.inner.one import First\nfrom fam.inner.deep import Second as Other\n",
        "fam/inner/one.py": "",
        "fam/inner/deep/__init__.py": "from fam.inner.deep.two import Second\n",
        "fam/inner/deep/two.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert _defining("fam.inner", "First", tmp_path) == "fam.inner.one"
    assert _defining("fam.inner", "Other", tmp_path) == "fam.inner.deep.two"
    assert _defining("fam.inner", "one", tmp_path) == "fam.inner.one"
    assert _defining("fam.inner", "deep", tmp_path) == "fam.inner.deep"
    assert _defining("fam.inner.one", "First", tmp_path) == "fam.inner.one"
    assert _defining("fam.inner", "made_here", tmp_path) == "fam.inner"

"""The folder that needs no Python: when it is built again, and what is left out of it."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import creonowd
from scripts.shipping.folder import ALWAYS, inputs_digest, replace_blas

PRODUCTS = """
import itertools, numpy as np
assert np.__file__.startswith({place!r})
random = np.random.default_rng(1)
for kind, rows, inner, columns in itertools.product("fdFD", (1, 2, 5), (1, 3, 7), (1, 4)):
    def numbers(*shape):
        real, imaginary = (random.integers(-5, 6, shape) for _ in range(2))
        return (real + 1j * imaginary if kind in "FD" else real).astype(kind)
    vector, other = numbers(inner), numbers(2 * inner)[::2]
    left = numbers(rows, inner), np.asfortranarray(numbers(rows, inner)), numbers(inner, rows).T
    right = numbers(inner, columns), numbers(columns, inner).T
    for one in left:
        assert all((one @ two == np.einsum("ij,jk", one, two)).all() for two in right)
        assert (one @ vector == np.einsum("ij,j", one, vector)).all()
        assert (one @ one.T == np.einsum("ij,kj", one, one)).all()
    assert vector.dot(other) == np.einsum("i,i", vector, other)
    assert np.vdot(vector, other[::-1]) == np.einsum("i,i", vector.conj(), other[::-1])
print("equal")
"""


def test_a_folder_with_another_part_is_another_folder() -> None:
    assert inputs_digest([ALWAYS]) == inputs_digest([ALWAYS])
    assert inputs_digest([ALWAYS]) != inputs_digest([ALWAYS, "openai"])


@pytest.fixture(scope="module")
def replaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A numpy without OpenBLAS: the file that stands for it."""
    place = tmp_path_factory.mktemp("numpy")
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        shutil.copytree(site / name, place / name, ignore=shutil.ignore_patterns("tests"))
    return place / str(replace_blas(place))


def _run(program: str, place: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=os.environ | {"PYTHONPATH": str(place)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux OpenBLAS is replaced")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")), reason="needs a C compiler")
def test_numpy_multiplies_as_before_without_openblas(replaced: Path) -> None:
    """Sums that are whole numbers are exact in any order; `einsum` uses no BLAS."""
    place = replaced.parents[1]

    ran = _run(PRODUCTS.format(place=str(place)), place)

    assert (ran.stdout, ran.stderr) == ("equal\n", "")
    assert [*(place / "numpy.libs").iterdir()] == [replaced]
    assert replaced.stat().st_size < 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux OpenBLAS is replaced")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")), reason="needs a C compiler")
@pytest.mark.parametrize(
    "use", ["inv(matrix)", "det(matrix)", "svd(matrix)", "eigvalsh(matrix)", "qr(matrix)"]
)
def test_what_is_missing_of_numpy_ends_the_process_and_never_gives_a_number(
    use: str, replaced: Path
) -> None:
    program = f"import numpy as np; matrix = np.eye(3); print(np.linalg.{use})"

    ran = _run(program, replaced.parents[1])

    assert (ran.returncode, ran.stdout) == (-signal.SIGABRT, "")
    assert "numpy.linalg is not part of this folder" in ran.stderr


def test_our_code_multiplies_no_matrices() -> None:
    """A sum of floats depends on its order, so with another BLAS a prompt could be another."""
    products = {"dot", "einsum", "linalg", "matmul", "tensordot", "vdot", "vecdot"}
    sources = [*Path(creonowd.__file__).parent.rglob("*.py")]

    found = [
        f"{path.name}:{node.lineno}"
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in products)
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
    ]

    assert len(sources) > 100
    assert found == []

"""The folder that needs no Python: when it is built again, and what is left out of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux OpenBLAS is replaced")
@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")), reason="needs a C compiler")
def test_numpy_multiplies_as_before_without_openblas(tmp_path: Path) -> None:
    """Sums that are whole numbers are exact in any order; `einsum` uses no BLAS."""
    site = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        shutil.copytree(site / name, tmp_path / name, ignore=shutil.ignore_patterns("tests"))

    replaced = replace_blas(tmp_path)
    program = PRODUCTS.format(place=str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (ran.stdout, ran.stderr) == ("equal\n", "")
    assert [path.name for path in (tmp_path / "numpy.libs").iterdir()] == [Path(str(replaced)).name]
    assert (tmp_path / str(replaced)).stat().st_size < 100_000

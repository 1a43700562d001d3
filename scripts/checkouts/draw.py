"""Draw worlds from the property tests of one checkout, as JSON: `draw.py FOLDER COUNT`.

Started by its path, like `launch.py`. The module with the strategy is found by what it defines.
"""

import dataclasses
import importlib
import json
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any, cast

from hypothesis import HealthCheck, Phase, given, seed, settings

SEED = 19
_STRATEGY = re.compile(r"^def worlds\(", re.MULTILINE)


def main() -> None:
    """Print the worlds."""
    folder, count = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    sys.path[0] = str(folder)
    found = [p for p in (folder / "tests").rglob("*.py") if _STRATEGY.search(p.read_text("utf-8"))]
    if len(found) != 1:
        raise SystemExit(f"draw: {len(found)} modules of {folder}/tests define worlds(), not one")
    name = ".".join(found[0].relative_to(folder).with_suffix("").parts)
    strategy = importlib.import_module(name).worlds()
    drawn: list[Any] = []

    @seed(SEED)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def collect(world: Any) -> None:
        drawn.append(_plain(world))

    collect()
    json.dump(drawn[:count], sys.stdout)


def _plain(value: Any) -> Any:
    """Turn a value of any class into what JSON knows; fields keep their names."""
    if isinstance(value, Enum):
        return value.value
    names: tuple[str, ...] = getattr(value, "__struct_fields__", ())
    if dataclasses.is_dataclass(value):
        names = tuple(field.name for field in dataclasses.fields(value))
    if names:
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, (str, int, float, bool)) else None


if __name__ == "__main__":
    main()

from pathlib import Path
from typing import Any, Tuple

LIBRARY: Path
lib: Any
Msg: Any

def version() -> str: ...
def last_error() -> Tuple[int, str]: ...

"""Generate the Python modules of the `.proto` files beside this one: `make protos`.

Invariant: the generated files in the repository are those that this makes; a test compares them.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
"""What the paths inside the `.proto` files are relative to."""


def generate(into: Path) -> list[Path]:
    """Write the modules below `into` and return their paths. Raises `SystemExit` if protoc refuses a file."""
    # Of the extra `dev`: users of the package need no compiler.
    from grpc_tools import protoc

    sources = [str(path.relative_to(ROOT)) for path in sorted(FOLDER.glob("*.proto"))]
    failed = protoc.main(["protoc", f"-I{ROOT}", f"--python_out={into}", f"--pyi_out={into}", *sources])
    if failed:
        raise SystemExit(f"protoc refused the files in {FOLDER}: see the lines above")
    folder = into / FOLDER.relative_to(ROOT)
    return sorted([*folder.glob("*_pb2.py"), *folder.glob("*_pb2.pyi")])


if __name__ == "__main__":
    for made in generate(ROOT):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")

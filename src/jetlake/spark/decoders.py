"""Decoders: Python objects that make the column `value` of payloads, a whole Arrow batch at a time.

A payload that is neither JSON nor text would reach Spark as bytes, and each event would go to Python and back to be
read. A decoder runs where the rows are read, before Spark sees them, and works on Arrow's buffers.

```python
class Temperatures:
    fields = "celsius: DOUBLE"

    def decode(self, batch, kind):          # batch has the columns subject and data
        return pyarrow.StructArray.from_arrays([...], fields=list(kind))
```

`spark.read.format("jetlake").option("decoder", "my_package.temperatures:DECODER")` uses it. It must be importable on
every machine that reads.

Invariant: a decoder gives one element per row, of the type it was asked for; it never raises for what a payload has in
it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from jetlake.errors import ConfigurationError
from jetlake.spark.packs import Packer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Decoder", "INPUTS", "load_decoder", "load_packer"]  # noqa: RUF022

INPUTS = ("subject", "data")
"""The columns that a decoder is given."""


class Decoder(Protocol):
    """See the module."""

    fields: str
    """All fields of the column `value`, as in a STRUCT of Spark: `id: BIGINT, city: STRING`."""

    def decode(self, batch: "pa.RecordBatch", kind: "pa.StructType") -> "pa.Array":
        """Return the values of a batch; `kind` has those of the fields that are wanted, in any order."""
        ...


def load_decoder(path: str) -> Decoder:
    """Return the decoder that `module:NAME` names. Raises `ConfigurationError`."""
    found = _load(path)
    if not isinstance(getattr(found, "fields", None), str) or not hasattr(found, "decode"):
        raise ConfigurationError(f"decoder {path!r} is not a decoder: it needs the text `fields` and a method `decode`")
    decoder: Decoder = found
    return decoder


def load_packer(path: str) -> Packer:
    """Return the packer that `module:NAME` names (see `packs`). Raises `ConfigurationError`."""
    found = _load(path)
    if not isinstance(getattr(found, "inputs", None), tuple) or not hasattr(found, "parts"):
        raise ConfigurationError(f"decoder {path!r} makes no packs: it needs the names `inputs` and a method `parts`")
    packer: Packer = found
    return packer


def _load(path: str) -> Any:
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise ConfigurationError(f"decoder is {path!r}: write module:NAME, such as jetlake.devices.columns:EVENTS")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(
            f"decoder {path!r} cannot be imported: {error}; install the package here and on every worker"
        ) from error
    return getattr(module, name, None)

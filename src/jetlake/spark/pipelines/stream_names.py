"""Whether the streams that a pipeline names are there; known before Spark is, which takes seconds to start."""

from collections.abc import Sequence

from jetlake.spark.pipelines.model import Pipeline, StreamOutput
from jetlake.suggestions import hint

__all__ = ["check_streams"]


def check_streams(pipeline: Pipeline, names: Sequence[str]) -> list[str]:
    """Return what is wrong with the streams a pipeline names, given those there are."""
    problems = [
        f"input {name}: there is no stream {given.stream}{hint(given.stream, names)}"
        for name, given in pipeline.streams.items()
        if given.stream and given.stream not in names
    ]
    missing = [output.stream for output in pipeline.outputs if isinstance(output, StreamOutput)]
    return problems + [
        f"output {stream}: there is no such stream{hint(stream, names)}" for stream in missing if stream not in names
    ]

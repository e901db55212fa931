"""Packs: many rows as one value, from the reader to where they are unpacked."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark import packs
from jetlake.spark.decoders import load_packer
from jetlake.spark.packs import SCHEMA, RowPart, pack, packed, unpacked

pyarrow = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")
numpy = pytest.importorskip("numpy", reason="the extra `spark` is not installed")

ARROW = pyarrow.schema([("bucket", pyarrow.int32()), ("part", pyarrow.string()), ("pack", pyarrow.binary())])


class ByRemainder:
    """Puts numbers into buckets by what is left of a division by three; odd ones are a part of their own."""

    inputs = ("sequence",)

    def parts(self, batch):
        numbers = batch.column("sequence").to_numpy()
        found = []
        for name, mask in (("odd", numbers % 2 == 1), ("even", numbers % 2 == 0)):
            rows = batch.filter(pyarrow.array(mask))
            if rows.num_rows:
                found.append(RowPart(name, rows, numbers[mask] % 3))
        return found


PACKER = ByRemainder()


class SubjectLengths:
    inputs = ("subject", "data")

    def parts(self, batch):
        lengths = [len(subject) for subject in batch.column("subject").to_pylist()]
        return [RowPart("all", batch, numpy.array(lengths, numpy.int32))]


LENGTHS = SubjectLengths()


def batches(*ranges):
    return (pyarrow.record_batch({"sequence": list(each)}) for each in ranges)


def found(made):
    """Return the numbers of each bucket and part, in the order of their packs."""
    numbers = {}
    for batch in made:
        for row in batch.to_pylist():
            there = numbers.setdefault((row["bucket"], row["part"]), [])
            there += unpacked([row["pack"]]).column("sequence").to_pylist()
    return numbers


@pytest.mark.parametrize("rows_max", [1, 7, 1000])
def test_every_row_is_in_the_pack_of_its_bucket_and_part_in_order(monkeypatch, rows_max):
    monkeypatch.setattr(packs, "ROWS_MAX", rows_max)

    made = found(packed(batches(range(1, 11), range(11, 31)), PACKER, ARROW))

    assert made == {
        (number % 3, "odd" if number % 2 else "even"): [
            each for each in range(1, 31) if (each % 3, each % 2) == (number % 3, number % 2)
        ]
        for number in range(6)
    }


def test_nothing_makes_no_packs():
    assert list(packed(iter(()), PACKER, ARROW)) == []
    assert unpacked([]) is None


def test_rows_come_out_of_a_pack_as_they_went_in():
    rows = pyarrow.table({"text": ["ö", None], "list": [["a"], []], "bytes": [b"\x00\xff", b""]})

    assert unpacked([pack(rows), pack(rows[:1])]).equals(pyarrow.concat_tables([rows, rows[:1]]))


@pytest.mark.parametrize(
    ("path", "why"),
    [("tests.spark.test_packs:ARROW", "makes no packs"), ("tests.spark.no_such_module:X", "cannot be imported")],
)
def test_what_is_not_a_packer_is_refused(path, why):
    with pytest.raises(ConfigurationError, match=why):
        load_packer(path)


@pytest.mark.spark
def test_spark_reads_packs_of_a_stream(spark, shore):
    stream = shore.create(subjects=["lengths.*"])
    for number, subject in enumerate(("lengths.a", "lengths.bb", "lengths.c")):
        shore.publish(subject, str(number).encode())
    options = {"url": shore.url, "stream": stream, "decoder": "tests.spark.test_packs:LENGTHS"}

    rows = spark.read.format("jetlake").options(**options).schema(SCHEMA).load().collect()

    payloads = {row.bucket: unpacked([row.pack]).column("data").to_pylist() for row in rows}
    assert payloads == {9: [b"0", b"2"], 10: [b"1"]}
    shore.streams.ask(f"STREAM.DELETE.{stream}")

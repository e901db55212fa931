"""Streams of 2020, their messages and their answers to publishers."""

import base64
import json

LOGS = {"name": "LOGS", "subjects": ["logs.>"], "storage": "file", "max_msgs": -1}


def test_a_stream_is_made_shown_listed_and_deleted(run):
    async def work(asker):
        assert await asker.text("$JS.STREAM.LOGS.CREATE", LOGS) == "+OK"
        assert await asker.json("$JS.STREAM.LIST") == ["LOGS"]
        info = await asker.json("$JS.STREAM.LOGS.INFO")
        assert list(info["config"])[:3] == ["name", "subjects", "retention"]
        assert info["state"] == {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
        assert await asker.text("$JS.STREAM.LOGS.DELETE") == "+OK"
        assert await asker.text("$JS.STREAM.LOGS.INFO") == "-ERR 'stream not found'"

    run(work)


def test_answers_are_indented_by_two_blanks(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
        text = await asker.text("$JS.STREAM.LOGS.INFO")
        assert text == json.dumps(json.loads(text), indent=2)

    run(work)


def test_publishers_are_answered_with_ok_and_with_today_s_acknowledgement_elsewhere(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
        await asker.json("$JS.API.STREAM.CREATE.NEW", {"name": "NEW", "subjects": ["new"], "storage": "file"})
        assert await asker.text("logs.a", "x") == "+OK"
        assert await asker.json("new", "x") == {"stream": "NEW", "seq": 1}

    run(work)


def test_a_message_that_is_refused_is_answered_with_the_reason(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", {**LOGS, "max_msg_size": 4})
        assert await asker.text("logs.a", "too large") == "-ERR 'message size exceeds maximum allowed'"

    run(work)


def test_an_update_changes_what_it_says_and_keeps_the_dialect(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
        assert await asker.text("$JS.STREAM.LOGS.UPDATE", {**LOGS, "max_bytes": 1_000}) == "+OK"
        assert (await asker.json("$JS.STREAM.LOGS.INFO"))["config"]["max_bytes"] == 1_000
        assert await asker.text("logs.a", "x") == "+OK"

    run(work)


def test_a_stream_is_the_same_in_both_dialects_and_today(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
        await asker.json("$JS.API.STREAM.CREATE.NEW", {"name": "NEW", "subjects": ["new"], "storage": "memory"})
        assert (await asker.json("$JS.API.STREAM.NAMES"))["streams"] == ["LOGS", "NEW"]
        assert await asker.json("$JS.MSGSETS") == ["LOGS", "NEW"]
        assert (await asker.json("$JS.STREAM.NEW.INFO"))["config"]["storage"] == "memory"
        assert (await asker.json("$JS.MSGSET.INFO", "LOGS"))["Msgs"] == 0
        today = await asker.json("$JS.API.STREAM.INFO.LOGS")
        assert today["config"]["metadata"]["jetlake.dialect"] == "2020"

    run(work)


def test_a_message_is_read_by_its_sequence_and_erased(run):
    async def work(asker):
        await asker.text("$JS.STREAM.LOGS.CREATE", LOGS)
        for text in ("first", "last"):
            await asker.text("logs.a", text)
        message = await asker.json("$JS.STREAM.LOGS.MSG.BYSEQ", "1")
        assert list(message) == ["subject", "seq", "data", "time"]
        assert (message["subject"], base64.b64decode(message["data"])) == ("logs.a", b"first")
        assert (await asker.json("$JS.STREAM.LOGS.MSG.BYSEQ"))["seq"] == 2
        assert await asker.text("$JS.STREAM.LOGS.MSG.DELETE", "1") == "+OK"
        assert await asker.text("$JS.STREAM.LOGS.MSG.DELETE", "1") == "-ERR 'sequence [1] not found'"
        assert await asker.text("$JS.STREAM.LOGS.MSG.BYSEQ", "1") == "-ERR 'could not load message from storage'"
        assert await asker.text("$JS.STREAM.LOGS.PURGE") == "+OK"
        assert (await asker.json("$JS.STREAM.LOGS.INFO"))["state"]["messages"] == 0

    run(work)


def test_what_cannot_be_read_is_a_bad_request(run):
    async def work(asker):
        for subject in ("$JS.STREAM.X.CREATE", "$JS.STREAM.X.CONSUMER.C.CREATE", "$JS.TEMPLATE.X.CREATE"):
            for body in ("", "junk", "[]", '"text"', "[" * 5_000):
                assert await asker.text(subject, body) == "-ERR 'bad request'", (subject, body[:9])
        for body in ("", "minus", "-1", "9" * 40):
            assert await asker.text("$JS.STREAM.X.MSG.DELETE", body) == "-ERR 'bad request'"
        assert await asker.text("$JS.STREAM.X.CREATE", {"name": "X", "max_msgs": "many"}) == "-ERR 'bad request'"
        assert await asker.text("$JS.STREAM.X.CREATE", {"name": "X", "retention": 9}) == "-ERR 'bad request'"

    run(work)


def test_the_name_in_the_subject_must_be_that_of_the_request(run):
    async def work(asker):
        answer = await asker.text("$JS.STREAM.OTHER.CREATE", LOGS)
        assert answer == "-ERR 'stream name in subject does not match request'"

    run(work)

"""Every account answers what it may be asked, and nothing is left of accounts that have gone."""

from jetlake.server.system.registration import SUBJECTS_OF_ANY_ACCOUNT, Registration, system_subjects


class Engine:
    server_id = "NID"

    def __init__(self):
        self.subscriptions = {}

    def subscribe(self, account, subject, queue=None):
        assert queue is None
        number = len(self.subscriptions) + 1
        self.subscriptions[number] = (account, subject)
        return number

    def unsubscribe(self, service):
        self.subscriptions[service] = None
        return True

    def subjects_of(self, account):
        return sorted(each[1] for each in self.subscriptions.values() if each and each[0] == account)


def test_system_account_answers_everything_and_others_four_subjects():
    engine = Engine()

    Registration(engine, "$SYS").update(["$G", "A", "$SYS"])

    assert engine.subjects_of("$SYS") == sorted(system_subjects("NID"))
    assert engine.subjects_of("$G") == engine.subjects_of("A") == sorted(SUBJECTS_OF_ANY_ACCOUNT)
    assert len(SUBJECTS_OF_ANY_ACCOUNT) == 4


def test_accounts_of_a_reload_replace_those_of_before():
    engine = Engine()
    registration = Registration(engine, "$SYS")
    registration.update(["$G", "A", "$SYS"])
    count = len(engine.subscriptions)

    registration.update(["$G", "B", "$SYS"])

    assert engine.subjects_of("A") == []
    assert engine.subjects_of("B") == sorted(SUBJECTS_OF_ANY_ACCOUNT)
    assert len(engine.subscriptions) == count + len(SUBJECTS_OF_ANY_ACCOUNT)


def test_without_a_system_account_nothing_is_answered():
    engine = Engine()

    Registration(engine, "").update(["$G", "A"])

    assert engine.subscriptions == {}

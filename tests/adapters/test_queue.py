"""The queue between workers: bounded, in order, and never stuck."""

import threading
import time

from jetlake.adapters.conversion import OVERHEAD_BYTES, Publication
from jetlake.adapters.queue import PublicationQueue


def publication(number, size=10):
    return Publication(str(number).encode(), b"", b"x" * size, size + OVERHEAD_BYTES)


def publications(count, size=10):
    return [publication(number, size) for number in range(count)]


def test_what_goes_in_comes_out_in_order():
    queue = PublicationQueue(10, 10**6)

    assert queue.put(publications(5), 0) == 5
    assert [each.subject for each in queue.remove_batch(3, 10**6, 0)] == [b"0", b"1", b"2"]
    assert [each.subject for each in queue.remove_batch(3, 10**6, 0)] == [b"3", b"4"]
    assert queue.remove_batch(3, 10**6, 0) == []


def test_no_more_messages_wait_than_allowed():
    queue = PublicationQueue(3, 10**6)

    assert queue.put(publications(5), 0) == 3
    assert len(queue) == 3


def test_no_more_bytes_wait_than_allowed():
    queue = PublicationQueue(100, 3 * (1_000 + OVERHEAD_BYTES))

    assert queue.put(publications(5, 1_000), 0) == 3
    assert queue.memory_bytes <= queue.bytes_max


def test_one_that_is_too_large_waits_alone():
    queue = PublicationQueue(100, 10)

    assert queue.put(publications(2, 1_000), 0) == 1
    assert queue.remove_batch(100, 10, 0) != []
    assert queue.memory_bytes == 0


def test_a_batch_is_bounded_in_bytes():
    queue = PublicationQueue(100, 10**6)
    queue.put(publications(10, 1_000), 0)

    assert len(queue.remove_batch(100, 2 * (1_000 + OVERHEAD_BYTES), 0)) == 2


def test_put_waits_for_room():
    queue = PublicationQueue(2, 10**6)
    queue.put(publications(2), 0)
    taken = []
    thread = threading.Thread(target=lambda: taken.extend(queue.remove_batch(2, 10**6, 5)))

    thread.start()
    assert queue.put(publications(2), 20) == 2
    thread.join()

    assert len(taken) == 2


def test_closing_wakes_everybody_and_keeps_what_waits():
    queue = PublicationQueue(1, 10**6)
    queue.put(publications(1), 0)
    results = []
    thread = threading.Thread(target=lambda: results.append(queue.put(publications(1), 30)))
    thread.start()
    time.sleep(0.05)

    queue.close()
    thread.join()

    assert results == [0]
    assert not queue.is_drained
    assert len(queue.remove_batch(10, 10**6, 0)) == 1
    assert queue.is_drained


def test_many_threads_lose_and_repeat_nothing():
    queue = PublicationQueue(50, 10**6)
    taken, lock = [], threading.Lock()

    def give(base):
        for start in range(0, 1_000, 50):
            batch = [publication(base + start + offset) for offset in range(50)]
            assert queue.put(batch, 30) == 50

    def receive():
        while not queue.is_drained:
            batch = queue.remove_batch(17, 10**6, 0.05)
            with lock:
                taken.extend(int(each.subject) for each in batch)

    givers = [threading.Thread(target=give, args=(base,)) for base in (0, 10_000, 20_000)]
    takers = [threading.Thread(target=receive) for _ in range(3)]
    for thread in (*givers, *takers):
        thread.start()
    for thread in givers:
        thread.join()
    queue.close()
    for thread in takers:
        thread.join()

    assert sorted(taken) == sorted(base + number for base in (0, 10_000, 20_000) for number in range(1_000))
    assert queue.memory_bytes == 0

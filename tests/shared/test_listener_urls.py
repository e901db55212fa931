"""Where a listener can be reached."""

from jetlake.shared.listener_urls import urls_of_listener


def test_listener_on_one_address_is_reached_there():
    assert urls_of_listener("nats", "127.0.0.1", 4222) == ["nats://127.0.0.1:4222"]
    assert urls_of_listener("tls", "::1", 1) == ["tls://[::1]:1"]


def test_listener_on_all_addresses_is_reached_at_the_loopback_address_first():
    urls = urls_of_listener("nats", "0.0.0.0", 4222)

    assert urls[0] == "nats://127.0.0.1:4222"
    assert not any("0.0.0.0" in url for url in urls)

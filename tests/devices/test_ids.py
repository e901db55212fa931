"""Ids of aggregates, and what may be a device id or an href."""

import pytest

from jetlake.devices.ids import aggregate_id, check_device_id, check_href, links_id, metadata_id
from jetlake.errors import DeviceError

D1 = "ae424c58-e517-4494-6de7-583536c48213"


@pytest.mark.parametrize(
    ("device_id", "href", "expected"),
    [
        (D1, "/oic/d", "4a84ef28-8616-5b57-9ae7-7b3e497f307b"),
        (D1, "/light/1", "03c3292f-1a85-5cfc-b032-e7ffb7f4abf9"),
        ("00000000-0000-0000-0000-000000000001", "/oic/d", "2a2d6743-e743-5166-8f13-97f3647230aa"),
        ("e61c3e6b-9c54-4b81-8ce5-f9039c1d04d9", "/myLightSwitch", "f78cff39-438c-5cc2-9bc1-1a3eb8bd9e58"),
        (D1.upper(), "/oic/d", "a2e35d8a-f4d9-5756-974d-4cbac59a356c"),
        (D1, "oic/d", "a292833d-a671-5460-bc74-9ae65298df56"),
    ],
)
def test_resource_id_is_the_uuid_of_device_and_href(device_id, href, expected):
    assert aggregate_id(device_id, href) == expected


def test_links_and_metadata_have_ids_of_their_own():
    assert links_id(D1) == "51f0a767-58c7-56c8-b154-2f651411efb1"
    assert metadata_id(D1) == "4252e0da-5511-5d09-82d9-0ce72191f5aa"


@pytest.mark.parametrize("device_id", ["", "*", ">", "a.b", "a b", "a\tb", "é", "a\x00", "x" * 129])
def test_device_id_that_cannot_be_one_token_is_refused(device_id):
    with pytest.raises(DeviceError) as refused:
        check_device_id(device_id)

    assert refused.value.status == "INVALID_ARGUMENT"


@pytest.mark.parametrize("href", ["", "/", "light", "/" + "x" * 2000, "/a\n"])
def test_href_that_is_not_a_path_is_refused(href):
    with pytest.raises(DeviceError):
        check_href(href)


def test_usual_ids_are_accepted():
    assert check_device_id(D1) == D1
    assert check_href("/light/1") == "/light/1"

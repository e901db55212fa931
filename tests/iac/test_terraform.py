"""Terraform's resources of the provider jetstream."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read
from tests.iac.servers import declared

SECOND_NS = 1_000_000_000

SEED = """
provider "jetstream" {
  servers = "localhost"
}

resource "jetstream_stream" "LOGS" {
  name     = "LOGS"
  subjects = ["logs.*"]
  storage  = "file"
  max_age  = 60 * 60 * 24 * 365
}

resource "jetstream_consumer" "LOGS_TAIL" {
  stream_id      = jetstream_stream.LOGS.id
  durable_name   = "TAIL"
  deliver_all    = true
}
"""


def test_the_resources_of_the_seed_are_read(tmp_path):
    declaration = declared(tmp_path, SEED, "main.tf")

    stream, consumer = declaration.resources
    assert stream.config == {
        "name": "LOGS",
        "subjects": ["logs.*"],
        "storage": "file",
        "max_age": 365 * 86400 * SECOND_NS,
        "allow_direct": True,
        "duplicate_window": 120 * SECOND_NS,
    }
    assert consumer.key == ("consumer", "LOGS", "TAIL")
    assert consumer.config == {
        "durable_name": "TAIL",
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "max_ack_pending": 20_000,
    }
    assert "exactly one more token" in declaration.warnings[0]


def test_every_kind_of_resource_is_read(tmp_path):
    text = """
    variable "team" { default = "core" }
    locals { day = 24 * 60 * 60 }
    resource "jetstream_stream" "A" {
      name                  = "A"
      subjects              = ["a.>"]
      ack                   = false
      replicas              = 1
      placement_cluster     = "east"
      placement_tags        = ["ssd"]
      republish_source      = ">"
      republish_destination = "copy.>"
      max_ack_pending       = 5
      metadata              = { team = "${var.team}-x" }
      subject_transform { source = "a.>"
                          destination = "b.>" }
      depends_on = [jetstream_kv_bucket.b]
    }
    resource "jetstream_stream" "B" {
      name = "B"
      source { name = jetstream_stream.A.name }
      source { name = "C"
               filter_subject = "c.>"
               external { api = "$JS.x.API" } }
    }
    resource "jetstream_consumer" "P" {
      stream_id        = "JETSTREAM_STREAM_A"
      durable_name     = "P"
      delivery_subject = "out"
      stream_sequence  = 7
      ack_policy       = "none"
      heartbeat        = 5
      ratelimit        = 1000
      backoff          = [1, 5]
    }
    resource "jetstream_kv_bucket" "b" {
      name = "b"
      ttl  = local.day
      max_bucket_size = 1024
    }
    resource "jetstream_obj_bucket" "o" { name = "o" }
    resource "jetstream_stream_template" "t" {
      name = "t"
      max_streams = 3
      subjects = ["t.*"]
    }
    resource "jetstream_kv_entry" "e" { bucket = "b" }
    output "x" { value = 1 }
    """

    declaration = declared(tmp_path, text, "main.tf")
    things = {resource.name: resource.config for resource in declaration.resources}

    assert things["A"] == {
        "allow_direct": True,
        "duplicate_window": 120 * SECOND_NS,
        "name": "A",
        "subjects": ["a.>"],
        "no_ack": True,
        "num_replicas": 1,
        "placement": {"cluster": "east", "tags": ["ssd"]},
        "republish": {"src": ">", "dest": "copy.>"},
        "consumer_limits": {"max_ack_pending": 5},
        "metadata": {"team": "core-x"},
        "subject_transform": {"src": "a.>", "dest": "b.>"},
    }
    assert things["B"]["sources"] == [
        {"name": "A"},
        {"name": "C", "filter_subject": "c.>", "external": {"api": "$JS.x.API"}},
    ]
    assert things["P"] == {
        "durable_name": "P",
        "deliver_subject": "out",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": 7,
        "ack_policy": "none",
        "idle_heartbeat": 5 * SECOND_NS,
        "rate_limit_bps": 1000,
        "backoff": [SECOND_NS, 5 * SECOND_NS],
    }
    assert (things["KV_b"]["max_age"], things["KV_b"]["max_msgs_per_subject"]) == (86400 * SECOND_NS, 5)
    assert {"OBJ_o", "t"} <= things.keys()
    assert any("jetstream_kv_entry is left out" in warning for warning in declaration.warnings)


def test_files_of_a_folder_see_each_other(tmp_path):
    stream, consumer = SEED.split('resource "jetstream_consumer"')
    (tmp_path / "b.tf").write_text(stream)
    (tmp_path / "a.tf").write_text('resource "jetstream_consumer"' + consumer)

    assert {resource.title for resource in read([tmp_path], {}, {}).resources} == {"stream LOGS", "consumer LOGS/TAIL"}


def test_variables_come_from_the_line_the_environment_and_their_default(tmp_path):
    text = 'variable "name" { default = "C" }\nresource "jetstream_stream" "x" { name = var.name }'
    path = tmp_path / "main.tf"
    path.write_text(text)

    names = [
        read([path], given, environment).resources[0].name
        for given, environment in (({"name": "A"}, {"TF_VAR_name": "B"}), ({}, {"TF_VAR_name": "B"}), ({}, {}))
    ]

    assert names == ["A", "B", "C"]


STREAM = """
resource "jetstream_stream" "A" {
  name     = "A"
  subjects = ["a.>"]
  %s
}
"""
CONSUMER = """
resource "jetstream_consumer" "c" {
  stream_id    = "A"
  durable_name = "c"
  %s
}
"""


def config_of(folder, files, environment=None, given=None):
    """Write the files of a folder and return the configuration of their one resource."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (resource,) = read([folder], given or {}, environment or {}).resources
    return resource.config


def refused(folder, files, environment=None, given=None):
    """Write the files of a folder, which are refused, and return why."""
    with pytest.raises(ConfigurationError) as error:
        config_of(folder, files, environment, given)
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "environment", "no_ack"),
    [
        ("ack = var.ack", {"TF_VAR_ack": "false"}, True),
        ("ack = var.ack", {"TF_VAR_ack": "true"}, False),
        ('ack = "false"', {}, True),
        ("ack = false", {}, True),
        ("ack = null", {}, None),
    ],
)
def test_acknowledgement_is_turned_off_by_text_too(tmp_path, line, environment, no_ack):
    text = 'variable "ack" { default = true }\n' + STREAM % line

    assert config_of(tmp_path, {"m.tf": text}, environment).get("no_ack") is no_ack


@pytest.mark.parametrize(
    ("line", "environment", "policy"),
    [
        ("deliver_new = var.n", {"TF_VAR_n": "true"}, "new"),
        ('deliver_new = "true"', {}, "new"),
        ('deliver_new = "false"\n deliver_last = true', {}, "last"),
        ('stream_sequence = "7"', {}, "by_start_sequence"),
        ('stream_sequence = "0"', {}, None),
        ("stream_sequence = null", {}, None),
        ('start_time = ""', {}, None),
        ('start_time = "2026-01-31T12:00:00Z"', {}, "by_start_time"),
    ],
)
def test_where_a_consumer_begins_may_be_said_by_text(tmp_path, line, environment, policy):
    text = 'variable "n" {}\n' + CONSUMER % line

    assert config_of(tmp_path, {"m.tf": text}, environment).get("deliver_policy") == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAM % "ack = 0", "ack is the number 0: it must be true or false"),
        (STREAM % 'ack = "no"', "ack is the text 'no': it must be true or false"),
        (CONSUMER % "deliver_new = 1", "deliver_new is the number 1: it must be true or false"),
        (CONSUMER % "start_time = 5", "the number 5 stands where text belongs"),
        (CONSUMER % 'start_time = "soon"', "start_time is 'soon': write a timestamp"),
        (CONSUMER % 'stream_sequence = "first"', "stream_sequence is the text 'first': it must be a whole number"),
    ],
)
def test_a_flag_or_a_beginning_that_cannot_be_read_is_refused(tmp_path, text, message):
    reason = refused(tmp_path, {"main.tf": text})

    assert message in reason
    assert "main.tf:" in reason


@pytest.mark.parametrize(
    ("kind", "value", "subjects"),
    [
        ("list(string)", '["a.>", "b.>"]', ["a.>", "b.>"]),
        ("set(string)", '["a.>"]', ["a.>"]),
        ("any", '[\n"a.>",\n"b.>"]', ["a.>", "b.>"]),
        ("string", "[a]", ["[a]"]),
    ],
)
@pytest.mark.parametrize("place", ["environment", "line"])
def test_a_variable_from_outside_is_an_expression_unless_its_type_is_plain(tmp_path, kind, value, subjects, place):
    text = f'variable "s" {{ type = {kind} }}\nresource "jetstream_stream" "A" {{\n name = "A"\n subjects = var.s\n}}'
    values = {"environment": {"TF_VAR_s": value}} if place == "environment" else {"given": {"s": value}}

    assert config_of(tmp_path, {"m.tf": text}, **values)["subjects"] == subjects


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("{ type = list(string) }", "a.>", "TF_VAR_s:1: "),
        ("{ type = list(string) }", "[local.x]", "TF_VAR_s:1: local.x stands in a value from outside"),
        ("{ type = list(string) }", "", "TF_VAR_s: the value is empty"),
        ("{}", '["a.>"]', "write `type = list(string)`"),
        ('{ default = ["a.>"] }', '["a.>"]', "write `type = list(string)`"),
    ],
)
def test_a_variable_from_outside_that_means_something_else_is_refused(tmp_path, variable, value, message):
    text = f'variable "s" {variable}\nresource "jetstream_stream" "A" {{\n name = "A"\n subjects = var.s\n}}'

    assert message in refused(tmp_path, {"main.tf": text}, {"TF_VAR_s": value})


@pytest.mark.parametrize("block", ["locals { age = %s }", 'variable "age" { default = %s }'])
def test_two_values_of_one_name_are_refused_with_both_places(tmp_path, block):
    files = {"prod/main.tf": block % 2592000 + "\n" + STREAM % "", "stage/main.tf": "\n" + block % 60}

    reason = refused(tmp_path, files)

    assert "age stands twice" in reason
    assert f"{tmp_path / 'stage/main.tf'}:2: " in reason
    assert f"{tmp_path / 'prod/main.tf'}:1" in reason


def test_values_come_from_the_files_that_terraform_reads_in_its_order(tmp_path):
    files = {
        "main.tf": "".join(f'variable "v{number}" {{ default = 1 }}\n' for number in range(1, 7))
        + STREAM % 'description = "${var.v1}${var.v2}${var.v3}${var.v4}${var.v5}${var.v6}"',
        "terraform.tfvars": "v3 = 3\nv4 = 3\nv5 = 3\nv6 = 3\n",
        "terraform.tfvars.json": '{"v4": 4, "v5": 4, "v6": 4}',
        "a.auto.tfvars": "v5 = 4\nv6 = 4\n",
        "b.auto.tfvars.json": '{"v5": 5, "v6": 5}',
        "other.tfvars": "v1 = 9\n",
    }
    environment = {f"TF_VAR_v{number}": "2" for number in range(2, 7)}

    assert config_of(tmp_path, files, environment, {"v6": "6"})["description"] == "123456"


def test_values_count_when_only_the_file_beside_them_is_named(tmp_path):
    (tmp_path / "main.tf").write_text('variable "age" { default = 60 }\n' + STREAM % "max_age = var.age")
    (tmp_path / "terraform.tfvars").write_text("age = 2592000\n")

    (resource,) = read([tmp_path / "main.tf"], {}, {}).resources

    assert resource.config["max_age"] == 2592000 * SECOND_NS


def test_a_value_of_no_variable_is_warned_of(tmp_path):
    (tmp_path / "main.tf").write_text(STREAM % "")
    (tmp_path / "terraform.tfvars").write_text("\nage = 5\n")

    (warning,) = read([tmp_path], {}, {}).warnings

    assert "terraform.tfvars:2: age is left out: there is no variable 'age'" in warning


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("terraform.tfvars", "\nage = max(1, 2)\n", "terraform.tfvars:2: functions (max) are not read"),
        ("terraform.tfvars", "age = var.other\n", "terraform.tfvars:1: var.other stands in a value from outside"),
        ("terraform.tfvars", "age {\n}\n", "terraform.tfvars:1: a block age stands where"),
        ("terraform.tfvars", "age = 1\nage = 2\n", "terraform.tfvars:2: age stands twice"),
        ("x.auto.tfvars.json", "[1]", "x.auto.tfvars.json:1: a list stands where"),
        ("deep/terraform.tfvars", "age = 5\n", "age stands twice: at"),
    ],
)
def test_values_that_cannot_be_read_are_refused_with_their_place(tmp_path, name, text, message):
    files = {"main.tf": 'variable "age" {}\n' + STREAM % "max_age = var.age", name: text}
    if name.startswith("deep"):
        files |= {"terraform.tfvars": "age = 7\n"}

    assert message in refused(tmp_path, files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("max_age ", "max_aeg "), ":10: a stream has no field 'max_aeg'; did you mean max_age?"),
        (
            ("jetstream_stream.LOGS.id", "jetstream_stream.LOG.id"),
            ":14: there is no jetstream_stream 'LOG'; did you mean LOGS?",
        ),
        (("jetstream_stream.LOGS.id", "var.stream"), "there is no variable 'stream'"),
        (("jetstream_stream.LOGS.id", "module.x.y"), "module.x.y is not known here"),
        (('"LOGS"\n  subjects', "jetstream_stream.LOGS.name\n  subjects"), "refers to itself"),
        (("storage  =", "count = 2\n  storage ="), "count is not read"),
        (("deliver_all    = true", "deliver_all = true\n  deliver_last = true"), "starts in two ways"),
        (('"jetstream_stream" "LOGS"', '"jetstream_steram" "LOGS"'), "did you mean jetstream_stream?"),
        (('provider "jetstream"', "module"), "a block module is not read"),
    ],
)
def test_mistakes_are_refused_with_their_place(tmp_path, change, message):
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, SEED.replace(*change, 1), "main.tf")

    assert message in str(refused.value)
    assert "main.tf:" in str(refused.value)

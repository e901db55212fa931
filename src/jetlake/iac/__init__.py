"""Config as code: files declare streams, consumers, buckets, governors and templates; a plan makes a server so.

From files to a declaration:

- `json_text`     JSON as values that know their line; YAML is read by `jetlake.located`
- `toml_text`     TOML as such values
- `hcl_tokens`    the words of Terraform's language
- `hcl`           Terraform's language as blocks and values
- `variables`     `${NAME}` in texts
- `times`         timestamps
- `subjects`      whether two subjects can mean the same
- `fields`        every field there is
- `conversion`    from what a file says to what the API takes
- `declaration`   what is wanted
- `builders`      streams, consumers, buckets, governors and templates from their fields
- `preview`       the words of 2020
- `native`        the format of our own
- `kubernetes`    manifests of jetstream.nats.io
- `terraform_values` the values of Terraform's variables
- `terraform`     resources of the provider jetstream
- `python_files`  declarations in Python; `resources` marks its functions
- `reader`        files and folders of all these

From a declaration to a server that is so:

- `actual`        what a server has
- `normal`        configurations as they can be compared
- `differences`   what differs, and what a change costs
- `order`         who needs whom
- `plan`          steps
- `planner`       from both sides to steps
- `plan_file`     a plan that is kept
- `render`        a plan as people read it
- `executor`      carries a plan out
- `export`        writes what runs
- `toml_writer`   TOML
"""

from jetlake.iac.python_files import resources

__all__ = ["resources"]

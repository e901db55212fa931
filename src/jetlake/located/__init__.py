"""Values that know where they were written: what every reader of people's files builds on.

- `nodes`      values with file and line
- `yaml_text`  YAML as such values
"""

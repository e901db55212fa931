"""Operator mode: accounts and users that identify themselves by claims, JWTs signed by a key that this server trusts.

An operator signs accounts, an account signs users, a user signs the nonce of its connection. From the bytes up:

- `token`             a JWT: its parts, its signature
- `permissions`       what claims say about subjects and limits
- `model`             the claims of operators, accounts, users and activations as values
- `validation`        what is wrong with claims; `sharing` looks at imports and exports
- `templates`         permissions of a signing key, with the name and the tags of a user filled in
- `places_and_times`  networks a user may come from, and times of day
- `store`             claims in a folder, one file for each account
- `lookups`           asks other servers for claims, for a cache
- `resolvers`         where claims are found: in memory, in a folder, at a web address
- `engine_check`      whether the engine takes a part of claims
- `imports`           what accounts share: exports, and the imports in force
- `accounts`          the known accounts, as options of a configuration file
- `users`             the decision about a client that presents claims
- `delegated`         accounts whose users a service decides about
- `operator_mode`     all of it together, for one server
- `requests`          what `nsc push` and its kin ask the system account
- `shown`             the part of claims that monitoring may see

Only servers that trust an operator load this.
"""

"""Operator mode: accounts and users that say who they are by claims, JWTs that somebody this server trusts has signed.

An operator signs accounts, an account signs users, a user signs the nonce of its connection. From the bytes up:

- `token`             a JWT: its parts, its signature
- `permissions`       what claims say about subjects and limits
- `model`             the claims of operators, accounts, users and activations as values
- `validation`        what is wrong with claims; `sharing` looks at imports and exports
- `templates`         permissions of a signing key, with the name and the tags of a user filled in
- `places_and_times`  networks a user may come from, and times of day
- `store`             claims in a folder, one file for each account
- `lookups`           claims that others have, for a cache
- `resolvers`         where claims are found: in memory, in a folder, at a web address
- `engine_check`      whether the engine takes a part of claims
- `imports`           what accounts share: exports, and the imports that count
- `accounts`          the accounts that are known, as options of a configuration file
- `users`             the decision over a client that shows claims
- `delegated`         accounts whose users a service decides about
- `operator_mode`     all of it together, for one server
- `requests`          what `nsc push` and its kin ask the system account
- `shown`             what monitoring may see of claims

Only servers that trust somebody load this.
"""

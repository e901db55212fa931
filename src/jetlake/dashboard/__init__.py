"""The dashboard: a client of a NATS server whose pages are for browsers. Decided in docs/decisions/0029-dashboard.md.

- `options`       `DashboardOptions`: the options of a dashboard at its start
- `serving`       `Dashboard`: the application on a port
- `app`           `make_app`: routes, and the gate that every request passes
- `guard`         checks of Host, Origin, form token and read-only mode; headers of answers
- `login`         who gets a session
- `sessions`      `Session`: one login with its connection, ended by limits
- `session_api`   `SessionApi`: the NATS connection of a session; permission refusals as sentences
- `profile`       `ServerProfile`: which server it is, as whom, and what it offers
- `sampler`       `Sampler`: the one task of a session that samples live figures
- `series`        `History`: samples of keys, and how they are shown
- `lag_survey`    `LagSurvey`: how far consumers are behind
- `metrics`       `MetricsReader`: fsync latency from the server's monitoring pages
- `live`          the websocket that brings samples to pages
- `listing`       `Listing`: one page of a long list, cut on the server
- `payloads`      bytes as text, JSON or hex, edited in forms and compared
- `message_view`  payloads of messages, device events decoded; names without invisible letters (filter `visible`)
- `stored_messages`  `MessagePage`: messages of a stream by subject, sequence and time; how many there are
- `subject_tree`  `Level`: subjects of a stream below one prefix
- `confirmation`  dangerous actions: a preview and a word to type
- `helpers`       `Helpers`: what costs memory or time, in a process of its own; `helper_process` is that process
- `extras`        packages that some pages need, and how to install them
- `answer_chart`  what of an answer is drawn
- `device_reading`  devices from the event stream
- `fleet_query`   one page of the fleet's lake tables; `fleet_events` who was heard from, without a lake
- `rendering`     templates, filters, notices, the equivalent command
- `keys`          what application and request carry
- `pages`         one module per page
- `templates`, `static`  HTML, and the files that browsers load; `static/vendor` holds those of others

## Add a page

1. `pages/consumers.py`: handlers, and `PAGE = Page(title=…, path=…, shortcut=…, needs=Feature.…, routes=(Route(…),
   …))`. A handler takes the request and returns `render(request, "consumers.html", …)`. `session_of(request).api` is
   the NATS connection of the user; let its errors (`JetlakeError`) pass, the gate shows them as notices.
2. `templates/consumers.html`: extends `base.html`, fills the block `content`, and uses the macros of `parts.html`
   (heading, value, spark, chart, empty, command) and `lists.html` (filter, column, pager).
3. `pages/__init__.py`: one entry in `PAGES`, one line in its docstring. Navigation, `g` and its letter, the help and
   the search (`search=`) follow from the `Page`.
4. `tests/dashboard/test_consumers.py`: on both servers, with the fixtures of `conftest.py`; `check_accessible(page)`
   once.

A list: `ListQuery.of(request)`, then `page_of_names` (reads the rows of one page only) or `page_of_rows`; what changes
stands in the element with the id `list`. A live figure: `{{ parts.value(key, live(key)) }}`; a new kind of key is
sampled in `Sampler`, for the keys that open pages watch, and has its unit in `series.UNITS`. An action: a GET route
that returns `confirm(…)`, and a POST route that calls `check_confirmed`, acts and returns `done(…)`; `guard` has
checked token, origin and read-only mode before. A link to another page: `url_of("stream", stream=name)`, empty while
no page has a route of that name.

Invariant: the dashboard holds no state but sessions; what it shows comes from NATS, and what it changes goes through
the user's own connection, so the server decides what is allowed.
"""

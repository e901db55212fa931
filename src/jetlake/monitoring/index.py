"""`/`: the list of pages, for people."""

from html import escape

from jetlake.monitoring.facts import ServerFacts

LINKS = (
    ("/varz", "General"),
    ("/jsz", "JetStream"),
    ("/connz", "Connections"),
    ("/accountz", "Accounts"),
    ("/accstatz", "Account statistics"),
    ("/subsz", "Subscriptions"),
    ("/routez", "Routes"),
    ("/leafz", "Leaf nodes"),
    ("/gatewayz", "Gateways"),
    ("/healthz", "Health"),
    ("/metrics", "Metrics for Prometheus"),
    ("/stacksz", "Stacks"),
)

DASHBOARD = ("/dashboard", "Dashboard")
"""Where a server runs one."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<style>
body {{ font: 17px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 34rem; padding: 0 1rem }}
h1 {{ font-size: 1.3rem; margin-bottom: 0; overflow-wrap: anywhere }}
p {{ margin-top: 0; opacity: .7 }}
ul {{ list-style: none; padding: 0 }}
a {{ text-decoration: none }}
code {{ opacity: .6; margin-left: .6rem }}
</style>
</head>
<body>
<h1>{name}</h1>
<p>Jetlake, compatible with nats-server {version}</p>
<ul>
{links}
</ul>
</body>
</html>
"""


def page(facts: ServerFacts, base_path: str) -> str:
    """Return the page; `base_path` stands before every link and is empty or begins with a slash."""
    shown = (DASHBOARD, *LINKS) if facts.dashboard_url else LINKS
    links = "\n".join(
        f'<li><a href="{escape(base_path + path)}">{title}</a><code>{path}</code></li>' for path, title in shown
    )
    return PAGE.format(name=escape(facts.server_name), version=escape(facts.version), links=links)

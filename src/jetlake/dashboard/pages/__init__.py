"""The pages of the dashboard, in the order of the navigation.

- `page`       `Page`: what the navigation, the keyboard and the search know of one
- `overview`   what the server is doing now
- `streams`    all streams, with their rates; purge and delete
"""

from jetlake.dashboard.pages import overview, streams
from jetlake.dashboard.pages.page import Page

__all__ = ["PAGES"]

PAGES: tuple[Page, ...] = (overview.PAGE, streams.PAGE)

"""Governors: limit how many do something at once, network-wide, without a coordinator.

```python
async with Governor(server, "PUPPET") as governor:
    async with governor.slot(max_wait_s=1200):
        ...
```

- `layout`     the stream that a governor is, as Choria has it
- `catalog`    governors created, listed, viewed, reset and removed
- `ballot`     one claim to a slot, safe to repeat
- `campaign`   tries until there is a slot
- `vacancies`  a holder that leaves tells one of the waiting campaigners
- `lease`      a slot that is held, and its release
- `renewal`    a younger lease for an older one
- `events`     who entered and left, in Choria's format
- `governor`   `Governor`, for programs with asyncio
- `sync`       the same for programs without
"""

from jetlake.governor.campaign import NoSlotError
from jetlake.governor.governor import Governor
from jetlake.governor.layout import GovernorSettings
from jetlake.governor.lease import Lease

__all__ = ["Governor", "GovernorSettings", "Lease", "NoSlotError"]

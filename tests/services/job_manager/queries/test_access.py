"""Who the sender is."""

import msgspec

from tests.services.world import World, user
from wms.messages import replies
from wms.messages.queries import WhoAmI


async def test_the_sender_is_told_what_its_token_made_of_it(the_world: World) -> None:
    ada = msgspec.structs.replace(user("ada", "job_monitor"), actions=frozenset({"submit", "see"}))
    found = await the_world.ask(ada, WhoAmI(query_id="q"))
    assert isinstance(found, replies.WhoYouAre)
    assert (found.owner, found.owner_group, found.vo, found.kind) == ("ada", "physics", "lhcb", "user")
    assert (found.rights, found.actions) == (("job_monitor",), ("see", "submit"))
    assert (found.token_id, found.expires_at) == (ada.token_id, ada.expires_at)

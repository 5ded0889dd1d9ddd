"""What answers about access tell apart."""

import msgspec

from tests.unit.messages.access_examples import FULL
from wms.messages import replies

LIMITED = FULL["who-you-are"]


def test_a_token_that_permits_nothing_is_not_one_without_limits() -> None:
    for actions in (None, (), ("see",)):
        said = msgspec.structs.replace(LIMITED, actions=actions)
        read = msgspec.json.decode(msgspec.json.encode(said), type=replies.WhoYouAre)
        assert read.actions == actions

"""A page of reservations as it travels."""

import msgspec

from tests.unit.messages.reservation_examples import ASKED, CONFIRMED, CURSOR
from wms.messages import queries, replies


def test_the_end_of_a_page_is_where_the_next_query_begins() -> None:
    page = replies.Reservations(**ASKED, lines=(CONFIRMED,), after=CURSOR)
    again = msgspec.json.decode(msgspec.json.encode(page), type=replies.Reservations)
    assert again == page
    following = queries.ListReservations(query_id="q-2", after=again.after)
    assert following.after == queries.ReservationCursor(CONFIRMED.created_at, CONFIRMED.agreement_id)

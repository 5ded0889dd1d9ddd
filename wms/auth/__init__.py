"""Who somebody is, by a signed token, and what that lets them do to whose job."""

"""The messages on the topics: one module a topic, with the union of its messages at the module's end.

Rules, checked by golden files that only grow: a new field has a default; a field's meaning never changes (a new
meaning is a new message); unknown fields are ignored, so that an older reader understands a newer writer.
The sender of a message is never a field of it: identity comes from the token sent with it.
"""

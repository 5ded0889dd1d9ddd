"""What travels over the topics: one module a topic, its union of messages at the module's end.

Rules, checked by golden files that only grow: a new field has a default; a field's meaning never changes (a new
meaning is a new message); unknown fields are passed over, so that an older reader understands a newer writer.
Who sent a message is never a field of it: identity comes from the token beside it.
"""

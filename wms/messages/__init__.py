"""The messages on the Kafka topics. Each module describes one topic; the union of its messages stands at the module's end.

Rules, checked by golden files that only grow: a new field has a default. A field's meaning never changes; a new meaning is a new
message. Unknown fields are ignored, so that an older reader understands a newer writer. The sender of a message is never a field
of it: identity comes from the token sent with it.
"""

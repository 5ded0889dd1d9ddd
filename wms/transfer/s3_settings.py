"""The settings of S3: its server and our credentials there."""

import msgspec

from wms.bounds import Line


class S3Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where S3 is, and who we are there."""

    endpoint: Line = ""
    """The URL of the server; empty for Amazon's."""
    region: Line = "us-east-1"
    credentials_file: Line = ""
    """A file of the node in the format of `~/.aws/credentials`, of which the profile `default` is used; empty: no credentials."""

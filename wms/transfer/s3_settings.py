"""A site's settings for S3: the server and the credentials there."""

import msgspec

from wms.bounds import Line


class S3Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a site reaches S3: the server, its region, and the credentials."""

    endpoint: Line = ""
    """The URL of the S3 server; empty for Amazon's."""
    region: Line = "us-east-1"
    credentials_file: Line = ""
    """A file of the node in the format of `~/.aws/credentials`; empty: no credentials are used.

    The credentials of the profile `default` are used.
    """

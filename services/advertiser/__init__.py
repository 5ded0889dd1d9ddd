"""The advertiser: reads the state of a site's computing elements and publishes it as ads."""

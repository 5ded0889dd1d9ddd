"""The advertiser: a service at a site that reads the state of its computing elements and publishes it as ads."""

"""The advertiser: reads what a site has and publishes it as ads."""

"""The environment variables by which a payload knows its site: the computing element, and what the element's ad says for jobs."""

from wms.runtime.pilot_config import PilotConfig

_OF_AD = {"StationNames": "WMS_STATIONS", "MonitoringDatabaseURL": "WMS_MONITORING_DATABASE"}
"""The variable for each attribute of an ad that jobs use. Lists are joined by commas."""


def site_variables(config: PilotConfig) -> dict[str, str]:
    """Return the variables that tell every payload of a pilot about its site."""
    text = config.resource.ad
    told = {"WMS_CE": config.pilot.ce}
    if not any(name.lower() in text for name in _OF_AD):
        return told
    from wms.classad.ad import Ad, as_value  # few ads have any, and a pilot starts faster without it
    from wms.classad.folding import constant

    ad = Ad.parse(text)
    said = {variable: ad.expression(name) for name, variable in _OF_AD.items()}
    found = {
        variable: _word(as_value(each.tree))
        for variable, each in said.items()
        if each and constant(each.tree)
    }
    return told | {variable: word for variable, word in found.items() if word}


def _word(value: object) -> str:
    match value:
        case str():
            return value
        case tuple() | list():
            return ",".join(each for each in value if isinstance(each, str))
        case _:
            return ""

"""The settings of a client, and the directory that another user is given."""

from pathlib import Path

import pytest

from wms.bus.kafka import KafkaSettings
from wms.client.settings import (
    ClientSettings,
    DashboardAddress,
    OperatorSettings,
    TokenSettings,
    read_settings,
    write_client_directory,
)
from wms.errors import Rejected


def operators(bootstrap: str) -> ClientSettings:
    return ClientSettings(
        auth=TokenSettings(token_file="/operator/token"),
        kafka=KafkaSettings(bootstrap=bootstrap),
        postgres=OperatorSettings(url="postgresql://secret"),
        dashboard=DashboardAddress(url="http://127.0.0.1:8080"),
    )


def test_a_user_who_cannot_reach_the_brokers_socket_goes_through_the_gateway(tmp_path: Path) -> None:
    write_client_directory(tmp_path / "bob", operators("unix:/home/operator/broker.sock"), "token")
    read = read_settings(tmp_path / "bob", {})
    assert read.gateway is not None
    assert read.gateway.url == "http://127.0.0.1:8080"
    assert "/home/operator" not in (tmp_path / "bob/client.toml").read_text()
    assert Path(read.auth.token_file).read_text() == "token\n"


def test_a_user_who_can_reach_the_broker_connects_to_it(tmp_path: Path) -> None:
    write_client_directory(tmp_path / "bob", operators("127.0.0.1:9999"), "token")
    read = read_settings(tmp_path / "bob", {})
    assert (read.gateway, read.kafka.bootstrap, read.postgres) == (None, "127.0.0.1:9999", None)


def test_a_directory_without_a_system_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="it has no client"):
        read_settings(tmp_path, {})

"""Archives of images, written as Docker and Podman write them."""

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

CONFIGURATION = {"architecture": "amd64", "os": "linux", "config": {}}
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


def docker_archive(root: Path, archive: Path) -> Path:
    """Write the directory `root` as an image of one layer to a file as `docker save` does; return its path."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        layer = _layer(root, place / "layer.tar")
        (place / "config.json").write_bytes(_configuration(layer))
        manifest = [{"Config": "config.json", "RepoTags": ["localhost/test:1"], "Layers": ["layer.tar"]}]
        (place / "manifest.json").write_text(json.dumps(manifest))
        return _packed(place, archive)


def oci_archive(root: Path, archive: Path) -> Path:
    """Write the directory `root` as an image of one layer to a file, an archive of OCI's layout; return its path."""
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        blobs = place / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        layer = _layer(root, place / "layer.tar")
        parts = [
            _blob(blobs, CONFIG_TYPE, _configuration(layer)),
            _blob(blobs, LAYER_TYPE, (place / "layer.tar").read_bytes()),
        ]
        (place / "layer.tar").unlink()
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": parts[0], "layers": parts[1:]}
        index = {
            "schemaVersion": 2,
            "manifests": [_blob(blobs, MANIFEST_TYPE, json.dumps(manifest).encode())],
        }
        (place / "index.json").write_text(json.dumps(index))
        (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        return _packed(place, archive)


def _layer(root: Path, path: Path) -> str:
    subprocess.run(["tar", "-C", root, "-cf", path, "."], check=True)
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _configuration(layer: str) -> bytes:
    return json.dumps(CONFIGURATION | {"rootfs": {"type": "layers", "diff_ids": [layer]}}).encode()


def _blob(blobs: Path, kind: str, data: bytes) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def _packed(directory: Path, archive: Path) -> Path:
    subprocess.run(
        ["tar", "-C", directory, "-cf", archive, *(each.name for each in directory.iterdir())], check=True
    )
    return archive

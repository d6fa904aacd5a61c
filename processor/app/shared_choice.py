"""Which place a worker shares checkpoints in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from processor.app.sender import Sender
from processor.app.settings import WorkerSettings
from processor.app.shared_bucket import SharedBucket
from processor.app.shared_folder import SharedFolder
from processor.app.shared_place import SharedPlace, SnapshotsTopic


def shared_place(
    settings: WorkerSettings, connection: Mapping[str, Any], sender: Sender
) -> SharedPlace:
    """The folder or bucket, if the settings name one, else the topic. Raises SettingsError."""
    if settings.checkpoint_folder is not None:
        return SharedFolder(settings.checkpoint_folder)
    if settings.checkpoint_bucket is not None:
        return SharedBucket(settings.checkpoint_bucket)
    return SnapshotsTopic(connection, sender)

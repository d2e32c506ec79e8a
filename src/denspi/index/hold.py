"""What a writer holds of an index: its lock, and the manifest that the changes are changes to.

Owns the question whether nobody else has written meanwhile, and the one step that makes a generation current.
"""

from __future__ import annotations

from denspi.errors import IndexLockedError
from denspi.index.directory import Directory
from denspi.index.leftovers import LOCK
from denspi.index.locks import Wait
from denspi.index.manifest import MANIFEST, MANIFEST_LIMIT_BYTES, Manifest


class Hold:
    """From the moment the lock is there until `release`."""

    def __init__(self, directory: Directory, wait: Wait) -> None:
        self._directory = directory
        self._lock = directory.lock(LOCK, wait)
        try:
            self._content = self._read()
            self.manifest = None if self._content is None else self._manifest(self._content)
        except BaseException:
            self._lock.release()
            raise

    @property
    def generation(self) -> int:
        """The last committed one; 0 before the first."""
        return self.manifest.generation if self.manifest else 0

    @property
    def part_folders(self) -> set[str]:
        """Those that the manifest names."""
        return {part.folder for part in self.manifest.parts} if self.manifest else set()

    def require_sole(self) -> None:
        """IndexLockedError if somebody else has written: whoever removes the lock file lets another in."""
        directory = self._directory
        if not directory.holds(self._lock, LOCK):
            finding = f"its file {LOCK!r} was removed or replaced while this writer held it"
        elif self._read() != self._content:
            finding = "somebody else has committed meanwhile"
        else:
            return
        raise IndexLockedError(
            f"{directory.path}: {finding}; nothing of this one was committed, make the changes again"
        )

    def publish(self, manifest: Manifest) -> None:
        """Make it the current generation, durably; `require_sole` comes first."""
        content = manifest.encoded()
        self._manifest(content)  # of a stranger's index the numbers may end here: better no commit than this
        self._directory.publish(MANIFEST, content)
        self.manifest, self._content = manifest, content

    def release(self) -> None:
        """Let go of the lock."""
        self._lock.release()

    def _manifest(self, content: bytes) -> Manifest:
        return Manifest.of(content, str(self._directory.path / MANIFEST))

    def _read(self) -> bytes | None:
        return self._directory.read("", MANIFEST, MANIFEST_LIMIT_BYTES)

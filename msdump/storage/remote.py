"""Dumps in object stores: `s3://bucket/job`, and whatever else obstore or fsspec knows, read by ranges.

obstore speaks to S3 and what is like it, Google Cloud Storage, Azure and plain HTTP servers, and takes keys, region and
endpoint from the variables of their own tools (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...). Any other scheme goes to
fsspec. Neither is imported before such an address is opened.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, cast
from urllib.parse import unquote

import numpy as np

from msdump.errors import ConfigError, FormatError, without_secrets
from msdump.storage.packs import Stamp, stamp_of
from msdump.tensors.arrays import Array

# Paths of the standard library's have one slash less.
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/{1,2}(?P<rest>[^/].*)", re.DOTALL)
_OBSTORE = ("s3", "s3a", "gs", "az", "adl", "abfs", "abfss", "azure", "http", "https")
_BLOCK_BYTES = 1 << 20
_KEPT_BLOCKS = 64
_TAIL_BYTES = 64 << 10  # of an archive: the tail, and the index of a small one
# Metadata of each object that `put_file` sends: a store's own tag is no hash of an object that came in parts. Azure
# takes names of letters, digits and _ alone, and some proxies drop headers with a _.
_CHECKSUM = "msdumpmd5"
_MD5 = re.compile(r"[0-9a-f]{32}")
_READ_BYTES = 8 << 20
# One request is there or not; of an upload in parts that is killed, S3 keeps the parts. S3 takes 10,000 of them.
_WHOLE_BYTES, _PART_BYTES, _MOST_PARTS = 64 << 20, 16 << 20, 9000
# Stores of fsspec in which a new object appears as a whole; in others a file grows under its name.
_WHOLE_STORES = frozenset({"memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "hf"})
# A silent store is reported after the first of these, is asked again until the third, and ends the command then.
_QUIET_SECONDS, _READ_SECONDS, _RETRY_SECONDS = 5, 20, 60
_LIST_SECONDS, _DATA_SECONDS = 60, 24 * 3600  # of one request
_MOST_OBJECTS, _DEEPEST = 5_000_000, 64
_log = logging.getLogger("msdump")


def is_remote(path: str) -> bool:
    """Whether a path is an address of an object store."""
    # A drive's letter is no scheme, and a scheme has two letters at least.
    return ":/" in path and _ADDRESS.fullmatch(path) is not None


def canonical(path: str) -> str:
    """The address with two slashes behind its scheme."""
    match = _ADDRESS.fullmatch(path)
    return path if match is None else f"{match['scheme']}://{match['rest'].rstrip('/')}"


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """One object.

    url    whole address
    tag    changes when its bytes do
    e_tag  the store's own tag of the content, "" where it has none
    """

    url: str
    size: int
    tag: str
    e_tag: str = ""


_Facts = tuple[int, str, str]  # size, tag and e_tag of a `RemoteObject`


class _Store(Protocol):
    """One bucket, or one server.   checksum: what `put` got with the object, where the store keeps it"""

    def listed(self, path: str) -> Iterator[tuple[str, _Facts]]: ...

    def head(self, path: str) -> _Facts | None: ...

    def ranges(self, path: str, starts: Sequence[int], ends: Sequence[int]) -> list[bytes]: ...

    def put(self, path: str, file: str, checksum: str) -> None: ...

    def checksum(self, path: str) -> str | None: ...


class _Obstore:
    """Raises: OSError, of what the store refuses."""

    def __init__(self, root: str, scheme: str) -> None:
        import obstore

        self._obstore = obstore
        self._missing = (obstore.exceptions.NotFoundError, FileNotFoundError)
        self._errors = (obstore.exceptions.BaseError,)
        self._has_metadata = scheme not in ("http", "https")
        self._root, self._scheme = root, scheme
        # A listing that never ends is cut; data may take as long as bytes come.
        self._lists: Any = self._opened(_LIST_SECONDS)
        self._store: Any = self._opened(_DATA_SECONDS)

    def _opened(self, seconds: int) -> Any:
        from obstore.store import from_url

        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
        client: dict[str, Any] = {"timeout": f"{seconds}s", "read_timeout": f"{_READ_SECONDS}s"}
        if endpoint.startswith("http://") or self._scheme == "http":
            client["allow_http"] = True
        address: str = self._root
        config: dict[str, str] = {}
        if self._scheme in ("s3", "s3a"):
            address, config = _with_keys(self._root, {"endpoint": endpoint} if endpoint else {})
        retries = {"max_retries": 10, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)}
        try:
            try:
                return cast(Any, from_url)(address, client_options=client, retry_config=retries, **config)
            except ValueError:  # obstore before 0.11 knows no read_timeout
                client = {**client, "timeout": f"{_LIST_SECONDS}s"}
                del client["read_timeout"]
                return cast(Any, from_url)(address, client_options=client, retry_config=retries, **config)
        except self._errors as error:
            raise ConfigError(f"{self._root}: expected the address of a store, got: {error!s:.300}.") from error

    def listed(self, path: str) -> Iterator[tuple[str, _Facts]]:
        try:
            for batch in self._obstore.list(self._lists, prefix=path or None):
                for entry in batch:
                    yield str(entry["path"]), _facts(entry)
        except self._errors as error:
            raise _refused(path, error) from error

    def head(self, path: str) -> _Facts | None:
        try:
            found = self._obstore.head(self._lists, path)
        except self._missing:
            return None
        except self._errors as error:
            raise _refused(path, error) from error
        return _facts(found)

    def ranges(self, path: str, starts: Sequence[int], ends: Sequence[int]) -> list[bytes]:
        try:
            found = self._obstore.get_ranges(self._store, path, starts=list(starts), ends=list(ends))
        except self._errors as error:
            raise _refused(path, error) from error
        return [bytes(content) for content in found]

    def put(self, path: str, file: str, checksum: str) -> None:
        size = os.path.getsize(file)
        part = max(_PART_BYTES, -(-size // _MOST_PARTS))
        attributes = {_CHECKSUM: checksum} if self._has_metadata else None
        try:
            with open(file, "rb") as content:
                self._obstore.put(
                    *(self._store, path, content),
                    attributes=attributes,
                    use_multipart=size > _WHOLE_BYTES,
                    chunk_size=part,
                    max_concurrency=4,
                )
        except self._errors as error:
            raise _refused(path, error) from error

    def checksum(self, path: str) -> str | None:
        if not self._has_metadata:
            return None
        try:
            found = self._obstore.get(self._lists, path, options={"head": True}).attributes.get(_CHECKSUM)
        except self._errors as error:
            raise _refused(path, error) from error
        return None if found is None else str(found)


_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def _with_keys(root: str, config: dict[str, str]) -> tuple[str, dict[str, str]]:
    """(`s3://bucket`, configuration with the keys) of `s3://KEY:SECRET@bucket`."""
    scheme, _, rest = root.partition("://")
    user, at, bucket = rest.rpartition("@")
    if not at:
        return root, config
    key, _, secret = user.partition(":")
    return f"{scheme}://{bucket}", {**config, "access_key_id": unquote(key), "secret_access_key": unquote(secret)}


def _facts(found: Any) -> _Facts:
    tag = found.get("e_tag") or ""
    return int(found["size"]), f"{tag} {found.get('last_modified') or ''}", str(tag)


def _refused(path: str, error: Exception) -> OSError:
    lines = without_secrets(str(error)).splitlines() or [type(error).__name__]
    return OSError(0, f"the store refuses {path}: {lines[0]:.300}")


class _Fsspec:
    """Raises: OSError. Not every file system of fsspec may be used by several threads, so one at a time does."""

    def __init__(self, root: str) -> None:
        from fsspec.core import url_to_fs

        self._files, base = url_to_fs(root)
        self._base = base.rstrip("/")
        protocols = self._files.protocol
        self._is_whole = not _WHOLE_STORES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)
        self._lock = threading.Lock()

    def listed(self, path: str) -> Iterator[tuple[str, _Facts]]:
        try:
            with self._asking(path):
                self._files.invalidate_cache()
                # Neither `find` nor `walk`: they leave out folders that cannot be listed.
                folders = [(self._full(path), 1)]
                while folders:
                    folder, depth = folders.pop()
                    try:
                        listing = self._files.ls(folder, detail=True)
                    except FileNotFoundError:
                        if depth > 1:
                            continue  # it went while the store was listed
                        raise
                    for info in listing:
                        if info["type"] != "directory":
                            yield info["name"].removeprefix(self._base).lstrip("/"), _file_facts(info)
                        elif depth < _DEEPEST and info["name"].rstrip("/") != folder.rstrip("/"):
                            folders.append((info["name"], depth + 1))
        except (FileNotFoundError, NotADirectoryError):
            return

    def head(self, path: str) -> _Facts | None:
        try:
            with self._asking(path):
                found = self._files.info(self._full(path))
        except FileNotFoundError:
            return None
        return _file_facts(found) if found.get("type") == "file" else None

    def ranges(self, path: str, starts: Sequence[int], ends: Sequence[int]) -> list[bytes]:
        full = self._full(path)
        with self._asking(path):
            return list(self._files.cat_ranges([full] * len(starts), list(starts), list(ends), on_error="raise"))

    def put(self, path: str, file: str, checksum: str) -> None:
        full = self._full(path)
        with self._asking(path):
            folder, _, name = full.rpartition("/")
            self._files.makedirs(folder, exist_ok=True)
            if self._is_whole:
                self._files.put_file(file, full)
                return
            # The same name each time: what a killed process leaves is overwritten by the next.
            temporary = f"{folder}/.{name}.tmp"
            self._files.put_file(file, temporary)
            try:
                self._files.mv(temporary, full)
            except FileExistsError:  # some rename to free names alone
                self._files.rm(full)
                self._files.mv(temporary, full)

    def checksum(self, path: str) -> str | None:
        return None  # no two of its stores keep metadata in the same way

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base or "/"

    @contextlib.contextmanager
    def _asking(self, path: str) -> Iterator[None]:
        """Errors of the packages that fsspec asks become OSError."""
        with self._lock:
            try:
                yield
            except OSError:
                raise
            except Exception as error:
                raise _refused(path, error) from error


def _file_facts(found: Any) -> _Facts:
    tag = found.get("ETag") or ""
    return int(found["size"]), str(tag or found.get("mtime") or found.get("created") or ""), str(tag)


_stores: dict[str, _Store] = {}
_known: dict[str, RemoteObject] = {}
_lock = threading.Lock()


def forget() -> None:
    """Connect to every store anew from here on, and read every object anew, as after a change of credentials."""
    global _blocks
    with _lock:
        _stores.clear()
        _known.clear()
        _blocks = _Blocks()


def store_of(url: str) -> tuple[_Store, str, str]:
    """(store, its address, path in it).   Raises: ConfigError; FormatError when it cannot be reached."""
    match = _ADDRESS.fullmatch(url)
    assert match is not None
    scheme = match["scheme"]
    bucket, _, path = match["rest"].partition("/")
    root = f"{scheme}://{bucket}"
    with _lock:
        if root not in _stores:
            _stores[root] = _opened(root, scheme)
        return _stores[root], root, path.rstrip("/")


def _opened(root: str, scheme: str) -> _Store:
    if scheme in _OBSTORE:
        try:
            return _Obstore(root, scheme)
        except ConfigError:
            raise
        except ValueError as error:  # a port that is none, or a name that is not UTF-8
            reason = str(error).splitlines()[0]
            raise ConfigError(f"{root}: expected the address of a store, got: {reason:.300}.") from error
        except ImportError:
            pass
    try:
        with _waiting(root):
            return _Fsspec(root)
    except OSError as error:
        raise FormatError(f"{root}: expected a store that answers, got: {error.strerror or error}.") from error
    except (ImportError, ValueError) as error:
        extra = "msdump[remote]" if scheme in _OBSTORE else f"fsspec and its package for {scheme}"
        raise ConfigError(
            f"{root}: expected a package that reads {scheme}:// addresses, got none ({error!s:.200}). Install {extra}."
        ) from error


def objects_below(url: str) -> list[RemoteObject]:
    """Every object whose address begins with this one and a slash; the object itself where it is one.

    Raises: ConfigError; FormatError when the store cannot be read, or its listing has no end.
    """
    store, root, path = store_of(url)
    exact = f"{root}/{path}"
    inside: dict[str, RemoteObject] = {}
    try:
        with _waiting(url):
            for name, facts in store.listed(path):
                remote_object = RemoteObject(f"{root}/{name}", *facts)
                if remote_object.url in inside:
                    raise OSError(0, f"a listing that names {name} twice, so that it may have no end")
                if remote_object.url == exact or remote_object.url.startswith(f"{exact}/") or not path:
                    inside[remote_object.url] = remote_object
                    if len(inside) > _MOST_OBJECTS:
                        raise OSError(0, f"more than {_MOST_OBJECTS} objects. Open a folder of it, or pack the dump")
            if not inside and path:
                found = store.head(path)
                if found is not None:
                    inside[exact] = RemoteObject(exact, *found)
    except OSError as error:
        raise FormatError(f"{url}: expected to list it, got: {error.strerror or error}.") from error
    with _lock:
        _known.update(inside)
    return list(inside.values())


def find_object(url: str) -> RemoteObject | None:
    """The object of this address, as it was when it was last listed.   Raises: OSError; ConfigError."""
    with _lock:
        known = _known.get(url)
    if known is None:
        store, root, path = store_of(url)
        with _waiting(url):
            found = store.head(path)
        if found is None:
            return None
        known = RemoteObject(f"{root}/{path}", *found)
        with _lock:
            _known[known.url] = known
    return known


@contextlib.contextmanager
def _waiting(url: str) -> Iterator[None]:
    """Say so where a store takes its time: a command that waits looks like one that hangs."""
    text = (
        f"{url}: the store takes more than {_QUIET_SECONDS} seconds. One that keeps silent is given up after about "
        f"{_RETRY_SECONDS}."
    )
    timer = threading.Timer(_QUIET_SECONDS, _log.warning, (without_secrets(text),))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def put_file(url: str, file: str) -> None:
    """Send a file of the disk.

    Raises: OSError, also when the file changed meanwhile, so that the object may be neither the old nor the new one;
            ConfigError.
    """
    store, root, path = store_of(url)
    before = stamp_of(os.stat(file))
    with _lock:
        _known.pop(f"{root}/{path}", None)
    store.put(path, file, _md5_of(file))
    if stamp_of(os.stat(file)) != before:
        raise OSError(0, "the file changed while it was sent: send it again")


def has_content(found: RemoteObject, file: str) -> bool:
    """Whether an object holds the bytes of a file: by the store's tag where that is an MD5, by the checksum that
    `put_file` left with it, or else by reading it until they differ.

    Raises: OSError; ConfigError.
    """
    if found.size != os.path.getsize(file):
        return False
    md5 = _md5_of(file)
    if found.e_tag.strip('"') == md5:
        return True
    store, _, path = store_of(found.url)
    kept = store.checksum(path)
    if kept is not None and _MD5.fullmatch(kept):
        return kept == md5
    with open(file, "rb") as own:
        for start in range(0, found.size, _READ_BYTES):
            end = min(start + _READ_BYTES, found.size)
            if store.ranges(path, [start], [end])[0] != own.read(end - start):
                return False
    return True


def _md5_of(file: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)  # what stores use as a tag
    with open(file, "rb") as content:
        while block := content.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


@dataclass(slots=True)
class Traffic:
    """What was read from stores by this process."""

    requests: int = 0
    bytes_read: int = 0


traffic = Traffic()


class RemoteSource:
    """An object, read by ranges: small ones with what lies around them, which is kept for a while; large ones alone."""

    def __init__(self, found: RemoteObject) -> None:
        self.where = found.url
        self.size = found.size
        digest = hashlib.blake2b(f"{found.url}\n{found.tag}".encode(errors="replace"), digest_size=14).digest()
        number = int.from_bytes(digest[:7], "big"), int.from_bytes(digest[7:], "big")
        # No device has a negative number.
        self.stamp: Stamp = (-1, number[0], found.size, number[1])
        self.state_ns = 0
        self._store, _, self._path = store_of(found.url)

    def read(self, offset: int, size: int) -> bytes:
        """Raises: OSError."""
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        if end == self.size and end - offset <= _TAIL_BYTES:
            return self._tail()[offset - end :]
        if end - offset >= _BLOCK_BYTES:
            return self._get([offset], [end])[0]
        first, last = offset // _BLOCK_BYTES, (end - 1) // _BLOCK_BYTES
        data = b"".join(self._blocks(range(first, last + 1)))
        start = offset - first * _BLOCK_BYTES
        return data[start : start + end - offset]

    def array(self, offset: int, size: int) -> Array:
        """Raises: OSError; ValueError."""
        data = self.read(offset, size)
        if len(data) != size:
            raise ValueError(f"{size} bytes at offset {offset}")
        return np.frombuffer(data, np.uint8)

    def _tail(self) -> bytes:
        start = max(0, self.size - _TAIL_BYTES)
        return _blocks.get((self.stamp, -1), lambda: self._get([start], [self.size])[0])

    def _blocks(self, numbers: range) -> list[bytes]:
        def block(number: int) -> bytes:
            start = number * _BLOCK_BYTES
            return self._get([start], [min(start + _BLOCK_BYTES, self.size)])[0]

        return [_blocks.get((self.stamp, number), functools.partial(block, number)) for number in numbers]

    def _get(self, starts: list[int], ends: list[int]) -> list[bytes]:
        with _waiting(self.where):
            found = self._store.ranges(self._path, starts, ends)
        with _lock:
            traffic.requests += 1
            traffic.bytes_read += sum(map(len, found))
        return found


class _Blocks:
    """Blocks that were read last, of all objects. One that several threads ask for at once is read once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Stamp, int], bytes] = OrderedDict()
        self._awaited: dict[tuple[Stamp, int], Future[bytes]] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[Stamp, int], make: Callable[[], bytes]) -> bytes:
        """Raises: what `make` raises, in every thread that waits for it."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
            awaited = self._awaited.get(key)
            own: Future[bytes] = Future()
            if awaited is None:
                self._awaited[key] = own
        if awaited is not None:
            return awaited.result()
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._awaited[key]
            own.set_exception(error)
            raise
        with self._lock:
            del self._awaited[key]
            self._kept[key] = made
            while len(self._kept) > _KEPT_BLOCKS:
                self._kept.popitem(last=False)
        own.set_result(made)
        return made


_blocks = _Blocks()

"""A candidate as files: a file, a folder or an archive, read without trusting it and written to an empty place.

Links, devices, absolute names, names that lead out of the folder, and anything beyond the limits are refused; the
unpacked size of an archive is counted while it is unpacked.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from afresh import checks
from afresh.errors import InvalidArgument, TooLarge

ARCHIVES = {".zip": "application/zip", ".tar": "application/x-tar", ".tar.gz": "application/gzip"}
"""Media types of archives, by the ending of a file's name; any other file is taken as it is."""
FILE = "application/octet-stream"
MOST_FILES = 10_000
_DEEPEST = 32
_LONGEST = 200  # the most characters in a name
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Files:
    """The files of a candidate, by their names, each with whether it may be executed."""

    name: str
    """The name its author gave it."""
    files: Mapping[str, tuple[bytes, bool]]
    folder: bool
    """Whether it is a folder rather than one file."""

    @cached_property
    def digest(self) -> str:
        """The digest of all files: the same files are the same candidate, however they were packed."""
        found = hashlib.sha256(b"folder" if self.folder else b"file")
        for name, (content, runs) in sorted(self.files.items()):
            for part in (name.encode(errors="surrogateescape"), b"x" if runs else b"-", content):
                found.update(len(part).to_bytes(8, "big") + part)
        return found.hexdigest()

    @property
    def label(self) -> str:
        """What people call it in the record. The whole digest identifies it; this is only the beginning of it."""
        return f"{self.name} {self.digest[:8]}"

    def write(self, folder: Path) -> str:
        """Write the files to a new folder `candidate`; returns the path, starting with it, that a command is given."""
        top = folder / "candidate"
        top.mkdir(mode=0o700)
        for name, (content, runs) in self.files.items():
            place = top / (name if self.folder else _plain(name))
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o700 if runs else 0o600)
            with open(made, "wb") as file:
                file.write(content)
        return "candidate" if self.folder else f"candidate/{_plain(next(iter(self.files)))}"

    def packed(self) -> tuple[bytes, str]:
        """The content to upload, and its media type."""
        if not self.folder:
            return next(iter(self.files.values()))[0], FILE
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
            for name, (content, runs) in sorted(self.files.items()):
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(content), 0o700 if runs else 0o600
                made.addfile(member, io.BytesIO(content))
        return out.getvalue(), ARCHIVES[".tar"]


def _plain(name: str) -> str:
    """A file's own name, or one that no program mistakes for an option."""
    ending = "".join(Path(name).suffixes[-1:])
    return name if _PLAIN.fullmatch(name) else f"candidate{ending if _PLAIN.fullmatch(ending[1:] or '-') else ''}"


Given = str | os.PathLike[str] | bytes | Files
"""A candidate as people pass it: the path of a file, a folder or an archive, or the content of a file as bytes."""


def read_candidate(given: Given, most: int, name: str | None = None) -> Files:
    """Read a candidate: a file, a folder, or an archive by its ending, at a path; or content; at most so many bytes.

    Text is always a path: a mistyped one must not be taken for a candidate, and charged.
    """
    if isinstance(given, Files):
        return given
    if isinstance(given, bytes):
        called = "candidate" if name is None else name
        return unpacked(given, FILE, called, most, called)
    if given == "" or not isinstance(given, str | os.PathLike):  # an empty path is the current folder
        raise checks.wrong("candidate", given, "the path of a file, a folder or an archive, or content as bytes")
    place, shown = Path(given), checks.shown(os.fspath(given))
    called = place.name or place.resolve().name if name is None else name
    _check_called(called)
    try:
        kind = os.stat(place).st_mode
        if stat.S_ISDIR(kind):
            return _checked(Files(called, dict(_walked(place, most)), True))
        if not stat.S_ISREG(kind):
            raise InvalidArgument(f"the candidate {shown} is neither a file nor a folder.")
        with place.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        why = getattr(error, "strerror", None) or "it is not a file name"
        said = f"the candidate {shown} cannot be read: {why}"
        raise InvalidArgument(
            f"{said}. Give the path of a file, a folder or an archive, or content as bytes."
        ) from None
    media = next((media for end, media in ARCHIVES.items() if place.name.lower().endswith(end)), FILE)
    return unpacked(content, media, place.name, most, called)


def _walked(top: Path, most: int) -> Iterator[tuple[str, tuple[bytes, bool]]]:
    left = most
    for folder, folders, names in os.walk(top):
        for name in sorted([*names, *folders]):
            place = Path(folder, name)
            inside, kind = place.relative_to(top).as_posix(), os.lstat(place).st_mode
            if stat.S_ISDIR(kind):
                continue
            if not stat.S_ISREG(kind):
                raise InvalidArgument(
                    f"the candidate contains {checks.shown(inside)}, which is a link or device; use files and folders."
                )
            with open(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                content = file.read(left + 1)
            left -= len(content)
            if left < 0:
                raise _too_large(most)
            yield inside, (content, bool(kind & 0o100))


def unpacked(content: bytes, media: str, file: str, most: int, name: str) -> Files:
    """Unpack what was uploaded: an archive by its media type, or one file that is called `file`."""
    _check_called(name)
    if len(content) > most:
        raise _too_large(most)
    if media not in ARCHIVES.values():
        checks.text("file", file, "the name of a file")
        return Files(name, {os.path.basename(file) or "candidate": (content, False)}, False)
    try:
        found = _unzipped(content, most) if media == ARCHIVES[".zip"] else _untarred(content, media, most)
        if len({each for each, _ in found}) < len(found):
            raise InvalidArgument("the archive has two files with the same name.")
        return _checked(Files(name, dict(found), True))
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
        raise InvalidArgument("the archive cannot be read; make it with tar or zip, without a password.") from None


def files_of(name: str, contents: Mapping[str, bytes], *, folder: bool, most: int) -> Files:
    """Make a candidate from contents by name: the files of a folder, or one file."""
    _check_called(name)
    for each in contents:
        _check_name(checks.text("files", each, "names of files"), link=False)
    if sum(map(len, contents.values())) > most:
        raise _too_large(most)
    if not folder and len(contents) != 1:
        raise InvalidArgument(f"a file has one name and one content, and there are {len(contents)}.")
    return _checked(Files(name, {each: (content, False) for each, content in contents.items()}, folder))


def _unzipped(content: bytes, most: int) -> list[tuple[str, tuple[bytes, bool]]]:
    found, left = [], most
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if len(members) > MOST_FILES:
            raise _too_many(len(members))
        for member in members:
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            _check_name(member.filename, link=bool(mode) and not stat.S_ISREG(mode) and stat.S_IFMT(mode) != 0)
            with archive.open(member) as file:
                data = file.read(left + 1)
            left -= len(data)
            if left < 0:
                raise _too_large(most)
            found.append((member.filename, (data, bool(mode & 0o100))))
    return found


def _untarred(content: bytes, media: str, most: int) -> list[tuple[str, tuple[bytes, bool]]]:
    if media == ARCHIVES[".tar.gz"]:
        whole = most + 2 * MOST_FILES * tarfile.BLOCKSIZE
        unzip = zlib.decompressobj(wbits=31)
        content = unzip.decompress(content, whole + 1)
        if len(content) > whole:
            raise _too_large(most)
    found, left = [], most
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for count, member in enumerate(archive, 1):
            if count > MOST_FILES:
                raise _too_many(count)
            if member.isdir():
                continue
            _check_name(member.name, link=not member.isreg() or member.issparse())
            file = archive.extractfile(member)
            data = b"" if file is None else file.read(left + 1)
            left -= len(data)
            if left < 0:
                raise _too_large(most)
            found.append((member.name, (data, bool(member.mode & 0o100))))
    return found


def _check_called(name: str) -> None:
    if len(checks.text("name", name, "a name for the candidate")) > _LONGEST:
        raise InvalidArgument(f"the candidate's name has {len(name):,} characters; use at most {_LONGEST}.")


def _check_name(name: str, *, link: bool) -> None:
    if link:
        raise InvalidArgument(
            f"the archive contains {checks.shown(name)}, which is a link or a device; use only files and folders."
        )
    parts = name.removeprefix("./").split("/")
    bad = "\\" in name or ":" in name or any(ord(each) < 32 for each in name) or len(parts) > _DEEPEST
    if bad or not all(parts) or {".", ".."} & {*parts} or max(map(len, parts)) > _LONGEST:
        raise InvalidArgument(f"the archive has a file named {checks.shown(name)}; use plain names inside it.")


def _checked(found: Files) -> Files:
    """Return the files if they can be written: no name occurs twice, and none is both a file and a folder."""
    names = [name.removeprefix("./") for name in found.files]
    if not names:
        raise InvalidArgument("the candidate is empty; it needs at least one file.")
    if len(names) > MOST_FILES:
        raise _too_many(len(names))
    folders = {"/".join(parts[:end]) for name in names for parts in [name.split("/")] for end in range(1, len(parts))}
    if len({*names}) < len(names) or folders & {*names}:
        raise InvalidArgument(
            "the candidate has two files with the same name, or a file and a folder with the same name."
        )
    return Files(found.name, dict(zip(names, found.files.values(), strict=True)), found.folder)


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"a candidate may have at most {most:,} bytes, even unpacked. Nothing was charged.")


def _too_many(count: int) -> TooLarge:
    return TooLarge(
        f"a candidate may have at most {MOST_FILES:,} files, but this one has {count:,}. Nothing was charged."
    )

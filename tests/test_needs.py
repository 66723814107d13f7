"""What `make test` brings by itself: every way to a browser, on machines that lack it."""

import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(__file__).parent.parent
BROWSER = "#!/bin/sh\necho Chromium 1.0\n"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def needs(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Look on a machine that has the programs of a folder and a shell; downloads are refused unless told otherwise."""
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    for name in ("sh", "chmod"):
        if not (path / name).exists():
            (path / name).symlink_to(f"/bin/{name}")
    program(path / "sudo", '#!/bin/sh\ntest "$1" = -n && shift && exec "$@"\n')
    hidden = {key: value for key, value in os.environ.items() if key != "AFRESH_BROWSER" and "proxy" not in key.lower()}
    nowhere = {"PLAYWRIGHT_DOWNLOAD_HOST": "http://127.0.0.1:9", "PLAYWRIGHT_BROWSERS_PATH": str(folder / "browsers")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "tools" / "needs.py"],
        env=hidden | nowhere | {"PATH": str(path)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def downloads() -> Iterator[str]:
    """A host that has a browser wherever Playwright looks for one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("chrome-linux64/chrome", "chrome-linux/chrome", "ffmpeg-linux"):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, BROWSER)

    class Host(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(packed.getvalue())))
            self.end_headers()
            self.wfile.write(packed.getvalue())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Host) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_browser_that_is_there_is_used(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "google-chrome", BROWSER)
    broken = program(tmp_path / "bin" / "chromium-browser", "#!/bin/sh\necho use snap\nexit 1\n")  # as on Ubuntu
    done = needs(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"The tests use {found}.\n", "")
    named = program(tmp_path / "mine", BROWSER)
    assert needs(tmp_path, AFRESH_BROWSER=str(named)).stdout == f"The tests use {named}.\n"
    for wrong in (broken, tmp_path / "none"):
        done = needs(tmp_path, AFRESH_BROWSER=str(wrong))
        assert (done.returncode, done.stdout) == (1, "")
        assert str(wrong) in done.stderr
        assert "unset it" in done.stderr


def test_playwrights_own_is_downloaded_where_that_is_possible(tmp_path: Path) -> None:
    with downloads() as host:
        done = needs(tmp_path, PLAYWRIGHT_DOWNLOAD_HOST=host)
    first, second = done.stdout.splitlines()
    assert "playwright install" in first
    assert second.startswith(f"The tests use {tmp_path / 'browsers'}")
    again = needs(tmp_path)
    assert (done.returncode, again.returncode, again.stdout) == (0, 0, second + "\n")


def test_packages_of_the_system_come_last(tmp_path: Path) -> None:
    text = f"""#!/bin/sh
test "$1" = update && exit 0
test "$*" = "install -y --no-install-recommends chromium" || exit 1
printf '%s' '{BROWSER}' > {tmp_path}/bin/chromium
chmod +x {tmp_path}/bin/chromium
"""
    program(tmp_path / "bin" / "apt-get", text)
    done = needs(tmp_path)
    assert done.returncode == 0, done
    download, packaged, used = done.stdout.splitlines()
    assert "playwright install" in download
    assert "apt-get install" in packaged
    assert used == f"The tests use {tmp_path}/bin/chromium."


def test_without_any_the_remedy_is_told(tmp_path: Path) -> None:
    for apt in (None, "#!/bin/sh\nexit 100\n"):
        if apt is not None:
            program(tmp_path / "bin" / "apt-get", apt)
        done = needs(tmp_path)
        assert done.returncode == 1
        assert len(done.stdout.splitlines()) == 1 + (apt is not None)
        assert done.stderr.count("\n") == 1
        assert "install Chromium or Chrome, or set AFRESH_BROWSER" in done.stderr


def test_ci_runs_what_people_run() -> None:
    assert [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if "make" in line] == ["make test"]

"""What a page's own script can reach: its task pages, and nothing else."""

import json
import re
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from patience import PATIENCE

from benchmarks import faults

# Each try ends as "name: refused" or "name: REACHED ..." in the page's own text. PORT is a server
# of ours, TOKEN opens it; PROBE is a port at which every connection is noticed.
TRIES = """
const note = (name, outcome) => {
    const line = document.createElement('p');
    line.textContent = name + ': ' + outcome;
    document.body.append(line);
};
const text = async answer => {
    const body = await answer.text();
    if (!answer.ok && answer.type !== 'opaque') throw answer.status;
    return answer.type + body.slice(0, 40);
};
const unread = {method: 'POST', mode: 'no-cors'};
const up = '/%2e%2e'.repeat(6);
const told = {headers: {Authorization: 'Bearer TOKEN'}};
const socketTo = url => new Promise((done, fail) => {
    const socket = new WebSocket(url);
    socket.onopen = () => done('open');
    socket.onerror = fail;
});
const xhr = url => new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.onload = () => done(request.responseText.slice(0, 40));
    request.onerror = fail;
    request.open('GET', url);
    request.send();
});
const element = (name, attribute, url, more = {}) => new Promise((done, fail) => {
    const made = Object.assign(document.createElement(name), more);
    made.onload = () => done('loaded');
    made.onerror = fail;
    made[attribute] = url;
    document.body.append(made);
});
const tries = {
    'own pages': () => fetch('/core/core.js').then(text),
    'server': () => fetch('http://127.0.0.1:PORT/stats').then(text),
    'server with its token': () => fetch('http://127.0.0.1:PORT/stats', told).then(text),
    'server unread': () => fetch('http://127.0.0.1:PORT/reset', unread).then(text),
    'server by another name': () => fetch('http://localhost:PORT/stats', told).then(text),
    'server in six': () => fetch('http://[::1]:PORT/stats', told).then(text),
    'server as a number': () => fetch('http://2130706433:PORT/stats', told).then(text),
    'server by the pages name': () => fetch('http://miniwob.localhost:PORT/stats', told).then(text),
    'server socket': () => socketTo('ws://127.0.0.1:PORT/ws'),
    'server socket by the pages name': () => socketTo('ws://miniwob.localhost:PORT/ws'),
    'probe': () => fetch('http://127.0.0.1:PROBE/', {mode: 'no-cors'}).then(text),
    'probe image': () => element('img', 'src', 'http://127.0.0.1:PROBE/'),
    'probe script': () => element('script', 'src', 'http://127.0.0.1:PROBE/'),
    'probe module': () => import('http://127.0.0.1:PROBE/'),
    'probe style': () => element('link', 'href', 'http://127.0.0.1:PROBE/', {rel: 'stylesheet'}),
    'probe worker': () => new Promise((done, fail) => {
        const code = "importScripts('http://127.0.0.1:PROBE/'); postMessage('read')";
        const worker = new Worker(URL.createObjectURL(new Blob([code])));
        worker.onmessage = () => done('read');
        worker.onerror = fail;
    }),
    'probe events': () => new Promise((done, fail) => {
        const events = new EventSource('http://127.0.0.1:PROBE/');
        events.onopen = () => done('open');
        events.onerror = fail;
    }),
    'probe transport': () => new WebTransport('https://127.0.0.1:PROBE/').ready,
    'elsewhere': () => fetch('http://example.com/', {mode: 'no-cors'}).then(text),
    'file': () => fetch('file:///etc/hostname').then(text),
    'file by request': () => xhr('file:///etc/hostname'),
    'file image': () => element('img', 'src', 'file:///etc/hostname'),
    'file script': () => element('script', 'src', 'file:///etc/hostname'),
    'file above the pages': () => fetch(up + '/etc/hostname').then(text),
    'file by a slash': () => fetch('/..%2f..%2f..%2f..%2f..%2f..%2fetc/hostname').then(text),
    'browser': () => fetch('chrome://version').then(text),
    'debugger': () => fetch('devtools://devtools/bundled/inspector.html').then(text),
};
window.onkeydown = () => {
    for (const [name, start] of Object.entries(tries))
        Promise.resolve().then(start).then(
            what => note(name, 'REACHED ' + what), () => note(name, 'refused'));
};
"""
# A window or a frame that shows something else; where it leads, only the port can tell.
AWAY = {
    "popup": "window.open('http://127.0.0.1:PROBE/')",
    "popup without opener": "window.open('http://127.0.0.1:PROBE/', '_blank', 'noopener')",
    "form": """const form = document.createElement('form');
        Object.assign(form, {action: 'http://127.0.0.1:PROBE/', method: 'post', target: '_blank'});
        document.body.append(form); form.submit()""",
    "file popup": "window.open('file:///etc/hostname')",
    "frames": """for (const url of ['http://127.0.0.1:PROBE/', 'file:///etc/hostname']) {
        const frame = document.createElement('iframe');
        frame.src = url; document.body.append(frame); }""",
}


KEY = "press('13', 'a')"  # a person's doing, without which no window opens


@contextmanager
def probe():
    """A port, and a list that grows with each connection to it."""
    heard = []
    listener = socket.create_server(("127.0.0.1", 0))

    def listen():
        with suppress(OSError):
            while True:
                heard.append(listener.accept())

    threading.Thread(target=listen, daemon=True).start()
    port = listener.getsockname()[1]
    try:
        yield port, heard
        # It does hear what reaches it.
        before = len(heard)
        socket.create_connection(("127.0.0.1", port)).close()
        deadline = time.monotonic() + PATIENCE
        while len(heard) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(heard) == before + 1
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def misbehaving():
    """A function that starts a worker whose click-test page runs a script of ours; it returns reset
    and step."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(faults.misbehaving(script))


def test_a_pages_script_reaches_nothing_but_its_pages(server, misbehaving):
    with probe() as (port, heard):
        script = TRIES.replace("PORT", server.url.rpartition(":")[2])
        script = script.replace("TOKEN", server.token).replace("PROBE", str(port))
        reset, step = misbehaving(script)
        reset()
        before = server.stats()
        step(KEY)
        names = set(re.findall(r"^    '([\w ]+)': ", TRIES, re.MULTILINE))
        deadline = time.monotonic() + PATIENCE
        outcomes = {}
        while set(outcomes) != names and time.monotonic() < deadline:
            seen = step("noop(1)")
            assert not seen["done"]
            outcomes = dict(re.findall(r"([\w ]+): (refused|REACHED.*?)'", seen["axtree_txt"]))
        assert set(outcomes) == names
        reached = {name: how for name, how in outcomes.items() if how != "refused"}
        assert set(reached) == {"own pages"}, json.dumps(reached)
        assert heard == []
        after = server.stats()
        assert (after["sessions"], after["episodes"]) == (before["sessions"], before["episodes"])


@pytest.mark.parametrize("how", AWAY)
def test_a_window_or_frame_reaches_nothing_either(misbehaving, how):
    with probe() as (port, heard):
        script = AWAY[how].replace("PROBE", str(port))
        reset, step = misbehaving(f"window.onkeydown = () => {{ {script} }}")
        reset()
        seen = step(KEY)
        assert (seen["ended"], seen["reward"]) in (("left_page", 0.0), ("", 0.0))
        time.sleep(0.5)
        assert heard == []
        assert reset("click-dialog")["goal"]


MARK = "the-text-of-a-download"
DOWNLOAD = f"""
window.onmousedown = () => {{
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(['{MARK}'.repeat(100)]));
    link.download = 'kept.txt';
    document.body.append(link);
    link.click();
}}
"""


def test_a_page_writes_no_file(misbehaving, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a worker's files go
    reset, step = misbehaving(DOWNLOAD)
    reset()
    seen = step()
    assert (seen["ended"], seen["reward"]) == ("solved", 1.0)
    time.sleep(1)
    assert list(tmp_path.iterdir()) != []
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and MARK in written(path)]
    assert kept == []


def written(path):
    """What a file holds, nothing where it is gone meanwhile."""
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""


def test_a_field_for_a_file_gets_none_and_blocks_nothing(misbehaving):
    show = "field.onchange = () => document.body.append('PICKED')"
    reset, step = misbehaving(
        f"const field = document.createElement('input'); field.type = 'file'; {show};"
        "document.body.append(field)"
    )
    tree = reset()["axtree_txt"]
    [bid] = re.findall(r"\[(\w+)\] button 'Choose File", tree)
    assert not step(f"click('{bid}')")["done"]
    seen = step(f"fill('{bid}', '/etc/hostname')")
    assert seen["last_action_error"]
    assert "PICKED" not in seen["axtree_txt"]
    assert step()["reward"] == 1.0

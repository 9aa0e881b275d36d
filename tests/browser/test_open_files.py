"""Where the system lets a process open few files: a sentence about that, and nothing lost."""

import json

from in_python import run_script

FEW = 64
SCRIPT = """
import json, resource, sys
from helpers.browser import BrowserServerError, connect, start_browser_server
FEW, HARD = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, HARD))
said, rewards = "", []
try:
    with start_browser_server(workers=1, timeout=120) as server:
        clients = []
        try:
            while len(clients) < 2 * FEW:
                clients.append(server.client())
        except BrowserServerError as error:
            said = str(error)
        for client in clients[10:]:
            client.close()
        for client in clients[:10]:
            client.reset("click-test", 0)
            rewards.append(client.step("click('13')").reward)
except BrowserServerError as error:
    said = str(error)
print(json.dumps([said, rewards]))
"""


def run(few, hard):
    """What a notebook is told that may open ``few`` files, and may let others open ``hard``."""
    return json.loads(run_script(SCRIPT, few, hard).splitlines()[-1])


def test_a_server_that_may_open_too_few_files_says_so_before_it_starts():
    said, rewards = run(FEW, FEW)
    assert "needs up to 448 open files" in said
    assert f"the system allows {FEW}" in said
    assert "ulimit -n" in said
    assert rewards == []


def test_a_client_too_many_says_so_and_the_others_play():
    """The server gives itself what the notebook does not have."""
    said, rewards = run(FEW, 2_000)
    assert f"as many files open as it may ({FEW})" in said
    assert "close some clients" in said
    assert rewards == [1.0] * 10

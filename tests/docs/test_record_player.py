"""The episodes of the site's player: read, played again, and refused where they differ."""

import copy
import json
import subprocess
import sys

import pytest
from documents import read
from patience import PATIENCE

from helpers.episodes.config import EpisodeSpec
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT, Ledger
from helpers.settings.paths import RECORDINGS, ROOT
from tools.record_player import PlayerError, answers, find_episodes, play_again, tokens_of

TRAINED = RECORDINGS / "suite" / "grpo" / "episodes.jsonl"


def test_the_tokens_of_each_answer_and_of_what_was_read_before_it():
    ledger = Ledger()
    ledger.append([1, 2, 3], PROMPT)
    ledger.append([4, 5], POLICY, [-0.5, 0.0])
    ledger.append([6], ENVIRONMENT)
    ledger.append([7], POLICY, [-1.0])
    ledger.append([8, 9], ENVIRONMENT)
    found = [(ledger.ids[read], ledger.ids[wrote]) for read, wrote in answers(ledger)]
    assert found == [([1, 2, 3], [4, 5]), ([6], [7])]


def test_a_letter_of_several_tokens_stands_at_the_last():
    class Bytes:
        def decode(self, ids):
            return bytes(ids).decode("utf-8", errors="replace")

    ids = list("a优b".encode())
    shown = tokens_of(ids, [-0.1234567] * len(ids), Bytes())
    assert [text for text, _, _ in shown] == ["a", "", "", "优", "b"]
    assert [token for _, token, _ in shown] == ids
    assert shown[0][2] == -0.123457


def test_an_episode_that_is_not_there_is_refused():
    recorded = ROOT / "recordings/suite/grpo/episodes.jsonl"
    with pytest.raises(PlayerError, match="no-such-task#7"):
        find_episodes(recorded, [EpisodeSpec("no-such-task", 7)])
    with pytest.raises(PlayerError, match="no recording"):
        find_episodes(ROOT / "nowhere.jsonl", [])
    without_tokens = ROOT / "recordings/suite/random/episodes.jsonl"
    with pytest.raises(PlayerError, match="no tokens"):
        find_episodes(without_tokens, [EpisodeSpec("click-button", 0)])


@pytest.fixture
def solved():
    """A recorded episode of three turns."""
    return find_episodes(TRAINED, [EpisodeSpec("login-user", 0)])[0]


@pytest.mark.slow
def test_an_episode_is_played_again_for_its_pictures(env, solved):
    play_again(solved, env)
    assert all(turn.screenshot and turn.box for turn in solved.turns)
    assert solved.last_screenshot


@pytest.mark.slow
def test_an_episode_that_was_not_recorded_so_is_refused(env, solved):
    unpaid = copy.deepcopy(solved)
    unpaid.reward = 0.0
    with pytest.raises(PlayerError, match="recorded with reward 0.0 and earns 1.0"):
        play_again(unpaid, env)
    other_page = copy.deepcopy(solved)
    other_page.turns[1].page = ["nothing"]
    with pytest.raises(PlayerError, match="pages of login-user#0 are not those recorded"):
        play_again(other_page, env)


@pytest.mark.slow
def test_the_command_records_what_is_committed(tmp_path):
    options = ["--choose", "click-option#1", "--output", str(tmp_path / "player")]
    command = [sys.executable, "-m", "tools.record_player", *options]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "player" / "episodes.json").read_text(encoding="utf-8"))
    (episode,) = made["episodes"]
    committed = json.loads(read("recordings/player/episodes.json"))["episodes"]
    same = next(one for one in committed if (one["task"], one["seed"]) == ("click-option", 1))
    assert without_pictures(episode) == without_pictures(same)
    for played in (episode["untrained"], episode["trained"]):
        for turn in played["turns"]:
            assert (tmp_path / "player" / turn["picture"]).stat().st_size > 200


def without_pictures(episode):
    """An episode without the names of its pictures."""
    episode = copy.deepcopy(episode)
    for side in ("untrained", "trained"):
        episode[side].pop("last_picture")
        for turn in episode[side]["turns"]:
            turn.pop("picture")
    return episode

"""Other advantages than GRPO's, and self-imitation: worked out by hand, and real updates."""

import random
from dataclasses import replace

import pytest
import torch
from one_update import GROUP_SIZE, GROUPS, on_a_cpu, recorded_episodes, tiny, trainer_of

from helpers.browser.actions import parse_action
from helpers.episodes.episode import Episode, Turn
from helpers.episodes.ledger import ENVIRONMENT, POLICY, PROMPT
from helpers.learning.advantages import shuffled, solved_advantages, turn_advantages, with_turns
from helpers.learning.run import add_to_grpo
from helpers.learning.self_imitation import SolvedEpisodes
from helpers.learning.tools_trainer import check_plain
from helpers.settings.profiles import PROFILES, ProfileError


def episode(pages, reward, seed=1):
    """An episode of one turn per page; each answer has two tokens, and three come between."""
    played = Episode("click-option", seed, reward=reward, ended="solved" if reward else "failed")
    played.ledger.append([1, 2, 3], PROMPT)
    for place, page in enumerate(pages):
        if place:
            played.ledger.append([4, 5, 6], ENVIRONMENT)
        played.ledger.append([7, 8], POLICY, [-0.5, -0.5])
        played.turns.append(Turn([page], "click('1')", parse_action("click('1')")))
    return played


# Groups of turns (GiGPO)


def test_turns_on_one_page_are_compared_with_each_other():
    """Two of four solve it. All begin on page A; two of them get to B, and one of these solves it.

    With a discount of 0.5 the returns on A are 0.5 (solved after one more turn), 0 (two turns, not
    solved), 1 (solved at once) and 0: mean 0.375, squared distances 0.015625, 0.140625, 0.390625
    and 0.140625, so a variance of 0.6875 / 3. On B they are 1 and 0: mean 0.5, variance 0.5.
    """
    group = [episode("AB", 1.0), episode("AB", 0.0), episode("A", 1.0), episode("A", 0.0)]
    found = turn_advantages(group, 4, discount=0.5)
    on_a = (0.6875 / 3) ** 0.5 + 1e-4
    on_b = 0.5**0.5 + 1e-4
    expected = [[0.125 / on_a, 0.5 / on_b], [-0.375 / on_a, -0.5 / on_b]]
    expected += [[0.625 / on_a], [-0.375 / on_a]]
    for turns, values in zip(found, expected, strict=True):
        assert turns == pytest.approx(values)


def test_a_page_that_was_met_once_says_nothing():
    found = turn_advantages([episode("AB", 1.0), episode("AC", 0.0)], 2)
    assert found[0][1] == found[1][1] == 0.0
    assert found[0][0] > 0 > found[1][0]


def test_a_page_that_comes_twice_in_one_episode_is_one_state():
    """Returns on A: 0.5 and 1 of the first episode, 0 of the second: mean 0.5, deviation 0.5."""
    found = turn_advantages([episode("AA", 1.0), episode("A", 0.0)], 2, discount=0.5)
    assert found[0] == pytest.approx([0.0, 0.5 / 0.5001])
    assert found[1] == pytest.approx([-0.5 / 0.5001])


def test_groups_are_not_mixed_and_what_was_lost_counts_for_nothing():
    group = [episode("A", 1.0), episode("A", None), episode("A", 1.0)]
    other = [episode("A", 0.0)] * 3
    assert turn_advantages([*group, *other], 3) == [[0.0]] * 6


def test_each_token_has_the_advantage_of_its_turn(tiny_trainer):
    """A = A^E + A^S for the tokens of the policy, nothing for what the environment wrote."""
    trainer = tiny_trainer(group_size=2, groups=1)
    played = [episode("AB", 1.0), episode("AB", 0.0)]
    trainer.recorder = type("Recorder", (), {"episodes": played})
    batch = {"advantages": torch.tensor([0.7, -0.7]), "completion_ids": torch.zeros(2, 9)}
    first, second = with_turns(trainer, batch)["advantages"].tolist()
    (on_a, on_b), (minus_a, minus_b) = turn_advantages(played, 2)
    assert first == pytest.approx([0.7 + on_a] * 2 + [0] * 3 + [0.7 + on_b] * 2 + [0] * 2)
    assert second == pytest.approx([minus_a - 0.7] * 2 + [0] * 3 + [minus_b - 0.7] * 2 + [0] * 2)


# The control, and rejection sampling


def test_shuffled_advantages_are_the_same_ones_in_other_places():
    advantages = [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 6.0]
    counts = [True, True, True, False, True, True, True]
    mixed = shuffled(advantages, counts, random.Random(0))
    assert sorted(mixed) == sorted(advantages)
    assert mixed != advantages
    assert mixed[3] == 0.0  # what has no reward gets none
    assert mixed == shuffled(advantages, counts, random.Random(0))


def test_rejection_sampling_takes_what_was_solved():
    played = [episode("A", 1.0), episode("A", 0.0), episode("A", None)]
    assert solved_advantages(played) == [1.0, 0.0, 0.0]


# Self-imitation


def test_an_episode_weighs_what_the_policy_does_not_solve_of_its_task():
    memory = SolvedEpisodes()
    solved, failed = episode("A", 1.0), episode("A", 0.0)
    memory.measure([solved, failed, failed, failed, episode("A", None)])
    memory.add([solved, failed])
    assert memory.weight(solved) == 0.75
    memory.measure([solved, solved])  # V: 0.9 of 0.25 and 0.1 of 1
    assert memory.weight(solved) == pytest.approx(1 - 0.325)
    assert memory.draw(5, random.Random(0)) == [solved]


def test_what_is_solved_already_is_not_learned_from_again():
    memory = SolvedEpisodes()
    memory.measure([episode("A", 1.0)])
    memory.add([episode("A", 1.0)])
    assert memory.draw(5, random.Random(0)) == []


def test_episodes_are_drawn_by_their_weights_and_none_twice():
    memory = SolvedEpisodes()
    memory.episodes = {"click-option": [episode("A", 1.0, seed) for seed in range(8)]}
    memory.success = {"click-option": 0.5}
    drawn = memory.draw(6, random.Random(0))
    assert len({one.seed for one in drawn}) == 6
    other = Episode("click-test", 1, reward=1.0)
    memory.episodes["click-test"] = [other]
    memory.success["click-test"] = 0.99  # its weight is 0.01 of 4.01
    first = [memory.draw(1, random.Random(i))[0] for i in range(50)]
    assert sum(one.task == "click-option" for one in first) > 40


def test_the_newest_solved_episodes_of_a_task_are_kept():
    memory = SolvedEpisodes()
    memory.add([episode("A", 1.0, seed) for seed in range(40)])
    assert [one.seed for one in memory.episodes["click-option"]] == list(range(24, 40))


# Real updates


def trained_on(profile, policy, folder, additions=True):
    """The batch of the first update and the gradient that it gives, of the course's trainer with a
    tiny model and the recorded episodes."""
    trainer = trainer_of(profile, tiny(policy.tokenizer, "float32"), policy.tokenizer, folder)
    if additions:
        add_to_grpo(trainer, profile)
    return trainer


def gradient(trainer, batch):
    """The gradient of the loss of one batch."""
    trainer.current_gradient_accumulation_steps = 1  # train() sets it
    trainer.model.zero_grad()
    trainer._compute_loss(trainer.model, batch).backward()
    return torch.cat([weights.grad.flatten().clone() for weights in trainer.model.parameters()])


def plain_gradient(trainer, tokens, rows):
    """- sum of advantage times logprob over the policy's tokens, divided by ``tokens``: computed
    row by row, without padding, tree or TRL. ``rows``: (episode, advantage)."""
    trainer.model.zero_grad()
    for played, advantage in rows:
        columns = played.ledger.columns()
        ids = torch.tensor([columns["prompt_ids"] + columns["completion_ids"]])
        logits = trainer.model(ids).logits[0].log_softmax(-1)
        first = len(columns["prompt_ids"])
        for place, by_policy in enumerate(columns["env_mask"], first):
            if by_policy and advantage:
                logprob = logits[place - 1, ids[0, place]]
                (-advantage * logprob / tokens).backward(retain_graph=True)
    return torch.cat([weights.grad.flatten().clone() for weights in trainer.model.parameters()])


def batch_of(trainer):
    """The batch of an update as the trainer puts it together."""
    rows = [{"prompt": str(i // GROUP_SIZE)} for i in range(GROUPS * GROUP_SIZE)]
    return trainer._generate_and_score_completions(rows)


def test_the_gradient_of_replayed_episodes_is_that_of_their_logprobs(policy, tmp_path):
    """(R - V)+ times the logprobs of the two replayed episodes, beside GRPO's own rows."""
    profile = on_a_cpu(PROFILES["cpu"], self_imitation=2)
    trainer = trained_on(profile, policy, tmp_path)
    batch_of(trainer)  # nothing to replay yet
    batch = batch_of(trainer)
    again = batch["replayed"]
    assert again.tolist() == [False] * 8 + [True] * 2
    assert batch["advantages"][again].tolist() == [0.5, 0.5]  # half of the episodes were solved

    memory = trainer.memories[0].memory
    ids = [tuple(row[mask.bool()].tolist()) for row, mask in _completions(batch, again)]
    replayed = [
        next(e for e in memory.episodes["click-button"] if _completion(e) == one) for one in ids
    ]
    episodes = recorded_episodes()
    tokens = sum(sum(e.ledger.columns()["env_mask"]) for e in [*episodes, *replayed])
    assert batch["num_items_in_batch"] == tokens
    rows = [*zip(episodes, batch["advantages"].tolist(), strict=False)]
    rows += [(e, 0.5) for e in replayed]
    found, expected = gradient(trainer, batch), plain_gradient(trainer, tokens, rows)
    assert expected.abs().max() > 1e-3
    assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_replayed_rows_can_be_dealt_out_to_the_parts_of_an_update(policy, tmp_path):
    profile = replace(on_a_cpu(PROFILES["cpu"], self_imitation=3), accumulate=2)
    trainer = trained_on(replace(profile, accumulate=1), policy, tmp_path)
    trainer.memories[0].profile = profile
    batch_of(trainer)
    assert batch_of(trainer)["replayed"].sum() == 2


def _completions(batch, rows):
    return zip(batch["completion_ids"][rows], batch["completion_mask"][rows], strict=True)


def _completion(played):
    return tuple(played.ledger.columns()["completion_ids"])


@pytest.mark.parametrize("advantages", ["turns", "solved", "shuffled"])
def test_other_advantages_make_another_step(advantages, policy, tmp_path):
    """One update of the trainer itself, whose weights move, and not as GRPO moves them."""
    profile = on_a_cpu(PROFILES["cpu"], advantages=advantages)
    plain = trained_on(profile, policy, tmp_path / "plain", additions=False)
    other = trained_on(profile, policy, tmp_path / "other")
    batches = [batch_of(plain), batch_of(other)]
    before, after = (
        gradient(trainer, batch) for trainer, batch in zip((plain, other), batches, strict=True)
    )
    assert after.norm() > 0
    likeness = torch.nn.functional.cosine_similarity(before, after, dim=0)
    # Pages of one turn: the turn's advantage is the episode's, all but the same direction.
    assert (likeness > 0.999) == (advantages == "turns")
    other.train()
    assert other.recorder.rows[-1]["update/moved"] > 0.9


def test_tools_have_none_of_it():
    for changes in ({"resample": 8}, {"advantages": "turns"}, {"self_imitation": 1}):
        with pytest.raises(ProfileError, match="cannot be used with tools"):
            check_plain(replace(PROFILES["cpu"], **changes))
    check_plain(PROFILES["cpu"])

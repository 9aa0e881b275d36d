"""Right and wrong answers to the exercises, each wrong one named after its mistake."""

import re

import nbformat
import torch

from helpers.episodes.config import EpisodeSpec
from helpers.settings.paths import NOTEBOOKS


def solution(cell, name, **imported):
    """What the folded solution in a cell of a notebook defines; ids begin with n05 or n06.

    Its part before an empty line goes into another file and is left out. ``imported``: what cells
    above it have imported.
    """
    path = next(NOTEBOOKS.glob(f"{cell[1:3]}_*.ipynb"))
    notebook = nbformat.read(path, as_version=4)
    text = next(found.source for found in notebook.cells if found.id == cell)
    folded = r"<summary>Solution</summary>\n\n```python\n(?:\S.*\n\n)?(def .*?)```"
    defined = dict(imported)
    exec(re.search(folded, text, re.DOTALL)[1], defined)
    return defined[name]


# 1.1: the bid of the element with a role and a name


def find_bid(elements, role, name):
    for element in elements:
        if element.role == role and element.name == name:
            return element.bid
    return None


def another_case(elements, role, name):
    of_the_role = [element for element in elements if element.role == role]
    return find_bid(of_the_role, role, name.capitalize())


def any_role(elements, role, name):
    return next((element.bid for element in elements if element.name == name), None)


def any_name(elements, role, name):
    return next((element.bid for element in elements if element.role == role), None)


def element_for_its_bid(elements, role, name):
    bid = find_bid(elements, role, name)
    return next((element for element in elements if element.bid == bid), None)


# 1.2: an agent that ticks the boxes of the goal, and then submits


def checkbox_agent(seen, turn):
    names = seen.goal.removeprefix("Select ").removesuffix(" and click Submit.").split(", ")
    for element in seen.elements:
        if element.role == "checkbox" and element.name in names and element.value != "true":
            return f"click('{element.bid}')"
    return f"click('{find_bid(seen.elements, 'button', 'Submit')}')"


def submits_at_once(seen, turn):
    return "click('24')"


def counts_turns(seen, turn):
    named = [element for element in seen.elements if element.name in seen.goal]
    return f"click('{named[turn].bid}')"


def ticks_the_first_again(seen, turn):
    return counts_turns(seen, 0)


# 2.1: the bid of an answer that is one click


def click_parser(answer):
    match = re.fullmatch(r"""click\((['"])([0-9]+)\1\)""", answer.strip())
    return match[2] if match else None


def finds_clicks_in_prose(answer):
    match = re.search(r"click\(['\"](\d+)['\"]\)", answer)
    return match[1] if match else None


def ignores_the_rest(answer):
    match = re.match(r"click\('(\d+)'\)", answer.strip())
    return match[1] if match else None


def needs_no_quotes(answer):
    match = re.fullmatch(r"click\(['\"]?(\d+)['\"]?\)", answer.strip())
    return match[1] if match else None


# 2.2: a worked example that chooses from a list


def worked_example():
    page = '"Country" combobox 31\n"Submit" button 36'
    return 'Select "Peru".', page, "select_option('31', 'Peru')"


def chooses_an_option():
    return 'Select "Peru".', "[31] combobox ''\n[36] option 'Peru'", "select_option('36', 'Peru')"


def chooses_another():
    return 'Select "Peru".', "[31] combobox ''", "select_option('31', 'Chile')"


def forgets_the_quotes():
    return 'Select "Peru".', "[31] combobox ''", "select_option(31, 'Peru')"


def clicks():
    return 'Select "Peru".', "[31] combobox ''", "click('31')"


def gives_a_name_alone():
    return "select_option"


# 3.1: 1 for each of the policy's tokens, from its first to its last


def completion_mask(owners):
    first = owners.index(1)
    last = max(i for i, owner in enumerate(owners) if owner == 1)
    return [int(owner == 1) for owner in owners[first : last + 1]]


def keeps_the_prompt(owners):
    return [int(owner == 1) for owner in owners]


def keeps_the_end(owners):
    return [int(owner == 1) for owner in owners[owners.index(1) :]]


def drops_the_environment(owners):
    return [1 for owner in owners if owner == 1]


# 3.2: groups of episodes on one page each


def make_groups(task, seeds, groups, size):
    return [EpisodeSpec(task, seed) for seed in seeds[:groups] for _ in range(size)]


def a_page_for_each(task, seeds, groups, size):
    return [EpisodeSpec(task, seed) for seed in seeds[: groups * size]]


def groups_interleaved(task, seeds, groups, size):
    return make_groups(task, seeds, groups, 1) * size


def one_page_for_all(task, seeds, groups, size):
    return [EpisodeSpec(task, seeds[0])] * (groups * size)


def seeds_of_its_own(task, seeds, groups, size):
    return make_groups(task, range(groups), groups, size)


# 4.1: rewards minus the mean of those that are known


def centred(rewards, size=None):
    known = [reward for reward in rewards if reward is not None]
    mean = sum(known) / (size or len(known) or 1)
    return [0.0 if reward is None else reward - mean for reward in rewards]


def lost_is_failed(rewards):
    return centred([reward or 0.0 for reward in rewards])


def divides_by_all(rewards):
    return centred(rewards, len(rewards))


def does_not_centre(rewards):
    return [reward or 0.0 for reward in rewards]


# 4.2: the strict reward, less a quarter for each turn after the first


def early(strict, turns):
    paid = []
    for reward, rewards in zip(strict, turns, strict=True):
        paid.append(None if reward is None else reward - 0.25 * (len(rewards) - 1) * reward)
    return paid


def fines_failures(strict, turns):
    paid = []
    for reward, rewards in zip(strict, turns, strict=True):
        paid.append(None if reward is None else reward - 0.25 * (len(rewards) - 1))
    return paid


def lost_earns_nothing(strict, turns):
    return [reward or 0.0 for reward in early(strict, turns)]


def never_fines(strict, turns):
    return strict


# 4.3: the clipped objective


def objective(ratio, advantage, epsilon):
    clipped = min(max(ratio, 1 - epsilon), 1 + epsilon)
    return min(ratio * advantage, clipped * advantage)


def does_not_clip(ratio, advantage, epsilon):
    return ratio * advantage


def always_clips(ratio, advantage, epsilon):
    return min(max(ratio, 1 - epsilon), 1 + epsilon) * advantage


def is_a_loss(ratio, advantage, epsilon):
    return -objective(ratio, advantage, epsilon)


# 5.1: the loss of GRPO


printed_loss = solution("n05-h10", "grpo_loss", torch=torch)


def objective_of(logprobs, old_logprobs, advantages, epsilon):
    ratio = (logprobs - old_logprobs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    return torch.minimum(ratio * advantages[:, None], clipped * advantages[:, None])


def mean_of_rollouts(logprobs, old_logprobs, advantages, mask, epsilon):
    objective = objective_of(logprobs, old_logprobs, advantages, epsilon)
    return -((objective * mask).sum(1) / mask.sum(1)).mean()


def forgets_the_mask(logprobs, old_logprobs, advantages, mask, epsilon):
    return -objective_of(logprobs, old_logprobs, advantages, epsilon).mean()


def divides_by_every_token(logprobs, old_logprobs, advantages, mask, epsilon):
    return -(objective_of(logprobs, old_logprobs, advantages, epsilon) * mask).mean()


def loss_without_clip(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(logprobs, old_logprobs, advantages, mask, 1e6)


def loss_always_clipped(logprobs, old_logprobs, advantages, mask, epsilon):
    ratio = (logprobs - old_logprobs).exp().clamp(1 - epsilon, 1 + epsilon)
    return -(ratio * advantages[:, None] * mask).sum() / mask.sum()


def rises_with_the_reward(logprobs, old_logprobs, advantages, mask, epsilon):
    return -printed_loss(logprobs, old_logprobs, advantages, mask, epsilon)


def ratio_upside_down(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(old_logprobs, logprobs, advantages, mask, epsilon)


def is_a_number(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(logprobs, old_logprobs, advantages, mask, epsilon).item()


# 5.2: pages that were gained and lost between two evaluations


def gained_and_lost(before, after):
    pairs = list(zip(before, after, strict=True))
    gained = sum(new > old for old, new in pairs)
    lost = sum(old > new for old, new in pairs)
    return gained, lost


def difference_of_sums(before, after):
    return max(0, sum(after) - sum(before)), max(0, sum(before) - sum(after))


def both_sums(before, after):
    return sum(after), sum(before)


def the_other_way_round(before, after):
    return gained_and_lost(after, before)


# 6.1: parameters of an adapter


def adapter_parameters(d_in, d_out, rank):
    return rank * (d_in + d_out)


def multiplies_both_parts(d_in, d_out, rank):
    return d_in * rank * rank * d_out


def counts_the_whole_matrix(d_in, d_out, rank):
    return d_in * d_out


def counts_one_part(d_in, d_out, rank):
    return rank * d_in


# 6.2: modules that no target names


def missed(modules, targets):
    return sorted(name for name in modules if name not in targets)


def reached(modules, targets):
    return sorted(set(modules) & set(targets))


def unsorted(modules, targets):
    return [name for name in modules if name not in targets]


# 6.4: a sentence with rates, difference, interval and n


report = solution("n06-p4", "report")


def gives_rates_alone(result):
    before = 100 * result["before"]["success"]
    after = 100 * result["after"]["success"]
    return f"{before:.0f} % -> {after:.0f} %"


def leaves_out_n(result):
    return report(result).split(", n = ")[0]


def leaves_out_the_change(result):
    return report(result).split(", change")[0]


def reports_before_twice(result):
    return report(result | {"after": result["before"]})


def says_always_the_same(result):
    return "12 % [9, 21] -> 85 % [81, 95], n = 100; change +73 [+68, +77]"


RIGHT = {
    "1.1": find_bid,
    "1.2": checkbox_agent,
    "2.1": click_parser,
    "2.2": worked_example,
    "3.1": completion_mask,
    "3.2": make_groups,
    "4.1": centred,
    "4.2": early,
    "4.3": objective,
    "5.1": printed_loss,
    "5.2": gained_and_lost,
    "6.1": adapter_parameters,
    "6.2": missed,
    "6.4": report,
}
WRONG = {
    "1.1": [another_case, any_role, any_name, element_for_its_bid],
    "1.2": [submits_at_once, counts_turns, ticks_the_first_again],
    "2.1": [finds_clicks_in_prose, ignores_the_rest, needs_no_quotes],
    "2.2": [chooses_an_option, chooses_another, forgets_the_quotes, clicks, gives_a_name_alone],
    "3.1": [keeps_the_prompt, keeps_the_end, drops_the_environment],
    "3.2": [a_page_for_each, groups_interleaved, one_page_for_all, seeds_of_its_own],
    "4.1": [lost_is_failed, divides_by_all, does_not_centre],
    "4.2": [fines_failures, lost_earns_nothing, never_fines],
    "4.3": [does_not_clip, always_clips, is_a_loss],
    "5.1": [
        mean_of_rollouts,
        forgets_the_mask,
        divides_by_every_token,
        loss_without_clip,
        loss_always_clipped,
        rises_with_the_reward,
        ratio_upside_down,
        is_a_number,
    ],
    "5.2": [difference_of_sums, both_sums, the_other_way_round],
    "6.1": [multiplies_both_parts, counts_the_whole_matrix, counts_one_part],
    "6.2": [reached, unsorted],
    "6.4": [
        gives_rates_alone,
        leaves_out_n,
        leaves_out_the_change,
        reports_before_twice,
        says_always_the_same,
    ],
}
